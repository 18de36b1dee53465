//! What a generalised linear model has no answer to.

/// Covariances, thresholds and labels for which a model has no number.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// $P^2 > QV$, which no pair of variables has.
    #[error(
        "the covariance P = {p} of the logits must lie between -sqrt(QV) and sqrt(QV) = {most}"
    )]
    Covariance {
        /// $P$.
        p: f64,
        /// $\sqrt{QV}$.
        most: f64,
    },
    /// Logits that grow without bound.
    #[error("{model} clipped at {c} has no fixed point: the logits grow without bound")]
    NoFixedPoint {
        /// The model.
        model: String,
        /// The threshold.
        c: f64,
    },
    /// Labels without information.
    #[error(
        "the labels say nothing about the teacher here (b = 0), so no threshold is better than another"
    )]
    NoInformation,
}
