//! The monitor and its settings.

use super::advice::MonitorAdvice;
use super::candidates::{CANDIDATES, STEP, StretchTable, ThresholdSums, multiple, nearest};
use super::choose::{LEAST_BLOCKS, choose};
use super::drift::{Drift, steady};
use super::estimates::{Estimates, Tail, single};
use super::running_averages::{Halves, NormScale, Running};
use super::stretches::{MonitorMemory, Observation, SHORTEST_WINDOW, StretchSums, Stretches};
use crate::error::{Error, Result};
use crate::factors::check_threshold;
use serde::{Deserialize, Serialize};

/// The settings of a [`Monitor`].
///
/// | field | default | meaning |
/// |---|---|---|
/// | `components` | `None`: very many | $N$, residual components behind one norm: batch size × outputs |
/// | `memory` | all steps | which steps are remembered |
/// | `scale` | running, 200 norms | what thresholds are multiples of |
/// | `watched` | `None` | the current threshold, as a number |
/// | `confidence` | 0.95 | of every interval, and of the choice |
/// | `margin` | 0.10 | the gain that norms alone must show to be evidence |
///
/// ```
/// use toclip::monitor::{Monitor, MonitorSettings};
/// let monitor = Monitor::new(MonitorSettings { components: Some(32.0), ..MonitorSettings::default() })?;
/// assert!(Monitor::new(MonitorSettings { confidence: 1.5, ..MonitorSettings::default() }).is_err());
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MonitorSettings {
    /// $N = B\cdot C$: the samples of a batch times the outputs of the model; 1 for single samples
    /// of one output. `None` stands for the limit $N \to \infty$: at $N = 100$ it makes $\mu$ too
    /// large by at most one percent.
    pub components: Option<f64>,
    /// Which steps are remembered.
    pub memory: MonitorMemory,
    /// What thresholds are multiples of.
    pub scale: NormScale,
    /// The current threshold.
    pub watched: Option<f64>,
    /// The confidence of every interval.
    pub confidence: f64,
    /// The gain, as a share, that norms alone must show to count as evidence, over no clipping and
    /// over the current threshold.
    ///
    /// Norms say nothing about how well a batch's gradient points downhill, and in networks large
    /// ones carry more signal: measured at fixed weights, CCC was 0.94 where norms gave 1.07
    /// (ViT-S, batches of 8), and 1.006 where they gave 1.05 (batches of 128).
    pub margin: f64,
}

impl Default for MonitorSettings {
    fn default() -> Self {
        MonitorSettings {
            components: None,
            memory: MonitorMemory::All,
            scale: NormScale::default(),
            watched: None,
            confidence: 0.95,
            margin: 0.10,
        }
    }
}

/// A batch size in components, and by how much CCC from norms alone was too large there: measured in
/// networks at fixed weights.
const SMALL_BATCH: (f64, f64) = (8.0, 0.13);
const LARGE_BATCH: (f64, f64) = (128.0, 0.05);

impl MonitorSettings {
    /// The [margin](Self::margin) for this many components: the error of CCC from norms alone as it was
    /// measured in networks, 0.13 at batches of 8 and 0.05 at 128; in between by the logarithm, and
    /// `None` as for a single sample.
    ///
    /// ```
    /// use toclip::monitor::MonitorSettings;
    /// assert_eq!(MonitorSettings::measured_margin(None), 0.13);
    /// assert!((MonitorSettings::measured_margin(Some(32.0)) - 0.09).abs() < 1e-12);
    /// ```
    pub fn measured_margin(components: Option<f64>) -> f64 {
        let ((small, most), (large, least)) = (SMALL_BATCH, LARGE_BATCH);
        let at = (components.unwrap_or(1.0) / small).log(large / small).clamp(0.0, 1.0);
        most + at * (least - most)
    }

    pub(super) fn check(&self) -> Result<()> {
        if let Some(n) = self.components
            && !(n >= 1.0)
        {
            return Err(Error::parameter("components", n, "a batch has at least one component"));
        }
        if let MonitorMemory::Last(window) = self.memory
            && window < SHORTEST_WINDOW
        {
            let expected = "a window must hold at least 512 steps";
            return Err(Error::parameter("memory", window as f64, expected));
        }
        match self.scale {
            NormScale::Running(memory) if !(memory >= 32.0 && memory.is_finite()) => {
                let expected =
                    "a running scale must remember at least 32 norms, and a finite number";
                return Err(Error::parameter("scale", memory, expected));
            }
            NormScale::Fixed(scale) if !(scale > 0.0 && scale.is_finite()) => {
                return Err(Error::parameter("scale", scale, "a fixed scale must be positive"));
            }
            _ => {}
        }
        if let Some(threshold) = self.watched {
            check_threshold(threshold)?;
        }
        if !(0.5..1.0).contains(&self.confidence) {
            return Err(Error::parameter(
                "confidence",
                self.confidence,
                "must be from 0.5 to below 1",
            ));
        }
        if !(self.margin >= 0.0 && self.margin.is_finite()) {
            return Err(Error::parameter("margin", self.margin, "must be finite and not negative"));
        }
        Ok(())
    }

    /// $1 - 1/N$.
    pub(super) fn kept(&self) -> f64 {
        1.0 - self.components.map_or(0.0, f64::recip)
    }
}

/// Running estimates of the effect of clipping, from the norms $G_k$ of a run's gradients before
/// they are clipped. See the [module](super).
///
/// ```
/// use toclip::monitor::{Monitor, MonitorSettings};
/// let mut monitor = Monitor::new(MonitorSettings { watched: Some(1.0), ..MonitorSettings::default() })?;
/// for k in 0..1000 {
///     monitor.observe([0.5, 1.0, 2.0, 4.0][k % 4]);
/// }
/// let now = monitor.watched().ok_or(toclip::Error::Invalid("nothing is watched".into()))?;
/// assert_eq!(now.clip_fraction.value, 0.5); // it fires at every other step
/// assert!((now.step_factor.value - 0.6875).abs() < 1e-12); // and shortens the mean step by a third
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Monitor {
    settings: MonitorSettings,
    scale: Running,
    blocks: Stretches,
    /// $\ln u$ of the last step.
    last: Option<f64>,
    left_out: LeftOut,
}

/// Norms that were counted and left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Norms of zero: steps that clipping cannot change.
    pub zero: u64,
    /// Norms that are infinite, NaN or negative: steps that should not be taken.
    pub not_finite: u64,
}

impl Monitor {
    /// A monitor that has seen nothing.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a setting that is not possible.
    pub fn new(settings: MonitorSettings) -> Result<Self> {
        settings.check()?;
        Ok(Monitor {
            settings,
            scale: Running::new(settings.scale),
            blocks: Stretches::new(settings.memory),
            last: None,
            left_out: LeftOut::default(),
        })
    }

    /// Takes in the norm of a step's gradient before clipping.
    pub fn observe(&mut self, norm: f64) {
        self.take(norm, None);
    }

    /// Takes in a norm $\Vert g\Vert $ and an inner product $\langle g, \text{reference}\rangle$,
    /// for the direct form of $\mu$.
    ///
    /// The reference must estimate the mean gradient $E g$ from other samples than $g$'s: the mean
    /// of other steps ([`Halves`]), a large held-out batch, or the gradient of another worker at
    /// the same weights. The direct form is used when every remembered step came with one.
    ///
    /// ```
    /// use toclip::monitor::{Monitor, NormScale, MonitorSettings};
    /// // Nine gradients of ten are 1, the tenth is −4, and the mean is 1/2. Clipped at one it is 0.8.
    /// let scale = NormScale::Fixed(1.0);
    /// let mut monitor = Monitor::new(MonitorSettings { watched: Some(1.0), scale, ..MonitorSettings::default() })?;
    /// for k in 0..2000 {
    ///     let g: f64 = if k % 10 == 7 { -4.0 } else { 1.0 };
    ///     monitor.observe_aligned(g.abs(), g * 0.5);
    /// }
    /// let now = monitor.watched().ok_or(toclip::Error::Invalid("nothing is watched".into()))?;
    /// let direct = now.direct.ok_or(toclip::Error::Invalid("no inner products".into()))?;
    /// assert!((direct.mu.value - 1.6).abs() < 1e-12); // clipping speeds descent up
    /// assert!(now.mu.value < 1.0); // which norms cannot know
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn observe_aligned(&mut self, norm: f64, inner: f64) {
        if inner.is_finite() {
            self.take(norm, Some(inner));
        } else {
            self.left_out.not_finite += 1;
        }
    }

    /// Takes in a whole gradient, with the other half of the steps for reference, and gives its
    /// norm. The first gradient only serves as a reference.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a gradient of another dimension than the halves.
    pub fn observe_vector(&mut self, halves: &mut Halves, gradient: &[f64]) -> Result<f64> {
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        match halves.inner(gradient)? {
            Some(inner) => self.observe_aligned(norm, inner),
            None if !norm.is_finite() => self.left_out.not_finite += 1,
            None => {}
        }
        Ok(norm)
    }

    fn take(&mut self, norm: f64, inner: Option<f64>) {
        if norm == 0.0 {
            self.left_out.zero += 1;
        } else if norm > 0.0 && norm.is_finite() {
            self.count(norm.ln(), inner);
        } else {
            self.left_out.not_finite += 1;
        }
    }

    fn count(&mut self, log: f64, inner: Option<f64>) {
        let Monitor { settings, scale, blocks, last, .. } = self;
        scale.learn(log, inner, |log, inner, log_scale| {
            let inverse = (-log_scale).exp();
            blocks.add(Observation {
                log: log - log_scale,
                log_scale,
                before: last.replace(log - log_scale),
                inner: inner.map(|p| p * inverse * inverse),
                watched: settings.watched.map(|threshold| threshold.ln() - log_scale),
            });
        });
    }

    /// Adds the observations of another monitor with the same settings: another worker of the same
    /// run, or another run. Sums are as if one monitor had seen both, each norm relative to
    /// the scale it was seen with; stretches of the same time become one, so that an event that
    /// affected both workers counts once.
    ///
    /// # Errors
    /// [`Error::Invalid`] for other settings.
    pub fn merge(&mut self, other: &Monitor) -> Result<()> {
        if self.settings != other.settings {
            let why = "monitors with different settings cannot be merged";
            return Err(Error::Invalid(why.into()));
        }
        let waiting = self.scale.merge(&other.scale);
        self.blocks.merge(&other.blocks);
        waiting.into_iter().for_each(|(log, inner)| self.count(log, inner));
        self.left_out.zero += other.left_out.zero;
        self.left_out.not_finite += other.left_out.not_finite;
        Ok(())
    }

    /// The settings.
    pub fn settings(&self) -> &MonitorSettings {
        &self.settings
    }

    /// The present scale $s$; `None` before the first norm.
    pub fn scale(&self) -> Option<f64> {
        self.scale.log().map(f64::exp)
    }

    /// Steps that are counted at present.
    pub fn steps(&self) -> u64 {
        self.blocks.iter().map(|block| block.whole.count).sum::<f64>() as u64
    }

    /// Norms that were left out.
    pub fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// The [estimates](Estimates) at the 64 candidates, lowest first; empty before the first steps.
    ///
    /// ```
    /// use toclip::monitor::{Monitor, MonitorSettings};
    /// let mut monitor = Monitor::new(MonitorSettings::default())?;
    /// (0..1000_u32).for_each(|k| monitor.observe(1.0 + (f64::from(k) * 0.618).fract()));
    /// let curve = monitor.curve();
    /// assert_eq!(curve.len(), 64);
    /// assert!(curve.windows(2).all(|w| w[0].mu.value <= w[1].mu.value));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn curve(&self) -> Vec<Estimates> {
        let table = self.table();
        let Some(scale) = self.scale().filter(|_| table.blocks() > 0) else { return Vec::new() };
        let t = single(self.settings.confidence, table.blocks());
        let at = |k: usize| {
            Estimates::new(&table, &table.candidates[k], multiple(k) * scale, multiple(k), t)
        };
        (0..CANDIDATES).map(at).collect()
    }

    /// The estimates at the watched threshold, if one is watched and steps were counted.
    pub fn watched(&self) -> Option<Estimates> {
        let (table, threshold, scale) = (self.table(), self.settings.watched?, self.scale()?);
        let t = single(self.settings.confidence, table.blocks());
        (table.blocks() > 0)
            .then(|| Estimates::new(&table, &table.watched, threshold, threshold / scale, t))
    }

    /// The tail of the norms; `None` while fewer than thirty are in it.
    pub fn tail(&self) -> Option<Tail> {
        let table = self.table();
        Tail::new(&table, multiple, single(self.settings.confidence, table.blocks()))
    }

    /// Whether the distribution of the norms changed; `None` before the first steps.
    pub fn drift(&self) -> Option<Drift> {
        let table = self.table();
        (table.blocks() > 1).then(|| Drift::new(&table))
    }

    /// The advice: compared with the watched threshold, or else with no clipping.
    ///
    /// If the scale has moved, the watched threshold counts as a multiple of the present scale: its
    /// effect on norms of another size would not predict the gain from a change now.
    ///
    /// This takes some tenths of a millisecond, too long for every step;
    /// [`Monitored`](crate::threshold_rules::Monitored) does it at intervals.
    pub fn advice(&self) -> MonitorAdvice {
        let table = self.table();
        self.advice_over(&table, self.in_force(&table))
    }

    /// The sums at the watched threshold, or at the candidate that it is next to at the present
    /// scale.
    fn in_force<'a>(&self, table: &'a StretchTable) -> Option<&'a ThresholdSums> {
        let (number, now) = (self.settings.watched?, self.scale()?.ln());
        // Two candidates away it is another threshold; less is the noise of the scale.
        let moved = |w: &StretchSums| (w.log_scale / w.count - now).abs() > 2.0 * STEP;
        Some(match table.whole.iter().any(moved) {
            true => &table.candidates[nearest(number.ln() - now)],
            false => &table.watched,
        })
    }

    /// The threshold to use: the advised one, else the watched one, else infinity.
    ///
    /// ```
    /// use toclip::monitor::{Monitor, MonitorSettings};
    /// assert_eq!(Monitor::new(MonitorSettings::default())?.threshold(), f64::INFINITY);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn threshold(&self) -> f64 {
        match self.advice() {
            MonitorAdvice::Clip(choice) | MonitorAdvice::Loosen(choice) => choice.threshold,
            MonitorAdvice::Stay(_) => self.settings.watched.unwrap_or(f64::INFINITY),
        }
    }

    /// The advice compared with a candidate, or with no clipping; from the last part of the steps
    /// if the distribution changed before it.
    pub(crate) fn advice_at(&self, candidate: Option<usize>) -> MonitorAdvice {
        let all = self.table();
        // One more, because the last may be short.
        let table = steady(&all, LEAST_BLOCKS + 1).unwrap_or(all);
        self.advice_over(&table, candidate.and_then(|k| table.candidates.get(k)))
    }

    fn advice_over(&self, table: &StretchTable, in_force: Option<&ThresholdSums>) -> MonitorAdvice {
        choose(table, in_force, &self.settings, self.scale().unwrap_or(f64::NAN))
    }

    fn table(&self) -> StretchTable {
        StretchTable::new(&self.blocks, self.settings.kept())
    }
}
