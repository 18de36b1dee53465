//! `--check`: whether a data set gives the numbers of the paper.

use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::json;
use toclip_data::{Features, LeastSquares};

use super::input::{Input, Known};
use crate::commands::reproduce::claims::near;
use crate::stdout::say;

/// Draws of the features.
const DRAWS: u64 = 3;

/// What least squares gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbers {
    pub dim: f64,
    pub mse: f64,
    pub accuracy: f64,
    pub sigma: f64,
}

/// Means over twelve draws of the features. The authors' notebook has d = 5.68, MSE 0.568,
/// accuracy 0.809 and σ = 0.754 for one draw. From draw to draw d has standard deviation 0.24, the
/// others a few thousandths: the bounds are four or more of them.
pub const CIFAR10: Numbers = Numbers { dim: 5.94, mse: 0.567, accuracy: 0.807, sigma: 0.753 };

impl Numbers {
    pub fn rows(&self) -> [(&'static str, f64, f64, f64); 4] {
        let paper = CIFAR10;
        [
            ("d", self.dim, paper.dim, 0.16),
            ("MSE", self.mse, paper.mse, 0.01),
            ("accuracy", self.accuracy, paper.accuracy, 0.01),
            ("σ", self.sigma, paper.sigma, 0.005),
        ]
    }

    /// Whether all are as far from those expected as draws differ.
    pub fn as_expected(&self) -> bool {
        self.rows().iter().all(|(_, found, wanted, share)| near(*found, *wanted, *share))
    }
}

pub fn run(
    input: &Input,
    known: Option<Known>,
    features: Features,
    seed: u64,
    as_json: bool,
) -> Result<ExitCode> {
    if known != Some(Known::Cifar10) {
        bail!("--check knows the numbers of cifar10 only");
    }
    let mut right = true;
    let mut all = Vec::new();
    for draw in seed..seed + DRAWS {
        let design = input.design(features, draw)?;
        let left = LeastSquares::new(&design, None)?.residuals(&design)?;
        let accuracy = left.accuracy.unwrap_or(f64::NAN);
        let found = Numbers { dim: design.dim(), mse: left.mse, accuracy, sigma: left.sigma };
        right &= found.as_expected();
        let text = found.rows().map(|(name, found, wanted, share)| {
            format!("{name} = {found:.4} ({wanted} ± {:.1}%)", 100.0 * share)
        });
        if !as_json {
            say!("seed {draw}: {}", text.join(", "));
        }
        all.push(json!({
            "seed": draw, "dim": found.dim, "mse": found.mse, "accuracy": found.accuracy,
            "sigma": found.sigma, "as_expected": found.as_expected(),
        }));
    }
    if as_json {
        say!("{}", serde_json::to_string_pretty(&json!({ "draws": all, "as_expected": right }))?);
    } else {
        say!("{}", if right { "as in the paper" } else { "NOT as in the paper" });
    }
    Ok(if right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_can_be_off() {
        assert!(CIFAR10.as_expected());
        assert!(!Numbers { dim: 7.0, ..CIFAR10 }.as_expected());
        assert!(!Numbers { mse: 0.58, ..CIFAR10 }.as_expected());
        assert!(!Numbers { accuracy: f64::NAN, ..CIFAR10 }.as_expected());
    }
}
