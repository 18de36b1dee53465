//! `toclip factors`: the reduction factors at a point, along a curve, or for a whole table.

mod batch_and_rule;
mod curve;
mod gradient_part;
mod point;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use serde_json::{Map, Value};
use toclip::noise::Family;
use toclip::{Factors, Step};

use crate::arguments::{NoiseArgs, PointOrRange, count};
use crate::output::{Table, json};
use batch_and_rule::BatchAndRule;
use gradient_part::GradientPart;
use toclip_words::exact;

/// Compute the reduction factors μ and ν and the criteria CSC and CCC
///
/// Evaluates one point (R, c), a curve when --risk or --clip is a range, or every row of a table.
/// Several --noise families are compared; each takes the parameters it has.
#[derive(clap::Args)]
#[command(after_help = include_str!("../../help/factors.txt"))]
pub struct Args {
    #[command(flatten)]
    noise: NoiseArgs,

    /// R, the risk: a number, or a range A..B or A..B:POINTS
    #[arg(long, short, value_name = "R", default_value = "1", allow_hyphen_values = true)]
    risk: PointOrRange,

    /// c, the threshold: a number, `none` for no clipping, or a range A..B or A..B:POINTS
    #[arg(long, short, value_name = "C", default_value = "1", allow_hyphen_values = true)]
    clip: PointOrRange,

    /// The rule for the gradient, or several to compare: clip, skip, normalise, tanh, root,
    /// optimal, by_value, per_group
    #[arg(long, value_name = "RULE", value_delimiter = ',', default_value = "clip")]
    rule: Vec<String>,

    /// Eigenvalues of K whose directions are shown for the rule by_value, which has factors for each
    /// [default: 1,0.1,0.01]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = crate::arguments::number, allow_hyphen_values = true)]
    eigenvalues: Option<Vec<f64>>,

    /// Thresholds of the groups of the rule per_group, as multiples of the threshold
    /// [default: 1,0.5]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = crate::arguments::number, allow_hyphen_values = true)]
    ratios: Option<Vec<f64>>,

    /// B, the number of samples whose mean gradient is clipped
    #[arg(long, short, value_name = "B", default_value = "1", value_parser = count::<1>, allow_negative_numbers = true)]
    batch: u64,

    /// Clip the gradient of each of the B samples, not their mean
    #[arg(long)]
    per_sample: bool,

    /// The number of model outputs whose residuals are clipped together; each has the risk R and
    /// independent noise
    #[arg(long, value_name = "C", default_value = "1", value_parser = count::<1>, allow_negative_numbers = true)]
    outputs: u64,

    /// Space the points of a range logarithmically
    #[arg(long)]
    log_x: bool,

    /// Plot the curve, as .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,

    /// Use a dark background (by default an .svg follows the reader's system setting)
    #[arg(long, requires = "plot")]
    dark: bool,

    /// Evaluate every row of a CSV table with the columns family,params,r,c and, optionally, batch,
    /// rule, outputs and per_sample (true or false)
    #[arg(long, value_name = "IN.csv", conflicts_with_all = ["rule", "eigenvalues", "ratios", "batch", "per_sample", "outputs", "noise", "params", "risk", "clip", "plot", "log_x", "sigma", "lambda", "p", "half_width", "rate", "df", "scale", "weights", "means", "stds", "values"])]
    table: Option<PathBuf>,

    /// Write the numbers to a file instead of the terminal
    #[arg(long, value_name = "OUT.csv")]
    out: Option<PathBuf>,

    /// Print JSON, for scripts (infinite values are the string "inf")
    #[arg(long)]
    json: bool,
}

/// A noise with the batch and the rule for its gradients.
struct NoiseSpec {
    family: Family,
    step: Step<'static>,
    batch_and_rule: BatchAndRule,
    part: GradientPart,
}

impl NoiseSpec {
    fn new(family: Family, batch_and_rule: BatchAndRule, part: GradientPart) -> Result<Self> {
        let step = batch_and_rule.step(Arc::new(family.clone()))?;
        Ok(NoiseSpec { family, step, batch_and_rule, part })
    }

    /// The columns of tables that describe it beside the family, and their cells.
    fn cells(&self) -> Vec<(&'static str, Value)> {
        let part = self.part.cell().map(|(name, value)| (name, value.into()));
        self.batch_and_rule.cells().into_iter().chain(part).collect()
    }

    /// The cell of a column that some noise of a table needs, as text.
    fn cell(&self, column: &str) -> String {
        match self.part.cell() {
            Some((name, value)) if name == column => exact(value),
            _ if batch_and_rule::COLUMNS.contains(&column) => {
                match self.batch_and_rule.cell(column) {
                    Value::String(name) => name,
                    number => number.to_string(),
                }
            }
            _ => String::new(),
        }
    }

    fn factors(&self, points: &[(f64, f64)]) -> toclip::Result<Vec<Factors>> {
        match self.part {
            GradientPart::Whole => Factors::at_points(&self.step, points),
            part => points.iter().map(|&(r, c)| part.factors(&self.step, r, c)).collect(),
        }
    }

    fn describe(&self) -> String {
        let noise = match self.family {
            Family::None(_) => "No noise".into(),
            _ => self.step.noise().describe(),
        };
        noise + &self.step.describe_treatment() + &self.part.describe()
    }
}

/// Runs the command.
pub fn run(args: Args) -> Result<ExitCode> {
    if let Some(table) = &args.table {
        return table::run(table, args.out.as_deref(), args.json);
    }
    let Args { batch, per_sample, outputs, .. } = args;
    let rules = gradient_part::rules_and_parts(
        &args.rule,
        args.eigenvalues.as_deref(),
        args.ratios.as_deref(),
    )?;
    let mut noises = Vec::new();
    for family in args.noise.families()? {
        for (rule, part) in &rules {
            let batch_and_rule = BatchAndRule { batch, per_sample, outputs, rule: rule.clone() };
            noises.push(NoiseSpec::new(family.clone(), batch_and_rule, *part)?);
        }
    }
    match (&args.risk, &args.clip) {
        (PointOrRange::Number(r), PointOrRange::Number(c)) => {
            if args.plot.is_some() || args.out.is_some() {
                bail!(
                    "--plot and --out need a curve: give --clip or --risk as a range, such as --clip 0.1..15"
                );
            }
            point::run(&noises, *r, *c, args.json)?;
        }
        (PointOrRange::Range { .. }, PointOrRange::Range { .. }) => {
            bail!("only one of --risk and --clip can be a range; the other must be a number");
        }
        _ => curve::run(&noises, &args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The names of the factors in tables and in JSON.
const FACTORS: [&str; 5] = ["mu", "m2", "nu", "csc", "ccc"];

/// The factors in the order of their names; `None` where a criterion is not defined.
fn values(at: &Factors) -> [Option<f64>; 5] {
    [Some(at.mu), Some(at.m2), at.nu().ok(), at.csc().ok(), at.ccc().ok()]
}

/// The factors at a point as JSON; null where a criterion is not defined.
fn json_point(at: &Factors) -> Map<String, Value> {
    let point = [("r", Some(at.r)), ("c", Some(at.c))];
    let fields = point.into_iter().chain(FACTORS.into_iter().zip(values(at)));
    fields.map(|(key, x)| (key.to_owned(), x.map_or(Value::Null, json::number))).collect()
}

/// Adds the factors to a table, a row for each; empty where a criterion is not defined.
fn with_factors(table: Table, factors: &[Factors]) -> Table {
    let rows: Vec<_> = factors.iter().map(values).collect();
    let add = |table: Table, (i, name)| table.numbers(name, rows.iter().map(|row| row[i]));
    FACTORS.into_iter().enumerate().fold(table, add)
}
