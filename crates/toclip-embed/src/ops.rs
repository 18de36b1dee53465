//! Operations on the numbers of a tensor, in place.
//!
//! The inference crate splits each of these among threads that wait for one another, and computes the
//! error function and the exponential one number at a time. Here every thread has its own batch, and
//! plain loops that the compiler can vectorise are twice as fast.

use candle_core::{CpuStorage, InplaceOp1, InplaceOp2, Layout, Result, Tensor, bail};

use crate::config::Activation;

/// `x += y`, with `y` repeated as often as it fits: a bias, positions, or a tensor of the same size.
pub(crate) fn add(x: &Tensor, y: &Tensor) -> Result<()> {
    x.inplace_op2(y, &Add(None))
}

/// `x = activation(x + y)`, with `y` repeated as in [`add`].
pub(crate) fn add_and_activate(x: &Tensor, y: &Tensor, activation: Activation) -> Result<()> {
    x.inplace_op2(y, &Add(Some(activation)))
}

/// The softmax of `scale` times each row; `causal`: row $i$ of a square sees its first $i + 1$
/// numbers only.
pub(crate) fn softmax(x: &Tensor, scale: f64, causal: bool) -> Result<()> {
    x.inplace_op1(&Softmax { scale: scale as f32, causal })
}

struct Add(Option<Activation>);

impl InplaceOp2 for Add {
    fn name(&self) -> &'static str {
        "add in place"
    }

    fn cpu_fwd(&self, x: &mut CpuStorage, lx: &Layout, y: &CpuStorage, ly: &Layout) -> Result<()> {
        let (CpuStorage::F32(y), Some((start, end))) = (y, ly.contiguous_offsets()) else {
            bail!("{}: not contiguous f32", self.name())
        };
        let (x, y) = (numbers(x, lx)?, &y[start..end]);
        if y.is_empty() || !x.len().is_multiple_of(y.len()) {
            bail!("{}: {} numbers do not fit into {}", self.name(), y.len(), x.len())
        }
        for x in x.chunks_exact_mut(y.len()) {
            let pairs = x.iter_mut().zip(y);
            match self.0 {
                None => pairs.for_each(|(x, y)| *x += y),
                Some(Activation::Relu) => pairs.for_each(|(x, y)| *x = (*x + y).max(0.0)),
                Some(Activation::Gelu) => pairs.for_each(|(x, y)| *x = gelu(*x + y)),
                Some(Activation::GeluNew) => pairs.for_each(|(x, y)| *x = gelu_new(*x + y)),
            }
        }
        Ok(())
    }
}

struct Softmax {
    scale: f32,
    causal: bool,
}

impl InplaceOp1 for Softmax {
    fn name(&self) -> &'static str {
        "softmax in place"
    }

    fn cpu_fwd(&self, x: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let length = layout.dims().last().copied().unwrap_or(1);
        for (i, row) in numbers(x, layout)?.chunks_exact_mut(length.max(1)).enumerate() {
            let seen = if self.causal { i % length + 1 } else { length };
            let (row, unseen) = row.split_at_mut(seen);
            let top = row.iter().fold(f32::NEG_INFINITY, |top, x| top.max(x * self.scale));
            row.iter_mut().for_each(|x| *x = exp(*x * self.scale - top));
            let factor = 1.0 / sum(row);
            row.iter_mut().for_each(|x| *x *= factor);
            unseen.fill(0.0);
        }
        Ok(())
    }
}

/// The numbers of a tensor that lie side by side.
fn numbers<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(all), Some((start, end))) => Ok(&mut all[start..end]),
        _ => bail!("not contiguous f32"),
    }
}

/// The sum, in eight parts, which is quicker and rounds less.
fn sum(row: &[f32]) -> f32 {
    let (chunks, rest) = row.as_chunks::<8>();
    let mut parts = [0.0_f32; 8];
    for chunk in chunks {
        parts.iter_mut().zip(chunk).for_each(|(part, x)| *part += x);
    }
    parts.iter().sum::<f32>() + rest.iter().sum::<f32>()
}

/// $x \Phi(x)$.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    // Abramowitz and Stegun 7.1.26, absolute error 1.5e-7, for erfc(|x|/√2), where
    // x Φ(x) = max(x, 0) − |x| erfc(|x|/√2)/2.
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let p = 1.061_405_4;
    let p = p * t - 1.453_152_1;
    let p = p * t + 1.421_413_8;
    let p = p * t - 0.284_496_72;
    let p = p * t + 0.254_829_6;
    x.max(0.0) - 0.5 * x.abs() * (p * t * exp(-z * z))
}

/// $x/2 \cdot (1 + \tanh(\sqrt{2/\pi}(x + 0.044715 x^3)))$.
#[inline(always)]
fn gelu_new(x: f32) -> f32 {
    // (1 + tanh u)/2 = 1/(1 + e^(−2u)).
    let u = 0.797_884_6 * x * (1.0 + 0.044_715 * x * x);
    x / (1.0 + exp(-2.0 * u))
}

/// $e^x$ to a few units of the last place. Below -87 it stays at the smallest normal number, above
/// 88 at its value there.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // x = k ln 2 + r, |r| ≤ ln(2)/2. Adding 1.5·2^23 rounds to an integer, whose low bits are k.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    // ln 2 in two parts, the first with zeros at its end: k times it is exact.
    let r = x - k * 0.693_359_4 + k * 2.121_944_4e-4;
    // Taylor's series: the next term is below 2e-8.
    let p = 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = (p * r + 1.0) * r + 1.0;
    p * f32::from_bits((shifted.to_bits() << 23).wrapping_add(0x3f80_0000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::Device;

    /// Points from -100 to 100, dense around zero.
    fn points() -> impl Iterator<Item = f32> {
        (-20_000..=20_000).map(|i| {
            let x = i as f32 / 20_000.0;
            100.0 * x * x * x
        })
    }

    #[test]
    fn the_exponential_is_right_to_some_units_of_the_last_place() {
        for x in points().filter(|x| (-87.0..=88.0).contains(x)) {
            let right = f64::from(x).exp();
            let error = (f64::from(exp(x)) / right - 1.0).abs();
            assert!(error < 4.0 * f64::from(f32::EPSILON), "{x}: {error}");
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(-1e30) < 1e-37 && exp(f32::NEG_INFINITY) < 1e-37 && exp(f32::NAN).is_nan());
    }

    #[test]
    fn the_activations_are_right() {
        for x in points() {
            let wide = f64::from(x);
            let right = wide * 0.5 * libm::erfc(-wide / std::f64::consts::SQRT_2);
            let error = (f64::from(gelu(x)) - right).abs();
            assert!(error < 3e-7 * wide.abs().max(1.0), "{x}: {error}");
            let u = (2.0 / std::f64::consts::PI).sqrt() * (wide + 0.044715 * wide.powi(3));
            let right = 0.5 * wide * (1.0 + u.tanh());
            let error = (f64::from(gelu_new(x)) - right).abs();
            assert!(error < 3e-7 * wide.abs().max(1.0), "{x}: {error}");
        }
    }

    #[test]
    fn softmax_adds_to_one_and_looks_back_only() {
        let values: Vec<f32> = (0..2 * 3 * 3).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
        for causal in [false, true] {
            let x = Tensor::from_slice(&values, (2, 3, 3), &Device::Cpu).unwrap();
            softmax(&x, 0.5, causal).unwrap();
            let x = x.to_vec3::<f32>().unwrap();
            for (row, right) in
                x.iter().flatten().zip(values.chunks(3)).enumerate().map(|(i, (row, from))| {
                    let seen = if causal { i % 3 + 1 } else { 3 };
                    let weights: Vec<f64> = (0..3)
                        .map(|j| if j < seen { (0.5 * f64::from(from[j])).exp() } else { 0.0 })
                        .collect();
                    let total: f64 = weights.iter().sum();
                    (row, weights.into_iter().map(|w| w / total).collect::<Vec<_>>())
                })
            {
                for (a, b) in row.iter().zip(right) {
                    assert!((f64::from(*a) - b).abs() < 1e-6, "{a} {b}");
                }
            }
        }
    }

    #[test]
    fn additions_repeat_and_refuse_what_does_not_fit() {
        let tensor = |v: &[f32]| Tensor::from_slice(v, v.len(), &Device::Cpu).unwrap();
        let x = tensor(&[1.0, 2.0, 3.0, 4.0]);
        add(&x, &tensor(&[10.0, -20.0])).unwrap();
        assert_eq!(x.to_vec1::<f32>().unwrap(), [11.0, -18.0, 13.0, -16.0]);
        add_and_activate(&x, &tensor(&[1.0]), Activation::Relu).unwrap();
        assert_eq!(x.to_vec1::<f32>().unwrap(), [12.0, 0.0, 14.0, 0.0]);
        assert!(add(&x, &tensor(&[1.0, 2.0, 3.0])).is_err());
    }
}
