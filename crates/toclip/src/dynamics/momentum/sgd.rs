//! C-SGD with momentum.

use crate::dynamics::sgd::Draws;
use crate::dynamics::simulated_path::{SimulatedPath, steps_until, within};
use crate::dynamics::{Sgd, Stop, Trajectory};
use crate::momentum::Momentum;
use crate::schedule::Controller;
use crate::sim::momentum_step::{MomentumState, Update};
use crate::sim::{Purpose, scalar_rng};

/// The momentum of a run: what a step does to the buffer, and whether it is the first.
#[derive(Debug, Clone, Copy)]
pub(in crate::dynamics) struct Memory {
    beta: f64,
    /// What a gradient is multiplied by: the next one, and those after it.
    gain: f64,
    later: f64,
    leaves_out: bool,
}

impl Memory {
    /// The update of a step whose gradient, times `weight`, enters the buffer, or is `skipped`.
    pub fn update(&mut self, weight: f64, skipped: bool, rate: f64) -> Update {
        if skipped && self.leaves_out {
            return Update::NONE;
        }
        let update = Update { decay: self.beta, gain: self.gain * weight, rate };
        self.gain = self.later;
        update
    }
}

impl Sgd {
    /// The momentum at the start of a run.
    pub(in crate::dynamics) fn memory(&self) -> Option<Memory> {
        self.momentum.map(|momentum| self.memory_of(&momentum))
    }

    fn memory_of(&self, momentum: &Momentum) -> Memory {
        let [gain, later] = momentum.gains(self.dim);
        let leaves_out = momentum.leaves_out(&self.step);
        Memory { beta: momentum.beta(self.dim), gain, later, leaves_out }
    }

    /// [`run`](crate::dynamics::Simulator::run) with momentum, one sample a step.
    pub(in crate::dynamics) fn run_momentum(
        &self,
        momentum: &Momentum,
        seed: u64,
        index: u64,
        times: &[f64],
    ) -> Trajectory {
        let mut state = MomentumState::new(&self.start.lambda(), &self.start.w());
        let mut memory = self.memory_of(momentum);
        let mut data = Draws::new(self, seed, index);
        let mut noise = scalar_rng(seed, index, Purpose::Noise);
        let mut controller = Controller::new(&*self.policy);
        let mut record = SimulatedPath::new(times.len());
        for &time in times {
            let target = steps_until(time, self.dim);
            while record.steps < target {
                let t = record.steps as f64 / self.dim;
                let sums = state.pass(self.isa, data.next(self));
                let risk = 0.5 * sums.twice_risk;
                if !within(risk, self.limit) {
                    return record.diverged(t);
                }
                let residual = sums.inner - self.step.noise().sample(&mut noise);
                let control = controller.step(t, risk, residual);
                let (norm, unit) = (sums.norm_sq.sqrt(), self.dim.sqrt());
                let weight = self.step.reshape(residual, norm, control.c, unit, risk);
                let skipped = residual.abs() * norm > control.c * unit;
                state.step(memory.update(weight, skipped, control.eta / self.dim));
                record.steps += 1;
            }
            let (twice_risk, moved) = state.measure(self.isa, &self.weights);
            let (risk, distance) = (0.5 * twice_risk, moved + self.flat.square);
            if !within(risk, self.limit) || !distance.is_finite() {
                let t = record.steps as f64 / self.dim;
                return record.diverged(t);
            }
            record.save(time, risk, distance);
        }
        record.finish(Stop::Finished)
    }
}
