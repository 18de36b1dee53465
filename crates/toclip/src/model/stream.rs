//! C-SGD of a two-class model on a given data matrix.

use super::ode::check_policy;
use super::{MeasuredPath, Measures, Model, Overlaps};
use crate::dynamics::simulated_path::steps_until;
use crate::dynamics::{Stop, Stream, StreamData};
use crate::ensemble::Ensemble;
use crate::error::{Error, Result};
use crate::policy::Policy;
use crate::sim::row::inner;
use crate::sim::{Isa, Purpose, scalar_rng};
use std::collections::BTreeMap;
use std::sync::Arc;

/// $\theta_{k+1} = \theta_k - \frac\eta d\operatorname{clip}_{c\sqrt d}\bigl(r(\langle x_k, \theta_k\rangle,
/// y_k)\thinspace x_k\bigr)$ on the rows of a data matrix, each used once, as
/// [`Stream`] does for least squares.
///
/// Targets are labels, 0 and 1. Loss, error rate and calibration are those over all rows, and the
/// angle is that to `optimum` $= \theta^\ast$ in the metric of $\frac1n\sum_kx_kx_k^\top$. Labels can
/// instead be [drawn](Self::with_drawn_labels) from the model given $\langle x_k,
/// \theta^\ast\rangle$; differences from the theory are then not due to the labels.
///
/// ```
/// use std::sync::Arc;
/// use toclip::dynamics::StreamData;
/// use toclip::model::{GlmStream, Logistic};
/// use toclip::policy::{OpenLoop, Schedule};
/// let x: Vec<f64> = (0..200).map(|i| f64::from(i * i % 11) / 5.0 - 1.0).collect();
/// let data = StreamData {
///     targets: x.iter().enumerate().map(|(i, x)| f64::from(*x > 0.0 || i % 9 == 0)).collect(),
///     features: x,
///     start: vec![0.0],
///     optimum: vec![2.0],
///     covariance: vec![1.0],
///     dim: 1.0,
/// };
/// let policy = OpenLoop::new(Schedule::constant(0.1)?, Schedule::constant(0.4)?);
/// let stream = GlmStream::new(data, Arc::new(Logistic::new(0.0)?), Arc::new(policy))?;
/// let path = stream.run(1, 0, &[0.0, 200.0]);
/// assert!((path.measures[0].loss - 2.0_f64.ln()).abs() < 1e-12);
/// assert!(path.measures[1].loss < 0.6);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct GlmStream {
    stream: Stream,
    model: Arc<dyn Model>,
    policy: Arc<dyn Policy>,
    drawn: bool,
    /// $\langle x_k, \theta^\ast\rangle$.
    teacher: Arc<Vec<f64>>,
    /// $u^2$ beyond which a run has diverged.
    limit: f64,
    isa: Isa,
}

impl GlmStream {
    /// One pass over the data, in a new random order for every run.
    ///
    /// # Errors
    /// As [`Stream::new`]; [`Error::Invalid`] for logits that overflow, for labels other than 0 and 1, for a model without
    /// classes, and for a policy that depends on the risk.
    pub fn new(data: StreamData, model: Arc<dyn Model>, policy: Arc<dyn Policy>) -> Result<Self> {
        check_policy(policy.as_ref())?;
        if let Some(y) = data.targets.iter().find(|y| **y != 0.0 && **y != 1.0) {
            return Err(Error::Invalid(format!("label {y}: labels must be 0 or 1")));
        }
        if model.label_slope(1.0).is_none() {
            return Err(Error::Invalid(format!(
                "{} has no classes: use a model of labels 0 and 1",
                model.describe()
            )));
        }
        let isa = Isa::best();
        let stream = Stream::new(data, Arc::clone(&policy))?;
        let data = stream.data();
        let logits =
            |theta: &[f64]| -> Vec<f64> { data.rows().map(|x| inner(isa, x, theta)).collect() };
        let teacher = logits(&data.optimum);
        let largest = |u: &[f64]| u.iter().fold(0.0, |most: f64, u| most.max(u * u));
        let eta = policy.at(0.0, 0.0).eta;
        let start = largest(&logits(&data.start)) + largest(&teacher);
        let limit = 1e10 * (1.0 + start) * (1.0 + eta * eta);
        if !limit.is_finite() {
            return Err(Error::Invalid("the logits overflow: rescale the features".into()));
        }
        Ok(GlmStream {
            stream,
            model,
            policy,
            drawn: false,
            teacher: Arc::new(teacher),
            limit,
            isa,
        })
    }

    /// The same with every row drawn from all of them, so that some come twice and others not at all.
    #[must_use]
    pub fn with_replacement(self) -> Self {
        GlmStream { stream: self.stream.with_replacement(), ..self }
    }

    /// The same with labels drawn from the model given $\langle x_k, \theta^\ast\rangle$ whenever a row
    /// is used. Loss, error rate and calibration are then expectations over such labels.
    #[must_use]
    pub fn with_drawn_labels(self) -> Self {
        GlmStream { drawn: true, ..self }
    }

    /// $n/d$, when the data end.
    pub fn end(&self) -> f64 {
        self.stream.end()
    }

    /// Loss, error rate, angle and calibration of parameters on all rows.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another number of coordinates than the data have.
    pub fn measure(&self, theta: &[f64]) -> Result<Measures> {
        let p = self.stream.data().start.len();
        match (theta.len() == p, self.measures(theta).pop()) {
            (true, Some((_, measures))) => Ok(measures),
            _ => Err(Error::Invalid(format!("{} coordinates for {p} features", theta.len()))),
        }
    }

    /// Run number `index` of the ensemble with this `seed`, saved at the given increasing times. Times
    /// after the last row, $t > n/d$, are left out.
    pub fn run(&self, seed: u64, index: u64, times: &[f64]) -> MeasuredPath {
        let data = self.stream.data();
        let order = self.stream.order(seed, index);
        let mut labels = scalar_rng(seed, index, Purpose::Noise);
        let mut theta = data.start.clone();
        let mut saved = Vec::with_capacity(times.len() * theta.len());
        let (mut step, mut stop) = (0, Stop::Finished);
        'times: for &time in times {
            let target = steps_until(time, data.dim);
            if target > order.len() as u64 {
                stop = Stop::DataEnded { t: self.end() };
                break;
            }
            while step < target {
                let t = step as f64 / data.dim;
                let row = order[step as usize];
                let x = data.row(row);
                let u = inner(self.isa, x, &theta);
                let y = match self.drawn {
                    true => self.model.sample(self.teacher[row], &mut labels),
                    false => data.targets[row],
                };
                let residual = self.model.residual(u, y);
                if !(u * u <= self.limit && residual.is_finite()) {
                    stop = Stop::Diverged { t };
                    break 'times;
                }
                self.stream.step(&mut theta, x, residual, self.policy.at(t, 0.0));
                step += 1;
            }
            if theta.iter().any(|w| !w.is_finite()) {
                stop = Stop::Diverged { t: step as f64 / data.dim };
                break;
            }
            saved.extend_from_slice(&theta);
        }
        let mut found = self.measures(&saved);
        let bounded = |(at, m): &(Overlaps, Measures)| at.q <= self.limit && m.loss.is_finite();
        let reached = found.iter().position(|at| !bounded(at)).unwrap_or(found.len());
        if reached < found.len() {
            found.truncate(reached);
            stop = Stop::Diverged { t: times[reached] };
        }
        let (overlaps, measures) = found.into_iter().unzip();
        MeasuredPath { times: times[..reached].to_vec(), overlaps, measures, stop }
    }

    /// All runs of an ensemble, with their index; `tick` is called after each.
    ///
    /// # Errors
    /// As [`Ensemble::run`].
    pub fn runs(
        &self,
        ensemble: &Ensemble,
        times: &[f64],
        tick: &(dyn Fn() + Sync),
    ) -> Result<BTreeMap<u64, MeasuredPath>> {
        ensemble.all(times, tick, |index| self.run(ensemble.seed, index, times))
    }

    /// The measures of several parameter vectors, stored one after the other.
    fn measures(&self, thetas: &[f64]) -> Vec<(Overlaps, Measures)> {
        let data = self.stream.data();
        let (n, p) = (data.targets.len(), data.start.len());
        // Row by row, since there are more rows than fit into a cache.
        let mut logits = vec![0.0; thetas.len() / p * n];
        for (k, x) in data.rows().enumerate() {
            for (j, theta) in thetas.chunks_exact(p).enumerate() {
                logits[j * n + k] = inner(self.isa, x, theta);
            }
        }
        let drawn: Vec<f64>;
        let probabilities = match self.drawn {
            true => {
                let one = |v: &f64| {
                    let labels = self.model.labels(*v);
                    labels.iter().filter(|l| l.y == 1.0).map(|l| l.probability).sum::<f64>()
                };
                drawn = self.teacher.iter().map(one).collect();
                &drawn
            }
            false => &data.targets,
        };
        let measure =
            |u: &[f64]| Measures::of_samples(&*self.model, u, &self.teacher, probabilities);
        logits.chunks_exact(n).map(measure).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Huber, Logistic};
    use crate::policy::{OpenLoop, Schedule};
    use crate::sim::normal::Normals;

    const P: usize = 20;

    fn policy(eta: f64, c: f64) -> Arc<dyn Policy> {
        Arc::new(OpenLoop::new(Schedule::constant(eta).unwrap(), Schedule::constant(c).unwrap()))
    }

    /// Gaussian features with eigenvalues 1 and 1/4, a teacher with V = 4 and labels from the model.
    fn data(n: usize) -> StreamData {
        let lambda: Vec<f64> = (0..P).map(|i| if i < P / 2 { 1.0 } else { 0.25 }).collect();
        let dim: f64 = lambda.iter().sum();
        let optimum = vec![2.0 / dim.sqrt(); P];
        let mut normals = Normals::new(4, 0, Purpose::Covariates);
        let mut labels = scalar_rng(4, 0, Purpose::Noise);
        let model = Logistic::new(0.0).unwrap();
        let (mut features, mut targets) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let x: Vec<f64> = lambda.iter().map(|l| l.sqrt() * normals.draw()).collect();
            let v: f64 = x.iter().zip(&optimum).map(|(x, w)| x * w).sum();
            targets.push(model.sample(v, &mut labels));
            features.extend(x);
        }
        let diagonal = |i: usize| if i.is_multiple_of(P + 1) { lambda[i / P] } else { 0.0 };
        let covariance = (0..P * P).map(diagonal).collect();
        StreamData { features, targets, start: vec![0.0; P], optimum, covariance, dim }
    }

    #[test]
    fn a_pass_is_the_iteration_written_out() {
        let data = data(300);
        let model = Arc::new(Logistic::new(0.0).unwrap());
        let stream = GlmStream::new(data.clone(), model, policy(0.7, 0.2)).unwrap();
        let end = stream.end();
        let path = stream.run(5, 3, &[0.0, end, 2.0 * end]);
        assert_eq!(path.stop, Stop::DataEnded { t: end });
        let mut theta = vec![0.0; P];
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for k in stream.stream.order(5, 3) {
            let x = &data.features[k * P..][..P];
            let residual = 1.0 / (1.0 + (-dot(x, &theta)).exp()) - data.targets[k];
            let norm = residual.abs() * dot(x, x).sqrt();
            let scale = (0.2 * data.dim.sqrt() / norm).min(1.0);
            theta.iter_mut().zip(x).for_each(|(w, x)| *w -= 0.7 / data.dim * scale * residual * x);
        }
        let rows = || data.features.chunks(P).map(|x| dot(x, &theta)).zip(&data.targets);
        let loss: f64 = rows().map(|(u, y)| (1.0 + u.exp()).ln() - y * u).sum::<f64>() / 300.0;
        let wrong = rows().filter(|(u, y)| (*u > 0.0) != (**y == 1.0)).count() as f64 / 300.0;
        assert!((path.measures[1].loss - loss).abs() < 1e-12);
        assert_eq!(path.measures[1].error_rate, Some(wrong));
        assert_eq!(stream.measure(&theta).unwrap().error_rate, Some(wrong));
        assert!(stream.measure(&theta[1..]).is_err());
    }

    #[test]
    fn other_labels_and_models_are_refused() {
        let data = data(10);
        let logistic = || Arc::new(Logistic::new(0.0).unwrap());
        let two = StreamData { targets: vec![2.0; 10], ..data.clone() };
        let said = GlmStream::new(two, logistic(), policy(1.0, 1.0)).unwrap_err().to_string();
        assert!(said.contains("label 2: labels must be 0 or 1"), "{said}");
        let huber = Huber::new(Arc::new(crate::noise::NoNoise), 1.0).unwrap();
        let targets = GlmStream::new(data.clone(), Arc::new(huber), policy(1.0, 1.0));
        assert!(targets.unwrap_err().to_string().contains("has no classes"));
    }

    #[test]
    fn overflow_is_an_error_or_ends_a_run() {
        let model = || Arc::new(Logistic::new(0.0).unwrap());
        let mut huge = data(50);
        huge.features[0] = 1e200;
        assert!(GlmStream::new(huge, model(), policy(1.0, 9.0)).is_err());
        // A rate that changes after the limit was set.
        let (times, values) = (vec![0.0, 0.5, 0.6], vec![1.0, 1.0, 1e250]);
        let late = Schedule::new(crate::policy::Shape::Table { times, values }).unwrap();
        let policy = Arc::new(OpenLoop::unclipped(late));
        let path = GlmStream::new(data(50), model(), policy).unwrap().run(1, 0, &[0.0, 3.0]);
        assert!(matches!(path.stop, Stop::Diverged { .. }), "{path:?}");
        assert_eq!(path.measures.len(), 1);
    }
}
