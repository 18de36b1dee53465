//! C-SGD on a given data matrix, one pass.

mod classes;
mod data;

pub use data::{DataError, StreamData};

use super::simulated_path::{Iteration, iterate, within};
use super::{Simulator, Trajectory};
use crate::error::{Error, Result};
use crate::model::{Measures, Model};
use crate::policy::{Control, Controller, Policy};
use crate::problem::check_stream;
use crate::rule::Rule;
use crate::sim::row::{inner, subtract};
use crate::sim::{Isa, Purpose, scalar_rng};
use classes::Classes;
use rand::Rng;
use std::sync::Arc;

/// $\theta_{k+1} = \theta_k - \frac{\eta}{d}\thinspace \mathrm{clip}_{c\sqrt d}\left( (\langle x_k,
/// \theta_k\rangle - b_k)\thinspace x_k\right)$: C-SGD on the rows of a data matrix, each used
/// once.
///
/// Saved are $R = \frac12(\theta - \theta^\ast)^\top K (\theta - \theta^\ast)$ and $D = \Vert
/// \theta - \theta^\ast\Vert ^2$. Rows are taken in an order drawn from seed and index, or as they
/// come ([`in_order`](Stream::in_order)). Times after the last row, $t > n/d$, are left out and the
/// path ends with [`Stop::DataEnded`](super::Stop::DataEnded).
///
/// ```
/// use toclip::dynamics::{StreamData, Simulator, Stop, Stream};
/// use toclip::policy::OpenLoop;
/// // Two features, noiseless targets b = x1 - x2.
/// let features: Vec<f64> = (0..400).map(|i| f64::from(i * i % 7) - 3.0).collect();
/// let targets = features.chunks(2).map(|x| x[0] - x[1]).collect();
/// let data = StreamData {
///     features,
///     targets,
///     start: vec![0.0, 0.0],
///     optimum: vec![1.0, -1.0],
///     covariance: vec![1.0, 0.0, 0.0, 1.0],
///     dim: 2.0,
/// };
/// let stream = Stream::new(data, OpenLoop::constant(0.1, 1.0)?)?;
/// let path = stream.run(1, 0, &[0.0, 50.0, 100.0, 101.0]);
/// assert_eq!(path.stop, Stop::DataEnded { t: 100.0 });
/// assert_eq!((path.risk[0], stream.end()), (1.0, 100.0));
/// assert!(path.risk[2] < 0.01);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// With a [model](Self::with_model) of two classes the residual is that of the model:
///
/// ```
/// use toclip::dynamics::{Simulator, Stream, StreamData};
/// use toclip::model::Logistic;
/// use toclip::policy::OpenLoop;
/// let x: Vec<f64> = (0..200).map(|i| f64::from(i * i % 11) / 5.0 - 1.0).collect();
/// let data = StreamData {
///     targets: x.iter().enumerate().map(|(i, x)| f64::from(*x > 0.0 || i % 9 == 0)).collect(),
///     features: x,
///     start: vec![0.0],
///     optimum: vec![2.0],
///     covariance: vec![1.0],
///     dim: 1.0,
/// };
/// let stream = Stream::new(data, OpenLoop::constant(0.1, 0.4)?)?.with_model(Logistic::new(0.0)?)?;
/// let measures = stream.run(1, 0, &[0.0, 200.0]).measures.unwrap();
/// assert!((measures[0].loss - 2.0_f64.ln()).abs() < 1e-12);
/// assert!(measures[1].loss < 0.6);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Stream {
    data: Arc<StreamData>,
    rule: Rule,
    classes: Option<Classes>,
    policy: Arc<dyn Policy>,
    order: RowOrder,
    limit: f64,
    isa: Isa,
}

/// In which order rows are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowOrder {
    Shuffled,
    AsGiven,
    WithReplacement,
}

impl Stream {
    /// One pass over the data, in a new random order for every run.
    ///
    /// # Errors
    /// [`Error::Data`] if the sizes do not fit or a number is not finite, [`Error::Parameter`] for a
    /// `dim` that is not finite and positive.
    pub fn new(data: StreamData, policy: impl Policy + 'static) -> Result<Self> {
        data.check()?;
        let isa = Isa::best();
        let [risk, _] = data.measure(isa, &data.start, &mut Vec::new());
        // As for streaming data: ten orders of magnitude above the risk and residuals of the start.
        let squares = data.rows().zip(&data.targets).map(|(x, b)| {
            let residual = inner(isa, x, &data.start) - b;
            residual * residual
        });
        let energy = squares.sum::<f64>() / data.targets.len() as f64;
        let limit = 1e10 * risk.max(energy).max(f64::MIN_POSITIVE);
        Ok(Self {
            data: Arc::new(data),
            rule: Rule::Clip,
            classes: None,
            policy: Arc::new(policy),
            order: RowOrder::Shuffled,
            limit,
            isa,
        })
    }

    /// The same with another rule: a [radial](Rule::is_radial) one, by value or per group, in the
    /// coordinates of the data.
    ///
    /// The theory of clipping by value and per group does not cover a $K$ that couples the
    /// coordinates; this simulates it.
    ///
    /// # Errors
    /// [`Error::Combination`] for the optimal rule, which needs the distribution of the noise, and for
    /// another rule than clipping with a model; [`Error::Data`] for groups that do not have all
    /// coordinates.
    pub fn with_rule(self, rule: Rule) -> Result<Self> {
        check_stream(&rule, self.classes.is_some(), &*self.policy)?;
        if let Rule::PerGroup(groups) = &rule {
            let (sizes, coordinates) = (groups.sizes(), self.data.start.len());
            let total = sizes.iter().try_fold(0_u64, |sum, size| sum.checked_add(*size));
            if total != Some(coordinates as u64) {
                return Err(Error::Data(DataError::Groups { sizes, coordinates }));
            }
        }
        Ok(Self { rule, ..self })
    }

    /// The same for a model of two classes; targets are labels, 0 and 1.
    ///
    /// Loss, error rate and calibration are those over all rows, and the angle is that to `optimum`
    /// $= \theta^\ast$ in the metric of $\frac1n\sum_kx_kx_k^\top$, as are $R$ and $(Q, P, V)$. Labels
    /// can instead be [drawn](Self::with_drawn_labels) from the model given $\langle x_k,
    /// \theta^\ast\rangle$; differences from the theory are then not due to the labels.
    ///
    /// # Errors
    /// [`Error::Data`] for logits that overflow, for labels other than 0 and 1 and for a model without
    /// classes; [`Error::Combination`] for another rule than clipping and for a policy that depends on
    /// the risk.
    pub fn with_model(self, model: impl Model + 'static) -> Result<Self> {
        check_stream(&self.rule, true, &*self.policy)?;
        let classes = Classes::new(&self.data, Arc::new(model), &*self.policy, self.isa);
        Ok(Self { classes: Some(classes.map_err(Error::Data)?), ..self })
    }

    /// The same with labels drawn from the model given $\langle x_k, \theta^\ast\rangle$ whenever a row
    /// is used. Loss, error rate and calibration are then expectations over such labels. Without a
    /// model nothing changes.
    #[must_use]
    pub fn with_drawn_labels(mut self) -> Self {
        if let Some(classes) = &mut self.classes {
            classes.drawn = true;
        }
        self
    }

    /// Loss, error rate, angle and calibration of parameters on all rows.
    ///
    /// # Errors
    /// [`Error::Data`] for another number of coordinates than the data have, and without a model.
    pub fn measure(&self, theta: &[f64]) -> Result<Measures> {
        let Some(classes) = &self.classes else { return Err(Error::Data(DataError::NoModel)) };
        let (found, expected) = (theta.len(), self.data.start.len());
        match classes.measures(&self.data, self.isa, theta).pop() {
            Some((_, measures)) if found == expected => Ok(measures),
            _ => Err(Error::Data(DataError::Coordinates { found, expected })),
        }
    }

    /// $\theta \leftarrow \theta - \frac\eta d\thinspace\hat g$, with $\hat g$ the gradient
    /// $\rho\thinspace x$ as the rule reshapes it.
    fn step(&self, theta: &mut [f64], x: &[f64], residual: f64, Control { eta, c }: Control) {
        let (data, isa) = (&*self.data, self.isa);
        let size = eta / data.dim;
        match &self.rule {
            Rule::ByValue => {
                for (theta, x) in theta.iter_mut().zip(x) {
                    *theta -= size * (residual * x).min(c).max(-c);
                }
            }
            Rule::PerGroup(groups) => {
                let p = data.start.len();
                let mut from = 0;
                for group in groups.groups() {
                    let own = from..from + group.size as usize;
                    let dim: f64 = own.clone().map(|i| data.covariance[i * p + i]).sum();
                    let x = &x[own.clone()];
                    let (norm, c) = (inner(isa, x, x).sqrt(), c * group.ratio);
                    let weight = Rule::Clip.reshape(residual, norm, c, dim.sqrt());
                    subtract(isa, size * weight, x, &mut theta[own.clone()]);
                    from = own.end;
                }
            }
            rule => {
                let norm = inner(isa, x, x).sqrt();
                let weight = rule.reshape(residual, norm, c, data.dim.sqrt());
                subtract(isa, size * weight, x, theta);
            }
        }
    }

    /// The same with the rows in the order given: every run is then the same, unless labels are drawn.
    #[must_use]
    pub fn in_order(self) -> Self {
        Self { order: RowOrder::AsGiven, ..self }
    }

    /// The same with every row drawn from all of them, so that some come twice and others not at all.
    #[must_use]
    pub fn with_replacement(self) -> Self {
        Self { order: RowOrder::WithReplacement, ..self }
    }

    /// $n/d$, when the data end.
    pub fn end(&self) -> f64 {
        self.data.targets.len() as f64 / self.data.dim
    }

    fn order(&self, seed: u64, index: u64) -> Vec<usize> {
        let n = self.data.targets.len();
        let mut rng = scalar_rng(seed, index, Purpose::Order);
        // Uniform on 0..count up to 2^-64 count.
        let mut draw = |count: usize| ((u128::from(rng.next_u64()) * count as u128) >> 64) as usize;
        if self.order == RowOrder::WithReplacement {
            return (0..n).map(|_| draw(n)).collect();
        }
        let mut order: Vec<usize> = (0..n).collect();
        if self.order == RowOrder::Shuffled {
            for last in (1..n).rev() {
                order.swap(last, draw(last + 1));
            }
        }
        order
    }
}

impl Simulator for Stream {
    fn run(&self, seed: u64, index: u64, times: &[f64]) -> Trajectory {
        let order = self.order(seed, index);
        if let Some(classes) = &self.classes {
            return self.run_classes(classes, &order, seed, index, times);
        }
        let mut run = Run {
            stream: self,
            order: &order,
            theta: self.data.start.clone(),
            scratch: Vec::new(),
            controller: Controller::new(&*self.policy),
            path: Trajectory::with_capacity(times.len()),
        };
        let end = iterate(&mut run, self.data.dim, order.len() as u64, times);
        run.path.ended(end)
    }
}

/// A run of least squares.
struct Run<'a> {
    stream: &'a Stream,
    order: &'a [usize],
    theta: Vec<f64>,
    scratch: Vec<f64>,
    controller: Controller<'a>,
    path: Trajectory,
}

impl Iteration for Run<'_> {
    fn step(&mut self, k: u64, t: f64) -> bool {
        let Stream { data, limit, isa, .. } = self.stream;
        let row = self.order[k as usize];
        let x = data.row(row);
        let risk = if self.controller.uses_risk() {
            data.measure(*isa, &self.theta, &mut self.scratch)[0]
        } else {
            0.0
        };
        let residual = inner(*isa, x, &self.theta) - data.targets[row];
        // The residual is the cheap sign of divergence between two measurements.
        if !within(residual * residual, f64::MAX) || !within(risk, *limit) {
            return false;
        }
        let control = self.controller.step(t, risk, residual);
        self.stream.step(&mut self.theta, x, residual, control);
        true
    }

    fn save(&mut self, time: f64) -> bool {
        let Stream { data, limit, isa, .. } = self.stream;
        let [risk, distance] = data.measure(*isa, &self.theta, &mut self.scratch);
        if !within(risk, *limit) || !distance.is_finite() {
            return false;
        }
        self.path.save(time, risk, distance);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dynamics::Stop;
    use crate::policy::OpenLoop;
    use crate::rule::groups::{Group, Groups};
    use crate::sim::normal::Normals;

    /// Correlated features with noise: K = A Aᵀ for a fixed A, 5 coordinates.
    fn data(n: usize) -> StreamData {
        let p = 5;
        let a = |i: usize, j: usize| if i == j { 0.9 } else { 0.2 / (1.0 + i as f64 + j as f64) };
        let mut normals = Normals::new(9, 0, Purpose::Covariates);
        let optimum: Vec<f64> = (0..p).map(|i| 1.0 - 0.3 * i as f64).collect();
        let (mut features, mut targets) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let mut z = [0.0; 5];
            normals.fill(&mut z);
            let x: Vec<f64> = (0..p).map(|i| (0..p).map(|j| a(i, j) * z[j]).sum()).collect();
            let clean: f64 = x.iter().zip(&optimum).map(|(x, o)| x * o).sum();
            targets.push(clean + 0.3 * normals.draw());
            features.extend(x);
        }
        let entry = |i, k| (0..p).map(|j| a(i, j) * a(k, j)).sum::<f64>();
        let covariance = (0..p * p).map(|ik| entry(ik / p, ik % p)).collect();
        StreamData { features, targets, start: vec![0.0; p], optimum, covariance, dim: 3.7 }
    }

    fn policy(eta: f64, c: f64) -> OpenLoop {
        OpenLoop::constant(eta, c).unwrap()
    }

    /// The iteration as it is written in the paper.
    fn by_hand(data: &StreamData, order: &[usize], control: Control, rule: &Rule) -> (f64, f64) {
        let p = data.start.len();
        let mut theta = data.start.clone();
        for &k in order {
            let x = &data.features[k * p..][..p];
            let residual = x.iter().zip(&theta).map(|(x, t)| x * t).sum::<f64>() - data.targets[k];
            let gradient: Vec<f64> = x.iter().map(|x| residual * x).collect();
            // All of the gradient, or two groups of which the second has half of the threshold.
            let groups = match rule {
                Rule::PerGroup(_) => vec![(0..2, 1.0), (2..p, 0.5)],
                _ => vec![(0..p, 1.0)],
            };
            for (own, ratio) in groups {
                let length = gradient[own.clone()].iter().map(|g| g * g).sum::<f64>().sqrt();
                let dim = match rule {
                    Rule::PerGroup(_) => own.clone().map(|i| data.covariance[i * (p + 1)]).sum(),
                    _ => data.dim,
                };
                let scale = (ratio * control.c * f64::sqrt(dim) / length).min(1.0);
                for i in own {
                    let step = match rule {
                        Rule::ByValue => gradient[i].clamp(-control.c, control.c),
                        _ => scale * gradient[i],
                    };
                    theta[i] -= control.eta / data.dim * step;
                }
            }
        }
        let gap: Vec<f64> = theta.iter().zip(&data.optimum).map(|(a, b)| a - b).collect();
        let twice: f64 = (0..p * p).map(|ij| gap[ij / p] * data.covariance[ij] * gap[ij % p]).sum();
        (0.5 * twice, gap.iter().map(|g| g * g).sum())
    }

    #[test]
    fn path_is_the_iteration_written_out() {
        let groups = [Group { size: 2, ratio: 1.0 }, Group { size: 3, ratio: 0.5 }];
        let per_group = Rule::PerGroup(Groups::new(&groups).unwrap());
        let rules = [Rule::Clip, Rule::ByValue, per_group];
        for (c, rule) in
            [0.5, f64::INFINITY].into_iter().flat_map(|c| rules.clone().map(|r| (c, r)))
        {
            let stream = Stream::new(data(300), policy(0.3, c)).unwrap();
            let stream = stream.with_rule(rule.clone()).unwrap();
            for stream in [stream.clone(), stream.in_order()] {
                let path = stream.run(2, 5, &[0.0, 10.0, 81.0]);
                assert_eq!(path.stop, Stop::Finished);
                for (k, &t) in path.times.iter().enumerate() {
                    let order = &stream.order(2, 5)[..(t * 3.7).round() as usize];
                    let (risk, distance) =
                        by_hand(&stream.data, order, Control { eta: 0.3, c }, &rule);
                    assert!((path.risk[k] - risk).abs() < 1e-12, "{risk} {path:?}");
                    assert!((path.distance[k] - distance).abs() < 1e-12);
                }
                assert!(path.risk[2] < 0.2 * path.risk[0], "{path:?}");
            }
        }
    }

    #[test]
    fn orders_are_permutations_drawn_by_seed_and_index() {
        let stream = Stream::new(data(200), policy(0.3, 1.0)).unwrap();
        let mut order = stream.order(1, 2);
        assert_eq!(order, stream.order(1, 2));
        assert_ne!(order, stream.order(1, 3));
        assert_ne!(order, stream.order(2, 2));
        order.sort_unstable();
        assert_eq!(order, (0..200).collect::<Vec<_>>());
        assert_eq!(order, stream.in_order().order(1, 2));
    }

    #[test]
    fn shuffles_are_uniform() {
        // Where row 0 of 4 lands in 40,000 shuffles: four counts of 10,000 ± 87, five standard
        // deviations, false alarm 2e-6.
        let stream = Stream::new(data(4), policy(0.3, 1.0)).unwrap();
        let mut counts = [0_i32; 4];
        for index in 0..40_000 {
            counts[stream.order(3, index).iter().position(|k| *k == 0).unwrap()] += 1;
        }
        assert!(counts.iter().all(|c| (c - 10_000).abs() < 433), "{counts:?}");
    }

    #[test]
    fn draws_with_replacement_are_uniform() {
        // 40,000 draws of 4 rows: four counts of 10,000 ± 87, five standard deviations, false alarm
        // 2e-6.
        let stream = Stream::new(data(4), policy(0.3, 1.0)).unwrap().with_replacement();
        let mut counts = [0_i32; 4];
        (0..10_000).flat_map(|index| stream.order(3, index)).for_each(|row| counts[row] += 1);
        assert!(counts.iter().all(|c| (c - 10_000).abs() < 433), "{counts:?}");
    }

    #[test]
    fn divergence_ends_with_a_finite_table() {
        let stream = Stream::new(data(3000), policy(60.0, f64::INFINITY)).unwrap();
        for times in [(0..800).map(f64::from).collect(), vec![0.0, 700.0]] {
            let path = stream.run(1, 0, &times);
            assert!(matches!(path.stop, Stop::Diverged { .. }), "{:?}", path.stop);
            assert!(path.times.len() < times.len());
            assert!(path.risk.iter().chain(&path.distance).all(|x| x.is_finite()));
        }
    }

    #[test]
    fn sizes_and_numbers_are_checked() {
        let message = |change: fn(&mut StreamData)| {
            let mut data = data(10);
            change(&mut data);
            Stream::new(data, policy(0.1, 1.0)).unwrap_err().to_string()
        };
        assert!(message(|d| d.features.truncate(49)).contains("features has 49 numbers"));
        assert!(message(|d| d.optimum.truncate(4)).contains("optimum has 4"));
        assert!(message(|d| d.covariance.push(0.0)).contains("covariance has 26"));
        assert!(message(|d| d.targets[3] = f64::NAN).contains("number 4 of targets"));
        assert!(message(|d| d.dim = 0.0).contains("dim = 0"));
    }
}
