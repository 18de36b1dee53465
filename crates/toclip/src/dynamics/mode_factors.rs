//! $\mu$ and $m^{(2)}$ of every mode, for the rules that have no single pair of them.

use crate::error::{Error, Result};
use crate::factors::check_threshold;
use crate::factors::kernel::Moments;
use crate::factors::step::Step;
use crate::problem::{Combination, Problem};
use crate::rule::Rule;
use crate::rule::by_value::ByValueTable;
use crate::spectrum::{GroupLabels, Modes};

/// $\mu_j$ and $m^{(2)}_j$ of all modes at once, by value or per group.
#[derive(Debug)]
pub(crate) struct ModeFactors {
    lambda: Vec<f64>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    ByValue {
        table: ByValueTable,
        /// $\tfrac12\ln\lambda$; $-\infty$ for $\lambda = 0$.
        ln_root: Vec<f64>,
        /// The smallest and the largest finite one.
        range: (f64, f64),
    },
    PerGroup {
        of_mode: Vec<usize>,
        ratios: Vec<f64>,
    },
}

impl ModeFactors {
    /// None for a radial rule, which needs none.
    ///
    /// # Errors
    /// [`Error::Combination`] for modes that were compressed, or that have no such groups.
    pub fn new(modes: &Modes, step: &Step<'_>) -> Result<Option<Self>> {
        if step.rule().is_radial() {
            return Ok(None);
        }
        if !modes.is_whole() {
            let rule = step.rule().name();
            return Err(Error::Combination(Combination::RuleOnCompressedModes { rule }));
        }
        let lambda: Vec<f64> = modes.modes().iter().map(|m| m.lambda).collect();
        let kind = match step.rule() {
            Rule::PerGroup(groups) => {
                let labels = group_labels(modes, step)?;
                let of_mode = labels.map(|labels| labels.of_mode.clone()).unwrap_or_default();
                let ratios = groups.groups().iter().map(|g| g.ratio).collect();
                Kind::PerGroup { of_mode, ratios }
            }
            _ => {
                let ln_root: Vec<f64> = lambda.iter().map(|l| 0.5 * l.ln()).collect();
                let finite = || ln_root.iter().copied().filter(|l| l.is_finite());
                let range = (finite().fold(0.0, f64::min), finite().fold(0.0, f64::max));
                Kind::ByValue { table: ByValueTable::default(), ln_root, range }
            }
        };
        Ok(Some(ModeFactors { lambda, kind }))
    }

    /// The number of modes.
    pub fn len(&self) -> usize {
        self.lambda.len()
    }

    /// Writes $\mu_j$ and $m^{(2)}_j$, eigenvalue included, at risk $R$ and threshold $c$.
    pub fn at(&self, step: &Step<'_>, r: f64, c: f64, mu: &mut [f64], m2: &mut [f64]) {
        match &self.kind {
            Kind::PerGroup { of_mode, ratios } => {
                let moments: Vec<Moments> =
                    ratios.iter().map(|ratio| step.clipped_moments(r, c * ratio)).collect();
                let out = mu.iter_mut().zip(m2).zip(&self.lambda);
                for (((mu, m2), lambda), group) in out.zip(of_mode) {
                    *mu = moments[*group].mu;
                    *m2 = scaled(*lambda, moments[*group].m2);
                }
            }
            Kind::ByValue { .. } if c == f64::INFINITY => {
                let second_moment = step.second_moment(r);
                mu.fill(1.0);
                for (m2, lambda) in m2.iter_mut().zip(&self.lambda) {
                    *m2 = scaled(*lambda, second_moment);
                }
            }
            Kind::ByValue { table, ln_root, range } => {
                let (ln_c, size) = (c.ln(), step.batch().size() as f64);
                let row = table.row(step.noise(), r, ln_c - range.1, ln_c - range.0);
                // Without noise where λ = 0: any u that the row has will do.
                let ln_u: Vec<f64> = ln_root.iter().map(|l| ln_c - l.max(range.0)).collect();
                row.at(&ln_u, mu, m2);
                m2.iter_mut().zip(&self.lambda).for_each(|(m2, lambda)| *m2 *= lambda / size);
            }
        }
    }
}

/// The groups of the modes for a rule that clips them; none for other rules.
///
/// # Errors
/// [`Error::Combination`] for modes without the groups of the rule.
fn group_labels<'m>(modes: &'m Modes, step: &Step<'_>) -> Result<Option<&'m GroupLabels>> {
    let Rule::PerGroup(groups) = step.rule() else { return Ok(None) };
    let sizes = groups.sizes();
    match modes.groups().filter(|labels| labels.sizes == sizes) {
        Some(labels) => Ok(Some(labels)),
        None => Err(Error::Combination(Combination::Groups { sizes })),
    }
}

/// $\lambda m$, without $0\cdot\infty$.
fn scaled(lambda: f64, m: f64) -> f64 {
    if lambda == 0.0 { 0.0 } else { lambda * m }
}

/// $\bar\mu = \sum_j \lambda_j^2\mu_j v_j / \sum_j \lambda_j^2 v_j$ and $\bar m^{(2)} = \sum_j
/// \lambda_j m^{(2)}_j / \sum_j \lambda_j^2$: what stands in the place of $\mu$ and $m^{(2)}$ in
/// $$ \dot R = -2\eta\bar\mu \sum_j \lambda_j^2 v_j + \frac{\eta^2}{2d}\thinspace \bar m^{(2)}
/// \sum_j \lambda_j^2 $$
/// at the start of the problem and threshold $c$.
///
/// A radial rule has its own $\mu$ and $m^{(2)}$ at every state. Where all of $v$ is zero, $\bar\mu$
/// is that of equal $v$.
///
/// ```
/// use toclip::dynamics::effective_moments;
/// use toclip::noise::Laplace;
/// use toclip::policy::OpenLoop;
/// use toclip::spectrum::{Modes, Spectrum, Start};
/// use toclip::{Problem, Rule, Step};
/// let modes = Modes::new(&Spectrum::power_law(200, 0.5)?, &Start::Uniform { norm: 1.0 })?;
/// let step = Step::new(Laplace::new(1.0)?).with_rule(Rule::ByValue)?;
/// let problem = Problem::new(modes, step, OpenLoop::constant(0.5, 0.4)?)?;
/// let at = effective_moments(&problem, 0.4)?;
/// let largest = problem.step().eigenvalue_moments(1.0, problem.risk(), 0.4)?;
/// assert!(at.mu > largest.mu && at.m2 > largest.m2);
/// # Ok::<(), toclip::Error>(())
/// ```
///
/// # Errors
/// [`Error::Parameter`] for a threshold that is not positive; [`Error::Combination`] for compressed
/// modes or modes without the groups of the rule.
pub fn effective_moments(problem: &Problem, c: f64) -> Result<Moments> {
    let (modes, step) = (problem.modes(), problem.step());
    check_threshold(c)?;
    let r = modes.risk();
    let Some(factors) = ModeFactors::new(modes, step)? else {
        let x = step.moments(r, c);
        step.check_defined(r, c, x)?;
        return Ok(x);
    };
    let (mut mu, mut m2) = (vec![0.0; factors.len()], vec![0.0; factors.len()]);
    factors.at(step, r, c, &mut mu, &mut m2);
    let v: Vec<f64> = modes.modes().iter().map(|m| m.energy).collect();
    let count: Vec<f64> = modes.modes().iter().map(|m| m.count).collect();
    Ok(average(&factors.lambda, &count, &v, &mu, &m2))
}

/// $\bar\mu$ and $\bar m^{(2)}$ of the state $v$, with `count` directions to a mode.
pub(crate) fn average(lambda: &[f64], count: &[f64], v: &[f64], mu: &[f64], m2: &[f64]) -> Moments {
    let sums = |weights: &[f64]| {
        let parts = lambda.iter().zip(weights).zip(mu);
        parts.fold((0.0, 0.0), |(sum, all), ((l, v), mu)| (sum + l * l * v * mu, all + l * l * v))
    };
    let (descent, all) = sums(v);
    let (equal, trace_sq) = sums(count);
    let noise: f64 = lambda.iter().zip(count).zip(m2).map(|((l, n), m2)| l * n * m2).sum();
    let mu = if all > 0.0 { descent / all } else { equal / trace_sq };
    Moments { mu, m2: noise / trace_sq }
}
