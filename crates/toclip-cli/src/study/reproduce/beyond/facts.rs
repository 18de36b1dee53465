//! The numbers of a figure by name, and claims about them, which are data of the figure's file.

use anyhow::{Result, bail, ensure};
use serde::Deserialize;

use super::{check, digits};
use crate::report::Claim;
use toclip_words::percent;

/// Numbers, each of a curve.
#[derive(Debug, Default)]
pub struct Facts(Vec<(String, &'static str, f64)>);

impl Facts {
    pub fn add<const N: usize>(&mut self, curve: &str, facts: [(&'static str, f64); N]) {
        self.0.extend(facts.map(|(name, value)| (curve.to_owned(), name, value)));
    }

    /// One number of these curves, or of all that have it.
    fn find(&self, fact: &str, curves: &[String]) -> Result<Vec<(&str, f64)>> {
        let all = self.0.iter().filter(|known| known.1 == fact);
        let all: Vec<(&str, f64)> = all.map(|known| (known.0.as_str(), known.2)).collect();
        if curves.is_empty() {
            ensure!(!all.is_empty(), "no curve has the number `{fact}`");
            return Ok(all);
        }
        let one = |name: &String| match all.iter().find(|known| known.0 == name.as_str()) {
            Some(found) => Ok(*found),
            None => bail!("the curve `{name}` has no number `{fact}`"),
        };
        curves.iter().map(one).collect()
    }
}

/// A claim about the numbers of a figure. Its statement is in `report_text.toml`, by its name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimFile {
    name: String,
    /// With a `{}` for each of the values.
    measured: String,
    #[serde(default)]
    values: Vec<Value>,
    /// All of them have to be met.
    holds: Vec<Bound>,
}

/// A number of one or several curves, or its ratio to another number.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Quantity {
    fact: String,
    /// All that have it if none are named.
    #[serde(default)]
    curves: Vec<String>,
    /// What it is divided by: a number of the same curves, or of others.
    over: Option<Box<Quantity>>,
    /// Each over the one before.
    #[serde(default)]
    ratios: bool,
}

/// How a claim shows a quantity.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Value {
    of: Quantity,
    #[serde(rename = "as", default)]
    format: Format,
    /// Only the least or the largest.
    take: Option<Take>,
    /// Each after the name of its curve.
    #[serde(default)]
    named: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Format {
    /// Three significant digits.
    #[default]
    Digits,
    Percent,
    /// A ratio as a change: "−12%".
    Change,
    /// "2e-9".
    Scientific,
    /// How far from one: "+2e-16".
    Excess,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Take {
    Least,
    Largest,
}

/// What a quantity has to meet on every curve.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bound {
    of: Quantity,
    above: Option<f64>,
    at_least: Option<f64>,
    below: Option<f64>,
    at_most: Option<f64>,
}

impl Quantity {
    fn find<'a>(&self, facts: &'a Facts) -> Result<Vec<(&'a str, f64)>> {
        let mut found = facts.find(&self.fact, &self.curves)?;
        if let Some(over) = &self.over {
            let names: Vec<String> = found.iter().map(|(name, _)| (*name).into()).collect();
            let same = if over.curves.is_empty() { &names } else { &over.curves };
            let others = facts.find(&over.fact, same)?;
            ensure!(others.len() == found.len() || others.len() == 1, "`{}`: no pairs", self.fact);
            for (one, other) in found.iter_mut().zip(others.iter().cycle()) {
                one.1 /= other.1;
            }
        }
        if self.ratios {
            let pairs = found.windows(2).map(|pair| (pair[1].0, pair[1].1 / pair[0].1));
            found = pairs.collect();
        }
        Ok(found)
    }
}

impl Value {
    fn show(&self, facts: &Facts) -> Result<String> {
        let mut found = self.of.find(facts)?;
        let by = |a: &&(&str, f64), b: &&(&str, f64)| a.1.total_cmp(&b.1);
        let one = match self.take {
            Some(Take::Least) => found.iter().min_by(by).copied(),
            Some(Take::Largest) => found.iter().max_by(by).copied(),
            None => None,
        };
        if let Some(one) = one {
            found = vec![one];
        }
        let show = |(name, value): &(&str, f64)| match self.named {
            true => format!("{name}: {}", self.format.of(*value)),
            false => self.format.of(*value),
        };
        let shown: Vec<String> = found.iter().map(show).collect();
        Ok(shown.join(if self.named { "; " } else { ", " }))
    }
}

impl Format {
    fn of(self, value: f64) -> String {
        match self {
            Format::Digits => digits(value),
            Format::Percent => percent(value),
            Format::Change => change(value),
            Format::Scientific => format!("{value:.0e}"),
            Format::Excess => format!("{:+.0e}", value - 1.0),
        }
    }
}

impl Bound {
    fn is_met(&self, facts: &Facts) -> Result<bool> {
        let Bound { above, at_least, below, at_most, .. } = *self;
        let bounds = [above, at_least, below, at_most];
        ensure!(bounds.iter().any(Option::is_some), "`{}` has no bound", self.of.fact);
        // NaN meets none.
        let met = |x: f64| {
            above.is_none_or(|bound| x > bound)
                && at_least.is_none_or(|bound| x >= bound)
                && below.is_none_or(|bound| x < bound)
                && at_most.is_none_or(|bound| x <= bound)
        };
        let found = self.of.find(facts)?;
        Ok(!found.is_empty() && found.iter().all(|(_, value)| met(*value)))
    }
}

impl ClaimFile {
    /// What was measured, and whether the claim holds.
    pub fn check(&self, facts: &Facts) -> Result<Claim> {
        let texts: Vec<&str> = self.measured.split("{}").collect();
        let name = &self.name;
        ensure!(texts.len() == self.values.len() + 1, "{name}: one value for each {{}}");
        ensure!(!self.holds.is_empty(), "{name}: nothing to hold");
        let mut measured = texts[0].to_owned();
        for (value, text) in self.values.iter().zip(&texts[1..]) {
            measured += &(value.show(facts)? + text);
        }
        let mut holds = true;
        for bound in &self.holds {
            holds &= bound.is_met(facts)?;
        }
        Ok(check(name, measured, holds))
    }
}

/// A ratio as a change: "−12%".
fn change(ratio: f64) -> String {
    let share = ratio - 1.0;
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict::{Fails, Holds};

    const CLAIM: &str = "name = 'gain'\nmeasured = '{} globally, {} per group ({}); {}'\n\
        values = [{ of = { fact = 'risk', curves = ['global'] } }, \
        { of = { fact = 'risk', curves = ['groups'] }, take = 'least' }, \
        { of = { fact = 'risk', curves = ['groups'], over = { fact = 'risk', curves = ['global'] } }, as = 'change' }, \
        { of = { fact = 'risk' }, named = true }]\n\
        holds = [{ of = { fact = 'risk', ratios = true }, below = 0.95 }, { of = { fact = 'risk' }, above = 0.0 }]";

    fn facts(groups: f64) -> Facts {
        let mut facts = Facts::default();
        facts.add("global", [("risk", 2.0)]);
        facts.add("groups", [("risk", groups)]);
        facts
    }

    #[test]
    fn claims_hold_fail_and_show_their_numbers() {
        let claim: ClaimFile = toml::from_str(CLAIM).unwrap();
        let held = claim.check(&facts(1.5)).unwrap();
        let measured = "2 globally, 1.5 per group (−25%); global: 2; groups: 1.5";
        assert_eq!((held.measured.as_str(), held.verdict), (measured, Holds));
        for groups in [1.95, -1.0, f64::NAN] {
            assert_eq!(claim.check(&facts(groups)).unwrap().verdict, Fails, "{groups}");
        }
    }

    #[test]
    fn mistakes_are_errors() {
        let says = |from: &str, to: &str| {
            let claim: ClaimFile = toml::from_str(&CLAIM.replacen(from, to, 1)).unwrap();
            claim.check(&facts(1.0)).unwrap_err().to_string()
        };
        assert_eq!(says("['groups']", "['layers']"), "the curve `layers` has no number `risk`");
        assert_eq!(
            says("of = { fact = 'risk' }", "of = { fact = 'rsk' }"),
            "no curve has the number `rsk`"
        );
        assert_eq!(says("{} globally", "globally"), "gain: one value for each {}");
        assert_eq!(says(", below = 0.95", ""), "`risk` has no bound");
    }
}
