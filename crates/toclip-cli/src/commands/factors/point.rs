//! The factors at one risk and one threshold, in words.

use anyhow::Result;
use serde_json::{Value, json};
use toclip::verdict::Verdict;
use toclip::{Factors, Rule};
use toclip_words::{short, significant, verdict as words};

use super::gradient_part::GradientPart;
use super::{NoiseSpec, json_point};
use crate::output::json::{self, number};
use crate::output::terminal;

/// Prints the factors of each noise.
pub fn run(noises: &[NoiseSpec], r: f64, c: f64, as_json: bool) -> Result<()> {
    let points = noises.iter().map(|spec| Point::new(spec, r, c)).collect::<Result<Vec<_>>>()?;
    if as_json {
        match &points.iter().map(Point::json).collect::<Vec<_>>()[..] {
            [one] => json::print(one)?,
            all => json::print(&all)?,
        }
    } else {
        let texts: Vec<_> = points.iter().map(Point::text).collect();
        terminal::print(format_args!("{}", texts.join("\n")));
    }
    Ok(())
}

struct Point<'a> {
    spec: &'a NoiseSpec,
    at: Factors,
    /// Whether to clip; `None` for a part of the gradient.
    verdict: Option<Verdict>,
}

impl<'a> Point<'a> {
    fn new(spec: &'a NoiseSpec, r: f64, c: f64) -> Result<Self> {
        let at = spec.part.factors(&spec.step, r, c)?;
        let whole = spec.part == GradientPart::Whole;
        let verdict = || Verdict::at_risk(&spec.step, r)?.with_fisher_limit(&spec.step);
        let verdict = whole.then(verdict).transpose()?;
        Ok(Point { spec, at, verdict })
    }

    fn json(&self) -> Value {
        let mut map = json_point(&self.at);
        map.insert("noise".into(), json!(self.spec.family));
        map.extend(self.spec.cells().into_iter().map(|(name, cell)| (name.to_owned(), cell)));
        let best = self.verdict.as_ref().and_then(Verdict::moment);
        let fisher = best.and_then(|best| best.fisher).map(|limit| {
            json!({
                "information": number(limit.information),
                "limit": number(limit.limit),
                "reached": limit.reached,
            })
        });
        let best = best.map(|at| json!({ "c": number(at.c), "mu": at.mu, "ccc": number(at.ccc) }));
        map.insert("best".into(), json!(best));
        map.insert("fisher".into(), json!(fisher));
        map.insert("decision".into(), json!(self.verdict));
        map.into()
    }

    fn text(&self) -> String {
        let (at, step) = (&self.at, &self.spec.step);
        let clips = *step.rule() == Rule::Clip;
        let kept = match (clips, step.batch().is_single()) {
            _ if at.mu < 0.0 => "below 0: this rule moves away from the solution",
            (true, true) => "share of the descent that clipping keeps (samples not clipped)",
            (true, false) => "share of the descent that clipping keeps",
            (false, _) => "descent, relative to unclipped SGD",
        };
        let square = match clips {
            _ if matches!(self.spec.part, GradientPart::Eigenvalue(_)) => {
                "mean square of the clipped gradient, over the eigenvalue"
            }
            true => "mean square of the clipped residual",
            false => "mean square of the residual after the rule",
        };
        let variance = match clips {
            true => "share of the variance that clipping keeps",
            false => "variance, relative to unclipped SGD",
        };
        let mut lines = vec![("μ", at.mu, kept.to_owned()), ("m2", at.m2, square.into())];
        let mut undefined = None;
        match (at.nu(), at.csc(), at.ccc()) {
            (Ok(nu), Ok(csc), Ok(ccc)) => lines.extend([
                ("ν", nu, variance.into()),
                ("CSC", csc, self.stability(csc)),
                ("CCC", ccc, self.comparison(ccc)),
            ]),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => undefined = Some(error),
        }
        let cells = |(name, value, meaning): (&str, f64, String)| {
            [name.to_owned(), significant(value, 4), meaning]
        };
        let spec = self.spec.describe();
        let mut text = format!("{spec} at R = {}, c = {}\n", short(at.r), short(at.c));
        text += &terminal::columns("lll", [""; 3], lines.into_iter().map(cells));
        let mut line = |words: String| text.push_str(&format!("  {words}\n"));
        undefined.into_iter().for_each(|error| line(error.to_string()));
        if let Some(verdict) = &self.verdict {
            let best = words::best_threshold_line(verdict).map(|best| format!("best: {best}"));
            let limit = words::limit(verdict).map(|limit| format!("limit: {limit}"));
            best.into_iter().chain(limit).for_each(line);
        }
        text
    }

    /// "clipping here", or "the rule here".
    fn subject(&self) -> &'static str {
        if *self.spec.step.rule() == Rule::Clip { "clipping here" } else { "the rule here" }
    }

    /// What CSC means. For a part of the gradient it says nothing about the whole.
    fn stability(&self, csc: f64) -> String {
        let subject = self.subject();
        if csc <= 0.0 {
            "not positive: no learning rate is stable".into()
        } else if self.spec.part != GradientPart::Whole {
            "descent over variance, relative to unclipped SGD, in these directions".into()
        } else if csc > 1.0 + 1e-12 {
            format!("above 1: {subject} allows larger learning rates")
        } else if csc < 1.0 - 1e-12 {
            format!("below 1: {subject} makes SGD less stable")
        } else {
            format!("{subject} does not change which learning rates are stable")
        }
    }

    /// What CCC means. For a part of the gradient it says nothing about the whole.
    fn comparison(&self, ccc: f64) -> String {
        let subject = self.subject();
        if self.at.mu <= 0.0 {
            "0: no learning rate helps where μ is not positive".into()
        } else if self.spec.part != GradientPart::Whole {
            "squared descent over variance, relative to unclipped SGD, in these directions".into()
        } else if ccc > 1.0 + 1e-12 {
            format!("above 1: with the learning rate η/μ, {subject} beats unclipped SGD")
        } else if ccc < 1.0 - 1e-12 {
            format!("below 1: at equal descent, {subject} adds noise")
        } else {
            format!("{subject} is as good as unclipped SGD")
        }
    }
}
