//! Standard normal numbers, sixteen at a time.
//!
//! Eight interleaved xoshiro256++ generators give one `u64` for every number. Two of them, $j$ and
//! $k$ of 52 bits and a spare bit $b$, make a pair by the method of Box and Muller (1958):
//! $$z = \sqrt{-2 \ln u}\thinspace \bigl((-1)^b \cos \pi x,\\ \sin \pi x\bigr), \qquad
//! u = (j + \tfrac12)/2^{52}, \quad x = k/2^{52} - \tfrac12.$$
//!
//! Quality: radius and angle have $2^{52}$ and $2^{53}$ equally likely values; $|z| \le 8.57$,
//! which cuts off a probability of $10^{-17}$. The logarithm is in error by at most $2 \times
//! 10^{-12}$, sine and cosine by $10^{-12}$ (absolute): $10^{23}$ draws would be needed to notice.

use super::lanes::{Kernel, Lanes, horner};
use super::{Isa, Purpose, key};
use rand::Rng;
use std::f64::consts::LN_2;

/// Sixteen numbers on their own cache lines, drawn by one call of the generator.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Block16 {
    pub(crate) first: [f64; 8],
    pub(crate) second: [f64; 8],
}

impl Block16 {
    pub(crate) const LEN: usize = 16;
    pub(crate) const ZERO: Self = Self { first: [0.0; 8], second: [0.0; 8] };

    /// Numbers in blocks, the last one filled up with zeros.
    pub(crate) fn from_values(values: impl IntoIterator<Item = f64>) -> Vec<Self> {
        let mut blocks = Vec::new();
        for (i, value) in values.into_iter().enumerate() {
            if i % Self::LEN == 0 {
                blocks.push(Self::ZERO);
            }
            let place = i % Self::LEN;
            if let Some(last) = blocks.last_mut() {
                let half = if place < 8 { &mut last.first } else { &mut last.second };
                half[place % 8] = value;
            }
        }
        blocks
    }
}

/// The state of eight xoshiro256++ generators, word by word.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(crate) struct Streams([[u64; 8]; 4]);

impl Streams {
    /// The generators of run `index` of `seed`.
    pub(crate) fn new(seed: u64, index: u64, purpose: Purpose) -> Self {
        let mut rng = key(seed, index, purpose);
        let mut state = [[0; 8]; 4];
        for lane in 0..8 {
            for word in &mut state {
                word[lane] = rng.next_u64();
            }
        }
        Self(state)
    }

    #[inline(always)]
    pub(super) fn load<L: Lanes>(&self, l: L) -> [L::U; 4] {
        let s = &self.0;
        [l.load_u(&s[0]), l.load_u(&s[1]), l.load_u(&s[2]), l.load_u(&s[3])]
    }

    #[inline(always)]
    pub(super) fn store<L: Lanes>(&mut self, l: L, state: [L::U; 4]) {
        for (word, to) in state.into_iter().zip(&mut self.0) {
            l.store_u(word, to);
        }
    }
}

/// $q(v) = -\ln(1 - v/2)/v$ on $[0, 1]$, to $1.8 \times 10^{-12}$ in $v\thinspace q(v)$:
/// interpolation at Chebyshev points, as the two below.
const LOG: [f64; 14] = [
    0.49999999999905903,
    0.12500000036841663,
    0.0416666428658834,
    0.015625602458289266,
    0.006242088355914867,
    0.0026659877905449493,
    0.0008056386959304792,
    0.0015356288610878287,
    -0.0022125097741951187,
    0.0039936814195546564,
    -0.004217604788448969,
    0.0030760394219237104,
    -0.00129995484484576,
    0.00026593972903080315,
];

/// $\sin(\pi x)/x$ in $x^2$ for $|x| \le 1/2$, to $8 \times 10^{-14}$ in the sine.
const SIN: [f64; 7] = [
    3.141592653589635,
    -5.167712779987959,
    2.550164035906745,
    -0.5992644339357286,
    0.08214479467064854,
    -0.007364005472115722,
    0.0004474920849077101,
];

/// $\cos(\pi x)$ in $x^2$ for $|x| \le 1/2$, to $8 \times 10^{-13}$.
const COS: [f64; 7] = [
    0.9999999999992479,
    -4.93480220024985,
    4.0587121075374375,
    -1.33526231526157,
    0.2353254365877112,
    -0.02577631642731586,
    0.0018399894372694043,
];

/// Sixteen standard normal numbers.
#[inline(always)]
pub(super) fn pair<L: Lanes>(l: L, state: &mut [L::U; 4]) -> (L::F, L::F) {
    let (j, k) = (l.next(state), l.next(state));
    // The odd multiples of 2^-53 in (0, 1), exactly.
    let u = l.sub(l.unit(j), l.splat(1.0 - f64::EPSILON / 2.0));
    // With u = m 2^e and v = 2 - m in (0, 1]: -ln u = -(e + 1) ln 2 - ln(1 - v/2). Neither term is
    // negative, so that the root exists whatever the rounding.
    let v = l.sub(l.splat(2.0), l.mantissa(u));
    let halvings = l.fma(l.exponent(u), l.splat(-2.0 * LN_2), l.splat(-2.0 * LN_2));
    let twice = l.add(v, v);
    let r = l.sqrt(l.fma(twice, horner(l, v, &LOG), halvings));
    let x = l.sub(l.unit(k), l.splat(1.5));
    let t = l.mul(x, x);
    let sin = l.mul(x, horner(l, t, &SIN));
    let cos = l.flip(horner(l, t, &COS), k);
    (l.mul(r, cos), l.mul(r, sin))
}

struct Fill<'a> {
    streams: &'a mut Streams,
    blocks: &'a mut [Block16],
}

impl Kernel for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let mut state = self.streams.load(l);
        for block in self.blocks {
            let (first, second) = pair(l, &mut state);
            l.store(first, &mut block.first);
            l.store(second, &mut block.second);
        }
        self.streams.store(l, state);
    }
}

/// Fills blocks with standard normal numbers.
pub(crate) fn fill(isa: Isa, streams: &mut Streams, blocks: &mut [Block16]) {
    isa.run(Fill { streams, blocks });
}

/// A sequence of standard normal numbers, one by one or many at a time.
#[derive(Debug, Clone)]
pub struct Normals {
    isa: Isa,
    streams: Streams,
    ready: [f64; Normals::READY],
    used: usize,
}

impl Normals {
    const BLOCKS: usize = 8;
    const READY: usize = Self::BLOCKS * Block16::LEN;

    /// The sequence of run `index` of `seed`; the bits are the same on every machine.
    pub fn new(seed: u64, index: u64, purpose: Purpose) -> Self {
        let streams = Streams::new(seed, index, purpose);
        Self { isa: Isa::best(), streams, ready: [0.0; Self::READY], used: Self::READY }
    }

    /// The next number.
    #[cfg(test)]
    pub fn draw(&mut self) -> f64 {
        let mut one = [0.0];
        self.fill(&mut one);
        one[0]
    }

    /// The next numbers, as many as fit.
    #[inline]
    pub fn fill(&mut self, mut out: &mut [f64]) {
        while !out.is_empty() {
            if self.used == Self::READY {
                self.refill();
            }
            let rest = &self.ready[self.used..];
            let count = rest.len().min(out.len());
            let (now, later) = out.split_at_mut(count);
            now.copy_from_slice(&rest[..count]);
            self.used += count;
            out = later;
        }
    }

    #[cold]
    fn refill(&mut self) {
        let mut blocks = [Block16::ZERO; Self::BLOCKS];
        fill(self.isa, &mut self.streams, &mut blocks);
        let halves = blocks.iter().flat_map(|block| [&block.first, &block.second]);
        for (to, half) in self.ready.as_chunks_mut::<8>().0.iter_mut().zip(halves) {
            *to = *half;
        }
        self.used = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::InstructionSet;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;

    fn draws(seed: u64, index: u64, count: usize) -> Vec<f64> {
        let mut out = vec![0.0; count];
        Normals::new(seed, index, Purpose::Covariates).fill(&mut out);
        out
    }

    fn tail(x: f64) -> f64 {
        0.5 * libm::erfc(x / std::f64::consts::SQRT_2)
    }

    #[test]
    fn polynomials_are_as_good_as_stated() {
        let sum = |c: &[f64], x: f64| c.iter().rev().fold(0.0, |s, c| s * x + c);
        for i in 0..=100_000 {
            let v = f64::from(i) / 100_000.0;
            assert!((v * sum(&LOG, v) + (-0.5 * v).ln_1p()).abs() < 2e-12, "ln at {v}");
            let x = 0.5 * v;
            let (sin, cos) = (std::f64::consts::PI * x).sin_cos();
            assert!((x * sum(&SIN, x * x) - sin).abs() < 1e-13, "sin at {x}");
            assert!((sum(&COS, x * x) - cos).abs() < 1e-12, "cos at {x}");
        }
    }

    #[test]
    fn numbers_are_box_muller_of_the_generators() {
        // Independently: the generator of the `rand` crate, the functions of the standard library.
        let streams = Streams::new(5, 6, Purpose::Covariates);
        let mut blocks = vec![Block16::ZERO; 500];
        fill(Isa::best(), &mut streams.clone(), &mut blocks);
        for lane in 0..8 {
            let mut bytes = [0; 32];
            for (to, word) in bytes.chunks_exact_mut(8).zip(&streams.0) {
                to.copy_from_slice(&word[lane].to_le_bytes());
            }
            let mut rng = Xoshiro256PlusPlus::from_seed(bytes);
            for block in &blocks {
                let (j, k) = (rng.next_u64(), rng.next_u64());
                let u = ((j >> 12) as f64 + 0.5) / (1_u64 << 52) as f64;
                let r = (-2.0 * u.ln()).sqrt();
                let angle = ((k >> 12) as f64 / (1_u64 << 52) as f64 - 0.5) * std::f64::consts::PI;
                let sign = if k & 1 == 1 { -1.0 } else { 1.0 };
                assert!((block.first[lane] - sign * r * angle.cos()).abs() < 1e-11);
                assert!((block.second[lane] - r * angle.sin()).abs() < 1e-11);
            }
        }
    }

    #[test]
    fn extreme_bits_give_extreme_radii() {
        for j in [0, u64::MAX] {
            // The first output is rotl(s0 + s3, 23) + s0: with s0 = 0, s3 sets j.
            let s3 = u64::rotate_right(j, 23);
            for s1 in [s3, !s3] {
                let mut streams = Streams([[0; 8], [s1; 8], [0; 8], [s3; 8]]);
                let mut block = [Block16::ZERO];
                fill(Isa::best(), &mut streams, &mut block);
                let r = block[0].first[0].hypot(block[0].second[0]);
                let expected = if j == 0 { (106.0 * LN_2).sqrt() } else { f64::EPSILON.sqrt() };
                assert!((r / expected - 1.0).abs() < 1e-9, "{r} from {j}");
            }
        }
    }

    #[test]
    fn bits_do_not_depend_on_the_instruction_set() {
        let with = |set| {
            let mut blocks = vec![Block16::ZERO; 20_000];
            let mut streams = Streams::new(1, 2, Purpose::Brownian);
            fill(Isa::new(set).unwrap(), &mut streams, &mut blocks);
            let numbers = blocks.iter().flat_map(|b| [b.first, b.second]).flatten();
            numbers.map(f64::to_bits).collect::<Vec<_>>()
        };
        let portable = with(InstructionSet::Portable);
        for set in InstructionSet::available() {
            assert!(with(set) == portable, "{set:?} and portable code differ");
        }
    }

    #[test]
    fn first_numbers_are_pinned() {
        // A change of these is a change of what users' seeds mean.
        let mut normals = Normals::new(1, 0, Purpose::Covariates);
        let mut first = [0.0; 4];
        normals.fill(&mut first);
        assert_eq!(first, PINNED);
        // Many at a time or one by one: the same sequence.
        let later = draws(1, 0, 1000);
        let mut mixed = vec![0.0; 996];
        normals.fill(&mut mixed[..300]);
        normals.fill(&mut mixed[300..301]);
        normals.fill(&mut mixed[301..]);
        assert_eq!(later[4..], mixed);
        assert_eq!(later[..4], PINNED);
        assert_eq!(later[999], PINNED_999);
    }

    const PINNED: [f64; 4] =
        [-0.016589957175216052, 0.9416004710109678, 0.8577927874644127, 1.8442678579167597];
    const PINNED_999: f64 = -0.1353403679974441;

    #[test]
    fn moments_are_normal() {
        // 2^22 draws; each mean within five standard errors: false alarm 8 × 6e-7.
        let z = draws(2, 0, 1 << 22);
        let double_factorial = |n: i32| (1..=n).rev().step_by(2).map(f64::from).product::<f64>();
        for power in 1..=8 {
            let mean = z.iter().map(|z| z.powi(power)).sum::<f64>() / z.len() as f64;
            let expected = if power % 2 == 1 { 0.0 } else { double_factorial(power - 1) };
            let variance = double_factorial(2 * power - 1) - expected * expected;
            let error = (mean - expected) / (variance / z.len() as f64).sqrt();
            assert!(error.abs() < 5.0, "moment {power}: {error} standard errors");
        }
    }

    #[test]
    fn distribution_is_normal() {
        // Kolmogorov and Smirnov with the bound of Massart: P(√n D > x) ≤ 2 exp(-2x²), so that
        // x = 2.7 has a false-alarm rate below 1e-6.
        let mut z = draws(3, 1, 1 << 22);
        z.sort_unstable_by(f64::total_cmp);
        let n = z.len() as f64;
        let gap = z.iter().enumerate().fold(0.0_f64, |gap, (i, &z)| {
            let below = tail(-z);
            gap.max((below - i as f64 / n).abs()).max(((i + 1) as f64 / n - below).abs())
        });
        assert!(n.sqrt() * gap < 2.7, "√n D = {}", n.sqrt() * gap);
    }

    #[test]
    fn tails_are_normal() {
        // Counts beyond ±x in 2^24 draws against the Poisson distribution that they nearly have;
        // bounds of five standard deviations, and at x = 5 (4.8 expected a side) at most 17: false
        // alarm below 2e-5 in all.
        let mut normals = Normals::new(4, 0, Purpose::Covariates);
        let mut counts = [[0_u32; 2]; 6];
        for _ in 0..1 << 24 {
            let z = normals.draw();
            for (x, count) in counts.iter_mut().enumerate().skip(1) {
                count[0] += u32::from(z > x as f64);
                count[1] += u32::from(z < -(x as f64));
            }
        }
        for (x, sides) in counts.into_iter().enumerate().skip(1) {
            let expected = tail(x as f64) * f64::from(1 << 24);
            for count in sides {
                let spread = 5.0 * expected.sqrt() + if x == 5 { 1.3 } else { 0.0 };
                assert!((f64::from(count) - expected).abs() < spread, "{count} beyond {x}");
            }
        }
    }

    /// The largest correlation between columns of 16 numbers and the same columns `lag` rows later.
    fn largest_correlation(a: &[f64], b: &[f64], lag: usize, same: bool) -> f64 {
        let mut sums = [[0.0; 16]; 16];
        let rows = a.len() / 16 - lag;
        for row in 0..rows {
            let (a, b) = (&a[16 * row..][..16], &b[16 * (row + lag)..][..16]);
            for i in 0..16 {
                for j in 0..16 {
                    sums[i][j] += a[i] * b[j];
                }
            }
        }
        let all = (0..16).flat_map(|i| (0..16).map(move |j| (i, j)));
        let apart = all.filter(|(i, j)| !(same && i == j));
        apart.map(|(i, j)| sums[i][j].abs() / (rows as f64).sqrt()).fold(0.0, f64::max)
    }

    #[test]
    fn lanes_steps_and_runs_are_uncorrelated() {
        // 65536 rows: sums are normal to high accuracy; 6 × 256 of them below six standard
        // deviations: false alarm 3e-6. Squares too, since Box–Muller shares a radius.
        let (a, b) = (draws(6, 0, 1 << 20), draws(6, 1, 1 << 20));
        let squares = |z: &[f64]| z.iter().map(|z| (z * z - 1.0) / 2_f64.sqrt()).collect();
        let (a2, b2): (Vec<f64>, Vec<f64>) = (squares(&a), squares(&b));
        for (z, other) in [(&a, &b), (&a2, &b2)] {
            assert!(largest_correlation(z, z, 0, true) < 6.0, "lanes");
            assert!(largest_correlation(z, z, 1, false) < 6.0, "steps");
            assert!(largest_correlation(z, other, 0, false) < 6.0, "runs");
        }
    }

    #[test]
    fn streams_differ_by_seed_index_and_purpose() {
        let first = |seed, index, purpose| Normals::new(seed, index, purpose).draw();
        let all = [
            first(0, 0, Purpose::Covariates),
            first(1, 0, Purpose::Covariates),
            first(0, 1, Purpose::Covariates),
            first(0, 0, Purpose::Brownian),
        ];
        for i in 0..4 {
            assert!(all[..i].iter().all(|x| *x != all[i]), "{all:?}");
        }
    }
}
