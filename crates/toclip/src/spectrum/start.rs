//! Where the iteration starts.

use super::{LARGEST, Spectrum, StartError};
use crate::error::{Error, Result};
use crate::numerics::sum::compensated;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{ChiSquared, Distribution};

/// $\theta_0 - \theta^\ast$ in the eigenbasis of $K$: `{ kind = "uniform", norm = 1.0 }`.
///
/// Coordinates are those of the user, before the rescaling to $\Vert K\Vert = 1$, in the order in
/// which the eigenvalues were given (named spectra: largest first).
///
/// ```
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// let start: Start = toml::from_str("kind = 'uniform'\nnorm = 1.0")?;
/// let modes = Modes::new(&Spectrum::power_law(500, 0.2)?, &start)?;
/// assert!((modes.risk() - 0.18).abs() < 0.001);       // figure 1 of the paper
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Start {
    /// All coordinates equal.
    Uniform {
        /// $\Vert \theta_0 - \theta^\ast\Vert $.
        norm: f64,
    },
    /// Every coordinate given.
    Coordinates {
        /// $\langle\theta_0 - \theta^\ast, w_i\rangle$.
        values: Vec<f64>,
    },
    /// Coordinate $j$ proportional to $j^{-a}$.
    PowerLaw {
        /// $\Vert \theta_0 - \theta^\ast\Vert $.
        norm: f64,
        /// $a$, of either sign.
        exponent: f64,
    },
    /// A direction drawn uniformly from the sphere, the same for the same seed and spectrum.
    Random {
        /// $\Vert \theta_0 - \theta^\ast\Vert $.
        norm: f64,
        /// Seed of the draw.
        seed: u64,
    },
}

impl Start {
    /// $\sum_{i \in b} \langle\theta_0 - \theta^\ast, w_i\rangle^2 / 2$ of every block, in the
    /// user's coordinates.
    pub(crate) fn energies(&self, spectrum: &Spectrum) -> Result<Vec<f64>> {
        let (norm, shares) = match self {
            Self::Uniform { norm } => {
                (norm, spectrum.blocks().iter().map(|b| b.multiplicity as f64).collect())
            }
            Self::Coordinates { values } => return of_coordinates(values, spectrum),
            Self::PowerLaw { norm, exponent } => (norm, of_power_law(*exponent, spectrum)?),
            Self::Random { norm, seed } => (norm, of_random(*seed, spectrum)?),
        };
        if !(norm.is_finite() && *norm >= 0.0) {
            return Err(Error::parameter("norm", *norm, "give a finite number >= 0"));
        }
        let total = compensated(shares.iter().copied());
        check(shares.into_iter().map(|share| 0.5 * norm * norm * (share / total)).collect())
    }
}

fn check(energies: Vec<f64>) -> Result<Vec<f64>> {
    if energies.iter().all(|e| e.is_finite()) {
        Ok(energies)
    } else {
        Err(StartError::TooFar.into())
    }
}

fn of_coordinates(values: &[f64], spectrum: &Spectrum) -> Result<Vec<f64>> {
    if values.len() as u64 != spectrum.ambient_dim() {
        let (coordinates, eigenvalues) = (values.len(), spectrum.ambient_dim());
        return Err(StartError::Coordinates { coordinates, eigenvalues }.into());
    }
    if let Some(index) = values.iter().position(|v| !v.is_finite()) {
        let (count, value) = (values.len(), values[index]);
        return Err(StartError::NotFinite { index, count, value }.into());
    }
    let mut energies = vec![0.0; spectrum.len()];
    let mut rest = values;
    for run in spectrum.runs() {
        let (own, others) = rest.split_at(run.count as usize);
        energies[run.block] += compensated(own.iter().map(|v| 0.5 * v * v));
        rest = others;
    }
    check(energies)
}

fn of_power_law(exponent: f64, spectrum: &Spectrum) -> Result<Vec<f64>> {
    let mut shares = vec![0.0; spectrum.len()];
    if spectrum.len() == 1 {
        return Ok(vec![1.0]);
    }
    if spectrum.ambient_dim() > LARGEST {
        let dimensions = spectrum.ambient_dim();
        return Err(StartError::TooManyCoordinates { dimensions, largest: LARGEST }.into());
    }
    let mut j = 0_u64;
    for run in spectrum.runs() {
        let own = (j + 1..=j + run.count).map(|j| (j as f64).powf(-2.0 * exponent));
        shares[run.block] += compensated(own);
        j += run.count;
    }
    let total: f64 = shares.iter().sum();
    if !(total.is_finite() && total > 0.0) {
        let expected = "coordinates j^-exponent must neither overflow nor all vanish";
        return Err(Error::parameter("exponent", exponent, expected));
    }
    Ok(shares)
}

/// A uniform direction gives each block a share as of independent $\chi^2(n_b)$: no need to draw
/// the coordinates.
fn of_random(seed: u64, spectrum: &Spectrum) -> Result<Vec<f64>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let draw = |b: &super::Block| {
        let dimensions = b.multiplicity as f64;
        let of_block = ChiSquared::new(dimensions).map(|chi_squared| chi_squared.sample(&mut rng));
        of_block.map_err(|_| Error::parameter("multiplicity", dimensions, "give at least 1"))
    };
    spectrum.blocks().iter().map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Block;
    use super::*;

    fn two_blocks() -> Spectrum {
        Spectrum::from_blocks(&[
            Block { value: 1.0, multiplicity: 3 },
            Block { value: 2.0, multiplicity: 1 },
        ])
        .unwrap()
    }

    fn total(start: &Start, spectrum: &Spectrum) -> f64 {
        2.0 * start.energies(spectrum).unwrap().iter().sum::<f64>()
    }

    #[test]
    fn coordinates_follow_the_order_of_the_eigenvalues() {
        let start = Start::Coordinates { values: vec![1.0, 2.0, 3.0, 10.0] };
        // Block 0 is the eigenvalue 2, which the user gave last.
        assert_eq!(start.energies(&two_blocks()).unwrap(), [50.0, 7.0]);
        let k = Spectrum::from_eigenvalues(&[0.5, 1.0, 0.5, 0.25]).unwrap();
        assert_eq!(start.energies(&k).unwrap(), [2.0, 5.0, 50.0]);
    }

    #[test]
    fn power_law_start_is_the_coordinates_written_out() {
        let k = Spectrum::from_eigenvalues(&[0.5, 1.0, 0.5, 0.25]).unwrap();
        let raw: Vec<f64> = (1..=4).map(|j| f64::from(j).powf(0.7)).collect();
        let length = raw.iter().map(|v| v * v).sum::<f64>().sqrt();
        let values = raw.iter().map(|v| 3.0 * v / length).collect();
        let written = Start::Coordinates { values }.energies(&k).unwrap();
        let named = Start::PowerLaw { norm: 3.0, exponent: -0.7 }.energies(&k).unwrap();
        for (a, b) in written.iter().zip(&named) {
            assert!((a - b).abs() < 1e-14);
        }
    }

    #[test]
    fn norms_are_kept() {
        for k in [two_blocks(), Spectrum::power_law(1000, 0.5).unwrap()] {
            for start in [
                Start::Uniform { norm: 2.0 },
                Start::PowerLaw { norm: 2.0, exponent: 1.0 },
                Start::Random { norm: 2.0, seed: 9 },
            ] {
                assert!((total(&start, &k) - 4.0).abs() < 1e-13);
            }
        }
        let huge = Spectrum::isotropic(1 << 60).unwrap();
        assert_eq!(total(&Start::PowerLaw { norm: 2.0, exponent: 1.0 }, &huge), 4.0);
        assert_eq!(total(&Start::Uniform { norm: 0.0 }, &huge), 0.0);
    }

    #[test]
    fn random_start_is_uniform_on_the_sphere() {
        // The share of block 0 (1 of 4 dimensions) is Beta(1/2, 3/2): mean 1/4, variance 1/16.
        // 4000 draws: mean within 5 standard errors, false alarm below 1e-6.
        let share = |seed| {
            let energies = Start::Random { norm: 1.0, seed }.energies(&two_blocks()).unwrap();
            2.0 * energies[0]
        };
        let draws: Vec<f64> = (0..4000).map(share).collect();
        let mean = draws.iter().sum::<f64>() / 4000.0;
        assert!((mean - 0.25).abs() < 5.0 * 0.25 / 4000_f64.sqrt(), "{mean}");
        // The fourth central moment of that distribution is 3/256.
        let variance = draws.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / 4000.0;
        assert!((variance - 0.0625).abs() < 5.0 * (3.0_f64 / 256.0 / 4000.0).sqrt(), "{variance}");
    }

    #[test]
    fn random_start_is_pinned() {
        let k = Spectrum::power_law(3, 1.0).unwrap();
        let energies = Start::Random { norm: 1.0, seed: 1 }.energies(&k).unwrap();
        for (a, b) in energies.iter().zip(PINNED) {
            assert!((a - b).abs() < 1e-14, "{energies:?}");
        }
    }

    /// A change of these is a change of what users' seeds mean.
    const PINNED: [f64; 3] = [0.07276248143270678, 0.05230184519503015, 0.374935673372263];

    #[test]
    fn bad_starts_are_refused_with_a_message() {
        let message = |start: Start| start.energies(&two_blocks()).unwrap_err().to_string();
        assert!(message(Start::Coordinates { values: vec![1.0] }).contains("1 coordinates"));
        let text = message(Start::Coordinates { values: vec![1.0, f64::NAN, 0.0, 0.0] });
        assert!(text.contains("coordinate 2 of 4"));
        assert!(message(Start::Uniform { norm: -1.0 }).contains("norm = -1"));
        assert!(message(Start::Uniform { norm: 1e200 }).contains("overflows"));
        assert!(message(Start::Coordinates { values: vec![1e200; 4] }).contains("overflows"));
        assert!(message(Start::PowerLaw { norm: 1.0, exponent: -1e4 }).contains("exponent"));
        assert!(message(Start::PowerLaw { norm: 1.0, exponent: f64::NAN }).contains("exponent"));
        let unknown = toml::from_str::<Start>("kind = 'uniform'\nnorm = 1.0\nseed = 2");
        assert!(unknown.unwrap_err().to_string().contains("`seed`"));
    }
}
