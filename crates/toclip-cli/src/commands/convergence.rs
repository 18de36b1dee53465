//! `toclip convergence`: the rate of Theorem 1, measured.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Error, Result, bail};
use serde_json::json;
use toclip::convergence::{Convergence, ConvergenceRate, DimensionGap};
use toclip::policy::{OpenLoop, Schedule};
use toclip::spectrum::{Block, Modes, Spectrum, Start};
use toclip::{Memory, Momentum, Optimizer, Problem, Rule, Step};

use crate::arguments::{self, NoiseArgs, PointOrRange};
use crate::output::{Table, files, plots, progress_bar, result, terminal};
use crate::plot::{Axis, Chart, Figure, Series};
use toclip_words::{duration, interval_at, short};

/// Measure the rate of Theorem 1: how fast SGD approaches its ODE as the dimension grows
///
/// For each dimension d, takes the largest gap sup_t |R_sgd - R_ode| over all steps up to --time,
/// averages it over the runs, and fits a power of d. Theorem 1 predicts d^(-1/2). Clipped SGD is
/// simulated in its collapsed form, which has the same distribution and costs the same in every
/// dimension. Momentum and the rule by_value have no such form: the cost of a run then grows as d²,
/// and the default dimensions are smaller.
#[derive(clap::Args)]
#[command(after_help = include_str!("../help/convergence.txt"))]
#[command(mut_arg("noise", |noise| noise.help(NOISE_HELP)))]
pub struct Args {
    /// Dimensions: A..B (two per decade), A..B:POINTS, or a list [default: 1e2..1e6, or 1e2..3e3
    /// with momentum or by_value]
    #[arg(long, value_name = "DIMS", allow_hyphen_values = true)]
    dims: Option<Dims>,
    /// Runs in each dimension
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = arguments::count::<2>, allow_negative_numbers = true)]
    runs: u64,
    /// Seed of the runs
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = arguments::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Time T at which a run ends, after T·d steps
    #[arg(long, value_name = "T", default_value_t = 2.0, value_parser = arguments::number, allow_negative_numbers = true)]
    time: f64,
    /// η, the learning rate
    #[arg(long, value_name = "η", default_value_t = 0.7, value_parser = arguments::number, allow_negative_numbers = true)]
    learning_rate: f64,
    /// c, the threshold, or none for no clipping
    #[arg(long, value_name = "C", default_value_t = 0.9, value_parser = arguments::threshold, allow_negative_numbers = true)]
    clip: f64,
    /// The rule for the gradient: clip, skip, normalise, tanh, root, optimal or by_value
    #[arg(long, value_name = "RULE", default_value = "clip")]
    rule: String,
    /// β of heavy-ball momentum as in PyTorch: the effective learning rate is η/(1 − β)
    #[arg(long, value_name = "β", value_parser = arguments::number, allow_negative_numbers = true, conflicts_with = "delta")]
    momentum: Option<f64>,
    /// δ = (1 − β)d of averaged gradients: the same memory, in time t, in every dimension
    #[arg(long, value_name = "δ", value_parser = arguments::number, allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Distinct eigenvalues of K, with equal multiplicities
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1", value_parser = arguments::number, allow_hyphen_values = true)]
    eigenvalues: Vec<f64>,
    #[command(flatten)]
    noise: NoiseArgs,
    /// Confidence level of the slope's interval
    #[arg(long, value_name = "P", default_value_t = 0.95, value_parser = arguments::number, allow_negative_numbers = true)]
    confidence: f64,
    /// Threads; all cores by default. Does not change the results
    #[arg(long, value_name = "N", value_parser = arguments::threads, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Plot the gaps and the fit, as .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write the gaps as CSV
    #[arg(long, value_name = "OUT.csv")]
    out: Option<PathBuf>,
    /// Print JSON, for scripts
    #[arg(long)]
    json: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// Other commands compare several families.
const NOISE_HELP: &str = "The noise family: none, gaussian, rademacher, uniform, laplace, student_t, \
                          gaussian_mixture, empirical";

/// Dimensions on the command line.
#[derive(Debug, Clone, PartialEq)]
struct Dims(Vec<u64>);

impl FromStr for Dims {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let check = |d: f64| match (1.0..=1e15).contains(&d) {
            true => Ok(d),
            false => Err("expected dimensions from 1 to 1e15, as 1e2..1e6, 1e2..1e6:5 or 100,1000"),
        };
        if !text.contains("..") {
            let dim = |part: &str| Ok(check(part.trim().parse().unwrap_or(0.0))?.round() as u64);
            return text.split(',').map(dim).collect::<Result<_, String>>().map(Dims);
        }
        let PointOrRange::Range { from, to, points } = text.parse()? else {
            return Err("expected a range".into());
        };
        let (from, to) = (check(from)?, check(to)?);
        let decades = (to / from).log10();
        let last = points.unwrap_or((2.0 * decades).round().max(1.0) as usize + 1) - 1;
        let at = |k: usize| (from * (to / from).powf(k as f64 / last as f64)).round();
        Ok(Dims((0..=last).map(|k| at(k) as u64).collect()))
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    let noise = match args.noise.families()?.as_slice() {
        [one] => Arc::new(one.clone()),
        several => bail!("--noise takes one family here, not {}", several.len()),
    };
    let clip = Schedule::constant(args.clip).context("--clip")?;
    let policy =
        OpenLoop::new(Schedule::constant(args.learning_rate).context("--learning-rate")?, clip);
    let step = Step::new(noise).with_rule(arguments::rule(&args.rule)?)?;
    let optimizer = args.momentum()?.map_or(Optimizer::Sgd, Optimizer::Momentum);
    let share = args.eigenvalues.len() as u64;
    let family = |d: u64| {
        let each = (d / share).max(1);
        let block = |&value: &f64| Block { value, multiplicity: each };
        let blocks: Vec<Block> = args.eigenvalues.iter().map(block).collect();
        let modes = Modes::new(&Spectrum::from_blocks(&blocks)?, &Start::Uniform { norm: 1.0 })?;
        let problem = Problem::new(modes, step.clone(), policy.clone())?;
        problem.with_optimizer(optimizer)
    };
    let experiment = Convergence {
        time: args.time,
        runs: args.runs,
        seed: args.seed,
        confidence: args.confidence,
        threads: args.threads,
    };
    if *step.rule() == Rule::Normalise && args.clip.is_infinite() {
        bail!("--rule normalise needs the length of a step: give --clip as a number");
    }
    let collapses = optimizer == Optimizer::Sgd && step.rule().is_radial();
    let dims = match &args.dims {
        Some(dims) => dims.clone(),
        None => if collapses { "1e2..1e6" } else { "1e2..3e3" }.parse().map_err(Error::msg)?,
    };
    let begin = Instant::now();
    let bar = progress_bar(dims.0.len() as u64 * args.runs, "runs", args.quiet);
    let progress = |done| bar.set_position(done);
    let describe = step.describe();
    let rate = experiment.measure(&dims.0, &family, Some(&progress))?;
    bar.finish_and_clear();
    if let Some(path) = &args.out {
        files::write(path, &table(&rate).csv()?)?;
    }
    let subtitle = args.subtitle(&describe);
    if let Some(path) = &args.plot {
        plots::save(&figure(&rate, &subtitle), path)?;
    }
    let took = begin.elapsed();
    let value = json!({ "of": subtitle, "rate": rate, "seconds": took.as_secs_f64() });
    let text = format!("{}Time: {}\n", text(&rate, &subtitle), duration(took));
    let written: Vec<PathBuf> = args.out.into_iter().chain(args.plot).collect();
    result::show(args.json, value, &text, &written)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn momentum(&self) -> Result<Option<Momentum>> {
        Ok(match (self.momentum, self.delta) {
            (Some(beta), _) => {
                Some(Momentum::heavy_ball(Memory::Beta(beta)).context("--momentum")?)
            }
            (None, Some(delta)) => {
                Some(Momentum::average(Memory::Delta(delta)).context("--delta")?)
            }
            (None, None) => None,
        })
    }

    fn subtitle(&self, noise: &str) -> String {
        let clip = match self.clip.is_finite() {
            true => format!("c = {}", short(self.clip)),
            false => "no clipping".into(),
        };
        let (eta, time) = (short(self.learning_rate), short(self.time));
        let memory = match (self.momentum, self.delta) {
            (Some(beta), _) => format!(", β = {}", short(beta)),
            (None, Some(delta)) => format!(", δ = {}", short(delta)),
            (None, None) => String::new(),
        };
        format!("{noise}, η = {eta}, {clip}{memory}, T = {time}, {} runs", self.runs)
    }
}

fn table(rate: &ConvergenceRate) -> Table {
    let numbers = |of: fn(&DimensionGap) -> f64| rate.gaps.iter().map(of);
    Table::default()
        .numbers("d", numbers(|g| g.dim))
        .numbers("mean_gap", numbers(|g| g.mean))
        .numbers("standard_error", numbers(|g| g.standard_error))
        .counts("runs", rate.gaps.iter().map(|g| g.runs))
        .counts("diverged", rate.gaps.iter().map(|g| g.diverged))
}

fn text(rate: &ConvergenceRate, subtitle: &str) -> String {
    let row = |g: &DimensionGap| {
        let diverged = match g.diverged {
            0 => String::new(),
            n => format!("({n} runs diverged)"),
        };
        let error = format!("{:.1e}", g.standard_error);
        [short(g.dim), short(g.mean), error, short(g.mean * g.dim.sqrt()), diverged]
    };
    let header = ["d", "mean gap", "std. error", "gap · √d", ""];
    let rows = terminal::columns("rrrrl", header, rate.gaps.iter().map(row));
    let agrees = match (rate.low..=rate.high).contains(&-0.5) {
        true => "agrees with Theorem 1 (-1/2)",
        false => "does not agree with Theorem 1 (-1/2)",
    };
    let slope = interval_at(rate.slope, rate.low, rate.high, rate.confidence);
    let mut text = format!(
        "Largest gap between SGD and its ODE, sup_t |R_sgd - R_ode|\n  {subtitle}\n\n{rows}\n\
         Slope {slope}: {agrees}.\n"
    );
    if let Some(chi) = rate.chi_square {
        text +=
            &format!("Scatter about the line: chi-square {} per degree of freedom.\n", short(chi));
    }
    text
}

fn figure(rate: &ConvergenceRate, subtitle: &str) -> Figure {
    let dims: Vec<f64> = rate.gaps.iter().map(|g| g.dim).collect();
    let column = |f: fn(&DimensionGap) -> f64| -> Vec<f64> { rate.gaps.iter().map(f).collect() };
    let fit: Vec<f64> = dims.iter().map(|d| (rate.intercept + rate.slope * d.ln()).exp()).collect();
    let low = column(|g| g.mean - 1.96 * g.standard_error);
    let high = column(|g| g.mean + 1.96 * g.standard_error);
    let slope = interval_at(rate.slope, rate.low, rate.high, rate.confidence);
    let label = format!("fit: slope {slope}");
    let chart = Chart::new("The rate of Theorem 1")
        .subtitle(subtitle)
        .x(Axis::log("intrinsic dimension d"))
        .y(Axis::log("mean of sup |R_SGD - R_ODE|"))
        .series(Series::band("95% CI of the mean", &dims, &low, &high).slot(0))
        .series(Series::line(&label, &dims, &fit).slot(1))
        .series(Series::points("measured", &dims, &column(|g| g.mean)).slot(0));
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
        for text in ["x", "10..5", "1..10:1", "0", "0..10"] {
            assert!(dims(text).is_err(), "{text}");
        }
    }
}
