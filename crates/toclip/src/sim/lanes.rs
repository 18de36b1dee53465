//! Eight lanes of `f64` or `u64`: the operations that the loops are written in.

/// An instruction set, seen as operations on eight lanes.
///
/// A value of an implementing type is the proof that the machine has the instructions, so its
/// methods are safe to call.
pub(crate) trait Lanes: Copy {
    /// Eight `f64`.
    type F: Copy;
    /// Eight `u64`.
    type U: Copy;

    fn splat(self, x: f64) -> Self::F;
    fn load(self, from: &[f64; 8]) -> Self::F;
    fn store(self, x: Self::F, to: &mut [f64; 8]);
    fn load_u(self, from: &[u64; 8]) -> Self::U;
    fn store_u(self, x: Self::U, to: &mut [u64; 8]);

    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// $ab + c$, rounded once.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// $c - ab$, rounded once.
    fn fnma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    fn sqrt(self, a: Self::F) -> Self::F;
    /// $a$ where $a < b$, else $b$: the second where one is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// $a$ where $a > b$, else $b$: the second where one is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;

    /// The next output of eight xoshiro256++ generators (Blackman and Vigna 2021).
    fn next(self, state: &mut [Self::U; 4]) -> Self::U;
    /// $1 + j/2^{52}$ with $j$ the upper 52 bits.
    fn unit(self, bits: Self::U) -> Self::F;
    /// $\pm a$, minus where the lowest bit is set.
    fn flip(self, a: Self::F, bits: Self::U) -> Self::F;
    /// $e$ of $a = m\thinspace 2^e$, $1 \le m < 2$, for normal positive $a$.
    fn exponent(self, a: Self::F) -> Self::F;
    /// $m$ of $a = m\thinspace 2^e$, $1 \le m < 2$, for normal positive $a$.
    fn mantissa(self, a: Self::F) -> Self::F;
}

/// A loop written over [`Lanes`], to be compiled for each instruction set.
pub(crate) trait Kernel {
    type Output;
    /// Implementations are `#[inline(always)]`, so that the body is compiled with the instructions
    /// of its caller.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// $\sum_n c_n x^n$ by Horner's rule.
#[inline(always)]
pub(super) fn horner<L: Lanes, const N: usize>(l: L, x: L::F, coefficients: &[f64; N]) -> L::F {
    let mut sum = l.splat(coefficients[N - 1]);
    for &c in coefficients[..N - 1].iter().rev() {
        sum = l.fma(sum, x, l.splat(c));
    }
    sum
}

/// The sum over the lanes, in the order that halving a register gives.
#[inline(always)]
pub(super) fn total<L: Lanes>(l: L, x: L::F) -> f64 {
    let mut a = [0.0; 8];
    l.store(x, &mut a);
    ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
}

/// Plain Rust, for every machine.
#[derive(Clone, Copy)]
pub(super) struct Portable;

#[inline(always)]
fn each<T: Copy, U: Copy + Default>(a: [T; 8], f: impl Fn(T) -> U) -> [U; 8] {
    let mut out = [U::default(); 8];
    for (o, x) in out.iter_mut().zip(a) {
        *o = f(x);
    }
    out
}

#[inline(always)]
fn both<T: Copy + Default>(a: [T; 8], b: [T; 8], f: impl Fn(T, T) -> T) -> [T; 8] {
    let mut out = [T::default(); 8];
    for ((o, x), y) in out.iter_mut().zip(a).zip(b) {
        *o = f(x, y);
    }
    out
}

impl Lanes for Portable {
    type F = [f64; 8];
    type U = [u64; 8];

    #[inline(always)]
    fn splat(self, x: f64) -> Self::F {
        [x; 8]
    }
    #[inline(always)]
    fn load(self, from: &[f64; 8]) -> Self::F {
        *from
    }
    #[inline(always)]
    fn store(self, x: Self::F, to: &mut [f64; 8]) {
        *to = x;
    }
    #[inline(always)]
    fn load_u(self, from: &[u64; 8]) -> Self::U {
        *from
    }
    #[inline(always)]
    fn store_u(self, x: Self::U, to: &mut [u64; 8]) {
        *to = x;
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        both(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        both(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        both(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, mut c: Self::F) -> Self::F {
        for i in 0..8 {
            c[i] = fused(a[i], b[i], c[i]);
        }
        c
    }
    #[inline(always)]
    fn fnma(self, a: Self::F, b: Self::F, mut c: Self::F) -> Self::F {
        for i in 0..8 {
            c[i] = fused(-a[i], b[i], c[i]);
        }
        c
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        each(a, f64::sqrt)
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        both(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        both(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn next(self, s: &mut [Self::U; 4]) -> Self::U {
        let mut out = [0; 8];
        for (i, o) in out.iter_mut().enumerate() {
            let [s0, s1, s2, s3] = [s[0][i], s[1][i], s[2][i], s[3][i]];
            *o = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
            let (s2, s3) = (s2 ^ s0, s3 ^ s1);
            s[1][i] = s1 ^ s2;
            s[0][i] = s0 ^ s3;
            s[2][i] = s2 ^ (s1 << 17);
            s[3][i] = s3.rotate_left(45);
        }
        out
    }
    #[inline(always)]
    fn unit(self, bits: Self::U) -> Self::F {
        each(bits, |b| f64::from_bits(b >> 12 | ONE))
    }
    #[inline(always)]
    fn flip(self, mut a: Self::F, bits: Self::U) -> Self::F {
        for i in 0..8 {
            a[i] = f64::from_bits(a[i].to_bits() ^ bits[i] << 63);
        }
        a
    }
    #[inline(always)]
    fn exponent(self, a: Self::F) -> Self::F {
        each(a, |a| (a.to_bits() >> 52) as f64 - 1023.0)
    }
    #[inline(always)]
    fn mantissa(self, a: Self::F) -> Self::F {
        each(a, |a| f64::from_bits(a.to_bits() & MANTISSA | ONE))
    }
}

/// $ab + c$, rounded once; twice in WebAssembly, which has no such instruction and would emulate it
/// a hundred times slower.
#[inline(always)]
pub(super) fn fused(a: f64, b: f64, c: f64) -> f64 {
    if cfg!(target_family = "wasm") { a * b + c } else { a.mul_add(b, c) }
}

/// The bits of 1.0.
pub(super) const ONE: u64 = 0x3ff0_0000_0000_0000;
/// The bits of the fraction of an `f64`.
pub(super) const MANTISSA: u64 = 0x000f_ffff_ffff_ffff;
