//! The two loops over a row of a data matrix.

use super::Isa;
use super::lanes::{Kernel, Lanes, fused, total};

struct Inner<'a>(&'a [f64], &'a [f64]);

impl Kernel for Inner<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> f64 {
        let ((a, a_rest), (b, b_rest)) = (self.0.as_chunks::<8>(), self.1.as_chunks::<8>());
        // Four sums, so that an addition need not wait for the one before.
        let mut sums = [l.splat(0.0); 4];
        for (i, (a, b)) in a.iter().zip(b).enumerate() {
            sums[i % 4] = l.fma(l.load(a), l.load(b), sums[i % 4]);
        }
        let sum = total(l, l.add(l.add(sums[0], sums[1]), l.add(sums[2], sums[3])));
        a_rest.iter().zip(b_rest).fold(sum, |sum, (a, b)| fused(*a, *b, sum))
    }
}

struct Subtract<'a>(f64, &'a [f64], &'a mut [f64]);

impl Kernel for Subtract<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let ((x, x_rest), (to, to_rest)) = (self.1.as_chunks::<8>(), self.2.as_chunks_mut::<8>());
        let size = l.splat(self.0);
        for (x, to) in x.iter().zip(to) {
            l.store(l.fnma(size, l.load(x), l.load(to)), to);
        }
        for (x, to) in x_rest.iter().zip(to_rest) {
            *to = fused(-self.0, *x, *to);
        }
    }
}

/// $\langle a, b \rangle$.
pub fn inner(isa: Isa, a: &[f64], b: &[f64]) -> f64 {
    isa.run(Inner(a, b))
}

/// $\theta \leftarrow \theta - s x$.
pub fn subtract(isa: Isa, s: f64, x: &[f64], theta: &mut [f64]) {
    isa.run(Subtract(s, x, theta));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::InstructionSet;

    #[test]
    fn loops_are_the_formulas_with_every_instruction_set() {
        for n in [0, 1, 7, 8, 9, 40, 67] {
            let a: Vec<f64> = (0..n).map(|i| f64::from(i).sin()).collect();
            let b: Vec<f64> = (0..n).map(|i| f64::from(i).cos()).collect();
            let expected: f64 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            let mut bits = Vec::new();
            for set in InstructionSet::available() {
                let isa = Isa::new(set).unwrap();
                let product = inner(isa, &a, &b);
                assert!((product - expected).abs() < 1e-13);
                let mut theta = b.clone();
                subtract(isa, 0.3, &a, &mut theta);
                for i in 0..a.len() {
                    assert!((theta[i] - (b[i] - 0.3 * a[i])).abs() < 1e-15);
                }
                bits.push((product.to_bits(), theta));
            }
            assert!(bits.windows(2).all(|pair| pair[0] == pair[1]));
        }
    }
}
