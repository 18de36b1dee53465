//! The running scale of the norms: a geometric mean that remembers 200 norms.

/// Norms that the running scale remembers, the same as in the monitor.
const MEMORY: f64 = 200.0;
const FIRST: usize = 32;

/// The scale of each norm: the running geometric mean of the norms before it. The first norms use
/// their own mean.
///
/// ```
/// let scales = toclip_logs::running_scales(&[3.0; 40]);
/// assert!((scales[39] - 3.0).abs() < 1e-12);
/// ```
pub fn running_scales(norms: &[f64]) -> Vec<f64> {
    let (mut log, mut weight) = (0.0, 0.0);
    let mut scales = Vec::with_capacity(norms.len());
    for (i, norm) in norms.iter().enumerate() {
        scales.push(f64::exp(log));
        if *norm > 0.0 {
            weight = f64::min(weight + 1.0, MEMORY);
            log += (norm.ln() - log) / weight;
        }
        if i + 1 == FIRST || i + 1 == norms.len() && i < FIRST {
            scales.fill(log.exp());
        }
    }
    scales
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_a_geometric_mean() {
        let flat = running_scales(&[2.0; 100]);
        assert!(flat.iter().all(|s| (s - 2.0).abs() < 1e-12));
        let two: Vec<f64> = (0..64).map(|i| [1.0, 4.0][i % 2]).collect();
        assert!((running_scales(&two)[63] - 2.0).abs() < 0.05);
        assert!(running_scales(&[0.0, 0.0]).iter().all(|s| s.is_finite()));
        assert!(running_scales(&[]).is_empty());
    }
}
