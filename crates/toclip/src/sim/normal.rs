//! Standard normal numbers, sixteen at a time.
//!
//! Eight interleaved xoshiro256++ generators give one `u64` for every number. Two of them, $j$ and
//! $k$ of 52 bits and a spare bit $b$, make a pair by the method of Box and Muller (1958):
//! $$z = \sqrt{-2 \ln u}\\,\bigl((-1)^b \cos \pi x,\\ \sin \pi x\bigr), \qquad
//! u = (j + \tfrac12)/2^{52}, \quad x = k/2^{52} - \tfrac12.$$
//!
//! Quality: radius and angle have $2^{52}$ and $2^{53}$ equally likely values; $|z| \le 8.57$, which
//! cuts off a probability of $10^{-17}$. The logarithm is in error by at most $2 \times 10^{-12}$,
//! sine and cosine by $10^{-12}$ (absolute): $10^{23}$ draws would be needed to notice.

use super::lanes::{Kernel, Lanes, horner};
use super::{Isa, Purpose, key};
use rand::Rng;

/// Sixteen numbers on their own cache lines: what one call of the generator makes.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub(crate) struct Block {
    pub(crate) first: [f64; 8],
    pub(crate) second: [f64; 8],
}

impl Block {
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

    /// The numbers in order.
    pub(crate) fn values(blocks: &[Self]) -> impl Iterator<Item = f64> + '_ {
        blocks.iter().flat_map(|b| b.first.into_iter().chain(b.second))
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

/// $q(v) = -\ln(1 - v/2)/v$ on $[0, 1]$, to $1.8 \times 10^{-12}$ in $v\\,q(v)$: interpolation at
/// Chebyshev points, as the two below.
#[expect(clippy::excessive_precision, reason = "kept as computed")]
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

use std::f64::consts::LN_2;

struct Fill<'a> {
    streams: &'a mut Streams,
    blocks: &'a mut [Block],
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
pub(crate) fn fill(isa: Isa, streams: &mut Streams, blocks: &mut [Block]) {
    isa.run(Fill { streams, blocks });
}

/// A sequence of standard normal numbers, one by one or many at a time.
#[derive(Debug, Clone)]
pub(crate) struct Normals {
    isa: Isa,
    streams: Streams,
    ready: [Block; Normals::BLOCKS],
    used: usize,
}

impl Normals {
    const BLOCKS: usize = 8;
    const READY: usize = Self::BLOCKS * Block::LEN;

    /// The sequence of run `index` of `seed`; the bits are the same on every machine.
    pub(crate) fn new(seed: u64, index: u64, purpose: Purpose) -> Self {
        Self::on(Isa::best(), seed, index, purpose)
    }

    fn on(isa: Isa, seed: u64, index: u64, purpose: Purpose) -> Self {
        let streams = Streams::new(seed, index, purpose);
        Self { isa, streams, ready: [Block::ZERO; Self::BLOCKS], used: Self::READY }
    }

    /// The next number.
    #[inline]
    pub(crate) fn draw(&mut self) -> f64 {
        if self.used == Self::READY {
            self.refill();
        }
        let (block, place) = (self.used / Block::LEN, self.used % Block::LEN);
        self.used += 1;
        let block = &self.ready[block];
        if place < 8 { block.first[place] } else { block.second[place - 8] }
    }

    /// The next numbers, as many as fit.
    pub(crate) fn fill(&mut self, out: &mut [f64]) {
        for x in out {
            *x = self.draw();
        }
    }

    #[cold]
    fn refill(&mut self) {
        fill(self.isa, &mut self.streams, &mut self.ready);
        self.used = 0;
    }
}
