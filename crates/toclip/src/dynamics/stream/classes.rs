//! C-SGD of a two-class model on a given data matrix.

use super::{DataError, Stream, StreamData};
use crate::dynamics::simulated_path::{Iteration, iterate};
use crate::dynamics::{Stop, Trajectory};
use crate::model::{Measures, Model, Overlaps};
use crate::policy::Policy;
use crate::sim::row::inner;
use crate::sim::{Isa, Purpose, scalar_rng};
use rand::rngs::Xoshiro256PlusPlus;
use std::sync::Arc;

/// A model of the labels of all rows.
#[derive(Debug, Clone)]
pub(super) struct Classes {
    model: Arc<dyn Model>,
    /// Whether labels are drawn from the model in place of the targets.
    pub drawn: bool,
    /// $\langle x_k, \theta^\ast\rangle$.
    teacher: Arc<Vec<f64>>,
    /// $u^2$ beyond which a run has diverged.
    limit: f64,
}

impl Classes {
    pub fn new(
        data: &StreamData,
        model: Arc<dyn Model>,
        policy: &dyn Policy,
        isa: Isa,
    ) -> Result<Self, DataError> {
        if let Some(&label) = data.targets.iter().find(|y| **y != 0.0 && **y != 1.0) {
            return Err(DataError::Label { label });
        }
        if model.label_slope(1.0).is_none() {
            return Err(DataError::NoClasses { model: model.describe() });
        }
        let logits =
            |theta: &[f64]| -> Vec<f64> { data.rows().map(|x| inner(isa, x, theta)).collect() };
        let teacher = logits(&data.optimum);
        let largest = |u: &[f64]| u.iter().fold(0.0, |most: f64, u| most.max(u * u));
        let eta = policy.at(0.0, 0.0).eta;
        let start = largest(&logits(&data.start)) + largest(&teacher);
        let limit = 1e10 * (1.0 + start) * (1.0 + eta * eta);
        if !limit.is_finite() {
            return Err(DataError::Overflow);
        }
        Ok(Classes { model, drawn: false, teacher: Arc::new(teacher), limit })
    }

    /// The measures of several parameter vectors, stored one after the other.
    pub fn measures(
        &self,
        data: &StreamData,
        isa: Isa,
        thetas: &[f64],
    ) -> Vec<(Overlaps, Measures)> {
        let (n, p) = (data.targets.len(), data.start.len());
        // Row by row, since there are more rows than fit into a cache.
        let mut logits = vec![0.0; thetas.len() / p * n];
        for (k, x) in data.rows().enumerate() {
            for (j, theta) in thetas.chunks_exact(p).enumerate() {
                logits[j * n + k] = inner(isa, x, theta);
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

impl Stream {
    /// A run of a model; all saved parameters are measured together, at its end.
    pub(super) fn run_classes(
        &self,
        classes: &Classes,
        order: &[usize],
        seed: u64,
        index: u64,
        times: &[f64],
    ) -> Trajectory {
        let data = &*self.data;
        let mut run = Run {
            stream: self,
            classes,
            order,
            theta: data.start.clone(),
            labels: scalar_rng(seed, index, Purpose::Noise),
            saved: Vec::with_capacity(times.len() * data.start.len()),
        };
        let (stop, counts) = iterate(&mut run, data.dim, order.len() as u64, times);
        let mut path = Trajectory::with_capacity(times.len());
        path.overlaps = Some(Vec::with_capacity(times.len()));
        let mut all = Vec::with_capacity(times.len());
        let found = classes.measures(data, self.isa, &run.saved);
        let thetas = run.saved.chunks_exact(data.start.len());
        let mut end = (stop, counts);
        for (((at, measures), theta), &time) in found.into_iter().zip(thetas).zip(times) {
            if !(at.q <= classes.limit && measures.loss.is_finite()) {
                end.0 = Stop::Diverged { t: time };
                break;
            }
            let squares = theta.iter().zip(&data.optimum).map(|(w, o)| (w - o) * (w - o));
            path.save_overlaps(time, at, squares.sum());
            all.push(measures);
        }
        path.measures = Some(all);
        path.ended(end)
    }
}

/// A run of a model.
struct Run<'a> {
    stream: &'a Stream,
    classes: &'a Classes,
    order: &'a [usize],
    theta: Vec<f64>,
    labels: Xoshiro256PlusPlus,
    /// The parameters at the saved times, one after the other.
    saved: Vec<f64>,
}

impl Iteration for Run<'_> {
    fn step(&mut self, k: u64, t: f64) -> bool {
        let Classes { model, drawn, teacher, limit } = self.classes;
        let data = &*self.stream.data;
        let row = self.order[k as usize];
        let x = data.row(row);
        let u = inner(self.stream.isa, x, &self.theta);
        let y = match drawn {
            true => model.sample(teacher[row], &mut self.labels),
            false => data.targets[row],
        };
        let residual = model.residual(u, y);
        if !(u * u <= *limit && residual.is_finite()) {
            return false;
        }
        let control = self.stream.policy.at(t, 0.0);
        self.stream.step(&mut self.theta, x, residual, control);
        true
    }

    fn save(&mut self, _time: f64) -> bool {
        if self.theta.iter().any(|w| !w.is_finite()) {
            return false;
        }
        self.saved.extend_from_slice(&self.theta);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::Simulator;
    use crate::error::Result;
    use crate::model::{Huber, Logistic};
    use crate::policy::{OpenLoop, Schedule};
    use crate::sim::normal::Normals;

    const P: usize = 20;

    fn policy(eta: f64, c: f64) -> OpenLoop {
        OpenLoop::constant(eta, c).unwrap()
    }

    fn logistic(data: StreamData, policy: impl Policy + 'static) -> Result<Stream> {
        Stream::new(data, policy)?.with_model(Logistic::new(0.0)?)
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
        let stream = logistic(data.clone(), policy(0.7, 0.2)).unwrap();
        let end = stream.end();
        let path = stream.run(5, 3, &[0.0, end, 2.0 * end]);
        assert_eq!(path.stop, Stop::DataEnded { t: end });
        let mut theta = vec![0.0; P];
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for k in stream.order(5, 3) {
            let x = &data.features[k * P..][..P];
            let residual = 1.0 / (1.0 + (-dot(x, &theta)).exp()) - data.targets[k];
            let norm = residual.abs() * dot(x, x).sqrt();
            let scale = (0.2 * data.dim.sqrt() / norm).min(1.0);
            theta.iter_mut().zip(x).for_each(|(w, x)| *w -= 0.7 / data.dim * scale * residual * x);
        }
        let rows = || data.features.chunks(P).map(|x| dot(x, &theta)).zip(&data.targets);
        let loss: f64 = rows().map(|(u, y)| (1.0 + u.exp()).ln() - y * u).sum::<f64>() / 300.0;
        let wrong = rows().filter(|(u, y)| (*u > 0.0) != (**y == 1.0)).count() as f64 / 300.0;
        let measures = path.measures.unwrap();
        assert!((measures[1].loss - loss).abs() < 1e-12);
        assert_eq!(measures[1].error_rate, Some(wrong));
        let squares = theta.iter().zip(&data.optimum).map(|(w, o)| (w - o) * (w - o));
        assert!((path.distance[1] - squares.sum::<f64>()).abs() < 1e-12);
        assert_eq!(stream.measure(&theta).unwrap().error_rate, Some(wrong));
        assert!(stream.measure(&theta[1..]).is_err());
    }

    #[test]
    fn other_labels_and_models_are_refused() {
        let data = data(10);
        let two = StreamData { targets: vec![2.0; 10], ..data.clone() };
        let said = logistic(two, policy(1.0, 1.0)).unwrap_err().to_string();
        assert!(said.contains("label 2: labels must be 0 or 1"), "{said}");
        let stream = Stream::new(data, policy(1.0, 1.0)).unwrap();
        let huber = Huber::new(Arc::new(crate::noise::NoNoise), 1.0).unwrap();
        let counts = stream.clone().with_model(huber);
        assert!(counts.unwrap_err().to_string().contains("has no classes"));
        assert!(stream.measure(&[0.0; P]).unwrap_err().to_string().contains("with_model"));
        let by_value = stream.with_rule(crate::Rule::ByValue).unwrap();
        let said = by_value.with_model(Logistic::new(0.0).unwrap()).unwrap_err().to_string();
        assert!(said.contains("leave out the rule"), "{said}");
    }

    #[test]
    fn overflow_is_an_error_or_ends_a_run() {
        let mut huge = data(50);
        huge.features[0] = 1e200;
        assert!(logistic(huge, policy(1.0, 9.0)).is_err());
        // A rate that changes after the limit was set.
        let (times, values) = (vec![0.0, 0.5, 0.6], vec![1.0, 1.0, 1e250]);
        let late = Schedule::new(crate::policy::Shape::Table { times, values }).unwrap();
        let path = logistic(data(50), OpenLoop::unclipped(late)).unwrap().run(1, 0, &[0.0, 3.0]);
        assert!(matches!(path.stop, Stop::Diverged { .. }), "{path:?}");
        assert_eq!(path.measures.unwrap().len(), 1);
    }
}
