//! `toclip convergence`: the rate of Theorem 1, measured.

use std::fmt::Write;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use toclip::convergence::{Convergence, Rate};
use toclip::noise::Noise;
use toclip::schedule::{OpenLoop, Schedule};
use toclip::spectrum::{Block, Modes, Spectrum, Start};

use super::factors::noise_args::NoiseArgs;
use crate::output::files;
use crate::output::plots;
use crate::output::say;
use crate::plot::{self, Axis, Chart, Figure};

/// Measure the rate of Theorem 1: how fast SGD approaches its ODE as the dimension grows
///
/// For each dimension d the largest gap sup_t |R_sgd - R_ode| over all steps up to --time is taken,
/// averaged over the runs, and a power of d is fitted. Theorem 1 says d^(-1/2). C-SGD is simulated
/// in its collapsed form, exact in law, so that a step costs the same in every dimension.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  toclip convergence
  toclip convergence --dims 1e2..1e7:6 --runs 50 --plot rate.svg
  toclip convergence --noise student_t --df 1 --scale 0.5 --clip 0.4 --learning-rate 0.6
  toclip convergence --eigenvalues 1,0.5,0.1 --dims 300,3000,30000 --json")]
pub struct Args {
    /// Dimensions: A..B (two to a decade), A..B:POINTS, or a list
    #[arg(long, value_name = "DIMS", default_value = "1e2..1e6")]
    dims: Dims,
    /// Runs in each dimension
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(2..))]
    runs: u64,
    /// Seed of the runs
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Time to run to; d times as many steps
    #[arg(long, value_name = "T", default_value_t = 2.0)]
    time: f64,
    /// eta
    #[arg(long, value_name = "ETA", default_value_t = 0.7)]
    learning_rate: f64,
    /// c, or inf for no clipping
    #[arg(long, value_name = "C", default_value_t = 0.9)]
    clip: f64,
    /// Distinct eigenvalues of K, each in an equal share of the dimensions
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1")]
    eigenvalues: Vec<f64>,
    #[command(flatten)]
    noise: NoiseArgs,
    /// Confidence of the interval of the slope
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    confidence: f64,
    /// Threads; all cores unless given. Changes no bit of the results
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Draw the gaps and the fit, as .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write the gaps as CSV
    #[arg(long, value_name = "OUT.csv")]
    out: Option<PathBuf>,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

/// Dimensions on the command line.
#[derive(Debug, Clone, PartialEq)]
struct Dims(Vec<u64>);

impl FromStr for Dims {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let dim = |part: &str| match part.trim().parse::<f64>() {
            Ok(d) if (1.0..=1e15).contains(&d) => Ok(d),
            _ => Err(format!(
                "`{part}` is not a dimension; write 1e2..1e6, 1e2..1e6:5 or 100,1000,10000"
            )),
        };
        let Some((from, rest)) = text.split_once("..") else {
            let list: Result<Vec<u64>, String> =
                text.split(',').map(|part| dim(part).map(|d| d.round() as u64)).collect();
            return list.map(Dims);
        };
        let (to, points) = rest.split_once(':').map_or((rest, None), |(to, n)| (to, Some(n)));
        let (from, to) = (dim(from)?, dim(to)?);
        if from >= to {
            return Err(format!("a range goes from a smaller to a larger dimension, not {text}"));
        }
        let points = match points.map(|n| (n, n.trim().parse::<usize>())) {
            None => (2.0 * (to / from).log10()).round().max(1.0) as usize + 1,
            Some((_, Ok(n))) if (2..=1000).contains(&n) => n,
            Some((n, _)) => return Err(format!("`{n}` is not a number of points from 2 to 1000")),
        };
        let at = |k: usize| (from * (to / from).powf(k as f64 / (points - 1) as f64)).round();
        Ok(Dims((0..points).map(|k| at(k) as u64).collect()))
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let noise = match args.noise.families()?.as_slice() {
        [one] => Arc::new(one.clone()),
        _ => bail!("give one --noise"),
    };
    let clip = Schedule::constant(args.clip).context("--clip")?;
    if args.clip.is_nan() || args.clip <= 0.0 {
        bail!(
            "--clip {} is not allowed: a threshold is positive; inf is for no clipping",
            args.clip
        );
    }
    if !args.learning_rate.is_finite() {
        bail!("--learning-rate {} is not allowed: it must be finite", args.learning_rate);
    }
    let policy =
        OpenLoop::new(Schedule::constant(args.learning_rate).context("--learning-rate")?, clip);
    let share = args.eigenvalues.len() as u64;
    let family = |d: u64| {
        let each = (d / share).max(1);
        let block = |&value: &f64| Block { value, multiplicity: each };
        let blocks: Vec<Block> = args.eigenvalues.iter().map(block).collect();
        Modes::new(&Spectrum::from_blocks(&blocks)?, &Start::Uniform { norm: 1.0 })
    };
    let experiment = Convergence {
        time: args.time,
        runs: args.runs,
        seed: args.seed,
        confidence: args.confidence,
        threads: args.threads.map(usize::from),
    };
    let begin = Instant::now();
    let bar = args.bar();
    let progress = |done| bar.set_position(done);
    let describe = noise.describe();
    let rate =
        experiment.measure(&args.dims.0, &family, noise, Arc::new(policy), Some(&progress))?;
    bar.finish_and_clear();
    if let Some(path) = &args.out {
        files::write(path, csv(&rate).as_bytes())?;
    }
    if let Some(path) = &args.plot {
        plots::save(&figure(&rate, &args.subtitle(&describe)), path)?;
    }
    if args.json {
        let seconds = begin.elapsed().as_secs_f64();
        say!("{}", serde_json::to_string_pretty(&json!({ "rate": rate, "seconds": seconds }))?);
    } else {
        crate::output::terminal::print(format_args!("{}", text(&rate, &args.subtitle(&describe))));
        say!("Time: {:.1} s", begin.elapsed().as_secs_f64());
        for path in args.out.iter().chain(&args.plot) {
            say!("Written: {}", path.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn bar(&self) -> ProgressBar {
        let target = if self.quiet || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(Some(self.dims.0.len() as u64 * self.runs), target);
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos}/{len} runs, {elapsed}") {
            bar.set_style(style);
        }
        bar
    }

    fn subtitle(&self, noise: &str) -> String {
        let clip =
            if self.clip.is_finite() { format!("c = {}", self.clip) } else { "no clipping".into() };
        format!(
            "{noise}, eta = {}, {clip}, T = {}, {} runs",
            self.learning_rate, self.time, self.runs
        )
    }
}

fn csv(rate: &Rate) -> String {
    let mut text = "d,mean_gap,standard_error,runs,diverged\n".to_owned();
    for g in &rate.gaps {
        let _ = writeln!(
            text,
            "{:?},{:?},{:?},{},{}",
            g.dim, g.mean, g.standard_error, g.runs, g.diverged
        );
    }
    text
}

fn text(rate: &Rate, subtitle: &str) -> String {
    let mut text =
        format!("Largest gap between C-SGD and its ODE, sup_t |R_sgd - R_ode|\n  {subtitle}\n\n");
    let _ = writeln!(
        text,
        "  {:>12}  {:>10}  {:>9}  {:>13}",
        "d", "mean gap", "error", "gap * sqrt(d)"
    );
    for g in &rate.gaps {
        let diverged = if g.diverged > 0 {
            format!("  ({} runs diverged)", g.diverged)
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "  {:>12.1}  {:>10.4e}  {:>9.1e}  {:>13.4}{diverged}",
            g.dim,
            g.mean,
            g.standard_error,
            g.mean * g.dim.sqrt()
        );
    }
    let holds = if (rate.low..=rate.high).contains(&-0.5) { "inside" } else { "outside" };
    let _ = writeln!(
        text,
        "\nSlope {:.4}, {:.0}% interval {:.4} .. {:.4}: the -1/2 of Theorem 1 is {holds}.",
        rate.slope,
        100.0 * rate.confidence,
        rate.low,
        rate.high
    );
    if let Some(chi) = rate.chi_square {
        let _ = writeln!(
            text,
            "Scatter about the line: chi-square {chi:.2} for each degree of freedom."
        );
    }
    text
}

fn figure(rate: &Rate, subtitle: &str) -> Figure {
    let dims: Vec<f64> = rate.gaps.iter().map(|g| g.dim).collect();
    let column = |f: &dyn Fn(&toclip::convergence::Gap) -> f64| -> Vec<f64> {
        rate.gaps.iter().map(f).collect()
    };
    let fit: Vec<f64> = dims.iter().map(|d| (rate.intercept + rate.slope * d.ln()).exp()).collect();
    let z = 1.96;
    let low = column(&|g| g.mean - z * g.standard_error);
    let high = column(&|g| g.mean + z * g.standard_error);
    let label = format!("fit: d^({:.3}), {:.3} to {:.3}", rate.slope, rate.low, rate.high);
    let chart = Chart::new("The rate of Theorem 1")
        .subtitle(subtitle)
        .x(Axis::log("intrinsic dimension d"))
        .y(Axis::log("mean of sup |R_SGD - R_ODE|"))
        .series(plot::Series::band("95% of the mean", &dims, &low, &high).slot(0))
        .series(plot::Series::line(&label, &dims, &fit).slot(1))
        .series(plot::Series::points("measured", &dims, &column(&|g| g.mean)).slot(0));
    chart.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_read() {
        let dims = |text: &str| text.parse::<Dims>().map(|d| d.0);
        assert_eq!(dims("1e2..1e4").unwrap(), [100, 316, 1000, 3162, 10000]);
        assert_eq!(dims("100..1e6:3").unwrap(), [100, 10_000, 1_000_000]);
        assert_eq!(dims("100, 1e3").unwrap(), [100, 1000]);
        for (text, says) in [
            ("x", "`x` is not a dimension"),
            ("10..5", "a smaller to a larger"),
            ("1..10:1", "`1` is not a number of points"),
            ("0", "`0` is not a dimension"),
        ] {
            assert!(dims(text).unwrap_err().contains(says));
        }
    }
}
