//! The factors of a part of the gradient, for rules that treat directions differently.

use super::Factors;
use super::step::Step;
use crate::error::Result;

impl Factors {
    /// $\mu$ and $m^{(2)}$ of the directions with eigenvalue $\lambda$ under a rule that works on single
    /// coordinates. $m^{(2)}$ is over $\lambda$, and so in the unit of the residual.
    ///
    /// # Errors
    /// As [`Step::eigenvalue_moments`].
    ///
    /// ```
    /// use toclip::{Factors, Rule, Step, noise::Laplace};
    /// let noise = Laplace::new(1.0)?;
    /// let step = Step::new(&noise).with_rule(Rule::ByValue)?;
    /// // Small eigenvalues are clipped less.
    /// let [large, small] = [1.0, 0.01].map(|lambda| Factors::of_eigenvalue(&step, lambda, 0.3, 0.5));
    /// assert!(large?.mu < 0.7 && small?.mu > 0.9);
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn of_eigenvalue(step: &Step<'_>, lambda: f64, r: f64, c: f64) -> Result<Self> {
        let (at, second_moment) = (step.eigenvalue_moments(lambda, r, c)?, step.second_moment(r));
        let m2 = if lambda > 0.0 { at.m2 / lambda } else { second_moment };
        Ok(Factors { r, c, mu: at.mu, m2, second_moment })
    }

    /// $\mu$ and $m^{(2)}$ of group $g$ of the rule [`PerGroup`](crate::Rule::PerGroup).
    ///
    /// # Errors
    /// As [`Step::group_moments`].
    ///
    /// ```
    /// use toclip::{Factors, Group, Groups, Rule, Step, noise::Laplace};
    /// let noise = Laplace::new(1.0)?;
    /// let groups = Groups::new(&[Group { size: 1, ratio: 2.0 }, Group { size: 1, ratio: 0.5 }])?;
    /// let step = Step::new(&noise).with_rule(Rule::PerGroup(groups))?;
    /// // A group is clipped at its own threshold.
    /// let (own, clip) = (Factors::of_group(&step, 1, 0.3, 0.8)?, Factors::new(&noise, 0.3, 0.4)?);
    /// assert_eq!((own.mu, own.m2), (clip.mu, clip.m2));
    /// # Ok::<(), toclip::Error>(())
    /// ```
    pub fn of_group(step: &Step<'_>, g: usize, r: f64, c: f64) -> Result<Self> {
        let at = step.group_moments(g, r, c)?;
        Ok(Factors { r, c, mu: at.mu, m2: at.m2, second_moment: step.second_moment(r) })
    }
}
