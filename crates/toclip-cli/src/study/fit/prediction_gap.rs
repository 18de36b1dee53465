//! How far measured and predicted risk are apart.

use std::collections::BTreeMap;

use toclip::dynamics::Trajectory;
use toclip::ensemble::Summary;

use crate::experiment::{band_edges, share_between};
use crate::output::numbers::{percent, signed_percent};

/// (mean of the runs)/(prediction) − 1, over the second half of the pass.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct PredictionGap {
    pub least: f64,
    pub most: f64,
    pub mean: f64,
    /// The standard error of `mean`, from the means of the single runs; `None` for one run.
    pub standard_error: Option<f64>,
    /// The share of all saved times at which the prediction lies in the band.
    pub inside: f64,
}

impl PredictionGap {
    /// `None` where runs or prediction did not reach the end.
    pub fn second_half(
        band: &Summary,
        runs: &BTreeMap<u64, Trajectory>,
        risk: &[f64],
    ) -> Option<Self> {
        let whole = band.times.len() == risk.len() && band.diverged.is_empty();
        let runs: Vec<&[f64]> = runs.values().map(|run| &run.risk[..]).collect();
        let (mean, edges) = (&band.risk.mean, band_edges(band));
        if whole { PredictionGap::between(&band.times, mean, edges, &runs, risk) } else { None }
    }

    /// Of runs with this mean and band from a prediction; all have a number for each time.
    pub fn between(
        times: &[f64],
        mean: &[f64],
        edges: [&[f64]; 2],
        runs: &[&[f64]],
        predicted: &[f64],
    ) -> Option<Self> {
        let half = 0.5 * times.last()?;
        let late: Vec<usize> = (0..times.len()).filter(|&k| times[k] >= half).collect();
        let gaps: Vec<f64> = late.iter().map(|&k| mean[k] / predicted[k] - 1.0).collect();
        let own = |run: &&[f64]| {
            late.iter().map(|&k| run[k] / predicted[k] - 1.0).sum::<f64>() / late.len() as f64
        };
        let means: Vec<f64> = runs.iter().map(own).collect();
        Some(PredictionGap {
            least: gaps.iter().copied().fold(f64::INFINITY, f64::min),
            most: gaps.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean: gaps.iter().sum::<f64>() / gaps.len() as f64,
            standard_error: standard_error(&means),
            inside: share_between(predicted, edges)?,
        })
    }

    /// Whether the prediction is off by more than the runs leave to chance: three standard errors,
    /// which a right one passes in 3 of 1000 cases. One run shows nothing.
    pub fn is_off(&self) -> bool {
        self.standard_error.is_some_and(|error| self.mean.abs() > 3.0 * error)
    }

    /// "mean +6% ± 1.9%".
    pub fn mean_words(&self) -> String {
        let error = self.standard_error.map_or(String::new(), |e| format!(" ± {}", percent(e)));
        format!("mean {}{error}", signed_percent(self.mean))
    }

    /// "2.1% to 8.3% above", "0.4% below to 1.2% above".
    pub fn words(&self) -> String {
        let percent = |x: f64| percent(x.abs());
        let side = |x: f64| if x < 0.0 { "below" } else { "above" };
        let (a, b) = (self.least, self.most);
        if (a < 0.0) == (b < 0.0) {
            let (near, far) = if a < 0.0 { (b, a) } else { (a, b) };
            format!("{} to {} {}", percent(near), percent(far), side(far))
        } else {
            format!("{} {} to {} {}", percent(a), side(a), percent(b), side(b))
        }
    }
}

fn standard_error(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    (values.len() > 1).then(|| (squares / (n - 1.0) / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip::dynamics::{Counts, Stop};
    use toclip::ensemble::Statistics;

    fn band(mean: &[f64]) -> Summary {
        let risk = Statistics {
            mean: mean.to_vec(),
            standard_error: vec![0.01; mean.len()],
            quantiles: vec![
                mean.iter().map(|m| 0.9 * m).collect(),
                mean.iter().map(|m| 1.1 * m).collect(),
            ],
            ..Statistics::default()
        };
        Summary {
            times: (0..mean.len()).map(|k| k as f64).collect(),
            runs: 5,
            alive: vec![5; mean.len()],
            diverged: Default::default(),
            probabilities: vec![0.1, 0.9],
            risk: risk.clone(),
            distance: risk,
        }
    }

    /// Runs that are these multiples of `mean` all along.
    fn runs(mean: &[f64], shares: &[f64]) -> BTreeMap<u64, Trajectory> {
        let run = |share: &f64| Trajectory {
            times: (0..mean.len()).map(|k| k as f64).collect(),
            risk: mean.iter().map(|m| share * m).collect(),
            distance: vec![],
            path: None,
            stop: Stop::Finished,
            counts: Counts::default(),
        };
        (0..).zip(shares.iter().map(run)).collect()
    }

    #[test]
    fn only_the_second_half_counts() {
        let mean = [9.0, 9.0, 1.1, 1.0, 0.9];
        let two = runs(&mean, &[0.9, 1.1]);
        let gap = PredictionGap::second_half(&band(&mean), &two, &[1.0; 5]).unwrap();
        assert!((gap.most - 0.1).abs() < 1e-12 && (gap.least + 0.1).abs() < 1e-12);
        // Means of the runs: -0.1 and 0.1.
        assert!(gap.mean.abs() < 1e-12 && (gap.standard_error.unwrap() - 0.1).abs() < 1e-12);
        assert!(gap.mean_words().ends_with(" ± 10%"), "{}", gap.mean_words());
        assert_eq!(gap.inside, 0.4);
        assert_eq!(gap.words(), "10% below to 10% above");
        assert!(PredictionGap::second_half(&band(&[1.0; 5]), &two, &[1.0; 4]).is_none());
        let one =
            PredictionGap::second_half(&band(&mean), &runs(&mean, &[1.0]), &[0.5; 5]).unwrap();
        assert!(one.standard_error.is_none() && !one.is_off());
        assert_eq!(one.mean_words(), "mean +100%");
    }

    #[test]
    fn sides_are_named_nearest_first() {
        let words = |least, most| {
            PredictionGap { least, most, mean: 0.0, standard_error: None, inside: 1.0 }.words()
        };
        assert_eq!(words(0.021, 0.083), "2.1% to 8.3% above");
        assert_eq!(words(-0.04, -0.001), "0.1% to 4% below");
    }
}
