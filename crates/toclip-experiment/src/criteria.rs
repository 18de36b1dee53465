//! Curves of the criteria, without any dynamics: CSC, CCC or the largest CCC, for several noises,
//! against the threshold or the risk.

use serde::{Deserialize, Serialize};
use toclip::Factors;
use toclip::criteria::best_threshold;
use toml::Value;

use crate::Mistake;

use crate::error::Result;
use crate::value_forms::deserialize_by_parse;
use crate::{BatchChoice, NoiseChoice, Origin, RuleChoice};
use toclip_words::short;

/// The key `criteria` of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Criteria {
    /// Which criteria, each for every noise.
    pub curves: Vec<Criterion>,
    /// R, or the range of R that the curves are drawn against.
    pub risk: NumberOrRange,
    /// c, or the range of c that the curves are drawn against; `max_ccc` needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<NumberOrRange>,
    /// How many points a curve has.
    #[serde(default = "points")]
    pub points: usize,
    /// The noises to compare; the noise of the experiment unless given.
    #[serde(default)]
    pub noises: Vec<LabelledNoise>,
    /// How many samples a step averages: the key `batch` of the experiment.
    #[serde(skip)]
    pub batch: BatchChoice,
    /// How the gradient is changed: the key `rule` of the experiment.
    #[serde(skip)]
    pub rule: RuleChoice,
}

fn points() -> usize {
    400
}

/// A noise with its name in tables and plots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelledNoise {
    /// The name; a description of the noise unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The noise.
    pub noise: NoiseChoice,
}

impl LabelledNoise {
    /// The label, or the noise in words.
    pub fn label(&self) -> String {
        self.label.clone().unwrap_or_else(|| self.noise.describe())
    }
}

/// A criterion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Criterion {
    /// $\mu/\nu$: clipped SGD is stable at larger rates where it is above 1.
    Csc,
    /// $\mu^2/\nu$: clipped SGD descends faster where it is above 1.
    Ccc,
    /// The largest CCC over all thresholds.
    MaxCcc,
}

impl Criterion {
    /// The name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Criterion::Csc => "CSC",
            Criterion::Ccc => "CCC",
            Criterion::MaxCcc => "max CCC",
        }
    }
}

/// One number, or a range `[from, to]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NumberOrRange {
    /// The same for all points.
    One(f64),
    /// Evenly spaced from the first to the second.
    Range(f64, f64),
}

impl NumberOrRange {
    fn parse(value: Value) -> Result<Self, Mistake> {
        let number = |value: &Value| value.as_float().or(value.as_integer().map(|n| n as f64));
        let extent = match &value {
            Value::Array(ends) => match &ends.iter().map(number).collect::<Vec<_>>()[..] {
                &[Some(from), Some(to)] if from < to => Some(NumberOrRange::Range(from, to)),
                _ => None,
            },
            value => number(value).map(NumberOrRange::One),
        };
        let least = |extent| match extent {
            NumberOrRange::One(x) | NumberOrRange::Range(x, _) => x,
        };
        extent.filter(|extent| least(*extent) >= 0.0).ok_or_else(|| {
            Mistake::is(value, "a number, at least 0, or a range such as [0.1, 30.0]")
        })
    }

    fn at(self, k: usize, points: usize) -> f64 {
        match self {
            NumberOrRange::One(value) => value,
            NumberOrRange::Range(from, to) => from + (to - from) * k as f64 / (points - 1) as f64,
        }
    }
}

impl std::fmt::Display for NumberOrRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            NumberOrRange::One(value) => write!(f, "= {}", short(value)),
            NumberOrRange::Range(from, to) => write!(f, "from {} to {}", short(from), short(to)),
        }
    }
}

deserialize_by_parse!(NumberOrRange);

/// The curves over their common abscissae.
#[derive(Debug, Clone)]
pub struct CriteriaCurves {
    /// What they are drawn against: `c` or `R`.
    pub against: &'static str,
    /// The abscissae.
    pub x: Vec<f64>,
    /// A curve for each criterion and noise.
    pub curves: Vec<CriterionCurve>,
}

impl CriteriaCurves {
    /// The curves of one criterion.
    #[must_use]
    pub fn of(&self, criterion: Criterion) -> Self {
        let curves = self.curves.iter().filter(|curve| curve.criterion == criterion);
        CriteriaCurves { curves: curves.cloned().collect(), ..self.clone() }
    }

    /// The values for the noise of this label; none for a label that does not occur.
    pub fn named(&self, label: &str) -> &[f64] {
        self.curves.iter().find(|curve| curve.label == label).map_or(&[], |curve| &curve.y)
    }
}

/// One curve.
#[derive(Debug, Clone)]
pub struct CriterionCurve {
    /// Of which criterion.
    pub criterion: Criterion,
    /// Of which noise.
    pub label: String,
    /// Its values.
    pub y: Vec<f64>,
}

impl Criteria {
    /// Refuses curves that are against nothing, or against two things.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let best = |c: &Criterion| *c == Criterion::MaxCcc;
        let range = |extent: NumberOrRange| matches!(extent, NumberOrRange::Range(..));
        let of_risk = range(self.risk);
        match self.threshold {
            _ if self.curves.is_empty() => {
                Err("`curves` is empty; give \"csc\", \"ccc\" or \"max_ccc\"")
            }
            _ if self.points < 2 => Err("`points` is too small; expected at least 2"),
            _ if self.curves.iter().any(best) && !of_risk => Err(
                "\"max_ccc\" is drawn against the risk: give `risk` as a range such as [0.1, 10.0]",
            ),
            None if !self.curves.iter().all(best) => {
                Err("the key `threshold` is missing: CSC and CCC depend on it")
            }
            Some(threshold) if range(threshold) == of_risk => {
                Err("give either `risk` or `threshold` as a range, and the other as a number")
            }
            _ if self.noises.is_empty() => Err("the key `noises` is missing"),
            _ => Ok(()),
        }
    }

    /// Computes the curves.
    ///
    /// # Errors
    /// [`Error::Wrong`](crate::Error::Wrong) for a noise that cannot be read or has no finite
    /// variance.
    pub fn curves(&self, origin: &Origin) -> Result<CriteriaCurves> {
        let wrong = |what: String| origin.error("criteria", what);
        let of_risk = matches!(self.risk, NumberOrRange::Range(..));
        let at: Vec<(f64, f64)> = (0..self.points)
            .map(|k| {
                let threshold = self.threshold.map_or(f64::INFINITY, |c| c.at(k, self.points));
                (self.risk.at(k, self.points), threshold)
            })
            .collect();
        let mut curves = Vec::new();
        for &criterion in &self.curves {
            for labelled in &self.noises {
                let step =
                    labelled.noise.build(self.batch, &self.rule, origin.folder()).map_err(wrong)?;
                let label = labelled.label();
                let y = match criterion {
                    Criterion::MaxCcc => {
                        at.iter().map(|&(r, _)| Ok(best_threshold(&step, r)?.ccc)).collect()
                    }
                    _ => Factors::at_points(&step, &at).and_then(|all| {
                        let of =
                            if criterion == Criterion::Csc { Factors::csc } else { Factors::ccc };
                        all.iter().map(of).collect()
                    }),
                };
                let y = y.map_err(|e: toclip::Error| wrong(format!("{label}: {e}")))?;
                curves.push(CriterionCurve { criterion, label, y });
            }
        }
        let x = at.iter().map(|&(r, c)| if of_risk { r } else { c }).collect();
        Ok(CriteriaCurves { against: if of_risk { "R" } else { "c" }, x, curves })
    }
}
