//! The interface of random methods: one run is a function of a seed and an index.

use super::Trajectory;

/// A random path of the risk: C-SGD or C-HSGD, in any of their forms.
pub trait Simulator: std::fmt::Debug + Send + Sync {
    /// Run number `index` of the ensemble with this `seed`, saved at the given increasing times.
    ///
    /// The result depends on nothing else, in particular not on which thread computes it or
    /// whether other runs are computed.
    fn run(&self, seed: u64, index: u64, times: &[f64]) -> Trajectory;
}
