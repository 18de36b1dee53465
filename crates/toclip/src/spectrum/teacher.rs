//! Modes with a teacher: for models that need more than the distance to it.

use super::compress::compressed_measure;
use super::{Bound, Mode, Modes, Spectrum, Start};
use crate::error::{Error, Result};
use crate::numerics::sum::compensated;
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{ChiSquared, Distribution, StandardNormal};

/// $(\sum\theta^{\ast2}_i, \sum\theta_i\theta^\ast_i, \sum\theta_i^2)$ of the directions of a mode, at
/// the start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Alignment {
    /// $\sum_i\theta^{\ast2}_i$.
    pub teacher: f64,
    /// $p = \sum_i\theta_i\theta^\ast_i$.
    pub p: f64,
    /// $q = \sum_i\theta_i^2$.
    pub q: f64,
}

impl Alignment {
    /// $\tfrac12\sum_i(\theta_i - \theta^\ast_i)^2$.
    fn energy(&self) -> f64 {
        0.5 * (self.q - 2.0 * self.p + self.teacher)
    }

    fn add(&mut self, other: &Alignment) {
        self.teacher += other.teacher;
        self.p += other.p;
        self.q += other.q;
    }
}

/// The most coordinates that are written out to compare a teacher with a start.
const LARGEST: u64 = 100_000_000;

impl Modes {
    /// The modes of $K$ with the teacher $\theta^\ast$, started at $\theta_0$.
    ///
    /// Both are in the user's coordinates, before the rescaling to $\Vert K\Vert = 1$. A random direction
    /// is independent of any other vector than the one drawn from the same seed. In [`Modes::new`] a start
    /// is $\theta_0 - \theta^\ast$; here it is $\theta_0$.
    ///
    /// # Errors
    /// As [`Modes::new`].
    ///
    /// ```
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// let k = Spectrum::from_eigenvalues(&[1.0, 0.5])?;
    /// let at = |values: &[f64]| Start::Coordinates { values: values.to_vec() };
    /// let modes = Modes::with_teacher(&k, &at(&[2.0, 1.0]), &at(&[-1.0, 4.0]))?;
    /// assert_eq!(modes.alignments().unwrap()[1].p, 4.0);
    /// assert_eq!(modes.risk(), (9.0 + 0.5 * 9.0) / 2.0);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn with_teacher(spectrum: &Spectrum, teacher: &Start, start: &Start) -> Result<Self> {
        let (truth, here) = (teacher.energies(spectrum)?, start.energies(spectrum)?);
        let overlaps = inner_products(spectrum, (teacher, &truth), (start, &here))?;
        let rescaling = spectrum.rescaling();
        let mut modes: Vec<Mode> = Vec::with_capacity(spectrum.len());
        let mut alignments: Vec<Alignment> = Vec::with_capacity(spectrum.len());
        for (i, block) in spectrum.blocks().iter().enumerate() {
            // Energies are half a squared length.
            let [teacher, p, q] = [2.0 * truth[i], overlaps[i], 2.0 * here[i]];
            let most = (teacher * q).sqrt();
            let own = Alignment {
                teacher: rescaling.distance(teacher),
                p: rescaling.distance(p.clamp(-most, most)),
                q: rescaling.distance(q),
            };
            let count = block.multiplicity as f64;
            match (modes.last_mut(), alignments.last_mut()) {
                (Some(mode), Some(alignment)) if mode.lambda == block.value => {
                    mode.count += count;
                    alignment.add(&own);
                }
                _ => {
                    modes.push(Mode { lambda: block.value, count, energy: 0.0 });
                    alignments.push(own);
                }
            }
        }
        let (dim, ambient) = (spectrum.intrinsic_dim(), spectrum.ambient_dim());
        for (mode, alignment) in modes.iter_mut().zip(&alignments) {
            // A difference that rounding must not make negative.
            mode.energy = alignment.energy().max(0.0);
        }
        let (bound, alignments) = (Bound::default(), Some(alignments));
        Ok(Modes { modes, dim, ambient, bound, groups: None, alignments })
    }

    /// Teacher and start in the directions of every mode; `None` for modes that only know their
    /// difference.
    pub fn alignments(&self) -> Option<&[Alignment]> {
        self.alignments.as_deref()
    }

    /// The same on a few hundred weighted nodes.
    ///
    /// Given the coefficients of the model the system is linear in the three sums of a mode and in its
    /// count, so each of these measures has nodes of its own.
    pub(super) fn compress_aligned(&self, alignments: &[Alignment], tolerance: f64) -> Self {
        let positive = self.modes.partition_point(|m| m.lambda > 0.0);
        let lambda: Vec<f64> = self.modes[..positive].iter().map(|m| m.lambda).collect();
        let compressed = |u: Vec<f64>| compressed_measure(&lambda, &u, tolerance);
        let traces = self.modes[..positive].iter().map(|m| m.lambda * m.count).collect();
        let none = Alignment::default();
        let mut nodes: Vec<(f64, f64, Alignment)> = Vec::new();
        nodes.extend(compressed(traces).into_iter().map(|(l, u)| (l, u / l, none)));
        let mut add = |weight: fn(&Alignment) -> f64, node: fn(f64) -> Alignment| {
            let all = compressed(alignments[..positive].iter().map(weight).collect());
            nodes.extend(all.into_iter().map(|(l, u)| (l, 0.0, node(u))));
        };
        add(|a| a.teacher, |teacher| Alignment { teacher, ..Alignment::default() });
        add(|a| a.q, |q| Alignment { q, ..Alignment::default() });
        add(|a| a.p.max(0.0), |p| Alignment { p, ..Alignment::default() });
        add(|a| (-a.p).max(0.0), |p| Alignment { p: -p, ..Alignment::default() });
        nodes.sort_by(|x, y| y.0.total_cmp(&x.0));
        nodes.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
                kept.2.add(&next.2);
            }
            same
        });
        let flat = self.modes[positive..].iter().zip(&alignments[positive..]);
        nodes.extend(flat.map(|(m, a)| (m.lambda, m.count, *a)));
        if nodes.len() >= self.modes.len() {
            return self.clone();
        }
        // A node with one of the measures has a part of the energy, which may be negative.
        let mode = |&(lambda, count, own): &(f64, f64, Alignment)| Mode {
            lambda,
            count,
            energy: own.energy(),
        };
        Modes {
            modes: nodes.iter().map(mode).collect(),
            bound: Bound::default(),
            groups: None,
            alignments: Some(nodes.iter().map(|node| node.2).collect()),
            ..*self
        }
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
