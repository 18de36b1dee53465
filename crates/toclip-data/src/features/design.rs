//! Features and targets ready for the theory.

use super::Features;
use super::feature_map::{Mapped, map};
use super::tall_matrix::{gram, product, sum, times};
use crate::error::bail;
use crate::statistics::{mean_and_deviation, shuffle};
use crate::{Error, Result, SampleSource};
use faer::{Mat, MatRef, Side};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toclip::dynamics::StreamData;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip_words::short;

/// $(x_k, b_k)$ with $x_k$ centred and scaled to $\Vert K\Vert = 1$, $b_k$ centred, and the
/// eigenvectors of $K = \frac1n \sum_k x_k x_k^\top$.
///
/// Targets are centred because the model has no intercept: a constant in them would be noise. Their
/// mean is kept, and predictions of classes add it again.
///
/// ```
/// use toclip_data::{Design, Features, LeastSquares, Matrix, Samples};
/// let x = Matrix::new(4, 1, vec![1.0, 2.0, 3.0, 4.0])?;
/// let samples = Samples::new(x, vec![3.1, 4.9, 7.0, 9.0])?; // 2x + 1, nearly
/// let design = Design::new(&samples, Features::None, 1)?;
/// assert_eq!((design.dim(), design.norm()), (1.0, 1.25)); // Var(1, 2, 3, 4)
/// let fit = LeastSquares::new(&design, None)?;
/// let slope = fit.optimum[0] / design.norm().sqrt();
/// assert!((slope - 1.98).abs() < 1e-12);
/// # Ok::<(), toclip_data::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Design {
    name: String,
    features: Vec<f64>,
    targets: Vec<f64>,
    cols: usize,
    target_mean: f64,
    /// Whether every target was -1 or +1.
    pub(super) binary: bool,
    norm: f64,
    covariance: Mat<f64>,
    /// Descending.
    eigenvalues: Vec<f64>,
    /// $w_i$, one after the other.
    eigenvectors: Vec<f64>,
}

impl Design {
    /// Reads all samples and maps them; the features must fit in memory, the inputs need not.
    ///
    /// Random features see centred inputs, $f((x - \bar x)A)$, with $A$ drawn from `seed`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for samples that are too few, not finite or too many for the memory, for a
    /// constant feature and for constant targets; and the errors of the source.
    pub fn new(source: &dyn SampleSource, features: Features, seed: u64) -> Result<Self> {
        Self::about(source, None, features, seed)
    }

    /// The same with random features of $x - $ `centre` where there is one, say the mean over a
    /// larger set that contains these samples.
    ///
    /// # Errors
    /// As [`new`](Self::new), and for a centre of the wrong length.
    pub fn about(
        source: &dyn SampleSource,
        centre_at: Option<&[f64]>,
        features: Features,
        seed: u64,
    ) -> Result<Self> {
        let name = source.name();
        let Mapped { mut features, cols, mut targets } = map(source, centre_at, features, seed)?;
        let binary = targets.iter().all(|b| b.abs() == 1.0);
        let target_mean = centre(&mut targets, 1)[0];
        if targets.iter().all(|b| *b == 0.0) {
            bail!("{name}: every target is {}; there is nothing to learn", short(target_mean));
        }
        check_constant(&name, &features, cols)?;
        centre(&mut features, cols);
        let design = Design {
            name,
            features,
            targets,
            cols,
            target_mean,
            binary,
            norm: 1.0,
            covariance: Mat::new(),
            eigenvalues: Vec::new(),
            eigenvectors: Vec::new(),
        };
        design.diagonalised()?.scaled()
    }

    /// The same under another name than that of its source.
    #[must_use]
    pub fn named(self, name: String) -> Self {
        Design { name, ..self }
    }

    fn diagonalised(mut self) -> Result<Self> {
        self.covariance = gram(&self.features, self.cols);
        let failed = || Error::Invalid(format!("{}: the eigenvalues did not converge", self.name));
        let eigen = self.covariance.self_adjoint_eigen(Side::Lower).map_err(|_| failed())?;
        let (p, s, u) = (self.cols, eigen.S().column_vector(), eigen.U());
        // Rounding can leave a zero below zero.
        self.eigenvalues = (0..p).rev().map(|i| s[i].max(0.0)).collect();
        self.eigenvectors = (0..p * p).map(|k| u[(k % p, p - 1 - k / p)]).collect();
        Ok(self)
    }

    /// The same in coordinates with $\Vert K\Vert = 1$.
    fn scaled(self) -> Result<Self> {
        let norm = self.eigenvalues.first().copied().unwrap_or(0.0);
        if !(norm > 0.0 && norm.is_finite()) {
            bail!("{}: the covariance of the features has norm {norm:e}; rescale them", self.name);
        }
        Ok(self.divided(norm))
    }

    /// $x/\sqrt{\text{norm}}$.
    fn divided(mut self, norm: f64) -> Self {
        let factor = norm.sqrt().recip();
        self.features.iter_mut().for_each(|x| *x *= factor);
        self.eigenvalues.iter_mut().for_each(|l| *l /= norm);
        let p = self.cols;
        self.covariance = Mat::from_fn(p, p, |i, j| self.covariance[(i, j)] / norm);
        self.norm *= norm;
        self
    }

    /// The samples to fit on, if those are others than SGD sees, and those that SGD sees.
    ///
    /// # Errors
    /// As [`Design::halves`].
    pub fn split(self, held_out: bool, seed: u64) -> Result<(Option<Design>, Design)> {
        if !held_out {
            return Ok((None, self));
        }
        let (train, test) = self.halves(seed)?;
        Ok((Some(train), test))
    }

    /// Two random halves, each with its own $K$, in coordinates where that of the second has norm 1:
    /// one to fit $\theta^\ast$ on, the other to test it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for fewer than four samples.
    pub fn halves(&self, seed: u64) -> Result<(Design, Design)> {
        let n = self.rows();
        if n < 4 {
            bail!(
                "{}: {n} samples are too few to split in halves; at least 4 are needed",
                self.name
            );
        }
        let mut order: Vec<usize> = (0..n).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        shuffle(&mut order, || rng.next_u64());
        let row = |k: &usize| &self.features[k * self.cols..][..self.cols];
        let take = |rows: &[usize]| {
            let mut rows = rows.to_vec();
            rows.sort_unstable();
            let half = Design {
                name: self.name.clone(),
                features: rows.iter().flat_map(row).copied().collect(),
                targets: rows.iter().map(|&k| self.targets[k]).collect(),
                covariance: Mat::new(),
                eigenvalues: Vec::new(),
                eigenvectors: Vec::new(),
                ..*self
            };
            half.diagonalised()
        };
        let (train, test) = (take(&order[..n / 2])?, take(&order[n / 2..])?);
        let test = test.scaled()?;
        let norm = test.norm / self.norm;
        Ok((train.divided(norm), test))
    }

    /// The name of the samples.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// $n$.
    pub fn rows(&self) -> usize {
        self.targets.len()
    }

    /// The number of features.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// $x_k$, row by row.
    pub fn features(&self) -> &[f64] {
        &self.features
    }

    /// $b_k$, centred.
    pub fn targets(&self) -> &[f64] {
        &self.targets
    }

    /// Labels 0 and 1 for targets that have exactly two values: 1 for the larger.
    ///
    /// ```
    /// use toclip_data::{Design, Features, Matrix, Samples};
    /// let samples = |y| Samples::new(Matrix::new(4, 1, vec![1.0, 2.0, 3.0, 5.0])?, y);
    /// let design = Design::new(&samples(vec![7.0, 7.0, -1.0, 7.0])?, Features::None, 1)?;
    /// assert_eq!(design.labels()?, [1.0, 1.0, 0.0, 1.0]);
    /// let design = Design::new(&samples(vec![1.0, 2.0, 3.0, 1.0])?, Features::None, 1)?;
    /// assert!(design.labels().is_err());
    /// # Ok::<(), toclip_data::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for targets with one value, or three and more.
    pub fn labels(&self) -> Result<Vec<f64>> {
        let mut values: Vec<f64> = Vec::new();
        for target in &self.targets {
            if !values.contains(target) {
                values.push(*target);
            }
            if values.len() > 2 {
                break;
            }
        }
        let larger = match values[..] {
            [a, b] => a.max(b),
            _ => {
                let found = values.iter().map(|v| short(v + self.target_mean)).collect::<Vec<_>>();
                let (count, more) =
                    if values.len() > 2 { ("three or more", " …") } else { ("one", "") };
                bail!(
                    "{}: the target has {count} different values ({}{more}); logistic regression needs \
                     exactly two, one for each class",
                    self.name,
                    found.join(", ")
                )
            }
        };
        Ok(self.targets.iter().map(|b| f64::from(u8::from(*b == larger))).collect())
    }

    /// The mean that was subtracted from the targets.
    pub fn target_mean(&self) -> f64 {
        self.target_mean
    }

    /// $\Vert K\Vert $ before scaling; features were divided by its root.
    pub fn norm(&self) -> f64 {
        self.norm
    }

    /// $d = \mathrm{Tr}\thinspace K/\Vert K\Vert $.
    pub fn dim(&self) -> f64 {
        let trace: f64 = self.eigenvalues.iter().rev().sum();
        trace / self.eigenvalues.first().copied().unwrap_or(1.0)
    }

    /// $\lambda_i$, descending from 1.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }

    /// $K$, row by row.
    pub fn covariance(&self) -> Vec<f64> {
        let p = self.cols;
        (0..p * p).map(|k| self.covariance[(k / p, k % p)]).collect()
    }

    /// $\langle v, w_i\rangle$ for each eigenvector.
    pub fn project(&self, v: &[f64]) -> Vec<f64> {
        times(&self.eigenvectors, v)
    }

    /// Rows of features in the eigenbasis, $\langle x_k, w_i\rangle$.
    pub(super) fn rotated(&self, x: &[f64]) -> Vec<f64> {
        let basis = MatRef::from_column_major_slice(&self.eigenvectors, self.cols, self.cols);
        let mut y = vec![0.0; x.len()];
        product(x, basis, &mut y);
        y
    }

    /// $\sum_i y_i w_i$: from the eigenbasis to the features.
    pub fn lift(&self, y: &[f64]) -> Vec<f64> {
        let mut v = vec![0.0; self.cols];
        for (w, y) in self.eigenvectors.chunks_exact(self.cols).zip(y) {
            v.iter_mut().zip(w).for_each(|(v, w)| *v += y * w);
        }
        v
    }

    /// $\frac12 v^\top K v$: the risk of being off by $v$.
    pub fn risk(&self, v: &[f64]) -> f64 {
        let along = self.project(v);
        0.5 * along.iter().zip(&self.eigenvalues).map(|(y, l)| l * y * y).sum::<f64>()
    }

    /// The modes of the theory, started $\theta_0 - \theta^\ast = $ `gap` away.
    ///
    /// # Errors
    /// [`Error::Theory`] for a gap that does not fit.
    pub fn modes(&self, gap: &[f64]) -> Result<Modes> {
        let spectrum = Spectrum::from_eigenvalues(&self.eigenvalues)?;
        Ok(Modes::new(&spectrum, &Start::Coordinates { values: self.project(gap) })?)
    }

    /// The modes of the theory of generalised linear models with the teacher $\theta^\ast$, started at
    /// $\theta_0$ = `start`.
    ///
    /// # Errors
    /// [`Error::Theory`] for vectors that do not fit.
    pub fn teacher_modes(&self, teacher: &[f64], start: &[f64]) -> Result<Modes> {
        let spectrum = Spectrum::from_eigenvalues(&self.eigenvalues)?;
        let along = |v: &[f64]| Start::Coordinates { values: self.project(v) };
        Ok(Modes::with_teacher(&spectrum, &along(teacher), &along(start))?)
    }

    /// $\Vert x_k\Vert ^2/d$: its mean and standard deviation. The theory assumes 1.
    pub fn square_norms(&self) -> (f64, f64) {
        let (rows, d) = (self.features.chunks_exact(self.cols), self.dim());
        let squares: Vec<f64> = rows.map(|x| x.iter().map(|x| x * x).sum::<f64>() / d).collect();
        mean_and_deviation(&squares)
    }

    /// The samples for C-SGD from `start` $= \theta_0$, the risk measured from `optimum`.
    pub fn into_data(self, start: Vec<f64>, optimum: Vec<f64>) -> StreamData {
        let (covariance, dim) = (self.covariance(), self.dim());
        StreamData {
            features: self.features,
            targets: self.targets,
            start,
            optimum,
            covariance,
            dim,
        }
    }

    /// $\frac1n\sum_k f_k x_k$.
    pub fn mean_of(&self, f: &[f64]) -> Vec<f64> {
        weighted_mean(&self.features, self.cols, &|k| f[k])
    }
}

/// $\frac1n\sum_k w_k x_k$.
fn weighted_mean(x: &[f64], cols: usize, weight: &(dyn Fn(usize) -> f64 + Sync)) -> Vec<f64> {
    let total = sum(x, cols, cols, &|first, x, part| {
        for (k, x) in x.chunks_exact(cols).enumerate() {
            let weight = weight(first + k);
            part.iter_mut().zip(x).for_each(|(p, x)| *p += weight * x);
        }
    });
    let n = (x.len() / cols) as f64;
    total.into_iter().map(|t| t / n).collect()
}

/// Subtracts the mean of every column, and returns it.
fn centre(x: &mut [f64], cols: usize) -> Vec<f64> {
    let mean = weighted_mean(x, cols, &|_| 1.0);
    for x in x.chunks_exact_mut(cols) {
        x.iter_mut().zip(&mean).for_each(|(x, m)| *x -= m);
    }
    mean
}

fn check_constant(name: &str, x: &[f64], cols: usize) -> Result<()> {
    let is_constant = |j: &usize| x[*j..].iter().step_by(cols).all(|v| *v == x[*j]);
    if let Some(j) = (0..cols).find(is_constant) {
        let value = short(x[j]);
        bail!("{name}: feature {} is {value} in every sample; remove such columns", j + 1);
    }
    Ok(())
}

#[cfg(test)]
#[path = "design_tests.rs"]
mod tests;
