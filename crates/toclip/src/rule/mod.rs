//! Rules: clip, skip, normalise and other ways to reshape the gradient.

pub(crate) mod by_value;
pub(crate) mod groups;
pub(crate) mod radial;

use crate::rule::groups::Groups;

/// A way to reshape the gradient before it is applied.
///
/// The threshold $c$ that a rule works with comes from the [policy](crate::policy::Policy) and
/// may change at every step; the rule does not. How many samples a step averages, and whether the
/// rule is applied to their mean or to each of them, is set by the [`Batch`](crate::Batch).
///
/// A *radial* rule keeps the direction of the gradient. In high dimensions the norm of a sample's
/// gradient is $|X|\sqrt d$ with $X$ its residual, so such a rule replaces $X$ by $\psi(X)$, and
/// its effect is given by two numbers,
/// $$ \mu = E\thinspace{\psi^\prime}(X), \qquad m^{(2)} = E\thinspace\psi(X)^2, $$
/// where a jump of $\psi$ counts in ${\psi^\prime}$:
///
/// | rule | $\psi(x)$ | $\mu$ | $m^{(2)}$ |
/// |---|---|---|---|
/// | `Clip` | $\max(-c, \min(c, x))$ | $P(\Vert X\Vert \le c)$ | $E\min(X^2, c^2)$ |
/// | `Skip` | $x$ if $\Vert x\Vert \le c$, else $0$ | $P(\Vert X\Vert \le c) - c\thinspace(f_X(c) + f_X(-c))$ | $E\[X^2; \Vert X\Vert \le c\]$ |
/// | `Normalise` | $c\operatorname{sign} x$ | $2c f_X(0)$ | $c^2$ |
/// | `Smooth(Tanh)` | $c\tanh(x/c)$ | $E\operatorname{sech}^2(X/c)$ | $c^2 E\tanh^2(X/c)$ |
/// | `Smooth(Root)` | $x/\sqrt{1+x^2/c^2}$ | $E(1+X^2/c^2)^{-3/2}$ | $E\[X^2/(1+X^2/c^2)\]$ |
/// | `Optimal` | $-{f_X^\prime}(x)/(f_X(x) I)$ | $1$ | $1/I$ |
///
/// $f_X$ is the density of the residual and $I = E({f_X^\prime}/f_X)^2$ its Fisher information; no
/// rule has a larger $\mu^2/m^{(2)}$ than $I$.
///
/// **$\mu$ of `Skip` can be negative**: where more gradients lie just below the threshold than
/// below it in all, skipping those above pushes the iterate away from the solution, and no
/// learning rate is stable.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Rule {
    /// $g \min(1, c\sqrt d/\Vert g\Vert)$: gradients longer than the threshold are scaled down to
    /// it.
    #[default]
    Clip,
    /// Steps whose gradient is longer than the threshold are not made.
    Skip,
    /// $g\thinspace c\sqrt d/\Vert g\Vert$: every gradient is scaled to the threshold.
    Normalise,
    /// Long gradients are scaled down smoothly, towards the threshold.
    Smooth(Smooth),
    /// The score of the residual: the best radial rule, which needs the distribution of the noise and
    /// the risk. The threshold is ignored.
    Optimal,
    /// Every coordinate of the gradient is clipped at $c$. Not radial: $\mu$ and $m^{(2)}$ differ
    /// from one eigenvalue of $K$ to the next
    /// ([`Step::eigenvalue_moments`](crate::Step::eigenvalue_moments)). The theory is for
    /// coordinates in which $K$ is diagonal.
    ByValue,
    /// The gradient of each group of coordinates is clipped at $c_g\sqrt{d_g}$, with $d_g$ the
    /// trace of its block of $K$; nothing else of $K$ may couple the groups. Not radial: $\mu$ and
    /// $m^{(2)}$ differ from group to group
    /// ([`Step::group_moments`](crate::Step::group_moments)).
    PerGroup(Groups),
}

/// How [`Rule::Smooth`] approaches the threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Smooth {
    /// $c\tanh(x/c)$.
    #[default]
    Tanh,
    /// $x/\sqrt{1+x^2/c^2}$.
    Root,
}

impl Rule {
    /// Whether the rule keeps the direction of the gradient, so that one $\mu$ and one $m^{(2)}$
    /// describe it.
    pub fn is_radial(&self) -> bool {
        !matches!(self, Rule::ByValue | Rule::PerGroup(_))
    }

    /// The names of the rules, as files and commands have them.
    pub const NAMES: [&'static str; 7] =
        ["clip", "skip", "normalise", "tanh", "root", "optimal", "by_value"];

    /// The rule of this name.
    ///
    /// ```
    /// use toclip::{Rule, Smooth};
    /// assert_eq!(Rule::named("root"), Some(Rule::Smooth(Smooth::Root)));
    /// assert!(Rule::NAMES.iter().all(|name| Rule::named(name).unwrap().name() == *name));
    /// ```
    pub fn named(name: &str) -> Option<Rule> {
        Some(match name {
            "clip" => Rule::Clip,
            "skip" => Rule::Skip,
            "normalise" => Rule::Normalise,
            "tanh" => Rule::Smooth(Smooth::Tanh),
            "root" => Rule::Smooth(Smooth::Root),
            "optimal" => Rule::Optimal,
            "by_value" => Rule::ByValue,
            _ => return None,
        })
    }

    /// One of [`NAMES`](Self::NAMES).
    pub fn name(&self) -> &'static str {
        match self {
            Rule::Clip => "clip",
            Rule::Skip => "skip",
            Rule::Normalise => "normalise",
            Rule::Smooth(Smooth::Tanh) => "tanh",
            Rule::Smooth(Smooth::Root) => "root",
            Rule::Optimal => "optimal",
            Rule::ByValue => "by_value",
            Rule::PerGroup(_) => "per_group",
        }
    }

    /// $\varphi(s)$, the factor on a gradient of norm $s\sqrt d$ at threshold $c$ (of a batch,
    /// $s\sqrt{d/B}$); 1 for the rules that are not a factor of the norm alone.
    ///
    /// ```
    /// use toclip::Rule;
    /// assert_eq!(Rule::Clip.factor(2.0, 0.5), 0.25);
    /// assert_eq!(Rule::Skip.factor(2.0, 0.5), 0.0);
    /// assert_eq!(Rule::Normalise.factor(0.25, 0.5), 2.0);
    /// ```
    pub fn factor(&self, s: f64, c: f64) -> f64 {
        match self {
            Rule::Clip if s > c => c / s,
            Rule::Skip if s > c => 0.0,
            // A gradient of zero has no direction.
            Rule::Normalise if s > 0.0 => c / s,
            Rule::Smooth(smooth) if s > 0.0 && c < f64::INFINITY => smooth.factor(s / c),
            _ => 1.0,
        }
    }
}

impl Rule {
    /// $\varphi x$, where the rule turns a gradient $x g$ with $\Vert g\Vert =$ `norm` into $\varphi x
    /// g$, at threshold $c\cdot$`unit` on the norm.
    pub(crate) fn reshape(&self, x: f64, norm: f64, c: f64, unit: f64) -> f64 {
        let threshold = c * unit;
        match self {
            // Not x·factor, which is ∞·0 for the largest draws of a Cauchy distribution.
            Rule::Clip if x.abs() * norm > threshold => (threshold / norm).copysign(x),
            Rule::Clip => x,
            _ => x * self.factor(x.abs() * norm / unit, c),
        }
    }
}

impl Smooth {
    /// $\psi(x)/x$ for $c = 1$ and $x > 0$.
    pub(crate) fn factor(self, x: f64) -> f64 {
        match self {
            Smooth::Tanh => x.tanh() / x,
            Smooth::Root => x.hypot(1.0).recip(),
        }
    }

    /// $({\psi^\prime}, \psi^2)$ for $c = 1$.
    pub(crate) fn slope_and_square(self, x: f64) -> [f64; 2] {
        match self {
            Smooth::Tanh => {
                let (sech, tanh) = (x.cosh().recip(), x.tanh());
                [sech * sech, tanh * tanh]
            }
            Smooth::Root => {
                let near = x.hypot(1.0).recip();
                [near.powi(3), (x * near).powi(2)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RADIAL: [Rule; 5] = [
        Rule::Clip,
        Rule::Skip,
        Rule::Normalise,
        Rule::Smooth(Smooth::Tanh),
        Rule::Smooth(Smooth::Root),
    ];

    #[test]
    fn the_largest_residuals_are_clipped_without_overflow() {
        // ‖x‖ = 8 and a threshold of 2·2.
        assert_eq!(Rule::Clip.reshape(-f64::MAX, 8.0, 2.0, 2.0), -0.5);
        assert_eq!(Rule::Clip.reshape(0.1, 8.0, 2.0, 2.0), 0.1);
        assert_eq!(Rule::Clip.reshape(-f64::MAX, 8.0, f64::INFINITY, 2.0), -f64::MAX);
    }

    proptest! {
        /// Rules are odd, keep the direction, never lengthen a gradient beyond its norm or the
        /// threshold, and leave it unchanged as the threshold grows.
        #[test]
        fn rules_shorten(x in -50.0..50.0f64, c in 0.01..20.0f64, norm in 0.5..2.0f64) {
            for rule in RADIAL {
                let y = rule.reshape(x, norm, c, 1.0);
                prop_assert_eq!(rule.reshape(-x, norm, c, 1.0), -y);
                prop_assert!(y * x >= 0.0);
                prop_assert!(y.abs() * norm <= c * (1.0 + 1e-15) || rule == Rule::Skip);
                if rule != Rule::Normalise {
                    prop_assert!(y.abs() <= x.abs());
                    prop_assert!((rule.reshape(x, norm, 1e12, 1.0) - x).abs() < 1e-12 * x.abs());
                }
            }
        }

        /// The slope of a smooth rule is the derivative of the rule.
        #[test]
        fn slopes_are_derivatives(x in -6.0..6.0f64) {
            for smooth in [Smooth::Tanh, Smooth::Root] {
                let psi = |x: f64| x * smooth.factor(x.abs().max(1e-300));
                let [slope, square] = smooth.slope_and_square(x);
                let h = 1e-5;
                prop_assert!(((psi(x + h) - psi(x - h)) / (2.0 * h) - slope).abs() < 1e-9);
                prop_assert!((psi(x).powi(2) - square).abs() < 1e-14);
            }
        }
    }
}
