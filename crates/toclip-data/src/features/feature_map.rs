//! Features of samples, block by block.

use super::tall_matrix::map_rows;
use super::{Activation, Features};
use crate::error::bail;
use crate::{Result, SampleSource};
use faer::Mat;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use toclip_words::short;

/// Rows read at once: the features of a block are computed together.
const BLOCK: usize = 1024;

/// Features (not yet centred) and targets of all samples.
pub struct Mapped {
    pub features: Vec<f64>,
    pub cols: usize,
    pub targets: Vec<f64>,
}

/// $f((x - m)A)$ for every sample, where $m$ is the mean unless another centre is given.
pub fn map(
    source: &dyn SampleSource,
    centre: Option<&[f64]>,
    features: Features,
    seed: u64,
) -> Result<Mapped> {
    let (rows, inputs) = (source.rows(), source.cols());
    let name = source.name();
    if rows < 2 || inputs == 0 {
        bail!(
            "{name} has {rows} samples of {inputs} features; a fit needs at least 2 samples and 1 \
               feature"
        );
    }
    let cols = match features {
        Features::None => inputs,
        Features::Random { count, .. } => count,
    };
    let mut all = Vec::new();
    let bytes = rows.checked_mul(cols).filter(|n| n.checked_mul(8).is_some());
    if bytes.is_none_or(|n| all.try_reserve_exact(n).is_err()) {
        bail!("{rows} samples of {cols} features do not fit in memory; use fewer of either");
    }
    let mut targets = Vec::with_capacity(rows);
    let random = match features {
        Features::None => None,
        Features::Random { activation, count } => {
            let centre = match centre {
                Some(centre) if centre.len() != inputs => {
                    bail!("{name}: the centre has {} numbers, not {inputs}", centre.len())
                }
                Some(centre) => centre.to_vec(),
                None => mean(source)?,
            };
            Some(Random::new(activation, count, &centre, seed))
        }
    };
    let mut row = 0;
    source.visit(BLOCK, &mut |block| {
        check(&name, row, block.features, inputs, block.targets)?;
        row += block.targets.len();
        targets.extend_from_slice(block.targets);
        match &random {
            None => all.extend_from_slice(block.features),
            Some(random) => random.push(block.features, &mut all),
        }
        Ok(())
    })?;
    if row != rows {
        bail!("{name} has {rows} samples, but {row} were read");
    }
    Ok(Mapped { features: all, cols, targets })
}

fn mean(source: &dyn SampleSource) -> Result<Vec<f64>> {
    let mut sum = vec![0.0; source.cols()];
    source.visit(BLOCK, &mut |block| {
        for x in block.features.chunks_exact(block.cols) {
            sum.iter_mut().zip(x).for_each(|(s, x)| *s += x);
        }
        Ok(())
    })?;
    let n = source.rows() as f64;
    Ok(sum.into_iter().map(|s| s / n).collect())
}

fn check(name: &str, first: usize, x: &[f64], cols: usize, targets: &[f64]) -> Result<()> {
    if x.len() != cols * targets.len() {
        bail!("{name}: a block of {} features, not {}", x.len(), cols * targets.len());
    }
    // Squares are summed over all samples.
    let bad = |v: &f64| !(v.abs() <= 1e140);
    let (what, value) = if let Some(i) = x.iter().position(bad) {
        (format!("feature {} of sample {}", i % cols + 1, first + i / cols + 1), x[i])
    } else if let Some(i) = targets.iter().position(bad) {
        (format!("the target of sample {}", first + i + 1), targets[i])
    } else {
        return Ok(());
    };
    bail!("{name}: {what} is {}; all must be finite, at most 1e140", short(value))
}

/// $x \mapsto f((x - m)A)$.
struct Random {
    activation: Activation,
    weights: Mat<f64>,
    /// $mA$, subtracted from the product to avoid a copy of the inputs.
    offset: Vec<f64>,
}

impl Random {
    fn new(activation: Activation, count: usize, mean: &[f64], seed: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        // Row by row: A must not depend on how matrices are stored.
        let rows: Vec<f64> =
            (0..mean.len() * count).map(|_| StandardNormal.sample(&mut rng)).collect();
        let weights = Mat::from_fn(mean.len(), count, |i, j| rows[i * count + j]);
        let offset =
            (0..count).map(|j| mean.iter().enumerate().map(|(i, m)| m * weights[(i, j)]).sum());
        let offset = offset.collect();
        Random { activation, weights, offset }
    }

    fn push(&self, x: &[f64], all: &mut Vec<f64>) {
        let start = all.len();
        let count = self.offset.len();
        all.resize(start + x.len() / self.weights.nrows() * count, 0.0);
        map_rows(x, &self.weights, &mut all[start..], &|row| {
            for (z, offset) in row.iter_mut().zip(&self.offset) {
                *z = self.activation.apply(*z - offset);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockVisitor, Matrix, SampleBlock, Samples};

    fn samples(rows: usize) -> Samples {
        let data = (0..rows * 3).map(|i| (i as f64 * 1.3).sin() + 5.0).collect();
        Samples::new(Matrix::new(rows, 3, data).unwrap(), vec![1.0; rows]).unwrap()
    }

    #[test]
    fn random_features_are_those_written_out() {
        let samples = samples(BLOCK + 10);
        for (text, activation) in [("tanh:4", Activation::Tanh), ("relu:4", Activation::Relu)] {
            let mapped = map(&samples, None, text.parse().unwrap(), 7).unwrap();
            let mut rng = ChaCha8Rng::seed_from_u64(7);
            let a: Vec<f64> = (0..12).map(|_| StandardNormal.sample(&mut rng)).collect();
            let n = samples.rows() as f64;
            let mean = |j: usize| samples.features.data().chunks(3).map(|x| x[j]).sum::<f64>() / n;
            let mean = [mean(0), mean(1), mean(2)];
            for row in [0, 5, BLOCK, BLOCK + 9] {
                let x = samples.features.row(row);
                for j in 0..4 {
                    let z: f64 = (0..3).map(|i| (x[i] - mean[i]) * a[4 * i + j]).sum();
                    let z = match activation {
                        Activation::Tanh => z.tanh(),
                        Activation::Relu => z.max(0.0),
                    };
                    assert!((mapped.features[4 * row + j] - z).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn the_draw_depends_on_the_seed_alone() {
        let samples = samples(50);
        let features =
            |seed| map(&samples, None, "tanh:5".parse().unwrap(), seed).unwrap().features;
        assert_eq!(features(1), features(1));
        assert_ne!(features(1), features(2));
    }

    /// A source whose second sample is broken.
    struct Broken(f64, f64);

    impl SampleSource for Broken {
        fn rows(&self) -> usize {
            2
        }
        fn cols(&self) -> usize {
            2
        }
        fn name(&self) -> String {
            "broken.npy".into()
        }
        fn visit(&self, _: usize, visit: BlockVisitor<'_>) -> Result<()> {
            let features = [1.0, 2.0, 3.0, self.0];
            visit(SampleBlock { features: &features, targets: &[1.0, self.1], cols: 2 })
        }
    }

    #[test]
    fn errors_name_the_sample() {
        let sources = [Broken(f64::NAN, 0.0), Broken(0.0, f64::INFINITY), Broken(0.0, 0.0)];
        let results = sources.map(|source| map(&source, None, Features::None, 1));
        insta::assert_snapshot!(crate::testing::messages("".as_ref(), results));
    }
}
