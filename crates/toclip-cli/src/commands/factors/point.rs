//! The factors at one risk and one threshold, in words.

use anyhow::Result;
use serde_json::{Value, json};
use toclip::criteria::{BestThreshold, FisherLimit, best_threshold, fisher_limit};
use toclip::{Error, Factors, Rule};

use super::gradient_part::GradientPart;
use super::{NoiseSpec, json_point};
use crate::output::json::{self, number};
use crate::output::terminal;
use toclip_words::{short, significant};

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
    /// Of the whole gradient.
    best: Option<BestThreshold>,
    limit: Option<FisherLimit>,
}

impl<'a> Point<'a> {
    fn new(spec: &'a NoiseSpec, r: f64, c: f64) -> Result<Self> {
        let step = &spec.step;
        let at = spec.part.factors(step, r, c)?;
        if spec.part != GradientPart::Whole {
            return Ok(Point { spec, at, best: None, limit: None });
        }
        let limit = match fisher_limit(step, r) {
            Ok(limit) => Some(limit),
            Err(Error::NotProvided { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Point { spec, at, best: Some(best_threshold(step, r)?), limit })
    }

    fn json(&self) -> Value {
        let mut map = json_point(&self.at);
        map.insert("noise".into(), json!(self.spec.family));
        for (name, cell) in self.spec.cells() {
            // Numbers and truth values are not strings in JSON.
            let value = serde_json::from_str(&cell).unwrap_or_else(|_| cell.into());
            map.insert(name.into(), value);
        }
        let best = self
            .best
            .map(|best| json!({ "c": number(best.c), "mu": best.mu, "ccc": number(best.ccc) }));
        map.insert("best".into(), json!(best));
        let fisher = self.limit.map(|limit| {
            json!({
                "information": number(limit.information),
                "limit": number(limit.limit),
                "reached": limit.reached,
            })
        });
        map.insert("fisher".into(), json!(fisher));
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
        self.best.iter().for_each(|best| line(format!("best: {}", self.best_words(best))));
        self.limit.iter().for_each(|limit| line(format!("limit: {}", limit_words(limit))));
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
            format!("above 1: {subject} beats unclipped SGD at any learning rate")
        } else if ccc < 1.0 - 1e-12 {
            format!("below 1: at equal descent, {subject} adds noise")
        } else {
            format!("{subject} is as good as unclipped SGD")
        }
    }

    fn best_words(&self, best: &BestThreshold) -> String {
        match self.spec.step.rule() {
            Rule::Optimal => return "this rule reaches the limit".into(),
            Rule::Normalise => {
                return format!("every threshold has CCC = {}", significant(best.ccc, 4));
            }
            _ => {}
        }
        let at = || format!("c = {} (μ = {})", significant(best.c, 4), short(best.mu));
        if best.c == f64::INFINITY {
            "do not clip; no threshold has CCC above 1".into()
        } else if best.ccc < 1.0 + 1e-6 {
            let (c, gain) = (short(best.c), best.ccc - 1.0);
            format!("do not clip; the best threshold, c = {c}, gains {gain:.0e}")
        } else if best.c == 0.0 {
            let ccc = significant(best.ccc, 4);
            format!("the smaller the threshold the better; CCC tends to {ccc} as c → 0")
        } else if best.ccc.is_infinite() {
            format!("{}; unclipped SGD does not converge under this noise", at())
        } else {
            format!("{}, CCC = {}", at(), significant(best.ccc, 4))
        }
    }
}

fn limit_words(limit: &FisherLimit) -> String {
    let reached = format!("{}%", significant(100.0 * limit.reached, 3));
    if limit.information.is_infinite() {
        "without model error this noise can be removed exactly".into()
    } else if limit.limit.is_infinite() {
        format!("the best threshold reaches {reached} of what any rule could")
    } else {
        let most = significant(limit.limit, 4);
        format!("no rule has CCC above {most}; the best threshold reaches {reached} of it")
    }
}
