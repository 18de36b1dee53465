//! The noise as flags.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};
use toclip::noise::Family;

/// Which parameters each family takes.
const PARAMETERS: [(&str, &[&str]); 8] = [
    ("none", &[]),
    ("gaussian", &["sigma"]),
    ("rademacher", &["sigma", "lambda", "p"]),
    ("uniform", &["sigma", "half_width"]),
    ("laplace", &["sigma", "rate"]),
    ("student_t", &["sigma", "df", "scale"]),
    ("gaussian_mixture", &["weights", "means", "stds"]),
    ("empirical", &["values"]),
];

/// Flags that describe one or several laws of the noise.
#[derive(clap::Args)]
pub struct NoiseArgs {
    /// The noise, or several to compare: none, gaussian, rademacher, uniform, laplace, student_t,
    /// gaussian_mixture, empirical
    #[arg(long, short, value_name = "FAMILY", value_delimiter = ',', default_value = "gaussian")]
    noise: Vec<String>,

    /// σ, the standard deviation, of any family that has one
    #[arg(long, value_name = "σ", allow_negative_numbers = true)]
    sigma: Option<f64>,

    /// λ, the size of Rademacher-like noise
    #[arg(long, value_name = "λ", allow_negative_numbers = true)]
    lambda: Option<f64>,

    /// p, the probability that Rademacher-like noise is not zero
    #[arg(long, allow_negative_numbers = true)]
    p: Option<f64>,

    /// M, the half-width of uniform noise
    #[arg(long, value_name = "M", allow_negative_numbers = true)]
    half_width: Option<f64>,

    /// λ, the rate of Laplace noise
    #[arg(long, value_name = "λ", allow_negative_numbers = true)]
    rate: Option<f64>,

    /// Degrees of freedom of Student-t noise
    #[arg(long, allow_negative_numbers = true)]
    df: Option<f64>,

    /// The scale of Student-t noise
    #[arg(long, allow_negative_numbers = true)]
    scale: Option<f64>,

    /// Weights of a Gaussian mixture, as in 0.7,0.3
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true)]
    weights: Vec<f64>,

    /// Means of a Gaussian mixture
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true)]
    means: Vec<f64>,

    /// Standard deviations of a Gaussian mixture
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true)]
    stds: Vec<f64>,

    /// Residuals of empirical noise
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true)]
    values: Vec<f64>,

    /// All parameters as one JSON object, as in '{"df": 3, "scale": 0.5}'
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
}

impl NoiseArgs {
    /// The families, each with the parameters it knows.
    pub fn families(&self) -> Result<Vec<Family>> {
        let given = self.given()?;
        for key in given.keys() {
            let known =
                |name: &String| takes(name).is_some_and(|keys| keys.contains(&key.as_str()));
            if !self.noise.iter().any(known) {
                bail!("{} noise has no parameter `{key}`", self.noise.join(", "));
            }
        }
        self.noise.iter().map(|name| self.family(name, &given)).collect()
    }

    fn family(&self, name: &str, given: &Map<String, Value>) -> Result<Family> {
        let Some(keys) = takes(name) else {
            bail!("there is no noise family `{name}`; there are {}", Family::NAMES.join(", "));
        };
        let mut own: Map<String, Value> =
            given.iter().filter(|(key, _)| keys.contains(&key.as_str())).map(clone_pair).collect();
        // With nothing said, a standard deviation of one: the unit of everything else.
        if own.is_empty() && matches!(name, "gaussian" | "uniform" | "laplace") {
            own.insert("sigma".into(), 1.0.into());
        }
        from_parts(name, own)
    }

    fn given(&self) -> Result<Map<String, Value>> {
        let mut map = match &self.params {
            Some(text) => serde_json::from_str::<Map<String, Value>>(text)
                .with_context(|| format!("--params must be a JSON object, not `{text}`"))?,
            None => Map::new(),
        };
        let numbers = [
            ("sigma", self.sigma),
            ("lambda", self.lambda),
            ("p", self.p),
            ("half_width", self.half_width),
            ("rate", self.rate),
            ("df", self.df),
            ("scale", self.scale),
        ];
        for (key, value) in numbers {
            if let Some(x) = value {
                if !x.is_finite() {
                    bail!("--{} {x} is not a finite number", key.replace('_', "-"));
                }
                map.insert(key.into(), x.into());
            }
        }
        let lists = [
            ("weights", &self.weights),
            ("means", &self.means),
            ("stds", &self.stds),
            ("values", &self.values),
        ];
        for (key, list) in lists {
            if !list.is_empty() {
                map.insert(key.into(), list.clone().into());
            }
        }
        Ok(map)
    }
}

fn takes(name: &str) -> Option<&'static [&'static str]> {
    PARAMETERS.iter().find(|(family, _)| *family == name).map(|(_, keys)| *keys)
}

fn clone_pair((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

/// A family from its name and its parameters as JSON.
pub fn from_parts(name: &str, mut params: Map<String, Value>) -> Result<Family> {
    if params.insert("family".into(), name.into()).is_some() {
        bail!("`family` is not a parameter of {name} noise");
    }
    serde_json::from_value(Value::Object(params))
        .map_err(|error| anyhow::anyhow!("{name} noise: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_parameters_covers_every_family() {
        assert_eq!(PARAMETERS.map(|(name, _)| name), Family::NAMES);
        for (name, keys) in PARAMETERS {
            for key in keys {
                let mut params = Map::new();
                params.insert((*key).into(), "x".into());
                let error = format!("{:#}", from_parts(name, params).unwrap_err());
                assert!(!error.contains("unknown field"), "{name} does not know {key}: {error}");
            }
        }
    }
}
