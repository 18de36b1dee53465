//! How far measured and predicted risk are apart.

use toclip::ensemble::Statistics;

use crate::experiment::share_between;
use toclip_words::{percent, signed_percent};

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
    /// Of runs that all finished, above `least`; `None` where the prediction did not reach the end.
    pub fn new(
        times: &[f64],
        statistics: &Statistics,
        runs: &[Vec<f64>],
        least: f64,
        predicted: &[f64],
    ) -> Option<Self> {
        if times.len() != predicted.len() {
            return None;
        }
        let half = 0.5 * times.last()?;
        let late: Vec<usize> = (0..times.len()).filter(|&k| times[k] >= half).collect();
        let gaps = |values: &[f64]| -> Vec<f64> {
            late.iter().map(|&k| (values[k] - least) / predicted[k] - 1.0).collect()
        };
        let mean = |gaps: &[f64]| gaps.iter().sum::<f64>() / late.len() as f64;
        let (of_mean, edges) = (gaps(&statistics.mean), &statistics.quantiles);
        let over = |values: &[f64]| values.iter().map(|x| x - least).collect::<Vec<f64>>();
        let [low, high] = [over(edges.first()?), over(edges.last()?)];
        let own: Vec<f64> = runs.iter().map(|run| mean(&gaps(run))).collect();
        Some(PredictionGap {
            least: of_mean.iter().copied().fold(f64::INFINITY, f64::min),
            most: of_mean.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean: mean(&of_mean),
            standard_error: standard_error(&own),
            inside: share_between(predicted, [&low, &high])?,
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

    /// The gap of runs that are these multiples of `mean` all along, in a band of 10% around it.
    fn gap(mean: &[f64], shares: &[f64], predicted: &[f64]) -> Option<PredictionGap> {
        let times: Vec<f64> = (0..mean.len()).map(|k| k as f64).collect();
        let times_mean = |share: &f64| mean.iter().map(|m| share * m).collect::<Vec<f64>>();
        let statistics = Statistics {
            mean: mean.to_vec(),
            standard_error: vec![0.01; mean.len()],
            quantiles: [0.9, 1.1].iter().map(times_mean).collect(),
            ..Statistics::default()
        };
        let runs: Vec<Vec<f64>> = shares.iter().map(times_mean).collect();
        PredictionGap::new(&times, &statistics, &runs, 0.0, predicted)
    }

    #[test]
    fn only_the_second_half_counts() {
        let mean = [9.0, 9.0, 1.1, 1.0, 0.9];
        let two = gap(&mean, &[0.9, 1.1], &[1.0; 5]).unwrap();
        assert!((two.most - 0.1).abs() < 1e-12 && (two.least + 0.1).abs() < 1e-12);
        // Means of the runs: -0.1 and 0.1.
        assert!(two.mean.abs() < 1e-12 && (two.standard_error.unwrap() - 0.1).abs() < 1e-12);
        assert!(two.mean_words().ends_with(" ± 10%"), "{}", two.mean_words());
        assert_eq!(two.inside, 0.4);
        assert_eq!(two.words(), "10% below to 10% above");
        assert!(gap(&[1.0; 5], &[0.9, 1.1], &[1.0; 4]).is_none());
        let one = gap(&mean, &[1.0], &[0.5; 5]).unwrap();
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
