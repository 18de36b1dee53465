//! Chooses which column is the norm, the step, the loss.
//!
//! Formats without a header show their column names as they go. The first records are held back
//! until the choice can be made among all their names; then they are passed on, and the rest follows.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::file_damage::FileDamage;
use super::layer_names::{self, layer_of, without_groups};
use super::requested_columns::{PARTIAL, RequestedColumns};
use super::role::{NOT_GRADIENTS, ROLES, Role, is_one_of};
use super::row_joiner::{LayerUse, RowJoiner};
use super::settings::{RunSettings, setting_name};
use crate::names::printable;
use crate::{Error, LogRow, ReadOptions, Result};

/// Records held back before the choice.
const HELD: usize = 4096;
/// Values held back: fewer records if each has the norms of many layers.
const HELD_VALUES: usize = 1 << 20;
/// Names remembered: a log with more has names that are not columns.
const NAMES: usize = 20_000;
/// Names of a record whose order is remembered.
const ORDERED: usize = 64;
/// Longer names are ignored: memory must not grow with the log.
const LONGEST: usize = 1 << 10;

/// A phrase cannot be shortened after these words: "time per step" is not the step.
const BINDING: &str = "per of time in total last each this next number max best val eval test \
                       validation min skipped";

/// A column that is used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LogColumn {
    /// What for.
    pub role: Role,
    /// Its name in the log.
    pub name: String,
    /// Columns that could have been used instead, best first.
    pub others: Vec<String>,
}

struct Candidate {
    name: String,
    role: Role,
    score: u32,
    /// Rows that have it; zero for a name that occurs only among the settings of the run.
    rows: u64,
    /// Rows that have it and a norm.
    with_norm: u64,
}

/// A name that is of use.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ColumnId {
    /// One of the candidates for a role.
    Candidate(u32),
    /// The gradient norm of a layer.
    Layer(u32),
    /// A setting of the run.
    Setting(u32),
}

type Record = Vec<(ColumnId, f64)>;

/// The candidate chosen for each role.
type Chosen = [Option<u32>; ROLES.len()];

/// The chosen columns, and the rest of the log.
pub(super) struct ChosenColumns {
    pub columns: Vec<LogColumn>,
    /// The layers with norms of their own.
    pub layers: Vec<String>,
    /// Whether the norm is the total of the layers.
    pub combined: bool,
    /// The settings of the run.
    pub settings: RunSettings,
    /// All names.
    pub names: Vec<String>,
    /// Damage to the files.
    pub damage: FileDamage,
}

#[derive(Default)]
pub(super) struct ColumnChooser<'a> {
    given: RequestedColumns<'a>,
    ids: HashMap<Vec<u8>, Option<ColumnId>>,
    /// The names of the last record in their order: those of the next are mostly the same, and need
    /// not be looked up.
    order: Vec<(Vec<u8>, Option<ColumnId>)>,
    place: usize,
    names: Vec<String>,
    candidates: Vec<Candidate>,
    /// Names of settings, until their first value is known.
    settings: Vec<Option<String>>,
    /// Settings by name.
    pub found: RunSettings,
    /// Damage to the files.
    pub damage: FileDamage,
    layers: Vec<String>,
    /// Groups of other layers, which are left out.
    groups: HashSet<u32>,
    chosen: Option<Chosen>,
    held: Vec<Record>,
    held_values: usize,
    record: Record,
    /// The threshold and the batch size, which rows may have.
    in_rows: LogRow,
    pub rows: RowJoiner<'a>,
}

impl<'a> ColumnChooser<'a> {
    pub fn new(options: &'a ReadOptions, visit: &'a mut dyn FnMut(&LogRow)) -> Self {
        let (given, rows) = (RequestedColumns::new(options), RowJoiner::new(visit));
        Self { given, rows, ..Self::default() }
    }

    /// Declares that the format has a step of its own.
    pub fn fix_step(&mut self, name: &'static str) {
        self.given.fix_step(name);
    }

    /// The role of a name and its score; names given by the caller come first.
    pub fn role(&self, name: &str) -> Option<(Role, u32)> {
        self.given.role(name)
    }

    /// The id of a column; `None` for one that is of no use.
    #[inline]
    pub fn column(&mut self, key: &[u8]) -> Option<ColumnId> {
        let place = self.place;
        self.place += 1;
        if let Some((name, id)) = self.order.get(place)
            && name == key
        {
            return *id;
        }
        let id = self.look_up(key);
        if let Some((name, last)) = self.order.get_mut(place) {
            name.clear();
            name.extend_from_slice(key);
            *last = id;
        } else if place == self.order.len() && place < ORDERED {
            self.order.push((key.to_vec(), id));
        }
        id
    }

    fn look_up(&mut self, key: &[u8]) -> Option<ColumnId> {
        if let Some(id) = self.ids.get(key) {
            return *id;
        }
        if self.ids.len() >= NAMES || key.len() > LONGEST {
            return None;
        }
        let name = printable(key);
        let layer = || layer_of(&name).filter(|_| self.given.given_role(&name).is_none());
        let id = if let Some(layer) = layer() {
            self.layers.push(layer.to_owned());
            Some(ColumnId::Layer((self.layers.len() - 1) as u32))
        } else if let Some((role, score)) = self.given.role(&name) {
            self.candidates.push(Candidate {
                name: name.clone(),
                role,
                score,
                rows: 0,
                with_norm: 0,
            });
            Some(ColumnId::Candidate((self.candidates.len() - 1) as u32))
        } else if setting_name(&name).is_some() {
            self.settings.push(Some(name.clone()));
            Some(ColumnId::Setting((self.settings.len() - 1) as u32))
        } else {
            None
        };
        if self.names.len() < 200 {
            self.names.push(name);
        }
        self.ids.insert(key.to_vec(), id);
        id
    }

    /// The id of the column that a phrase ends with: it is shortened from the left until it has a role.
    pub fn column_of_phrase(&mut self, phrase: &[u8]) -> Option<ColumnId> {
        if let Some(id) = self.ids.get(phrase) {
            return *id;
        }
        let whole = String::from_utf8_lossy(phrase);
        let (mut name, mut partial) = (&*whole, None);
        while self.given.full_role(name).is_none() {
            // The shortest ending with a part that the caller gave.
            partial = self.given.partial_role(name).map(|_| name).or(partial);
            // "weight norm" is not the gradient norm.
            let binds = |word: &str| is_one_of(word, BINDING) || is_one_of(word, NOT_GRADIENTS);
            match name.split_once(' ') {
                Some((word, rest)) if !binds(&word.to_lowercase()) => name = rest.trim_start(),
                _ => {
                    name = partial.unwrap_or(&whole);
                    break;
                }
            }
        }
        let id = self.column(name.as_bytes());
        // Free text has any number of phrases; most are not worth remembering.
        if self.ids.len() < NAMES / 2 {
            self.ids.insert(phrase.to_vec(), id);
        }
        id
    }

    /// Chooses among the columns of a header.
    pub fn decide_by_header(&mut self) -> Chosen {
        self.candidates.iter_mut().for_each(|c| c.rows = 1);
        self.decide()
    }

    fn decide(&mut self) -> Chosen {
        if let Some(chosen) = self.chosen {
            return chosen;
        }
        let chosen = ROLES.map(|(role, _)| {
            let of_role = || self.candidates.iter().enumerate().filter(|(_, c)| c.role == role);
            // A name in few rows is a setting printed at the start; a step must be that of the norms.
            let most = |count: fn(&Candidate) -> u64| of_role().map(|(_, c)| count(c)).max();
            let most_rows = most(|c| c.rows).unwrap_or(0);
            let most_norms = most(|c| c.with_norm).filter(|_| role == Role::Step).unwrap_or(0);
            of_role()
                .filter(|(_, c)| c.rows > 0 && 20 * c.rows >= most_rows)
                .filter(|(_, c)| 2 * c.with_norm >= most_norms)
                .min_by_key(|(_, c)| c.score)
                .map(|(id, _)| id as u32)
        });
        self.chosen = Some(chosen);
        let layers: Vec<&str> = self.layers.iter().map(String::as_str).collect();
        let single = without_groups(&layers);
        self.groups = (0..layers.len() as u32).filter(|i| !single[*i as usize]).collect();
        for record in std::mem::take(&mut self.held) {
            self.row(self.to_row(&record));
        }
        chosen
    }

    /// Adds a value to the record; the first of two with the same name is used.
    pub fn put(&mut self, id: ColumnId, value: f64) {
        if let ColumnId::Setting(setting) = id {
            if let Some(name) = self.settings[setting as usize].take() {
                self.found.put_number(&name, value, "the log");
            }
        } else if self.record.len() < NAMES {
            self.record.push((id, value));
        }
    }

    /// Ends a record that is a row.
    pub fn end_record(&mut self) {
        self.place = 0;
        if self.record.is_empty() {
            return;
        }
        let is_norm = |(id, _): &(ColumnId, f64)| match *id {
            ColumnId::Candidate(id) => self.candidates[id as usize].role == Role::Norm,
            ColumnId::Layer(_) => true,
            ColumnId::Setting(_) => false,
        };
        let has_norm = self.chosen.is_none() && self.record.iter().any(is_norm);
        for &(id, _) in &self.record {
            let ColumnId::Candidate(id) = id else { continue };
            let candidate = &mut self.candidates[id as usize];
            candidate.rows += 1;
            candidate.with_norm += u64::from(has_norm);
            // After the choice, a better name is ignored, but a role without a column is filled.
            if let Some(chosen) = &mut self.chosen {
                chosen[candidate.role as usize].get_or_insert(id);
            }
        }
        if self.chosen.is_some() {
            let row = self.to_row(&self.record);
            self.record.clear();
            self.row(row);
            return;
        }
        self.held_values += self.record.len();
        self.held.push(std::mem::take(&mut self.record));
        if self.held.len() >= HELD || self.held_values >= HELD_VALUES {
            self.decide();
        }
    }

    /// Ends a record that holds settings of the whole run.
    pub fn end_settings(&mut self) {
        self.place = 0;
        for (id, value) in std::mem::take(&mut self.record) {
            let ColumnId::Candidate(id) = id else { continue };
            match self.candidates[id as usize].role {
                Role::Clip => self.in_rows.clip = Some(value),
                Role::BatchSize => self.in_rows.batch_size = Some(value),
                _ => {}
            }
        }
    }

    /// Drops a damaged record.
    pub fn discard(&mut self) {
        self.place = 0;
        self.record.clear();
    }

    fn to_row(&self, record: &[(ColumnId, f64)]) -> LogRow {
        let mut values = [None; ROLES.len()];
        let mut layers = Vec::new();
        let chosen = self.chosen.unwrap_or_default();
        for &(id, value) in record {
            match id {
                ColumnId::Candidate(id) => {
                    let role = self.candidates[id as usize].role as usize;
                    if chosen[role] == Some(id) {
                        values[role].get_or_insert(value);
                    }
                }
                ColumnId::Layer(layer) if self.groups.contains(&layer) => {}
                ColumnId::Layer(layer) => layers.push((layer, value)),
                ColumnId::Setting(_) => {}
            }
        }
        LogRow::new(values, layers)
    }

    /// The columns of layers that are of use.
    pub fn is_layer(&self, id: ColumnId) -> Option<u32> {
        match id {
            ColumnId::Layer(layer) if !self.groups.contains(&layer) => Some(layer),
            _ => None,
        }
    }

    /// Passes a row on once no other row can belong to its step.
    pub fn row(&mut self, mut row: LogRow) {
        // Larger integers are not exact, and no training is that long.
        row.step = row.step.filter(|s| s.abs() < 9e15);
        if row.clip.is_some() || row.batch_size.is_some() {
            self.in_rows.clip = row.clip.or(self.in_rows.clip);
            self.in_rows.batch_size = row.batch_size.or(self.in_rows.batch_size);
        }
        self.rows.add(row, self.layer_use());
    }

    /// How the norms of layers are used.
    fn layer_use(&self) -> LayerUse {
        LayerUse { combine: self.combines_layers(), keep: self.layers.len() <= layer_names::MOST }
    }

    /// Whether the norm is the total of the layers, because the log has no other.
    fn combines_layers(&self) -> bool {
        let norm = Role::Norm as usize;
        let other =
            self.given.of(Role::Norm).is_some() || self.chosen.is_some_and(|c| c[norm].is_some());
        !other && !self.layers.is_empty()
    }

    fn settings_in_rows(&self) -> RunSettings {
        let mut settings = RunSettings::default();
        let values = [(Role::Clip, self.in_rows.clip), (Role::BatchSize, self.in_rows.batch_size)];
        for (role, value) in values {
            // Training without a threshold is not a row with one of zero.
            let value = value.filter(|value| value.is_finite() && *value > 0.0);
            let name = self.candidates.iter().find(|c| c.role == role).map(|c| &c.name);
            if let (Some(value), Some(name)) = (value, name) {
                settings.put_number(name, value, "the log");
            }
        }
        settings
    }

    /// An error if the part of a name that the caller gave is in several names.
    fn refuse_ambiguous(&self, role: Role) -> Result<()> {
        let of_role = self.candidates.iter().filter(|c| c.role == role && c.rows > 0);
        let matching: Vec<String> = of_role.map(|c| c.name.clone()).collect();
        match self.given.of(role) {
            Some(name) if matching.len() > 1 => {
                Err(Error::AmbiguousColumn { name: name.into(), matching })
            }
            _ => Ok(()),
        }
    }

    /// Passes on the last rows; returns the chosen columns.
    pub fn finish(mut self) -> Result<ChosenColumns> {
        let chosen = self.decide();
        let most_layers = self.rows.finish(self.layer_use());
        let mut columns = Vec::new();
        let combined = self.combines_layers() && most_layers > 0;
        if combined {
            let name = format!("{} layers combined", self.layers.len() - self.groups.len());
            columns.push(LogColumn { role: Role::Norm, name, others: Vec::new() });
        }
        for (role, _) in ROLES {
            let Some(id) = chosen[role as usize] else {
                match self.given.of(role) {
                    Some(name) => {
                        return Err(Error::UnknownColumn { name: name.into(), known: self.names });
                    }
                    None => continue,
                }
            };
            let id = id as usize;
            if self.candidates[id].score == PARTIAL && self.given.of(role).is_some() {
                self.refuse_ambiguous(role)?;
            }
            let mut others: Vec<&Candidate> = (self.candidates.iter().enumerate())
                .filter(|(i, c)| c.role == role && c.rows > 0 && *i != id)
                .map(|(_, c)| c)
                .collect();
            others.sort_by_key(|c| c.score);
            let others = others.iter().take(20).map(|c| c.name.clone()).collect();
            let name = self.candidates[id].name.clone();
            columns.push(LogColumn { role, name, others });
        }
        if self.layers.len() > layer_names::MOST {
            self.layers.clear();
        }
        let mut settings = self.settings_in_rows();
        settings.extend(&self.found);
        let Self { layers, names, damage, .. } = self;
        Ok(ChosenColumns { columns, layers, combined, settings, names, damage })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(
        options: &ReadOptions,
        records: &[&[(&str, f64)]],
    ) -> Result<(Vec<LogRow>, Vec<LogColumn>)> {
        let mut rows = Vec::new();
        let mut visit = |row: &LogRow| rows.push(row.clone());
        let mut chooser = ColumnChooser::new(options, &mut visit);
        for record in records {
            for (name, value) in *record {
                if let Some(id) = chooser.column(name.as_bytes()) {
                    chooser.put(id, *value);
                }
            }
            chooser.end_record();
        }
        let columns = chooser.finish()?.columns;
        Ok((rows, columns))
    }

    #[test]
    fn the_best_name_wins_even_when_it_comes_later() {
        let records: &[&[(&str, f64)]] = &[
            &[("step", 1.0), ("actor/grad_norm", 9.0)],
            &[("step", 1.0), ("grad_norm", 2.0)],
            &[("step", 2.0), ("grad_norm", 3.0), ("loss", 0.5)],
        ];
        let (read, columns) = rows(&ReadOptions::default(), records).unwrap();
        assert_eq!(read.iter().map(|r| r.norm).collect::<Vec<_>>(), [Some(2.0), Some(3.0)]);
        let norm = columns.iter().find(|c| c.role == Role::Norm).unwrap();
        assert_eq!(norm.name, "grad_norm");
        assert_eq!(norm.others, ["actor/grad_norm"]);
        let asked = ReadOptions { norm: Some("actor/grad_norm".into()), ..ReadOptions::default() };
        let (read, _) = rows(&asked, records).unwrap();
        assert_eq!(read[0].norm, Some(9.0));
    }

    #[test]
    fn the_step_is_that_of_the_norms() {
        let records: &[&[(&str, f64)]] = &[
            &[("step", 1.0), ("grad_norm", 9.0)],
            &[("global_step", 1.0), ("epoch", 0.0)],
            &[("step", 2.0), ("grad_norm", 8.0)],
            &[("global_step", 2.0), ("epoch", 0.0)],
        ];
        let (read, _) = rows(&ReadOptions::default(), records).unwrap();
        let steps: Vec<_> = read.iter().map(|row| (row.step, row.norm)).collect();
        assert_eq!(steps, [(Some(1.0), Some(9.0)), (Some(2.0), Some(8.0))]);
    }

    #[test]
    fn a_part_of_a_name_is_enough_if_no_other_name_has_it() {
        let records: &[&[(&str, f64)]] =
            &[&[("step", 1.0), ("Optim/Weird", 9.0), ("optim/other", 8.0), ("x__MAX", 7.0)]];
        let norm = |part: &str| {
            let asked = ReadOptions { norm: Some(part.into()), ..ReadOptions::default() };
            rows(&asked, records).map(|(rows, _)| rows[0].norm).map_err(|e| e.to_string())
        };
        assert_eq!(norm("weird"), Ok(Some(9.0)));
        assert_eq!(norm("OPTIM/OTHER"), Ok(Some(8.0)));
        assert_eq!(
            norm("optim").unwrap_err(),
            "several columns match `optim`: `Optim/Weird`, `optim/other`; give more of the name"
        );
        assert!(norm("x_").unwrap_err().starts_with("unknown column"));
    }

    #[test]
    fn a_column_that_is_not_there_is_named() {
        let asked = ReadOptions { norm: Some("gn".into()), ..ReadOptions::default() };
        let error = rows(&asked, &[&[("step", 1.0), ("grad_norm", 9.0)]]).unwrap_err();
        assert_eq!(error.to_string(), "unknown column `gn`; the log has `step`, `grad_norm`");
        let close = ReadOptions { norm: Some("gradnorm".into()), ..ReadOptions::default() };
        let error = rows(&close, &[&[("step", 1.0), ("grad_norm", 9.0)]]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown column `gradnorm`; did you mean `grad_norm`? The log has `step`, `grad_norm`"
        );
    }
}
