//! C-SGD whose gradient is clipped group by group.

use super::mode_factors::group_labels;
use super::sgd::Draws;
use super::simulated_path::{SimulatedPath, steps_until, within};
use super::{Sgd, Stop, Trajectory};
use crate::error::Result;
use crate::rule::Rule;
use crate::schedule::Controller;
use crate::sim::normal::Block;
use crate::sim::step::{CovariateSource, State};
use crate::sim::{Purpose, scalar_rng};
use crate::spectrum::Modes;
use crate::step::Step;
use std::ops::Range;

/// A group of coordinates, or all of them.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Its blocks of sixteen coordinates.
    pub blocks: Range<usize>,
    /// $c_g/c$; none where there are no groups.
    ratio: Option<f64>,
    /// $d_g$.
    dim: f64,
}

/// The coordinates of C-SGD, group after group, each group in blocks of its own.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub parts: Vec<Part>,
    /// $(\lambda_i, w_i)$; zeros between the groups. Dropped where there is one group.
    pub coordinates: Vec<(f64, f64)>,
}

impl Layout {
    pub fn new(modes: &Modes, step: &Step<'_>) -> Result<Self> {
        let labels = group_labels(modes, step)?;
        let count = labels.map_or(1, |labels| labels.sizes.len());
        let mut layout = Layout { parts: Vec::with_capacity(count), coordinates: Vec::new() };
        let dims = modes.group_dims();
        for group in 0..count {
            let from = layout.coordinates.len() / Block::LEN;
            for (i, mode) in modes.modes().iter().enumerate() {
                let own = labels.is_none_or(|labels| labels.of_mode[i] == group);
                if mode.lambda > 0.0 && own {
                    // θ² = 2 energy/count each.
                    let w = (mode.lambda * (2.0 * mode.energy / mode.count)).sqrt();
                    let each = std::iter::repeat_n((mode.lambda, w), mode.count as usize);
                    layout.coordinates.extend(each);
                }
            }
            let full = layout.coordinates.len().next_multiple_of(Block::LEN);
            if count > 1 {
                layout.coordinates.resize(full, (0.0, 0.0));
            }
            let (ratio, dim) = match step.rule() {
                Rule::PerGroup(groups) => (Some(groups.groups()[group].ratio), dims[group]),
                _ => (None, modes.dim()),
            };
            layout.parts.push(Part { blocks: from..full / Block::LEN, ratio, dim });
        }
        Ok(layout)
    }

    /// A state for each group.
    fn states(&self) -> Vec<State> {
        let own = |part: &Part| {
            let end = (part.blocks.end * Block::LEN).min(self.coordinates.len());
            State::new(self.coordinates[part.blocks.start * Block::LEN..end].iter().copied())
        };
        self.parts.iter().map(own).collect()
    }
}

impl Part {
    /// What is left of $x$ in a gradient $x g$ with $\Vert g\Vert =$ `norm` in this part, at
    /// threshold $c\sqrt{d\thinspace n}$ with $n$ the samples that are clipped together.
    pub fn reshape(&self, step: &Step<'_>, x: f64, norm: f64, c: f64, n: f64, risk: f64) -> f64 {
        let unit = (self.dim * n).sqrt();
        match self.ratio {
            Some(ratio) => Rule::Clip.reshape(x, norm, c * ratio, unit),
            None => step.reshape(x, norm, c, unit, risk),
        }
    }
}

impl Sgd {
    /// [`run`](super::Simulator::run) with one sample a step and several groups: a pass over each.
    pub(super) fn run_groups(&self, seed: u64, index: u64, times: &[f64]) -> Trajectory {
        let mut states = self.layout.states();
        let mut data = Draws::new(self, seed, index);
        let mut noise = scalar_rng(seed, index, Purpose::Noise);
        let mut controller = Controller::new(&*self.policy);
        let mut record = SimulatedPath::new(times.len());
        let mut norms = vec![0.0; states.len()];
        for &time in times {
            let target = steps_until(time, self.dim);
            while record.steps < target {
                let t = record.steps as f64 / self.dim;
                let (mut inner, mut twice_risk) = (0.0, 0.0);
                data.prepare(self);
                for ((state, part), norm) in
                    states.iter_mut().zip(&self.layout.parts).zip(&mut norms)
                {
                    let source = match &mut data {
                        Draws::Normal(streams) => CovariateSource::Normal(streams),
                        Draws::Other(_, z) => CovariateSource::Given(&z[part.blocks.clone()]),
                    };
                    let sums = state.pass(self.isa, source);
                    inner += sums.inner;
                    twice_risk += sums.twice_risk;
                    *norm = sums.norm_sq.sqrt();
                }
                let risk = 0.5 * twice_risk;
                if !within(risk, self.limit) {
                    return record.diverged(t);
                }
                let residual = inner - self.step.noise().sample(&mut noise);
                let control = controller.step(t, risk, residual);
                for ((state, part), norm) in states.iter_mut().zip(&self.layout.parts).zip(&norms) {
                    let weight = part.reshape(&self.step, residual, *norm, control.c, 1.0, risk);
                    state.step(control.eta / self.dim * weight);
                }
                record.steps += 1;
            }
            let (mut twice_risk, mut distance) = (0.0, self.flat.square);
            for (state, part) in states.iter_mut().zip(&self.layout.parts) {
                let (own, moved) = state.measure(self.isa, &self.weights[part.blocks.clone()]);
                twice_risk += own;
                distance += moved;
            }
            let risk = 0.5 * twice_risk;
            if !within(risk, self.limit) || !distance.is_finite() {
                let t = record.steps as f64 / self.dim;
                return record.diverged(t);
            }
            record.save(time, risk, distance);
        }
        record.finish(Stop::Finished)
    }
}
