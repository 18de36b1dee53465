//! The covariates of a run.

use crate::dynamics::covariates::Sampler;
use crate::sim::normal::{Block16, Streams, fill};
use crate::sim::step::CovariateSource;
use crate::sim::{Isa, Purpose, scalar_rng};
use rand::rngs::Xoshiro256PlusPlus;
use std::ops::Range;

/// $z$ of every step: drawn by the pass that uses them, or drawn in advance.
pub(super) struct Draws<'a> {
    sampler: &'a Sampler,
    isa: Isa,
    source: Source,
}

enum Source {
    Normal(Streams),
    Other(Xoshiro256PlusPlus, Vec<Block16>),
}

impl<'a> Draws<'a> {
    /// Those of a run with this many blocks of coordinates.
    pub fn new(sampler: &'a Sampler, isa: Isa, blocks: usize, seed: u64, index: u64) -> Self {
        let source = match sampler {
            Sampler::Gaussian => Source::Normal(Streams::new(seed, index, Purpose::Covariates)),
            _ => {
                let rng = scalar_rng(seed, index, Purpose::Covariates);
                Source::Other(rng, vec![Block16::ZERO; blocks])
            }
        };
        Draws { sampler, isa, source }
    }

    /// The next $z$, drawn into blocks.
    pub fn fill(&mut self, z: &mut [Block16]) {
        match &mut self.source {
            Source::Normal(streams) => fill(self.isa, streams, z),
            Source::Other(rng, _) => self.sampler.fill(rng, z),
        }
    }

    /// Draws covariates that the pass over the coordinates does not draw itself.
    pub fn prepare(&mut self) {
        if let Source::Other(rng, blocks) = &mut self.source {
            self.sampler.fill(rng, blocks);
        }
    }

    /// $z$ of these blocks, after [`prepare`](Self::prepare).
    #[inline]
    pub fn of(&mut self, blocks: &Range<usize>) -> CovariateSource<'_> {
        match &mut self.source {
            Source::Normal(streams) => CovariateSource::Normal(streams),
            Source::Other(_, z) => CovariateSource::Given(&z[blocks.clone()]),
        }
    }
}
