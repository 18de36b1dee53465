//! A summary of the norms of each layer.

use serde::Serialize;

use crate::LayerNorms;
use crate::findings::{median, quantile};

/// A layer fires alone where it is this many times its median and the total is not.
const TIMES: f64 = 4.0;
/// Fewer rows say too little about a layer.
const FEWEST_ROWS: usize = 20;

/// The gradient norm of a layer over the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerSummary {
    /// Its name.
    pub name: String,
    /// Its median norm.
    pub median: f64,
    /// Its share of the squared total norm: the mean over the log.
    pub share: f64,
    /// Rows in which it is above four times its median while the total is not above four times its own.
    pub fires_alone: usize,
    /// A guard for this layer by itself: its 99.9th percentile, between two and four times its median.
    pub guard: f64,
}

/// All layers, those with the largest share of the total first; none if there are too few rows.
pub(super) fn summarise(layers: &LayerNorms) -> Vec<LayerSummary> {
    let rows = &layers.rows;
    if rows.len() < FEWEST_ROWS {
        return Vec::new();
    }
    let total = |norms: &[f64]| norms.iter().filter(|n| n.is_finite()).map(|n| n * n).sum::<f64>();
    let totals: Vec<f64> = rows.iter().map(|(_, norms)| total(norms)).collect();
    let usual = median(totals.clone()).unwrap_or(f64::NAN);
    let summary = |(layer, name): (usize, &String)| {
        let mut norms: Vec<f64> = rows.iter().map(|(_, norms)| norms[layer]).collect();
        let middle = median(norms.iter().copied().filter(|n| n.is_finite()).collect())?;
        let shares = norms.iter().zip(&totals).filter(|(n, t)| n.is_finite() && **t > 0.0);
        let shares: Vec<f64> = shares.map(|(n, total)| n * n / total).collect();
        let alone = |(norm, total): &(&f64, &f64)| {
            **norm > TIMES * middle && **total <= TIMES * TIMES * usual
        };
        let fires_alone = norms.iter().zip(&totals).filter(alone).count();
        norms.retain(|n| n.is_finite());
        norms.sort_by(f64::total_cmp);
        let high = quantile(&norms, 0.999);
        Some(LayerSummary {
            name: name.clone(),
            median: middle,
            share: shares.iter().sum::<f64>() / shares.len().max(1) as f64,
            fires_alone,
            // Its own spikes are not ordinary.
            guard: high.clamp(2.0 * middle, TIMES * middle),
        })
    };
    let mut all: Vec<LayerSummary> = layers.names.iter().enumerate().filter_map(summary).collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layer_that_drives_the_total_and_one_that_fires_alone() {
        let rows = (0..100)
            .map(|i| {
                let wave = 1.0 + 0.1 * (f64::from(i) * 0.618).fract();
                let small = if i == 40 { 0.5 } else { 0.05 * wave };
                (f64::from(i), vec![small, 3.0 * wave, 4.0 * wave])
            })
            .collect();
        let names = ["bias", "wte", "head"].map(String::from).to_vec();
        let layers = LayerNorms { names, rows };
        let found = summarise(&layers);
        assert_eq!(found[0].name, "head");
        // 16/(16 + 9), but for the little of the bias.
        assert!((found[0].share - 0.64).abs() < 1e-3, "{found:?}");
        assert_eq!((found[2].name.as_str(), found[2].fires_alone), ("bias", 1));
        assert_eq!(found[0].fires_alone + found[1].fires_alone, 0);
        assert!(found[2].guard < 1.0 && found[0].guard > 4.0);
    }
}
