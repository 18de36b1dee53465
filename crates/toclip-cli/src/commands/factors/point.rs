//! The factors at one risk and one threshold, in words.

use super::{Given, json_number, json_point};
use crate::output::say;
use anyhow::Result;
use serde_json::json;
use toclip::criteria::{BestThreshold, FisherLimit, best_threshold, fisher_limit};
use toclip::{Error, Factors};

/// Prints the factors of each noise.
pub fn run(noises: &[Given], r: f64, c: f64, as_json: bool) -> Result<()> {
    let points = noises.iter().map(|given| Point::new(given, r, c)).collect::<Result<Vec<_>>>()?;
    if as_json {
        let values: Vec<_> = points.iter().map(Point::json).collect();
        let text = match values.as_slice() {
            [one] => serde_json::to_string_pretty(one)?,
            all => serde_json::to_string_pretty(all)?,
        };
        say!("{text}");
    } else {
        let texts: Vec<_> = points.iter().map(Point::text).collect();
        crate::output::terminal::print(format_args!("{}", texts.join("\n")));
    }
    Ok(())
}

struct Point<'a> {
    given: &'a Given,
    at: Factors,
    best: BestThreshold,
    limit: Option<FisherLimit>,
}

impl<'a> Point<'a> {
    fn new(given: &'a Given, r: f64, c: f64) -> Result<Self> {
        let step = &given.step;
        let at = Factors::new(step, r, c)?;
        let limit = match fisher_limit(step, r) {
            Ok(limit) => Some(limit),
            Err(Error::NotProvided { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Point { given, at, best: best_threshold(step, r)?, limit })
    }

    fn json(&self) -> serde_json::Value {
        let mut map = json_point(&self.at);
        map.insert("noise".into(), json!(self.given.family));
        let rule = self.given.rule;
        if rule.batch > 1 {
            map.insert("batch".into(), json!(rule.batch));
        }
        if rule.per_sample {
            map.insert("rule".into(), json!("per_sample"));
        }
        if rule.outputs > 1 {
            map.insert("outputs".into(), json!(rule.outputs));
        }
        let best = &self.best;
        map.insert(
            "best".into(),
            json!({ "c": json_number(best.c), "mu": best.mu, "ccc": json_number(best.ccc) }),
        );
        let fisher = self.limit.map(|limit| {
            json!({
                "information": json_number(limit.information),
                "limit": json_number(limit.limit),
                "reached": limit.reached,
            })
        });
        map.insert("fisher".into(), json!(fisher));
        map.into()
    }

    fn text(&self) -> String {
        let at = &self.at;
        let mut text =
            format!("{} noise at R = {}, c = {}\n", self.given.step.describe(), at.r, at.c);
        let mut line = |name: &str, value: f64, says: &str| {
            text.push_str(&format!("  {name:<4}{value:<13.7} {says}\n"));
        };
        let kept = if self.given.step.batch().is_single() {
            "the share of the descent that clipping keeps (samples not clipped)"
        } else {
            "the share of the descent that clipping keeps"
        };
        line("μ", at.mu, kept);
        line("m2", at.m2, "the mean square of the clipped residual");
        match (at.nu(), at.csc(), at.ccc()) {
            (Ok(nu), Ok(csc), Ok(ccc)) => {
                line("ν", nu, "the share of the variance that clipping keeps");
                line("CSC", csc, stability(csc));
                line("CCC", ccc, comparison(ccc));
            }
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
                text.push_str(&format!("  {error}\n"));
            }
        }
        text.push_str(&format!("  best: {}\n", self.best_words()));
        if let Some(limit) = self.limit {
            text.push_str(&format!("  limit: {}\n", limit_words(&limit)));
        }
        text
    }

    fn best_words(&self) -> String {
        let best = &self.best;
        if best.c == f64::INFINITY {
            "do not clip; no threshold has CCC above 1".into()
        } else if best.ccc < 1.0 + 1e-6 {
            format!(
                "do not clip; the best threshold, c = {:.4}, gains {:.0e}",
                best.c,
                best.ccc - 1.0
            )
        } else if best.c == 0.0 {
            format!("the smaller the threshold the better; CCC tends to {:.6} as c → 0", best.ccc)
        } else if best.ccc.is_infinite() {
            format!(
                "c = {:.6} (μ = {:.4}); unclipped SGD does not converge under this noise",
                best.c, best.mu
            )
        } else {
            format!("c = {:.6} (μ = {:.4}), CCC = {:.6}", best.c, best.mu, best.ccc)
        }
    }
}

fn stability(csc: f64) -> &'static str {
    if csc > 1.0 + 1e-12 {
        "above 1: clipping here allows larger learning rates"
    } else if csc < 1.0 - 1e-12 {
        "below 1: clipping here makes SGD less stable"
    } else {
        "clipping here changes nothing"
    }
}

fn comparison(ccc: f64) -> &'static str {
    if ccc > 1.0 + 1e-12 {
        "above 1: clipping here beats unclipped SGD at any learning rate"
    } else if ccc < 1.0 - 1e-12 {
        "below 1: at equal descent, clipping here adds noise"
    } else {
        "clipping here changes nothing"
    }
}

fn limit_words(limit: &FisherLimit) -> String {
    if limit.information.is_infinite() {
        "without model error this noise can be removed exactly".into()
    } else if limit.limit.is_infinite() {
        format!("the best threshold reaches {:.1}% of what any rule could", 100.0 * limit.reached)
    } else {
        format!(
            "no rule has CCC above {:.6}; the best threshold reaches {:.1}% of it",
            limit.limit,
            100.0 * limit.reached
        )
    }
}
