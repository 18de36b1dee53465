//! How far measured and predicted risk are apart.

use toclip::ensemble::Summary;

/// (mean of the runs)/(prediction) − 1, over the second half of the pass.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Gap {
    pub least: f64,
    pub most: f64,
    pub mean: f64,
    /// The standard error of the mean of the runs, relative, at its largest.
    pub standard_error: f64,
    /// The share of all saved times at which the prediction lies in the band.
    pub inside: f64,
}

impl Gap {
    /// `None` where runs or prediction did not reach the end.
    pub fn second_half(band: &Summary, risk: &[f64]) -> Option<Self> {
        let whole = band.times.len() == risk.len() && band.diverged.is_empty();
        let half = 0.5 * band.times.last()?;
        if !whole {
            return None;
        }
        let late: Vec<usize> = (0..risk.len()).filter(|&k| band.times[k] >= half).collect();
        let gaps: Vec<f64> = late.iter().map(|&k| band.risk.mean[k] / risk[k] - 1.0).collect();
        let errors = late.iter().map(|&k| band.risk.standard_error[k] / risk[k]);
        let [low, high] = [band.risk.quantiles.first()?, band.risk.quantiles.last()?];
        // At the start the band has no width.
        let inside =
            |k: &usize| low[*k] <= risk[*k] * (1.0 + 1e-9) && risk[*k] <= high[*k] * (1.0 + 1e-9);
        Some(Gap {
            least: gaps.iter().copied().fold(f64::INFINITY, f64::min),
            most: gaps.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean: gaps.iter().sum::<f64>() / gaps.len() as f64,
            standard_error: errors.fold(0.0, f64::max),
            inside: (0..risk.len()).filter(inside).count() as f64 / risk.len() as f64,
        })
    }

    /// "2.1% to 8.3% above", "0.4% below to 1.2% above".
    pub fn words(&self) -> String {
        let percent = |x: f64| format!("{:.1}%", 100.0 * x.abs());
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

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn only_the_second_half_counts() {
        let gap = Gap::second_half(&band(&[9.0, 9.0, 1.1, 1.0, 0.9]), &[1.0; 5]).unwrap();
        assert!((gap.most - 0.1).abs() < 1e-12 && (gap.least + 0.1).abs() < 1e-12);
        assert!(gap.mean.abs() < 1e-12 && (gap.standard_error - 0.01).abs() < 1e-12);
        assert_eq!(gap.inside, 0.4);
        assert_eq!(gap.words(), "10.0% below to 10.0% above");
        assert!(Gap::second_half(&band(&[1.0; 5]), &[1.0; 4]).is_none());
    }

    #[test]
    fn sides_are_named_nearest_first() {
        let words =
            |least, most| Gap { least, most, mean: 0.0, standard_error: 0.0, inside: 1.0 }.words();
        assert_eq!(words(0.021, 0.083), "2.1% to 8.3% above");
        assert_eq!(words(-0.04, -0.001), "0.1% to 4.0% below");
    }
}
