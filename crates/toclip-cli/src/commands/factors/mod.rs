//! `toclip factors`: the reduction factors at a point, along a curve, or for a whole table.

mod curve;
pub(super) mod noise_args;
mod point;
mod rule;
mod sweep;
mod table;

use anyhow::{Result, bail};
use noise_args::NoiseArgs;
use rule::Words;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use sweep::Sweep;
use toclip::noise::Family;
use toclip::{Factors, Step};

/// The reduction factors μ and ν, and the criteria CSC and CCC
///
/// At one point (R, c); along a curve when --risk or --clip is a range; or for every row of a
/// table. Several --noise make a comparison; each takes the parameters it knows.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  One point, with the best threshold and what no rule can pass:
    toclip factors --noise laplace --sigma 1 --risk 0.5 --clip 0.9

  Figure 2b of the paper, as a picture and as numbers:
    toclip factors --noise gaussian,rademacher,uniform,laplace --sigma 5 --p 0.2 \\
        --risk 3 --clip 0.1..15 --plot ccc.svg --out ccc.csv

  How much clipping can gain as the risk falls (100 points, logarithmic):
    toclip factors --noise student_t --df 3 --scale 0.5 --clip 1 --risk 1e-4..10:100 --log-x --plot r.png

  The mean gradient of 32 samples, clipped:
    toclip factors --noise student_t --df 2.5 --scale 0.5 --batch 32 --risk 0.1 --clip 0.1..2 --plot b.svg

  A table with the columns family,params,r,c, and batch if it is of batches:
    toclip factors --table points.csv --out factors.csv")]
pub struct Args {
    #[command(flatten)]
    noise: NoiseArgs,

    /// R, the risk: a number, or a range A..B or A..B:POINTS
    #[arg(long, short, value_name = "R", default_value = "1", allow_negative_numbers = true)]
    risk: Sweep,

    /// c, the threshold: a number, `inf` for no clipping, or a range A..B or A..B:POINTS
    #[arg(long, short, value_name = "C", default_value = "1", allow_negative_numbers = true)]
    clip: Sweep,

    /// B, the samples whose mean gradient is clipped
    #[arg(long, short, value_name = "B", default_value = "1", value_parser = rule::whole, allow_negative_numbers = true)]
    batch: u64,

    /// Clip the gradient of each of the B samples, not their mean
    #[arg(long)]
    per_sample: bool,

    /// Outputs of the model, whose residuals are clipped together: each has the risk R, and noise of
    /// its own
    #[arg(long, value_name = "C", default_value = "1", value_parser = rule::whole, allow_negative_numbers = true)]
    outputs: u64,

    /// Space the points of a range evenly in the logarithm
    #[arg(long)]
    log_x: bool,

    /// Draw the curve, as .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Draw on a dark ground (an .svg follows the reader's own setting unless this is given)
    #[arg(long, requires = "plot")]
    dark: bool,

    /// Evaluate every row of a CSV table with the columns family,params,r,c; and, if it has them,
    /// batch, rule (mean or per_sample) and outputs
    #[arg(long, value_name = "IN.csv", conflicts_with_all = ["batch", "per_sample", "outputs", "noise", "params", "risk", "clip", "plot", "log_x", "sigma", "lambda", "p", "half_width", "rate", "df", "scale", "weights", "means", "stds", "values"])]
    table: Option<PathBuf>,

    /// Write the numbers to a CSV file instead of the terminal
    #[arg(long, value_name = "OUT.csv")]
    out: Option<PathBuf>,

    /// Print JSON, for scripts (infinite values are the string "inf")
    #[arg(long)]
    json: bool,
}

/// A noise as it was given, and as it acts in batches.
struct Given {
    family: Family,
    step: Step<'static>,
    rule: Words,
}

impl Given {
    fn new(family: Family, words: Words) -> Result<Self> {
        let step = Step::new(Arc::new(family.clone())).with_batch(words.batch()?)?;
        Ok(Given { family, step, rule: words })
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    if let Some(table) = &args.table {
        return table::run(table, args.out.as_deref(), args.json);
    }
    let rule = Words { batch: args.batch, per_sample: args.per_sample, outputs: args.outputs };
    let noises = args.noise.families()?;
    let noises =
        noises.into_iter().map(|family| Given::new(family, rule)).collect::<Result<Vec<_>>>()?;
    match (&args.risk, &args.clip) {
        (Sweep::Point(r), Sweep::Point(c)) => {
            if args.plot.is_some() || args.out.is_some() {
                bail!(
                    "--plot and --out need a curve: give --clip or --risk as a range, such as --clip 0.1..15"
                );
            }
            point::run(&noises, *r, *c, args.json)?;
        }
        (Sweep::Range { .. }, Sweep::Range { .. }) => {
            bail!("only one of --risk and --clip can be a range; the other is a number");
        }
        (risk, clip) => {
            let job = curve::Curve::new(risk, clip, args.log_x)?;
            if let Some(path) = &args.plot {
                job.draw(&noises, path, args.dark)?;
            }
            job.run(&noises, args.plot.is_some(), args.out.as_deref(), args.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The factors at a point as JSON; null where a criterion is not defined.
fn json_point(at: &Factors) -> serde_json::Map<String, serde_json::Value> {
    let defined = |x: toclip::Result<f64>| x.map_or(serde_json::Value::Null, json_number);
    [
        ("r", at.r.into()),
        ("c", json_number(at.c)),
        ("mu", at.mu.into()),
        ("m2", json_number(at.m2)),
        ("nu", defined(at.nu())),
        ("csc", defined(at.csc())),
        ("ccc", defined(at.ccc())),
    ]
    .map(|(key, value)| (key.to_string(), value))
    .into_iter()
    .collect()
}

/// A number for JSON, which knows no infinity.
fn json_number(x: f64) -> serde_json::Value {
    if x.is_finite() { x.into() } else { x.to_string().into() }
}
