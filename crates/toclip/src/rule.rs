//! What a step does to the gradient.

use serde::Serialize;

/// What a step does to the gradient before it is applied.
///
/// The threshold $c$ that a rule works with comes from the [policy](crate::schedule::Policy) and
/// may change at every step; the rule does not. How many samples a step averages, and whether the
/// rule is applied to their mean or to each of them, is set by the [`Batch`](crate::Batch).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Rule {
    /// $g \min(1, c\sqrt d/\Vert g\Vert)$: gradients longer than the threshold are scaled down to
    /// it.
    #[default]
    Clip,
}
