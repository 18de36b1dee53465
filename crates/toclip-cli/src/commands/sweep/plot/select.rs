//! Which cells a picture shows, and the number at each of its places.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use toclip_sweep::{KeyValues, Sweep, number, text};

use super::super::log::SavedCells;
use super::Args;
use crate::arguments::unknown;
use crate::output::numbers::short;

/// What a picture shows.
pub struct Selection {
    /// The key on the horizontal axis.
    pub x: KeyValues,
    /// The key on the vertical axis, or of the lines.
    pub by: Option<KeyValues>,
    /// Whether it is a heat map.
    pub map: bool,
    /// The column.
    pub value: String,
    /// The keys that the smallest value is taken over.
    pub minimized: Vec<String>,
    /// The setting that values are divided by.
    pub relative_to: Option<(String, toml::Value)>,
    /// The settings that are fixed.
    pub fixed: Vec<(String, toml::Value)>,
    column: usize,
}

impl Selection {
    pub fn new(args: &Args, sweep: &Sweep) -> Result<Self> {
        let keys: Vec<&KeyValues> = sweep.axes().iter().flat_map(|axis| &axis.keys).collect();
        let find = |flag: &str, name: &str| -> Result<KeyValues> {
            let known: Vec<&str> = keys.iter().map(|key| &*key.key).collect();
            match keys.iter().find(|key| key.key == name) {
                Some(key) => Ok((*key).clone()),
                None => bail!("{flag}: {}", unknown("key", name, &known)),
            }
        };
        let setting = |flag: &str, given: &str| -> Result<(String, toml::Value)> {
            let Some((name, wanted)) = given.split_once('=') else {
                bail!("{flag} is {given:?}; expected a key and a value, such as clip=none");
            };
            let key = find(flag, name.trim())?;
            let wanted = wanted.trim();
            match key.values.iter().find(|value| says(value, wanted)) {
                Some(value) => Ok((key.key, value.clone())),
                None => {
                    let mut known: Vec<String> = key.values.iter().take(20).map(text).collect();
                    if key.values.len() > known.len() {
                        known.push("…".into());
                    }
                    bail!(
                        "{flag}: {} is never {wanted}; it is one of: {}",
                        key.key,
                        known.join(", ")
                    )
                }
            }
        };
        let fixed: Vec<_> =
            args.only.iter().map(|given| setting("--where", given)).collect::<Result<_>>()?;
        let relative_to =
            args.relative_to.as_ref().map(|given| setting("--relative-to", given)).transpose()?;
        for name in &args.minimize {
            find("--minimize", name)?;
        }
        let roles = [&args.x, &args.y, &args.lines].into_iter().flatten();
        let roles: Vec<&String> =
            roles.chain(&args.minimize).chain(fixed.iter().map(|(key, _)| key)).collect();
        if let Some((_, twice)) =
            roles.iter().enumerate().find(|(i, name)| roles[..*i].contains(name))
        {
            bail!("`{twice}` is given twice; a key is on an axis, fixed or minimised over");
        }
        let columns = sweep.columns();
        let value = args.value.clone().unwrap_or_else(|| columns[0].clone());
        let Some(column) = columns.iter().position(|column| *column == value) else {
            let known: Vec<&str> = columns.iter().map(String::as_str).collect();
            bail!("--value: {}", unknown("column", &value, &known));
        };
        let taken = |name: &str| {
            args.minimize.iter().any(|key| key == name) || fixed.iter().any(|(key, _)| key == name)
        };
        // One key of each axis speaks for those that change with it.
        let mut free = sweep
            .axes()
            .iter()
            .filter(|axis| axis.len() > 1 && !axis.keys.iter().any(|key| taken(&key.key)))
            .map(|axis| axis.keys[0].clone());
        let given = [&args.x, &args.y, &args.lines];
        let chosen = |name: &str| given.iter().any(|given| given.as_deref() == Some(name));
        // Keys that change together are on one axis, whichever of them was named.
        let with_chosen = |name: &str| {
            let axis = sweep.axes().iter().find(|axis| axis.keys.iter().any(|key| key.key == name));
            axis.is_some_and(|axis| axis.keys.iter().any(|key| chosen(&key.key)))
        };
        let mut next = || free.find(|key| !with_chosen(&key.key));
        let x = match &args.x {
            Some(name) => find("--x", name)?,
            None => match next() {
                Some(key) => key,
                None => bail!("nothing varies that could be drawn; give --x"),
            },
        };
        let by = match (&args.y, &args.lines) {
            (Some(name), _) => Some(find("--y", name)?),
            (_, Some(name)) => Some(find("--lines", name)?),
            (None, None) => next(),
        };
        let together = |by: &KeyValues| {
            let both = |axis: &toclip_sweep::Axis| {
                [&x, by].iter().all(|key| axis.keys.iter().any(|own| own.key == key.key))
            };
            sweep.axes().iter().any(both)
        };
        if let Some(by) = by.as_ref().filter(|by| together(by)) {
            bail!("`{}` and `{}` change together; expected keys of two axes", x.key, by.key);
        }
        if let Some((key, _)) = &relative_to
            && (*key == x.key || by.as_ref().is_some_and(|by| by.key == *key))
        {
            bail!("--relative-to {key}: it is on an axis of the picture; minimise over it instead");
        }
        let map = args.lines.is_none() && by.is_some();
        let minimized = args.minimize.clone();
        let selection = Selection { x, by, map, value, minimized, relative_to, fixed, column };
        selection.check_free(sweep)?;
        Ok(selection)
    }

    /// Refuses a picture in which several cells would share a place.
    fn check_free(&self, sweep: &Sweep) -> Result<()> {
        let settled = |name: &str| {
            name == self.x.key
                || self.by.as_ref().is_some_and(|by| by.key == name)
                || self.minimized.iter().any(|key| key == name)
                || self.fixed.iter().any(|(key, _)| key == name)
        };
        let free = sweep
            .axes()
            .iter()
            .find(|axis| axis.len() > 1 && !axis.keys.iter().any(|key| settled(&key.key)));
        if let Some(axis) = free {
            let key = &axis.keys[0];
            bail!(
                "`{}` varies too; fix it with --where {}={}, or add --minimize {}",
                key.key,
                key.key,
                text(&key.values[0]),
                key.key
            );
        }
        Ok(())
    }

    /// The number at each place: a row for each value of the second key, NaN where no cell is finished.
    pub fn values(&self, saved: &mut SavedCells) -> Result<Vec<Vec<f64>>> {
        let mut best: BTreeMap<(usize, usize), [f64; 2]> = BTreeMap::new();
        for cell in 0..saved.sweep.cells() {
            let settings = saved.sweep.settings(cell);
            let is = |name: &str, value: &toml::Value| {
                settings.iter().any(|(key, own)| *key == name && *own == value)
            };
            let place = |key: &KeyValues| key.values.iter().position(|value| is(&key.key, value));
            if !self.fixed.iter().all(|(name, value)| is(name, value)) {
                continue;
            }
            let reference = self.relative_to.as_ref().is_some_and(|(name, value)| is(name, value));
            let at = (self.by.as_ref().map_or(Some(0), place), place(&self.x));
            let (Some(j), Some(i)) = at else { continue };
            let Some(row) = saved.row(cell)? else { continue };
            let value = row.values[self.column];
            let found = best.entry((j, i)).or_insert([f64::NAN; 2]);
            found[0] = found[0].min(value);
            if reference {
                found[1] = found[1].min(value);
            }
        }
        let rows = self.by.as_ref().map_or(1, |by| by.values.len());
        let at = |j: usize, i: usize| {
            let [value, reference] = best.get(&(j, i)).copied().unwrap_or([f64::NAN; 2]);
            if self.relative_to.is_some() { value / reference } else { value }
        };
        let columns = self.x.values.len();
        Ok((0..rows).map(|j| (0..columns).map(|i| at(j, i)).collect()).collect())
    }
}

/// Whether a value is what a person wrote on the command line.
fn says(value: &toml::Value, wanted: &str) -> bool {
    match (number(value), wanted) {
        (Some(x), "none" | "inf") => x.is_infinite(),
        (Some(x), wanted) => {
            short(x) == wanted
                || wanted.parse::<f64>().is_ok_and(|y| (x - y).abs() <= 1e-6 * x.abs())
        }
        (None, wanted) => text(value) == wanted,
    }
}
