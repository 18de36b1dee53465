//! The built-in families as one type, for configuration files and tables.

use super::{
    Empirical, Feature, Gaussian, Laplace, Mixture, NoNoise, Noise, Rademacher, StudentT, Uniform,
    pass_on,
};
use crate::factors::batch::SquaredResidual;
use crate::factors::kernel::Moments;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Any of the built-in families, read and written as `{ family = "laplace", sigma = 0.5 }`.
///
/// | `family` | parameters | or from σ |
/// |---|---|---|
/// | `none` | – | – |
/// | `gaussian` | `sigma` | – |
/// | `rademacher` | `lambda`, `p` | `sigma`, `p` |
/// | `uniform` | `half_width` | `sigma` |
/// | `laplace` | `rate` | `sigma` |
/// | `student_t` | `df`, `scale` | `df` > 2, `sigma` |
/// | `gaussian_mixture` | `weights`, `means`, `stds` | – |
/// | `empirical` | `values` | – |
///
/// ```
/// use toclip::noise::{Family, Noise};
/// let noise: Family = toml::from_str("family = 'student_t'\ndf = 5\nsigma = 2")?;
/// assert!((noise.variance() - 4.0).abs() < 1e-14);
/// let wrong = toml::from_str::<Family>("family = 'uniform'\nhalf_width = -1").unwrap_err();
/// assert!(wrong.to_string().contains("half_width = -1 is not allowed"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Family {
    /// $\epsilon = 0$.
    None(NoNoise),
    /// $N(0, \sigma^2)$.
    Gaussian(Gaussian),
    /// $\pm\lambda$ with probability $p/2$ each, else $0$.
    Rademacher(Rademacher),
    /// Uniform on $\[-M, M\]$.
    Uniform(Uniform),
    /// Density $\tfrac{\lambda}{2} e^{-\lambda|x|}$.
    Laplace(Laplace),
    /// $\text{scale}\cdot t_{\text{df}}$.
    StudentT(StudentT),
    /// $\sum_j w_j N(m_j, s_j^2)$.
    GaussianMixture(Mixture),
    /// Residuals from data.
    Empirical(Empirical),
}

impl Family {
    /// The names by which families are written in files, in the order of the table above.
    pub const NAMES: [&'static str; 8] = [
        "none",
        "gaussian",
        "rademacher",
        "uniform",
        "laplace",
        "student_t",
        "gaussian_mixture",
        "empirical",
    ];

    fn inner(&self) -> &dyn Noise {
        match self {
            Family::None(noise) => noise,
            Family::Gaussian(noise) => noise,
            Family::Rademacher(noise) => noise,
            Family::Uniform(noise) => noise,
            Family::Laplace(noise) => noise,
            Family::StudentT(noise) => noise,
            Family::GaussianMixture(noise) => noise,
            Family::Empirical(noise) => noise,
        }
    }
}

impl Noise for Family {
    pass_on!(self => self.inner());
}

macro_rules! from_each {
    ($($variant:ident($family:ty)),* $(,)?) => {$(
        impl From<$family> for Family {
            fn from(noise: $family) -> Self {
                Family::$variant(noise)
            }
        }
    )*};
}
from_each!(
    None(NoNoise),
    Gaussian(Gaussian),
    Rademacher(Rademacher),
    Uniform(Uniform),
    Laplace(Laplace),
    StudentT(StudentT),
    GaussianMixture(Mixture),
    Empirical(Empirical),
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_survives_toml_and_json() {
        let texts = [
            r#"{"family":"none"}"#,
            r#"{"family":"gaussian","sigma":0.5}"#,
            r#"{"family":"rademacher","lambda":2.0,"p":0.25}"#,
            r#"{"family":"uniform","half_width":3.0}"#,
            r#"{"family":"laplace","sigma":1.5}"#,
            r#"{"family":"student_t","df":1.0,"scale":0.5}"#,
            r#"{"family":"gaussian_mixture","weights":[0.25,0.75],"means":[-1.0,1.0],"stds":[0.5,0.0]}"#,
            r#"{"family":"empirical","values":[-1.0,0.5,2.0]}"#,
        ];
        for (text, name) in texts.iter().zip(Family::NAMES) {
            assert!(text.contains(&format!("\"{name}\"")));
            let noise: Family = serde_json::from_str(text).unwrap();
            assert_eq!(&serde_json::to_string(&noise).unwrap(), text);
            let toml = toml::to_string(&noise).unwrap();
            assert_eq!(toml::from_str::<Family>(&toml).unwrap(), noise);
        }
    }

    #[test]
    fn a_wrong_key_or_value_is_named() {
        for (text, says) in [
            (r#"{"family":"gaussian","sigma":-1}"#, "sigma = -1 is not allowed"),
            (r#"{"family":"gaussian","sigma":1,"df":2}"#, "unknown field `df`"),
            (r#"{"family":"gaussian"}"#, "missing field `sigma`"),
            (r#"{"family":"gauss","sigma":1}"#, "unknown variant `gauss`"),
            (r#"{"family":"none","sigma":1}"#, "sigma"),
            (r#"{"family":"student_t","df":1.5,"sigma":1}"#, "give `scale` instead"),
            (r#"{"family":"uniform"}"#, "needs `half_width` (or `sigma`)"),
            (r#"{"family":"empirical","values":[]}"#, "at least one"),
        ] {
            let error = serde_json::from_str::<Family>(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text} says: {error}");
        }
    }
}
