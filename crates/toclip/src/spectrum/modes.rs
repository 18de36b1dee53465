//! What the dynamics need of spectrum and start.

use super::{Alignment, Block, Bound, Spectrum, Start};
use crate::error::Result;
use crate::numerics::sum::compensated;

/// $(\lambda, n, \sum_i v_i(0))$: the eigendirections that share one eigenvalue.
///
/// Their sum $v = \sum_i v_i$ obeys $\dot v = -2\eta\lambda\mu\thinspace v +
/// \frac{\eta^2}{d}\thinspace \lambda\thinspace n\thinspace \frac{m_2}{2}$.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mode {
    /// $\lambda$.
    pub lambda: f64,
    /// $n$, how many directions: an integer unless compressed.
    pub count: f64,
    /// $\sum_i v_i(0) = \tfrac12 \sum_i \langle\theta_0 - \theta^\ast, w_i\rangle^2$.
    pub energy: f64,
}

/// $\lbrace (\lambda, n, v(0))\rbrace $ with $\Vert K\Vert = 1$: a spectrum and a start, ready for
/// the dynamics.
///
/// Coordinates are rescaled to $\Vert K\Vert = 1$ ([`Rescaling`](super::Rescaling)), so
/// [`distance`](Self::distance) is $\Vert K\Vert $ times that of the user; the risk is the same.
///
/// ```
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// let k = Spectrum::from_eigenvalues(&[2.0, 4.0, 2.0])?;
/// let modes = Modes::new(&k, &Start::Coordinates { values: vec![3.0, 1.0, 0.0] })?;
/// assert_eq!(modes.risk(), (2.0 * 9.0 + 4.0 * 1.0) / 2.0);
/// assert_eq!(modes.distance(), 4.0 * 10.0);
/// assert_eq!(modes.modes().len(), 2);
/// # Ok::<(), toclip::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Modes {
    pub(super) modes: Vec<Mode>,
    pub(super) dim: f64,
    pub(super) ambient: u64,
    pub(super) bound: Bound,
    pub(super) groups: Option<GroupLabels>,
    pub(super) alignments: Option<Vec<Alignment>>,
}

/// The sizes of the groups, and the group of every mode.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GroupLabels {
    pub sizes: Vec<u64>,
    pub of_mode: Vec<usize>,
}

impl Modes {
    /// The modes of $K$ started at $\theta_0$.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) or [`Error::Parameter`](crate::Error::Parameter)
    /// for a start that does not fit the spectrum, is not finite or overflows.
    pub fn new(spectrum: &Spectrum, start: &Start) -> Result<Self> {
        let energies = start.energies(spectrum)?;
        let rescaling = spectrum.rescaling();
        let mut modes: Vec<Mode> = Vec::with_capacity(spectrum.len());
        for (block, energy) in spectrum.blocks().iter().zip(energies) {
            // Energies are half a squared distance.
            let energy = rescaling.distance(energy);
            let count = block.multiplicity as f64;
            match modes.last_mut() {
                // Eigenvalues an ulp apart may have become equal when divided by the norm.
                Some(last) if last.lambda == block.value => {
                    last.count += count;
                    last.energy += energy;
                }
                _ => modes.push(Mode { lambda: block.value, count, energy }),
            }
        }
        let (dim, ambient) = (spectrum.intrinsic_dim(), spectrum.ambient_dim());
        Ok(Self { modes, dim, ambient, bound: Bound::default(), groups: None, alignments: None })
    }

    /// The modes of a block-diagonal $K$ whose coordinates form groups of these sizes: directions
    /// that share an eigenvalue and a group.
    ///
    /// The first group has the first coordinates, in the order in which the eigenvalues were given,
    /// the second the next, and so on. This is what [`Rule::PerGroup`](crate::Rule::PerGroup)
    /// needs; all else is as for [`Modes::new`].
    ///
    /// ```
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// let k = Spectrum::from_eigenvalues(&[1.0, 0.5, 1.0, 1.0])?;
    /// let modes = Modes::grouped(&k, &Start::Uniform { norm: 2.0 }, &[2, 2])?;
    /// // λ = 1 in the first group, λ = 1 twice in the second, λ = 1/2 in the first.
    /// assert_eq!(modes.modes().iter().map(|m| m.count).collect::<Vec<_>>(), [1.0, 2.0, 1.0]);
    /// assert_eq!(modes.group_dims(), [1.5, 2.0]);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Modes::new`], and [`Error::Invalid`](crate::Error::Invalid) if the sizes do not add up
    /// to the number of eigenvalues.
    pub fn grouped(spectrum: &Spectrum, start: &Start, sizes: &[u64]) -> Result<Self> {
        let (split, of_mode) = spectrum.split(sizes)?;
        let energies = start.energies(&split)?;
        let rescaling = spectrum.rescaling();
        let mode = |(block, energy): (&Block, f64)| Mode {
            lambda: block.value,
            count: block.multiplicity as f64,
            energy: rescaling.distance(energy),
        };
        let modes = split.blocks().iter().zip(energies).map(mode).collect();
        let (dim, ambient) = (spectrum.intrinsic_dim(), spectrum.ambient_dim());
        let groups = Some(GroupLabels { sizes: sizes.to_vec(), of_mode });
        Ok(Self { modes, dim, ambient, bound: Bound::default(), groups, alignments: None })
    }

    /// $d_g = \mathrm{Tr}\thinspace K_g/\Vert K\Vert$ of every group; one number, $d$, for modes
    /// without groups.
    pub fn group_dims(&self) -> Vec<f64> {
        let Some(groups) = &self.groups else { return vec![self.dim] };
        let dim = |g: usize| {
            let own = self.modes.iter().zip(&groups.of_mode).filter(|(_, of)| **of == g);
            compensated(own.map(|(m, _)| m.lambda * m.count))
        };
        (0..groups.sizes.len()).map(dim).collect()
    }

    pub(crate) fn groups(&self) -> Option<&GroupLabels> {
        self.groups.as_ref()
    }

    /// Whether every eigendirection is there, as before [`compress`](Self::compress).
    pub(crate) fn is_whole(&self) -> bool {
        let counted: f64 = self.modes.iter().map(|m| m.count).sum();
        let whole = self.modes.iter().all(|m| m.count.fract() == 0.0);
        whole && counted == self.ambient as f64
    }

    /// The modes in descending order of $\lambda$.
    pub fn modes(&self) -> &[Mode] {
        &self.modes
    }

    /// $d = \mathrm{Tr}\thinspace K / \Vert K\Vert $.
    pub fn dim(&self) -> f64 {
        self.dim
    }

    /// The number of eigendirections before merging and compression.
    pub fn ambient_dim(&self) -> u64 {
        self.ambient
    }

    /// The bound on what compression changed; zero where nothing was compressed.
    pub fn bound(&self) -> Bound {
        self.bound
    }

    /// $R(0) = \sum_i \lambda_i v_i(0)$.
    ///
    /// ```
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// let modes = Modes::new(&Spectrum::isotropic(50)?, &Start::Uniform { norm: 2.0 })?;
    /// assert_eq!(modes.risk(), 2.0);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn risk(&self) -> f64 {
        compensated(self.modes.iter().map(|m| m.lambda * m.energy))
    }

    /// $D(0) = 2 \sum_i v_i(0)$.
    ///
    /// ```
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// let modes = Modes::new(&Spectrum::isotropic(50)?, &Start::Uniform { norm: 2.0 })?;
    /// assert_eq!(modes.distance(), 4.0);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn distance(&self) -> f64 {
        2.0 * compensated(self.modes.iter().map(|m| m.energy))
    }

    /// $\mathrm{Tr}\thinspace K^2 = \sum_i \lambda_i^2$.
    ///
    /// ```
    /// use toclip::spectrum::{Modes, Spectrum, Start};
    /// let modes = Modes::new(&Spectrum::power_law(2, 1.0)?, &Start::Uniform { norm: 1.0 })?;
    /// assert_eq!(modes.trace_sq(), 1.25);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn trace_sq(&self) -> f64 {
        compensated(self.modes.iter().map(|m| m.lambda * m.lambda * m.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rescaling_leaves_the_risk_alone() {
        let start = Start::Coordinates { values: vec![1.0, -2.0, 0.5, 3.0] };
        let values = [3.0, 0.0, 7.0, 1.0];
        let modes = Modes::new(&Spectrum::from_eigenvalues(&values).unwrap(), &start).unwrap();
        let risk = 0.5 * (3.0 + 7.0 * 0.25 + 9.0);
        assert!((modes.risk() - risk).abs() < 1e-15 * risk);
        assert!((modes.distance() - 7.0 * 14.25).abs() < 1e-13);
        assert_eq!(modes.modes().last().unwrap().lambda, 0.0);
        assert!((modes.dim() - 11.0 / 7.0).abs() < 1e-15);
    }

    #[test]
    fn eigenvalues_that_become_equal_are_one_mode() {
        // Neighbouring f64 whose quotients by the norm round to the same.
        let norm = 3.9;
        let next = |x: f64| f64::from_bits(x.to_bits() + 1);
        let x = if 1.99 / norm == next(1.99) / norm { 1.99 } else { next(1.99) };
        let above = next(x);
        assert_eq!(x / norm, above / norm);
        let k = Spectrum::from_eigenvalues(&[norm, above, x]).unwrap();
        let modes = Modes::new(&k, &Start::Uniform { norm: 1.0 }).unwrap();
        assert_eq!(modes.modes().len(), 2);
        assert_eq!(modes.modes()[1].count, 2.0);
    }
}
