//! The noise as flags.

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde_json::{Map, Value};
use toclip::noise::Family;
use toclip_experiment::from_value;

use super::{number, unknown};

/// The parameters that each family takes.
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
/// The parameters that are lists of numbers.
const LISTS: [&str; 4] = ["weights", "means", "stds", "values"];

/// Flags that describe one or several noise distributions.
#[derive(clap::Args, Serialize)]
pub struct NoiseArgs {
    /// The noise family, or several to compare: none, gaussian, rademacher, uniform, laplace,
    /// student_t, gaussian_mixture, empirical
    #[serde(skip)]
    #[arg(long, short, value_name = "FAMILY", value_delimiter = ',', default_value = "gaussian")]
    noise: Vec<String>,

    /// σ, the standard deviation, for any family that has one
    #[arg(long, value_name = "σ", allow_negative_numbers = true, value_parser = number)]
    sigma: Option<f64>,

    /// λ, the size of Rademacher-like noise
    #[arg(long, value_name = "λ", allow_negative_numbers = true, value_parser = number)]
    lambda: Option<f64>,

    /// p, the probability that Rademacher-like noise is not zero
    #[arg(long, allow_negative_numbers = true, value_parser = number)]
    p: Option<f64>,

    /// M, the half-width of uniform noise
    #[arg(long, value_name = "M", allow_negative_numbers = true, value_parser = number)]
    half_width: Option<f64>,

    /// λ, the rate of Laplace noise
    #[arg(long, value_name = "λ", allow_negative_numbers = true, value_parser = number)]
    rate: Option<f64>,

    /// Degrees of freedom of Student-t noise
    #[arg(long, allow_negative_numbers = true, value_parser = number)]
    df: Option<f64>,

    /// The scale of Student-t noise
    #[arg(long, allow_negative_numbers = true, value_parser = number)]
    scale: Option<f64>,

    /// Weights of a Gaussian mixture, as in 0.7,0.3
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = number)]
    weights: Vec<f64>,

    /// Means of a Gaussian mixture
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = number)]
    means: Vec<f64>,

    /// Standard deviations of a Gaussian mixture
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = number)]
    stds: Vec<f64>,

    /// Residuals of empirical noise
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true, value_parser = number)]
    values: Vec<f64>,

    /// All parameters as one JSON object, as in '{"df": 3, "scale": 0.5}'
    #[serde(skip)]
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
}

impl NoiseArgs {
    /// The families, each with the parameters it takes.
    pub fn families(&self) -> Result<Vec<Family>> {
        let given = self.given()?;
        let taken = self.noise.iter().map(|name| parameters(name)).collect::<Result<Vec<_>>>()?;
        let taken_by_any = taken.concat();
        if let Some(key) = given.keys().find(|key| !taken_by_any.contains(&key.as_str())) {
            let names = self.noise.join(", ");
            bail!("{names} noise: {}", unknown("parameter", key, &taken_by_any));
        }
        let own = |(name, keys): (&String, &&[&str])| {
            let mut own = given.clone();
            own.retain(|key, _| keys.contains(&key.as_str()));
            // The default: σ is the unit of R and c.
            if own.is_empty() && matches!(name.as_str(), "gaussian" | "uniform" | "laplace") {
                own.insert("sigma".into(), 1.0.into());
            }
            family(name, own)
        };
        self.noise.iter().zip(&taken).map(own).collect()
    }

    /// The parameters that were given, by flags or as JSON.
    fn given(&self) -> Result<Map<String, Value>> {
        let mut map = object(self.params.as_deref().unwrap_or_default()).context("--params")?;
        let is_given = |value: &Value| !value.is_null() && value.as_array() != Some(&Vec::new());
        if let Value::Object(flags) = serde_json::to_value(self)? {
            map.extend(flags.into_iter().filter(|(_, value)| is_given(value)));
        }
        Ok(map)
    }
}

/// The parameters of a family.
fn parameters(name: &str) -> Result<&'static [&'static str]> {
    let found = PARAMETERS.iter().find(|(family, _)| *family == name).map(|(_, keys)| *keys);
    found.with_context(|| unknown("noise family", name, &Family::NAMES))
}

/// Parameters as a JSON object; an empty string has none.
pub fn object(text: &str) -> Result<Map<String, Value>> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_str(text).ok().with_context(|| {
        format!("expected a JSON object such as {{\"df\": 3, \"scale\": 0.5}}, not `{text}`")
    })
}

/// A family from its name and its parameters as JSON.
pub fn family(name: &str, mut params: Map<String, Value>) -> Result<Family> {
    let known = parameters(name)?;
    for (key, value) in &params {
        let numbers = |list: &Vec<Value>| list.iter().all(Value::is_number);
        match (LISTS.contains(&key.as_str()), value) {
            _ if !known.contains(&key.as_str()) => {
                bail!("{name} noise: {}", unknown("parameter", key, known))
            }
            (true, value) if !value.as_array().is_some_and(numbers) => {
                bail!("{name} noise: {key} must be a list of numbers, not {value}")
            }
            (false, value) if !value.is_number() => {
                bail!("{name} noise: {key} must be a number, not {value}")
            }
            _ => {}
        }
    }
    params.insert("family".into(), name.into());
    let values = toml::Value::try_from(Value::Object(params))?;
    from_value(values).map_err(|error| anyhow::anyhow!("{name} noise: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_parameters_covers_every_family() {
        assert_eq!(PARAMETERS.map(|(name, _)| name), Family::NAMES);
        for (name, keys) in PARAMETERS {
            for key in keys {
                let value = if LISTS.contains(key) { vec![1.0].into() } else { 1.0.into() };
                let params = Map::from_iter([((*key).into(), value)]);
                if let Err(error) = family(name, params) {
                    assert!(!error.to_string().contains("unknown"), "{error}");
                }
            }
        }
    }
}
