//! The factors along a range of risks or thresholds.

use super::{Given, json_point, sweep::Sweep, table};
use crate::output::files;
use crate::output::plots;
use crate::output::tell;
use crate::plot::{Axis, Chart, Figure, Theme};
use anyhow::Result;
use std::path::Path;
use toclip::Factors;
use toclip::criteria::best_threshold;

/// One curve for each noise, over risks or over thresholds.
pub struct Curve {
    points: Vec<(f64, f64)>,
    /// What changes along the curve, and what does not.
    x_label: &'static str,
    fixed: String,
    over_risk: bool,
    log_x: bool,
}

impl Curve {
    /// From a range and a number, in either order.
    pub fn new(risk: &Sweep, clip: &Sweep, log_x: bool) -> Result<Self> {
        let risks = risk.values(log_x).map_err(anyhow::Error::msg)?;
        let clips = clip.values(log_x).map_err(anyhow::Error::msg)?;
        let over_risk = risks.len() > 1;
        let points = risks.iter().flat_map(|&r| clips.iter().map(move |&c| (r, c))).collect();
        let (x_label, fixed) = if over_risk {
            ("risk R", format!("c = {}", clips[0]))
        } else {
            ("threshold c", format!("R = {}", risks[0]))
        };
        Ok(Curve { points, x_label, fixed, over_risk, log_x })
    }

    fn evaluate<'a>(&self, noises: &'a [Given]) -> Result<Vec<(&'a Given, Vec<Factors>)>> {
        let factors = |given: &'a Given| Factors::at_points(&given.step, &self.points);
        noises.iter().map(|given| Ok((given, factors(given)?))).collect()
    }

    /// Draws the curves.
    pub fn draw(&self, noises: &[Given], path: &Path, dark: bool) -> Result<()> {
        let theme = if dark { Theme::Dark } else { Theme::Auto };
        plots::save_as(&self.figure(&self.evaluate(noises)?), path, theme)?;
        tell!("wrote {}", path.display());
        Ok(())
    }

    /// Writes the numbers: as JSON, to a file, or to the terminal unless a picture was enough.
    pub fn run(
        &self,
        noises: &[Given],
        drawn: bool,
        out: Option<&Path>,
        as_json: bool,
    ) -> Result<()> {
        let curves = self.evaluate(noises)?;
        if out.is_none() && drawn && !as_json {
            return Ok(());
        }
        let text = if as_json {
            serde_json::to_string_pretty(&json(&curves))? + "\n"
        } else {
            String::from_utf8(csv(&curves)?)?
        };
        match out {
            Some(path) => {
                files::write(path, text.as_bytes())?;
                tell!("wrote {}", path.display());
            }
            None => crate::output::terminal::print(format_args!("{text}")),
        }
        Ok(())
    }

    /// The best threshold, where one noise is drawn over thresholds that contain it.
    fn best(&self, curves: &[(&Given, Vec<Factors>)]) -> Option<f64> {
        let [(given, factors)] = curves else { return None };
        let (first, last) = (factors.first()?, factors.last()?);
        let best = best_threshold(&given.step, first.r).ok()?;
        (!self.over_risk && (first.c..=last.c).contains(&best.c)).then_some(best.c)
    }

    fn figure(&self, curves: &[(&Given, Vec<Factors>)]) -> Figure {
        let axis =
            |log: bool, label: &str| if log { Axis::log(label) } else { Axis::linear(label) };
        let panel = |title: &str, y: Axis, of: fn(&Factors) -> toclip::Result<f64>, one: bool| {
            let mut chart =
                Chart::new(title).subtitle(&self.fixed).x(axis(self.log_x, self.x_label)).y(y);
            for (noise, factors) in curves {
                let x: Vec<f64> =
                    factors.iter().map(|at| if self.over_risk { at.r } else { at.c }).collect();
                // Where a criterion is not defined the line is broken, not drawn at zero.
                let y: Vec<f64> = factors.iter().map(|at| of(at).unwrap_or(f64::NAN)).collect();
                chart = chart.line(&noise.step.describe(), &x, &y);
            }
            if one { chart.hline(1.0, "1") } else { chart }
        };
        let mut comparison =
            panel("Comparison, CCC = μ²/ν", Axis::linear("CCC"), Factors::ccc, true);
        if let Some(c) = self.best(curves) {
            comparison = comparison.vline(c, "c*");
        }
        let csc =
            curves.iter().flat_map(|(_, factors)| factors.iter().filter_map(|at| at.csc().ok()));
        let (low, high) = csc.fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(x), b.max(x)));
        Figure::new("Reduction factors of gradient clipping")
            .chart(panel("Descent kept, μ", Axis::linear("μ"), |at| Ok(at.mu), false))
            .chart(panel("Variance kept, ν", Axis::linear("ν"), Factors::nu, false))
            .chart(panel(
                "Stability, CSC = μ/ν",
                axis(high > 20.0 * low, "CSC"),
                Factors::csc,
                true,
            ))
            .chart(comparison)
            .columns(2)
    }
}

fn csv(curves: &[(&Given, Vec<Factors>)]) -> Result<Vec<u8>> {
    let mut out = csv::Writer::from_writer(Vec::new());
    // All of one rule.
    let batch = curves.first().map(|(given, _)| given.rule.columns()).unwrap_or_default();
    let names = batch.iter().map(|(name, _)| *name);
    out.write_record(table::GIVEN.into_iter().chain(names).chain(table::COMPUTED))?;
    for (noise, factors) in curves {
        let mut params = serde_json::to_value(&noise.family)?;
        let family = params["family"].as_str().unwrap_or_default().to_string();
        if let Some(map) = params.as_object_mut() {
            map.remove("family");
        }
        let params = params.to_string();
        for at in factors {
            let mut record =
                vec![family.clone(), params.clone(), at.r.to_string(), at.c.to_string()];
            record.extend(batch.iter().map(|(_, word)| word.clone()));
            record.extend(table::values(at));
            out.write_record(&record)?;
        }
    }
    Ok(out.into_inner()?)
}

fn json(curves: &[(&Given, Vec<Factors>)]) -> serde_json::Value {
    let curve = |(noise, factors): &(&Given, Vec<Factors>)| serde_json::json!({ "noise": noise.family, "batch": noise.step.batch().size(), "points": factors.iter().map(json_point).collect::<Vec<_>>() });
    curves.iter().map(curve).collect()
}
