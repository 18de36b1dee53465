//! Long sums to the last digits.
//!
//! A million equal terms added one by one lose three or four digits, always in the same direction.

/// $\sum_i a_i b_i$, pairwise: the rounding error grows as the logarithm of the length, and the
/// eight sums of a leaf vectorise.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LEAF: usize = 256;
    if a.len() > LEAF {
        let half = (a.len() / 2).next_multiple_of(8);
        let ((a, a_rest), (b, b_rest)) = (a.split_at(half), b.split_at(half));
        return dot(a, b) + dot(a_rest, b_rest);
    }
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (a, b) in a8.iter().zip(b8) {
        for k in 0..8 {
            sums[k] += a[k] * b[k];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    let [s0, s1, s2, s3, s4, s5, s6, s7] = sums;
    (((s0 + s4) + (s2 + s6)) + ((s1 + s5) + (s3 + s7))) + rest
}

/// $\sum_i a_i$ with Neumaier's compensation (1974): as if in twice the precision.
pub(crate) fn compensated(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0);
    for term in terms {
        let t = sum + term;
        lost += if sum.abs() >= term.abs() { (sum - t) + term } else { (term - t) + sum };
        sum = t;
    }
    // An overflowed sum has no error to give back.
    if sum.is_finite() { sum + lost } else { sum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_equal_terms() {
        let n = 1_000_003;
        let terms = vec![0.1; n];
        let exact = 100_000.3;
        assert!((terms.iter().sum::<f64>() - exact).abs() > 1e-7, "the plain sum would do");
        assert!((compensated(terms.iter().copied()) - exact).abs() < 2e-11);
        assert!((dot(&terms, &vec![1.0; n]) - exact).abs() < 1e-9);
        assert_eq!(compensated([1.0, 1e100, 1.0, -1e100].into_iter()), 2.0);
    }

    #[test]
    fn every_length() {
        for n in (0..40).chain(250..270).chain(500..530) {
            let terms: Vec<f64> = (1..=n).map(f64::from).collect();
            let exact = f64::from(n * (n + 1) * (2 * n + 1) / 6);
            assert_eq!(dot(&terms, &terms), exact);
        }
    }
}
