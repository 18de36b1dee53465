//! Directions of the gradient that have factors of their own: those of an eigenvalue under clipping
//! by value, those of a group under clipping per group.

use anyhow::{Context, Result, bail};
use toclip::{Factors, Group, Groups, Rule, Step};

use crate::arguments;
use toclip_words::short;

/// The name of clipping per group on the command line.
const PER_GROUP: &str = "per_group";
/// The name of clipping by value.
const BY_VALUE: &str = "by_value";

/// The columns of tables that name a part.
pub const COLUMNS: [&str; 2] = ["eigenvalue", "ratio"];

/// The part of the gradient that has these factors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GradientPart {
    /// The whole gradient.
    Whole,
    /// The directions with this eigenvalue.
    Eigenvalue(f64),
    /// A group, by its number and the ratio of its threshold.
    Group(usize, f64),
}

/// The rules of these names, with their parts.
pub fn rules_and_parts(
    names: &[String],
    eigenvalues: Option<&[f64]>,
    ratios: Option<&[f64]>,
) -> Result<Vec<(Rule, GradientPart)>> {
    let has = |rule: &str| names.iter().any(|name| name == rule);
    if eigenvalues.is_some() && !has(BY_VALUE) {
        bail!("--eigenvalues is for --rule {BY_VALUE}: other rules treat all directions alike");
    }
    if ratios.is_some() && !has(PER_GROUP) {
        bail!("--ratios is for --rule {PER_GROUP}: other rules have one threshold");
    }
    let mut rules = Vec::new();
    for name in names {
        let eigenvalues = eigenvalues.unwrap_or(&[1.0, 0.1, 0.01]);
        rules.extend(rule_and_parts(name, eigenvalues, ratios.unwrap_or(&[1.0, 0.5]))?);
    }
    Ok(rules)
}

/// The rule of a name, once for each part that has its own factors.
fn rule_and_parts(
    name: &str,
    eigenvalues: &[f64],
    ratios: &[f64],
) -> Result<Vec<(Rule, GradientPart)>> {
    if name == PER_GROUP {
        let group = |&ratio: &f64| Group { size: 1, ratio };
        let groups: Vec<Group> = ratios.iter().map(group).collect();
        let rule = Rule::PerGroup(Groups::new(&groups).context("--ratios")?);
        let part = |(g, &ratio)| (rule.clone(), GradientPart::Group(g, ratio));
        return Ok(ratios.iter().enumerate().map(part).collect());
    }
    let Some(rule) = Rule::named(name) else {
        let known = [&Rule::NAMES[..], &[PER_GROUP]].concat();
        bail!(arguments::unknown("rule", name, &known));
    };
    Ok(match rule {
        Rule::ByValue => eigenvalues
            .iter()
            .map(|&lambda| (rule.clone(), GradientPart::Eigenvalue(lambda)))
            .collect(),
        _ => vec![(rule, GradientPart::Whole)],
    })
}

impl GradientPart {
    /// $\mu$ of the part, and its $m^{(2)}$ in the unit of the residual.
    pub fn factors(self, step: &Step<'_>, r: f64, c: f64) -> toclip::Result<Factors> {
        match self {
            GradientPart::Whole => Factors::new(step, r, c),
            GradientPart::Eigenvalue(lambda) => Factors::of_eigenvalue(step, lambda, r, c),
            GradientPart::Group(g, _) => Factors::of_group(step, g, r, c),
        }
    }

    /// Its name, to follow those of the noise and the rule.
    pub fn describe(self) -> String {
        match self {
            GradientPart::Whole => String::new(),
            GradientPart::Eigenvalue(lambda) => format!(", eigenvalue {}", short(lambda)),
            GradientPart::Group(g, ratio) => format!(", group {} at {} c", g + 1, short(ratio)),
        }
    }

    /// The column that holds it in tables, and its cell.
    pub fn cell(self) -> Option<(&'static str, f64)> {
        match self {
            GradientPart::Whole => None,
            GradientPart::Eigenvalue(lambda) => Some(("eigenvalue", lambda)),
            GradientPart::Group(_, ratio) => Some(("ratio", ratio)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use toclip::noise::Laplace;

    fn step(rule: Rule) -> Step<'static> {
        Step::new(Arc::new(Laplace::new(1.0).unwrap())).with_rule(rule).unwrap()
    }

    #[test]
    fn a_group_is_clipped_at_its_own_threshold() {
        let parts = rule_and_parts("per_group", &[], &[2.0, 0.5]).unwrap();
        assert_eq!(
            parts.iter().map(|p| p.1.cell()).collect::<Vec<_>>(),
            [2.0, 0.5].map(|x| Some(("ratio", x)))
        );
        for (rule, part) in parts {
            let GradientPart::Group(_, ratio) = part else { panic!("{part:?}") };
            let own = part.factors(&step(rule), 0.3, 0.8).unwrap();
            let clip = Factors::new(step(Rule::Clip), 0.3, 0.8 * ratio).unwrap();
            assert_eq!((own.mu, own.m2, own.c), (clip.mu, clip.m2, 0.8));
        }
    }

    #[test]
    fn small_eigenvalues_are_clipped_less() {
        let parts = rule_and_parts("by_value", &[1.0, 0.01, 0.0], &[]).unwrap();
        let mu = |(rule, part): (Rule, GradientPart)| part.factors(&step(rule), 0.3, 0.5).unwrap();
        let at: Vec<Factors> = parts.into_iter().map(mu).collect();
        assert!(at[0].mu < 0.7 && at[1].mu > 0.9 && at[2].mu == 1.0, "{at:?}");
        let nu: Vec<f64> = at.iter().map(|at| at.nu().unwrap()).collect();
        assert!(nu[0] < nu[1] && nu[1] < nu[2] && nu[2] == 1.0, "{nu:?}");
    }

    #[test]
    fn ratios_out_of_range_name_the_flag() {
        let error = format!("{:#}", rule_and_parts("per_group", &[], &[-1.0]).unwrap_err());
        assert!(error.starts_with("--ratios: "), "{error}");
    }
}
