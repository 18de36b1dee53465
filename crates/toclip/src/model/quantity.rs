//! The measures of a model by name.

use super::Measures;

/// One of the numbers of [`Measures`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// The loss.
    Loss,
    /// The error rate.
    ErrorRate,
    /// The angle to the teacher, in radians.
    Angle,
    /// The calibration slope.
    Calibration,
}

impl Quantity {
    /// All of them, in the order of tables.
    pub const ALL: [Quantity; 4] =
        [Quantity::Loss, Quantity::ErrorRate, Quantity::Angle, Quantity::Calibration];

    /// The name in tables: `"error_rate"`.
    pub fn key(self) -> &'static str {
        match self {
            Quantity::Loss => "loss",
            Quantity::ErrorRate => "error_rate",
            Quantity::Angle => "angle",
            Quantity::Calibration => "calibration",
        }
    }
}

impl Measures {
    /// One of them; `None` where the model does not have it.
    ///
    /// ```
    /// use toclip::model::{Logistic, Measures, Overlaps, Quantity};
    /// let start = Measures::new(&Logistic::new(0.0)?, &Overlaps::new(0.0, 0.0, 9.0)?);
    /// let values = Quantity::ALL.map(|quantity| start.get(quantity));
    /// assert_eq!(values, [Some(start.loss), Some(0.5), Some(start.angle), None]);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn get(&self, quantity: Quantity) -> Option<f64> {
        match quantity {
            Quantity::Loss => Some(self.loss),
            Quantity::ErrorRate => self.error_rate,
            Quantity::Angle => Some(self.angle),
            Quantity::Calibration => self.calibration,
        }
    }
}
