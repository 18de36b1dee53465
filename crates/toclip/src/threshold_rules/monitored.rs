//! The monitor's choice, followed along the run.

use super::{NextStep, ThresholdRule};
use crate::error::{Error, Result};
use crate::monitor::{Evidence, Monitor, MonitorAdvice, MonitorSettings, Reason};
use serde::{Deserialize, Serialize};

/// Clips where a [`Monitor`] of the same norms advises, and not before it does.
///
/// The advice is updated every `every` steps. A threshold is introduced or changed only when its
/// simultaneous interval supports it, and dropped only when its interval shows that it costs more
/// than it saves, or that it gains less than norms can prove ([`MonitorSettings::margin`]). Where the
/// distribution of the norms changed during the run, only the last part without a change is used,
/// at least 21 of up to 64 stretches. The threshold is a multiple of the running scale, so that it
/// follows the norms.
///
/// ```
/// use toclip::monitor::MonitorSettings;
/// use toclip::threshold_rules::{Monitored, ThresholdRule};
/// let mut rule = Monitored::new(MonitorSettings { components: Some(1.0), ..MonitorSettings::default() }, 500)?;
/// for k in 0..5000_u32 {
///     let u = (f64::from(k) * 0.618_033_988_749_895).fract();
///     rule.threshold(if k % 10 == 3 { 20.0 + u } else { 1.5 * u + 0.01 });
/// }
/// assert!(rule.threshold(1.0) < 2.0);
/// assert!(rule.rate_factor() > 1.0);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Monitored {
    monitor: Monitor,
    every: u64,
    seen: u64,
    in_force: Option<InForce>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct InForce {
    candidate: usize,
    multiple: f64,
    rate_factor: f64,
}

impl Monitored {
    /// Follows a monitor with these settings, with new advice every `every` steps. A watched
    /// threshold is ignored: the rule compares with its own.
    ///
    /// # Errors
    /// [`Error::Parameter`] as [`Monitor::new`], and for `every` = 0.
    pub fn new(settings: MonitorSettings, every: u64) -> Result<Self> {
        if every == 0 {
            return Err(Error::parameter("every", 0.0, "give at least 1 step"));
        }
        let monitor = Monitor::new(MonitorSettings { watched: None, ..settings })?;
        Ok(Monitored { monitor, every, seen: 0, in_force: None })
    }

    /// The monitor that is followed.
    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// The threshold of the next step, updated when an update is due.
    fn next_in_force(&self) -> Option<InForce> {
        if self.seen == 0 || !self.seen.is_multiple_of(self.every) {
            return self.in_force;
        }
        let advice = self.monitor.advice_at(self.in_force.map(|now| now.candidate));
        match advice {
            MonitorAdvice::Clip(choice) => Some(InForce {
                candidate: choice.candidate,
                multiple: choice.multiple,
                rate_factor: choice.rate_factor,
            }),
            MonitorAdvice::Loosen(_) => None,
            // Even the best candidate cannot gain enough to count as evidence.
            MonitorAdvice::Stay(Reason::NormsAlone { best, .. } | Reason::NoGain(best)) => {
                let margin = match best.evidence {
                    Evidence::Norms => self.monitor.settings().margin,
                    Evidence::Direct => 0.0,
                };
                self.in_force.filter(|_| !(best.ccc.high < 1.0 + margin))
            }
            MonitorAdvice::Stay(_) => self.in_force,
        }
    }

    /// The threshold for a gradient that comes with its inner product with an independent estimate
    /// of the mean gradient, as in [`Monitor::observe_aligned`]: then the choice goes by the direct
    /// form of $\mu$.
    ///
    /// ```
    /// use toclip::monitor::{Halves, MonitorSettings};
    /// use toclip::threshold_rules::Monitored;
    /// let mut rule = Monitored::new(MonitorSettings::default(), 100)?;
    /// let mut halves = Halves::new(2, 100.0)?;
    /// halves.inner(&[3.0, 4.0])?;
    /// if let Some(inner) = halves.inner(&[0.6, 0.8])? {
    ///     assert_eq!(rule.threshold_aligned(1.0, inner), f64::INFINITY);
    /// }
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn threshold_aligned(&mut self, norm: f64, inner: f64) -> f64 {
        let threshold = self.next();
        self.monitor.observe_aligned(norm, inner);
        threshold
    }

    /// The threshold from the steps before: a spike cannot raise its own threshold.
    fn next(&mut self) -> f64 {
        self.in_force = self.next_in_force();
        self.seen += 1;
        self.threshold_of(self.in_force)
    }

    fn threshold_of(&self, in_force: Option<InForce>) -> f64 {
        match (in_force, self.monitor.scale()) {
            (Some(now), Some(scale)) => now.multiple * scale,
            _ => f64::INFINITY,
        }
    }
}

impl ThresholdRule for Monitored {
    fn threshold(&mut self, norm: f64) -> f64 {
        let threshold = self.next();
        self.monitor.observe(norm);
        threshold
    }

    fn rate_factor(&self) -> f64 {
        self.in_force.map_or(1.0, |now| now.rate_factor)
    }

    fn next_step(&self) -> NextStep {
        let next = self.next_in_force();
        NextStep {
            threshold: self.threshold_of(next),
            rate_factor: next.map_or(1.0, |now| now.rate_factor),
        }
    }

    fn describe(&self) -> String {
        "monitor's choice".into()
    }
}
