//! The candidate thresholds, as multiples of the scale.

/// How many candidates there are.
pub(super) const CANDIDATES: usize = 64;
/// Bins between, below and above them.
pub(super) const BINS: usize = CANDIDATES + 1;

/// Candidates go from $2^{-4}$ to $2^6$ times the scale, evenly in the logarithm: 12 percent apart,
/// finer than any threshold matters.
const LOWEST: f64 = -4.0 * std::f64::consts::LN_2;
pub(super) const STEP: f64 = 10.0 * std::f64::consts::LN_2 / (CANDIDATES - 1) as f64;

/// Candidate `k` as a multiple of the scale.
pub(super) fn multiple(k: usize) -> f64 {
    (LOWEST + STEP * k as f64).exp()
}

/// The candidate next to $\ln u$.
pub(super) fn nearest(log: f64) -> usize {
    (((log - LOWEST) / STEP).round() as usize).min(CANDIDATES - 1)
}

/// The bin of $\ln u$: as many candidates are less than $u$.
pub(super) fn bin(log: f64) -> usize {
    // The cast saturates: below all candidates it is zero.
    (((log - LOWEST) / STEP).ceil() as usize).min(CANDIDATES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_is_the_number_of_candidates_below() {
        for u in [1e-9_f64, 0.06, 0.0626, 0.5, 1.0, 3.0, 63.9, 64.1, 1e9] {
            let below = (0..CANDIDATES).filter(|k| multiple(*k) < u).count();
            assert_eq!(bin(u.ln()), below, "{u}");
        }
        assert!((multiple(CANDIDATES - 1) - 64.0).abs() < 1e-12);
        assert!((0..CANDIDATES).all(|k| nearest(multiple(k).ln() + 0.4 * STEP) == k));
        assert_eq!([nearest(-90.0), nearest(90.0)], [0, CANDIDATES - 1]);
    }
}
