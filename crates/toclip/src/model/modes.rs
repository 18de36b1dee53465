//! A spectrum, a teacher and a start.

use super::Overlaps;
use crate::error::{Error, Result};
use crate::numerics::sum::compensated;
use crate::spectrum::{Spectrum, Start, check_tolerance, compressed_measure};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

/// $(\lambda, n, \sum\theta^{\ast2}_i, \sum\theta_i\theta^\ast_i, \sum\theta_i^2)$: the eigendirections that
/// share one eigenvalue, at the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TeacherMode {
    /// $\lambda$.
    pub lambda: f64,
    /// $n$, how many directions: an integer unless compressed.
    pub count: f64,
    /// $\sum_i\theta^{\ast2}_i$.
    pub teacher: f64,
    /// $p = \sum_i\theta_i\theta^\ast_i$.
    pub p: f64,
    /// $q = \sum_i\theta_i^2$.
    pub q: f64,
}

/// A spectrum with a teacher $\theta^\ast$ and a start $\theta_0$, ready for the dynamics of a
/// generalised linear model.
///
/// Teacher and start are written as a [`Start`]: in the user's coordinates, before the rescaling to
/// $\Vert K\Vert = 1$. Logits do not depend on that rescaling.
///
/// ```
/// use toclip::model::TeacherModes;
/// use toclip::spectrum::{Spectrum, Start};
/// let modes = TeacherModes::new(&Spectrum::isotropic(1000)?, &Start::Uniform { norm: 3.0 })?;
/// let start = modes.overlaps();
/// assert_eq!((start.q, start.p), (0.0, 0.0));
/// assert!((start.v - 9.0).abs() < 1e-12);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct TeacherModes {
    modes: Vec<TeacherMode>,
    dim: f64,
    ambient: u64,
    whole: bool,
}

/// The most coordinates that are written out to compare a teacher with a start.
const LARGEST: u64 = 100_000_000;

impl TeacherModes {
    /// The modes of $K$ with this teacher, started at $\theta_0 = 0$.
    ///
    /// # Errors
    /// As [`Modes::new`](crate::spectrum::Modes::new).
    pub fn new(spectrum: &Spectrum, teacher: &Start) -> Result<Self> {
        Self::started_at(spectrum, teacher, &Start::Uniform { norm: 0.0 })
    }

    /// The modes of $K$ with this teacher, started at $\theta_0$ = `start`.
    ///
    /// A random direction is independent of any other vector than the one drawn from the same seed.
    ///
    /// # Errors
    /// As [`Modes::new`](crate::spectrum::Modes::new).
    ///
    /// ```
    /// use toclip::model::TeacherModes;
    /// use toclip::spectrum::{Spectrum, Start};
    /// let k = Spectrum::from_eigenvalues(&[1.0, 0.5])?;
    /// let at = |values: &[f64]| Start::Coordinates { values: values.to_vec() };
    /// let modes = TeacherModes::started_at(&k, &at(&[2.0, 1.0]), &at(&[-1.0, 4.0]))?;
    /// assert_eq!(modes.overlaps().p, -2.0 + 0.5 * 4.0);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn started_at(spectrum: &Spectrum, teacher: &Start, start: &Start) -> Result<Self> {
        let (truth, here) = (teacher.energies(spectrum)?, start.energies(spectrum)?);
        let overlaps = inner_products(spectrum, (teacher, &truth), (start, &here))?;
        let rescaling = spectrum.rescaling();
        let mut modes: Vec<TeacherMode> = Vec::with_capacity(spectrum.len());
        for (i, block) in spectrum.blocks().iter().enumerate() {
            // Energies are half a squared length.
            let [teacher, p, q] = [2.0 * truth[i], overlaps[i], 2.0 * here[i]];
            let most = (teacher * q).sqrt();
            let mode = TeacherMode {
                lambda: block.value,
                count: block.multiplicity as f64,
                teacher: rescaling.distance(teacher),
                p: rescaling.distance(p.clamp(-most, most)),
                q: rescaling.distance(q),
            };
            match modes.last_mut() {
                Some(last) if last.lambda == mode.lambda => {
                    last.count += mode.count;
                    last.teacher += mode.teacher;
                    last.p += mode.p;
                    last.q += mode.q;
                }
                _ => modes.push(mode),
            }
        }
        let (dim, ambient) = (spectrum.intrinsic_dim(), spectrum.ambient_dim());
        Ok(TeacherModes { modes, dim, ambient, whole: true })
    }

    /// The same on a few hundred weighted nodes.
    ///
    /// Given $a$, $b$ and $m^{(2)}$ the system is linear in the three sums of a mode and in its count, so
    /// each of these measures lives on nodes of its own, by the rules of
    /// [`Modes::compress`](crate::spectrum::Modes::compress). The bound of that function is for
    /// exponentials in $\lambda$; here it is the tolerance of the rules, and errors of $Q$ and $P$ are
    /// of its size.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a tolerance outside $[10^{-12}, 1]$.
    ///
    /// ```
    /// use toclip::model::TeacherModes;
    /// use toclip::spectrum::{Spectrum, Start};
    /// let k = Spectrum::power_law(100_000, 0.5)?;
    /// let full = TeacherModes::new(&k, &Start::Uniform { norm: 3.0 })?;
    /// let small = full.compress(1e-10)?;
    /// assert!(small.modes().len() < 250);
    /// assert!((small.overlaps().v / full.overlaps().v - 1.0).abs() < 1e-12);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn compress(&self, tolerance: f64) -> Result<Self> {
        check_tolerance(tolerance)?;
        let positive = self.modes.partition_point(|m| m.lambda > 0.0);
        let (positive, flat) = self.modes.split_at(positive);
        let lambda: Vec<f64> = positive.iter().map(|m| m.lambda).collect();
        let nodes = |weight: &dyn Fn(&TeacherMode) -> f64| {
            let u: Vec<f64> = positive.iter().map(weight).collect();
            compressed_measure(&lambda, &u, tolerance)
        };
        let empty = TeacherMode { lambda: 0.0, count: 0.0, teacher: 0.0, p: 0.0, q: 0.0 };
        let mut modes: Vec<TeacherMode> = Vec::new();
        for (lambda, u) in nodes(&|m| m.lambda * m.count) {
            modes.push(TeacherMode { lambda, count: u / lambda, ..empty });
        }
        for (lambda, teacher) in nodes(&|m| m.teacher) {
            modes.push(TeacherMode { lambda, teacher, ..empty });
        }
        for (lambda, q) in nodes(&|m| m.q) {
            modes.push(TeacherMode { lambda, q, ..empty });
        }
        for sign in [1.0, -1.0] {
            for (lambda, p) in nodes(&|m| (sign * m.p).max(0.0)) {
                modes.push(TeacherMode { lambda, p: sign * p, ..empty });
            }
        }
        modes.sort_by(|x, y| y.lambda.total_cmp(&x.lambda));
        modes.dedup_by(|next, kept| {
            let same = next.lambda == kept.lambda;
            if same {
                kept.count += next.count;
                kept.teacher += next.teacher;
                kept.p += next.p;
                kept.q += next.q;
            }
            same
        });
        modes.extend_from_slice(flat);
        if modes.len() >= self.modes.len() {
            return Ok(self.clone());
        }
        Ok(TeacherModes { modes, whole: false, ..*self })
    }

    /// The modes in descending order of $\lambda$.
    pub fn modes(&self) -> &[TeacherMode] {
        &self.modes
    }

    /// $d = \mathrm{Tr}\thinspace K/\Vert K\Vert$.
    pub fn dim(&self) -> f64 {
        self.dim
    }

    /// The number of eigendirections before merging and compression.
    pub fn ambient_dim(&self) -> u64 {
        self.ambient
    }

    /// $(Q, P, V)$ at the start.
    pub fn overlaps(&self) -> Overlaps {
        let sum =
            |of: fn(&TeacherMode) -> f64| compensated(self.modes.iter().map(|m| m.lambda * of(m)));
        Overlaps::rounded(sum(|m| m.q), sum(|m| m.p), sum(|m| m.teacher))
    }

    /// Whether every eigendirection is there, as before [`compress`](Self::compress).
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }
}

/// $\sum_{i \in b}\theta_i\theta^\ast_i$ of every block, in the user's coordinates.
fn inner_products(
    spectrum: &Spectrum,
    (teacher, truth): (&Start, &[f64]),
    (start, here): (&Start, &[f64]),
) -> Result<Vec<f64>> {
    let lengths = || truth.iter().zip(here).map(|(t, s)| 2.0 * (t * s).sqrt());
    if lengths().all(|length| length == 0.0) {
        return Ok(vec![0.0; truth.len()]);
    }
    match (teacher, start) {
        (Start::Uniform { .. }, Start::Uniform { .. }) => Ok(lengths().collect()),
        (Start::Random { seed, .. }, Start::Random { seed: same, .. }) if seed == same => {
            Ok(lengths().collect())
        }
        (Start::Random { seed, .. }, _) | (_, Start::Random { seed, .. }) => {
            let cosines = cosines(*seed, spectrum)?;
            Ok(lengths().zip(cosines).map(|(length, cosine)| length * cosine).collect())
        }
        _ => {
            let (truth, here) = (coordinates(teacher, spectrum)?, coordinates(start, spectrum)?);
            let mut sums = vec![0.0; spectrum.len()];
            let mut first = 0;
            for run in spectrum.runs() {
                let own = first..first + run.count as usize;
                sums[run.block] += compensated(
                    truth[own.clone()].iter().zip(&here[own.clone()]).map(|(t, s)| t * s),
                );
                first = own.end;
            }
            Ok(sums)
        }
    }
}

/// The cosine of the angle between a random direction and another vector, in every block.
fn cosines(seed: u64, spectrum: &Spectrum) -> Result<Vec<f64>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ u64::from_le_bytes(*b"cosines "));
    let mut draw = |n: f64| -> Result<f64> {
        let along: f64 = StandardNormal.sample(&mut rng);
        if n < 1.5 {
            return Ok(along.signum());
        }
        let across = ChiSquared::new(n - 1.0)
            .map_err(|e| Error::Invalid(format!("random start: {e}")))?
            .sample(&mut rng);
        Ok(along / (along * along + across).sqrt())
    };
    spectrum.blocks().iter().map(|b| draw(b.multiplicity as f64)).collect()
}

/// Every coordinate, in the order in which the eigenvalues were given.
fn coordinates(start: &Start, spectrum: &Spectrum) -> Result<Vec<f64>> {
    let n = spectrum.ambient_dim();
    if n > LARGEST {
        return Err(Error::Invalid(format!(
            "teacher and start of different kinds in {n} dimensions: at most {LARGEST} coordinates \
             are written out; start at zero, or use a random start"
        )));
    }
    let scaled = |norm: f64, shape: Vec<f64>| {
        let length = compensated(shape.iter().map(|x| x * x)).sqrt();
        shape.into_iter().map(|x| norm * x / length).collect()
    };
    Ok(match start {
        Start::Coordinates { values } => values.clone(),
        Start::PowerLaw { norm, exponent } => {
            scaled(*norm, (1..=n).map(|j| (j as f64).powf(-exponent)).collect())
        }
        Start::Uniform { norm } | Start::Random { norm, .. } => {
            scaled(*norm, vec![1.0; n as usize])
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_directions_are_as_often_against_a_vector_as_along_it() {
        // 2000 single directions: the sum of their signs has deviation 45. One eigenspace of 2000: the
        // cosine has deviation 1/45.
        let single = Spectrum::power_law(2000, 0.5).unwrap();
        let signs = cosines(1, &single).unwrap();
        assert!(signs.iter().all(|c| c.abs() == 1.0));
        assert!(signs.iter().sum::<f64>().abs() < 180.0);
        let whole = Spectrum::isotropic(2000).unwrap();
        let squares = (0..400).map(|seed| cosines(seed, &whole).unwrap()[0].powi(2)).sum::<f64>();
        assert!((squares / 400.0 * 2000.0 - 1.0).abs() < 0.3, "{squares}");
    }
}
