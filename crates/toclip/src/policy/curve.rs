//! A number that changes with time.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// A positive number as a function of time: $\eta(t)$ or $c(t)$.
///
/// In files it is a number, or a table with a `kind`:
///
/// | `kind` | parameters | value |
/// |---|---|---|
/// | `constant` | `value` | `value` |
/// | `cosine` | `from`, `to` (0), `over` | half a cosine from `from` to `to` in the time `over` |
/// | `warmup` | `value`, `over`, `from` (0) | linear from `from` to `value`, then constant |
/// | `step` | `value`, `factor`, `at` | multiplied by `factor` at each time in `at` |
/// | `polynomial` | `from`, `to` (0), `over`, `power` (1) | $\text{to} + (\text{from}-\text{to})(1-t/\text{over})^{\text{power}}$ |
/// | `table` | `times`, `values` | straight lines between the points, constant outside |
///
/// `cosine`, `step` and `polynomial` take an optional `warmup`, a time in which the value rises
/// linearly from zero before the rest of the curve begins.
///
/// ```
/// use toclip::policy::Schedule;
/// let eta: Schedule = toml::from_str("kind = 'cosine'\nfrom = 0.8\nover = 10")?;
/// assert_eq!(eta.at(0.0), 0.8);
/// assert!((eta.at(5.0) - 0.4).abs() < 1e-15);
/// assert_eq!(eta.at(20.0), 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Raw", into = "Raw")]
pub struct Schedule {
    shape: Shape,
}

/// The forms of a [`Schedule`]; see its table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Shape {
    Constant {
        value: f64,
    },
    Cosine {
        from: f64,
        #[serde(default)]
        to: f64,
        over: f64,
        #[serde(default)]
        warmup: f64,
    },
    Warmup {
        value: f64,
        over: f64,
        #[serde(default)]
        from: f64,
    },
    Step {
        value: f64,
        factor: f64,
        at: Vec<f64>,
        #[serde(default)]
        warmup: f64,
    },
    Polynomial {
        from: f64,
        #[serde(default)]
        to: f64,
        over: f64,
        #[serde(default = "one")]
        power: f64,
        #[serde(default)]
        warmup: f64,
    },
    Table {
        times: Vec<f64>,
        values: Vec<f64>,
    },
}

fn one() -> f64 {
    1.0
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Raw {
    Number(f64),
    Shape(Shape),
}

impl TryFrom<Raw> for Schedule {
    type Error = Error;
    fn try_from(raw: Raw) -> Result<Self> {
        match raw {
            Raw::Number(value) => Schedule::constant(value),
            Raw::Shape(shape) => Schedule::new(shape),
        }
    }
}

impl From<Schedule> for Raw {
    fn from(schedule: Schedule) -> Self {
        match schedule.shape {
            Shape::Constant { value } => Raw::Number(value),
            shape => Raw::Shape(shape),
        }
    }
}

fn nonnegative(name: &'static str, value: f64) -> Result<()> {
    if value >= 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(Error::parameter(name, value, "must be finite and not negative"))
    }
}

fn positive(name: &'static str, value: f64) -> Result<()> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        Err(Error::parameter(name, value, "must be positive and finite"))
    }
}

impl Schedule {
    /// From one of the shapes.
    ///
    /// # Errors
    /// [`Error::Parameter`] or [`Error::Invalid`] for values that are negative or not finite,
    /// times that do not increase, or a table whose columns differ in length.
    pub fn new(shape: Shape) -> Result<Self> {
        match &shape {
            Shape::Constant { value } => {
                if value.is_nan() || *value < 0.0 {
                    return Err(Error::parameter("value", *value, "must not be negative"));
                }
            }
            Shape::Cosine { from, to, over, warmup } => {
                nonnegative("from", *from)?;
                nonnegative("to", *to)?;
                positive("over", *over)?;
                nonnegative("warmup", *warmup)?;
            }
            Shape::Warmup { value, over, from } => {
                nonnegative("value", *value)?;
                nonnegative("from", *from)?;
                positive("over", *over)?;
            }
            Shape::Step { value, factor, at, warmup } => {
                nonnegative("value", *value)?;
                nonnegative("factor", *factor)?;
                nonnegative("warmup", *warmup)?;
                increasing("at", at)?;
            }
            Shape::Polynomial { from, to, over, power, warmup } => {
                nonnegative("from", *from)?;
                nonnegative("to", *to)?;
                positive("over", *over)?;
                positive("power", *power)?;
                nonnegative("warmup", *warmup)?;
            }
            Shape::Table { times, values } => {
                if times.len() != values.len() || times.is_empty() {
                    return Err(Error::Invalid(format!(
                        "a schedule table needs as many times as values and at least one, got {} times and {} values",
                        times.len(),
                        values.len()
                    )));
                }
                increasing("times", times)?;
                for value in values {
                    nonnegative("values", *value)?;
                }
            }
        }
        Ok(Schedule { shape })
    }

    /// The same value at all times.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a negative value or NaN.
    pub fn constant(value: f64) -> Result<Self> {
        Schedule::new(Shape::Constant { value })
    }

    /// $\infty$ at all times: the threshold of unclipped SGD.
    pub fn never() -> Self {
        Schedule { shape: Shape::Constant { value: f64::INFINITY } }
    }

    /// Every value times a positive number.
    ///
    /// ```
    /// use toclip::policy::{Schedule, Shape};
    /// let eta = Schedule::new(Shape::Warmup { value: 0.6, over: 5.0, from: 0.2 })?;
    /// assert_eq!(eta.scaled(2.0)?.at(2.5), 2.0 * eta.at(2.5));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new), for a factor that leaves no schedule.
    pub fn scaled(&self, by: f64) -> Result<Self> {
        let mut shape = self.shape.clone();
        match &mut shape {
            Shape::Constant { value } | Shape::Step { value, .. } => *value *= by,
            Shape::Cosine { from, to, .. } | Shape::Polynomial { from, to, .. } => {
                *from *= by;
                *to *= by;
            }
            Shape::Warmup { value, from, .. } => {
                *value *= by;
                *from *= by;
            }
            Shape::Table { values, .. } => values.iter_mut().for_each(|value| *value *= by),
        }
        Schedule::new(shape)
    }

    /// The form of this schedule.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The value at time $t \ge 0$.
    pub fn at(&self, t: f64) -> f64 {
        match &self.shape {
            Shape::Constant { value } => *value,
            Shape::Warmup { value, over, from } => from + (value - from) * (t / over).min(1.0),
            Shape::Cosine { from, to, over, warmup } => after_warmup(t, *warmup, *from, |t| {
                let phase = std::f64::consts::PI * (t / over).min(1.0);
                // At the end exactly `to`, not what the cosine's rounding leaves.
                if t >= *over { *to } else { to + 0.5 * (from - to) * (1.0 + phase.cos()) }
            }),
            Shape::Step { value, factor, at, warmup } => after_warmup(t, *warmup, *value, |_| {
                let passed = at.partition_point(|&time| time <= t);
                value * factor.powi(i32::try_from(passed).unwrap_or(i32::MAX))
            }),
            Shape::Polynomial { from, to, over, power, warmup } => {
                after_warmup(t, *warmup, *from, |t| {
                    to + (from - to) * (1.0 - (t / over).min(1.0)).powf(*power)
                })
            }
            Shape::Table { times, values } => {
                let next = times.partition_point(|&time| time <= t);
                if next == 0 || next == times.len() {
                    return values[next.saturating_sub(1)];
                }
                let share = (t - times[next - 1]) / (times[next] - times[next - 1]);
                values[next - 1] + share * (values[next] - values[next - 1])
            }
        }
    }

    /// Times at which the value jumps or has a corner.
    pub fn breakpoints(&self) -> Vec<f64> {
        match &self.shape {
            Shape::Constant { .. } => Vec::new(),
            Shape::Warmup { over, .. } => vec![*over],
            Shape::Cosine { over, warmup, .. } | Shape::Polynomial { over, warmup, .. } => {
                vec![*warmup, warmup + over]
            }
            Shape::Step { at, warmup, .. } => {
                let mut times = at.clone();
                times.push(*warmup);
                times
            }
            Shape::Table { times, .. } => times.clone(),
        }
    }
}

/// A linear rise to `peak` in the time `warmup`, then the curve with its own clock.
fn after_warmup(t: f64, warmup: f64, peak: f64, curve: impl Fn(f64) -> f64) -> f64 {
    if t < warmup { peak * t / warmup } else { curve(t - warmup) }
}

fn increasing(name: &'static str, times: &[f64]) -> Result<()> {
    for time in times {
        nonnegative(name, *time)?;
    }
    match times.windows(2).find(|w| w[1] <= w[0]) {
        Some(w) => Err(Error::parameter(name, w[1], "times must increase")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Schedule {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn each_shape_passes_through_its_points() {
        let warmup = read("kind = 'warmup'\nvalue = 0.5\nover = 2");
        assert_eq!([0.0, 1.0, 2.0, 9.0].map(|t| warmup.at(t)), [0.0, 0.25, 0.5, 0.5]);
        let step = read("kind = 'step'\nvalue = 8\nfactor = 0.5\nat = [1, 3]");
        assert_eq!([0.0, 1.0, 2.9, 3.0].map(|t| step.at(t)), [8.0, 4.0, 4.0, 2.0]);
        let poly = read("kind = 'polynomial'\nfrom = 4\nto = 0\nover = 2\npower = 2");
        assert_eq!([0.0, 1.0, 2.0, 3.0].map(|t| poly.at(t)), [4.0, 1.0, 0.0, 0.0]);
        let table = read("kind = 'table'\ntimes = [1, 2]\nvalues = [3, 5]");
        assert_eq!([0.0, 1.0, 1.5, 2.0, 7.0].map(|t| table.at(t)), [3.0, 3.0, 4.0, 5.0, 5.0]);
        let late = read("kind = 'cosine'\nfrom = 1\nover = 4\nwarmup = 2");
        assert_eq!([1.0, 2.0, 6.0].map(|t| late.at(t)), [0.5, 1.0, 0.0]);
        assert!((late.at(4.0) - 0.5).abs() < 1e-15);
    }

    #[test]
    fn impossible_schedules_are_refused() {
        for (text, says) in [
            ("kind = 'cosine'\nfrom = -1\nover = 1", "from = -1 is not allowed"),
            ("kind = 'table'\ntimes = [2, 1]\nvalues = [1, 1]", "times must increase"),
            ("kind = 'table'\ntimes = [1]\nvalues = []", "1 times and 0 values"),
        ] {
            let shape: Shape = toml::from_str(text).unwrap();
            let error = Schedule::new(shape).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        assert!(Schedule::constant(f64::NAN).is_err());
    }
}
