//! How much to run.

/// The sizes of everything that can be run smaller or larger.
#[derive(Debug, Clone)]
pub struct RunSizes {
    pub name: &'static str,
    /// Points of a curve of a criterion.
    pub points: usize,
    /// Runs of an ensemble.
    pub runs: u64,
    pub seed: u64,
    /// Random problems for Theorem 4.
    pub problems: u64,
    /// Dimensions for Theorem 1, and the runs in each.
    pub dims: &'static [u64],
    pub rate_runs: u64,
}

const DIMS: [u64; 8] = [100, 316, 1000, 3162, 10_000, 31_623, 100_000, 316_228];

impl RunSizes {
    pub fn quick(seed: u64) -> Self {
        let (name, dims) = ("quick", &DIMS[..4]);
        RunSizes { name, seed, points: 120, runs: 40, problems: 40, dims, rate_runs: 100 }
    }

    pub fn default(seed: u64) -> Self {
        let (name, dims) = ("default", &DIMS[..5]);
        RunSizes { name, seed, points: 400, runs: 100, problems: 200, dims, rate_runs: 400 }
    }

    pub fn full(seed: u64) -> Self {
        let (name, dims) = ("full", &DIMS[..]);
        RunSizes { name, seed, points: 1000, runs: 1000, problems: 2000, dims, rate_runs: 500 }
    }

    /// The flags that give the same numbers again.
    pub fn flags(&self) -> String {
        match self.name {
            "default" => format!(" --seed {}", self.seed),
            name => format!(" --{name} --seed {}", self.seed),
        }
    }
}
