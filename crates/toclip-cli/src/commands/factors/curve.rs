//! The factors along a range of risks or thresholds.

use std::io::Write;

use anyhow::Result;
use serde_json::json;
use toclip::criteria::best_threshold;
use toclip::{Factors, Rule};

use super::batch_and_rule::{self, BatchAndRule};
use super::gradient_part::{self, GradientPart};
use super::{Args, NoiseSpec, json_point, with_factors};
use crate::output::files::{self, Destination};
use crate::output::{Table, plots, tell};
use crate::plot::{Axis, Chart, Figure, Theme};
use toclip_words::short;

/// One curve for each noise, over risks or over thresholds.
struct Curves<'a> {
    curves: Vec<(&'a NoiseSpec, Vec<Factors>)>,
    /// The risk or the threshold that all points share.
    fixed: String,
    over_risk: bool,
    log_x: bool,
}

/// Draws the curves and writes their numbers: as JSON, to a file, or to the terminal unless they
/// are drawn.
pub fn run(noises: &[NoiseSpec], args: &Args) -> Result<()> {
    let (risks, clips) = (args.risk.values(args.log_x)?, args.clip.values(args.log_x)?);
    let over_risk = risks.len() > 1;
    let points: Vec<(f64, f64)> =
        risks.iter().flat_map(|&r| clips.iter().map(move |&c| (r, c))).collect();
    let curves = Curves {
        curves: noises
            .iter()
            .map(|spec| Ok((spec, spec.factors(&points)?)))
            .collect::<Result<_>>()?,
        fixed: match over_risk {
            true => format!("c = {}", short(clips[0])),
            false => format!("R = {}", short(risks[0])),
        },
        over_risk,
        log_x: args.log_x,
    };
    if let Some(path) = &args.plot {
        plots::save_as(&curves.figure(), path, if args.dark { Theme::Dark } else { Theme::Auto })?;
        tell!("{}", files::wrote(path));
        if args.out.is_none() && !args.json {
            return Ok(());
        }
    }
    let mut out = Destination::new(args.out.as_deref())?;
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&curves.json())?)?;
    } else {
        curves.write_csv(&mut out)?;
    }
    out.finish()?;
    if let Some(path) = &args.out {
        tell!("{}", files::wrote(path));
    }
    Ok(())
}

impl Curves<'_> {
    /// The best threshold, where one noise is drawn over thresholds that contain it.
    fn best(&self) -> Option<f64> {
        let [(spec, factors)] = &self.curves[..] else { return None };
        if spec.part != GradientPart::Whole {
            return None;
        }
        let (first, last) = (factors.first()?, factors.last()?);
        let best = best_threshold(&spec.step, first.r).ok()?;
        (!self.over_risk && (first.c..=last.c).contains(&best.c)).then_some(best.c)
    }

    fn title(&self) -> &'static str {
        match self.curves.iter().all(|(spec, _)| spec.batch_and_rule.rule == Rule::Clip) {
            true => "Reduction factors of gradient clipping",
            false => "Reduction factors of rules for gradients",
        }
    }

    fn figure(&self) -> Figure {
        let axis =
            |log: bool, label: &str| if log { Axis::log(label) } else { Axis::linear(label) };
        let x_label = if self.over_risk { "risk R" } else { "threshold c" };
        let panel = |title: &str, y: Axis, of: fn(&Factors) -> toclip::Result<f64>| {
            let mut chart =
                Chart::new(title).subtitle(&self.fixed).x(axis(self.log_x, x_label)).y(y);
            for (spec, factors) in &self.curves {
                let x: Vec<f64> =
                    factors.iter().map(|at| if self.over_risk { at.r } else { at.c }).collect();
                // Where a criterion is not defined the line is broken, not drawn at zero.
                let y: Vec<f64> = factors.iter().map(|at| of(at).unwrap_or(f64::NAN)).collect();
                chart = chart.line(&spec.describe(), &x, &y);
            }
            chart
        };
        let all = self.curves.iter().flat_map(|(_, factors)| factors);
        let (low, high) = all
            .filter_map(|at| at.csc().ok())
            .fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(x), b.max(x)));
        let csc = panel("Stability, CSC = μ/ν", axis(high > 20.0 * low, "CSC"), Factors::csc);
        let mut ccc =
            panel("Comparison, CCC = μ²/ν", Axis::linear("CCC"), Factors::ccc).hline(1.0, "1");
        if let Some(c) = self.best() {
            ccc = ccc.vline(c, "c*");
        }
        Figure::new(self.title())
            .chart(panel("Descent kept, μ", Axis::linear("μ"), |at| Ok(at.mu)))
            .chart(panel("Variance kept, ν", Axis::linear("ν"), Factors::nu))
            .chart(csc.hline(1.0, "1"))
            .chart(ccc)
            .columns(2)
    }

    /// The columns beside family, params, r and c that some curve needs; all curves have them.
    fn columns(&self) -> Vec<&'static str> {
        let needed = |name: &&str| {
            self.curves.iter().any(|(spec, _)| spec.cells().iter().any(|cell| cell.0 == *name))
        };
        let all = batch_and_rule::COLUMNS.into_iter().chain(gradient_part::COLUMNS);
        all.filter(needed).collect()
    }

    fn write_csv(&self, out: &mut Destination) -> Result<()> {
        let columns = self.columns();
        for (i, (spec, factors)) in self.curves.iter().enumerate() {
            let mut params = serde_json::to_value(&spec.family)?;
            let family = params["family"].as_str().unwrap_or_default().to_owned();
            if let Some(map) = params.as_object_mut() {
                map.remove("family");
            }
            let repeated = |text: String| std::iter::repeat_n(text, factors.len());
            let mut table = Table::default()
                .text("family", repeated(family))
                .text("params", repeated(params.to_string()))
                .numbers("r", factors.iter().map(|at| at.r))
                .numbers("c", factors.iter().map(|at| at.c));
            for &name in &columns {
                table = table.text(name, repeated(spec.cell(name)));
            }
            with_factors(table, factors).write_csv(&mut *out, i == 0)?;
        }
        Ok(())
    }

    fn json(&self) -> serde_json::Value {
        let curve = |(spec, factors): &(&NoiseSpec, Vec<Factors>)| {
            let points: Vec<_> = factors.iter().map(json_point).collect();
            let BatchAndRule { batch, rule, .. } = &spec.batch_and_rule;
            let mut curve = json!({ "noise": spec.family, "batch": batch, "rule": rule.name(), "points": points });
            if let Some((name, value)) = spec.part.cell() {
                curve[name] = value.into();
            }
            curve
        };
        self.curves.iter().map(curve).collect()
    }
}
