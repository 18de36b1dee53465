//! The eight lanes as one register of AVX-512, or as two of AVX2.

use super::lanes::{Kernel, Lanes, MANTISSA, ONE};
use std::arch::x86_64::*;

/// One 512-bit register.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

/// Two 256-bit registers.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Runs a kernel with AVX-512.
///
/// # Safety
/// The machine must have AVX-512F and AVX-512DQ.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) unsafe fn with_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512(()))
}

/// Runs a kernel with AVX2 and FMA.
///
/// # Safety
/// The machine must have AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

// SAFETY of all blocks below: the tokens are made only by the two functions above, whose callers
// promise the instructions; loads and stores go through references to exactly 64 bytes and need
// no alignment.

impl Lanes for Avx512 {
    type F = __m512d;
    type U = __m512i;

    #[inline(always)]
    fn splat(self, x: f64) -> __m512d {
        unsafe { _mm512_set1_pd(x) }
    }
    #[inline(always)]
    fn load(self, from: &[f64; 8]) -> __m512d {
        unsafe { _mm512_loadu_pd(from.as_ptr()) }
    }
    #[inline(always)]
    fn store(self, x: __m512d, to: &mut [f64; 8]) {
        unsafe { _mm512_storeu_pd(to.as_mut_ptr(), x) }
    }
    #[inline(always)]
    fn load_u(self, from: &[u64; 8]) -> __m512i {
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store_u(self, x: __m512i, to: &mut [u64; 8]) {
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), x) }
    }
    #[inline(always)]
    fn add(self, a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_add_pd(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_sub_pd(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_mul_pd(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }
    #[inline(always)]
    fn fnma(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        unsafe { _mm512_fnmadd_pd(a, b, c) }
    }
    #[inline(always)]
    fn sqrt(self, a: __m512d) -> __m512d {
        unsafe { _mm512_sqrt_pd(a) }
    }
    #[inline(always)]
    fn min(self, a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_min_pd(a, b) }
    }
    #[inline(always)]
    fn max(self, a: __m512d, b: __m512d) -> __m512d {
        unsafe { _mm512_max_pd(a, b) }
    }
    #[inline(always)]
    fn next(self, s: &mut [__m512i; 4]) -> __m512i {
        unsafe {
            let [s0, s1, s2, s3] = *s;
            let out = _mm512_add_epi64(_mm512_rol_epi64::<23>(_mm512_add_epi64(s0, s3)), s0);
            let (t2, t3) = (_mm512_xor_si512(s2, s0), _mm512_xor_si512(s3, s1));
            s[1] = _mm512_xor_si512(s1, t2);
            s[0] = _mm512_xor_si512(s0, t3);
            s[2] = _mm512_xor_si512(t2, _mm512_slli_epi64::<17>(s1));
            s[3] = _mm512_rol_epi64::<45>(t3);
            out
        }
    }
    #[inline(always)]
    fn unit(self, bits: __m512i) -> __m512d {
        unsafe {
            let one = _mm512_set1_epi64(ONE as i64);
            _mm512_castsi512_pd(_mm512_or_si512(_mm512_srli_epi64::<12>(bits), one))
        }
    }
    #[inline(always)]
    fn flip(self, a: __m512d, bits: __m512i) -> __m512d {
        unsafe { _mm512_xor_pd(a, _mm512_castsi512_pd(_mm512_slli_epi64::<63>(bits))) }
    }
    #[inline(always)]
    fn exponent(self, a: __m512d) -> __m512d {
        unsafe { _mm512_getexp_pd(a) }
    }
    #[inline(always)]
    fn mantissa(self, a: __m512d) -> __m512d {
        unsafe { _mm512_getmant_pd::<_MM_MANT_NORM_1_2, _MM_MANT_SIGN_SRC>(a) }
    }
}

/// An operation on both halves. A closure would be a function without the instructions.
macro_rules! halves {
    ($op:ident($($x:expr),*)) => {
        unsafe { [$op($($x[0]),*), $op($($x[1]),*)] }
    };
    (|$x:ident| $body:block) => {
        unsafe { [{ let $x = $x[0]; $body }, { let $x = $x[1]; $body }] }
    };
}

impl Lanes for Avx2 {
    type F = [__m256d; 2];
    type U = [__m256i; 2];

    #[inline(always)]
    fn splat(self, x: f64) -> Self::F {
        unsafe { [_mm256_set1_pd(x); 2] }
    }
    #[inline(always)]
    fn load(self, from: &[f64; 8]) -> Self::F {
        unsafe { [_mm256_loadu_pd(from.as_ptr()), _mm256_loadu_pd(from.as_ptr().add(4))] }
    }
    #[inline(always)]
    fn store(self, x: Self::F, to: &mut [f64; 8]) {
        unsafe {
            _mm256_storeu_pd(to.as_mut_ptr(), x[0]);
            _mm256_storeu_pd(to.as_mut_ptr().add(4), x[1]);
        }
    }
    #[inline(always)]
    fn load_u(self, from: &[u64; 8]) -> Self::U {
        let from = from.as_ptr().cast::<__m256i>();
        unsafe { [_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1))] }
    }
    #[inline(always)]
    fn store_u(self, x: Self::U, to: &mut [u64; 8]) {
        let to = to.as_mut_ptr().cast::<__m256i>();
        unsafe {
            _mm256_storeu_si256(to, x[0]);
            _mm256_storeu_si256(to.add(1), x[1]);
        }
    }
    #[inline(always)]
    fn add(self, a: Self::F, b: Self::F) -> Self::F {
        halves!(_mm256_add_pd(a, b))
    }
    #[inline(always)]
    fn sub(self, a: Self::F, b: Self::F) -> Self::F {
        halves!(_mm256_sub_pd(a, b))
    }
    #[inline(always)]
    fn mul(self, a: Self::F, b: Self::F) -> Self::F {
        halves!(_mm256_mul_pd(a, b))
    }
    #[inline(always)]
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        halves!(_mm256_fmadd_pd(a, b, c))
    }
    #[inline(always)]
    fn fnma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F {
        halves!(_mm256_fnmadd_pd(a, b, c))
    }
    #[inline(always)]
    fn sqrt(self, a: Self::F) -> Self::F {
        halves!(_mm256_sqrt_pd(a))
    }
    #[inline(always)]
    fn min(self, a: Self::F, b: Self::F) -> Self::F {
        halves!(_mm256_min_pd(a, b))
    }
    #[inline(always)]
    fn max(self, a: Self::F, b: Self::F) -> Self::F {
        halves!(_mm256_max_pd(a, b))
    }
    #[inline(always)]
    fn next(self, s: &mut [Self::U; 4]) -> Self::U {
        let mut out = s[0];
        for (h, o) in out.iter_mut().enumerate() {
            unsafe {
                let [s0, s1, s2, s3] = [s[0][h], s[1][h], s[2][h], s[3][h]];
                let sum = _mm256_add_epi64(s0, s3);
                let high = _mm256_slli_epi64::<23>(sum);
                let turned = _mm256_or_si256(high, _mm256_srli_epi64::<41>(sum));
                *o = _mm256_add_epi64(turned, s0);
                let (t2, t3) = (_mm256_xor_si256(s2, s0), _mm256_xor_si256(s3, s1));
                s[1][h] = _mm256_xor_si256(s1, t2);
                s[0][h] = _mm256_xor_si256(s0, t3);
                s[2][h] = _mm256_xor_si256(t2, _mm256_slli_epi64::<17>(s1));
                let high = _mm256_slli_epi64::<45>(t3);
                s[3][h] = _mm256_or_si256(high, _mm256_srli_epi64::<19>(t3));
            }
        }
        out
    }
    #[inline(always)]
    fn unit(self, bits: Self::U) -> Self::F {
        halves!(|bits| {
            let one = _mm256_set1_epi64x(ONE as i64);
            _mm256_castsi256_pd(_mm256_or_si256(_mm256_srli_epi64::<12>(bits), one))
        })
    }
    #[inline(always)]
    fn flip(self, a: Self::F, bits: Self::U) -> Self::F {
        let signs = halves!(|bits| { _mm256_castsi256_pd(_mm256_slli_epi64::<63>(bits)) });
        halves!(_mm256_xor_pd(a, signs))
    }
    #[inline(always)]
    fn exponent(self, a: Self::F) -> Self::F {
        // An integer below 2^52 put into the fraction of 2^52 is that integer added.
        const SHIFT: f64 = (1_u64 << 52) as f64;
        halves!(|a| {
            let biased = _mm256_srli_epi64::<52>(_mm256_castpd_si256(a));
            let shifted = _mm256_or_pd(_mm256_castsi256_pd(biased), _mm256_set1_pd(SHIFT));
            _mm256_sub_pd(shifted, _mm256_set1_pd(SHIFT + 1023.0))
        })
    }
    #[inline(always)]
    fn mantissa(self, a: Self::F) -> Self::F {
        halves!(|a| {
            let fraction = _mm256_and_pd(a, _mm256_set1_pd(f64::from_bits(MANTISSA)));
            _mm256_or_pd(fraction, _mm256_set1_pd(1.0))
        })
    }
}
