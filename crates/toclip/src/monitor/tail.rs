//! How heavy the tail of the norms is.

use super::interval::{Interval, Product};
use super::table::Table;
use serde::{Deserialize, Serialize};

/// The tail index $\alpha$ of the norms, $P(G > x) \sim x^{-\alpha}$, by Hill's estimator.
///
/// Moments of higher order than $\alpha$ do not exist. Light tails, such as the normal, have no
/// index, and the estimate is then large and grows with the number of steps. It is taken from the upper
/// twentieth of the norms, or from where it becomes clearly larger further out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// $\hat\alpha$, with an interval that allows for neighbouring steps being alike; it knows
    /// nothing of a tail that is not yet a power law where it was measured.
    pub index: Interval,
    /// Norms it rests on: those above `multiple`.
    pub exceedances: u64,
    /// Where the tail was taken to begin, as a multiple of the scale.
    pub multiple: f64,
}

/// What the tail means for $E G^2$, and so for $\nu$, CSC and CCC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecondMoment {
    /// Nothing is known against it.
    Sound,
    /// The index is not clearly above 4: $E G^4$ may be infinite, and then the intervals of $\nu$,
    /// CSC and CCC cover less often than they say.
    SlowIntervals,
    /// The index is not clearly above 2: $E G^2$ may be infinite, and then $\nu$, CSC and CCC have no value
    /// to estimate; they say what clipping did to the norms that were seen.
    MayNotExist,
}

/// The tail begins where at most this share of the norms is above …
const SHARE: f64 = 0.05;
/// … and must have this many.
const LEAST: f64 = 30.0;

impl Tail {
    pub(super) fn new(table: &Table, multiples: impl Fn(usize) -> f64, t: f64) -> Option<Self> {
        let most = SHARE * table.steps();
        let beyond = table.candidates.iter().enumerate().filter(|(_, at)| {
            let count = at.exceedances();
            count <= most && count >= LEAST
        });
        let mut found: Option<Tail> = None;
        for (k, at) in beyond {
            let Some(index) = Product::new(&[(&at.above, 1.0), (&at.excess, -1.0)]) else { break };
            let index = index.interval(t);
            // Clearly lighter further out: what came before was no power law but, say, a second
            // hump, which lies far above the rest and yet ends.
            if found.is_none_or(|tail| index.low > tail.index.high) {
                let exceedances = at.exceedances() as u64;
                found = Some(Tail { index, exceedances, multiple: multiples(k) });
            }
        }
        found
    }

    /// What the tail means for $E G^2$.
    pub fn second_moment(&self) -> SecondMoment {
        match self.index.low {
            low if low > 4.0 => SecondMoment::Sound,
            low if low > 2.0 => SecondMoment::SlowIntervals,
            _ => SecondMoment::MayNotExist,
        }
    }
}
