//! What the simulations share: streams of random numbers and vectorised loops over coordinates.
//!
//! Everything here works on eight lanes at a time, in the same order of operations whatever the
//! instruction set: AVX-512, AVX2 with FMA, or portable code with [`f64::mul_add`]. Only operations
//! that IEEE 754 rounds correctly are used (`+`, `-`, `×`, fused multiply–add, square root), so
//! **the bits do not depend on the instruction set**; the tests compare them. WebAssembly is the
//! exception: it has no fused operation, and its random numbers differ in the last bits.
//!
//! - `lanes`: the operations, and the portable form of them; `x86`: the two vector forms;
//! - [`isa`]: which of them this machine has;
//! - [`normal`]: standard normal numbers;
//! - [`step`]: one step of C-SGD in one pass over the coordinates, with or without momentum;
//! - [`teacher_step`]: with the logit of a teacher beside the model's;
//! - [`row`]: the two loops over a row of a data matrix.

mod isa;
mod lanes;
pub(crate) mod normal;
pub(crate) mod row;
pub(crate) mod step;
pub(crate) mod teacher_step;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use isa::InstructionSet;
pub use isa::Isa;
pub(crate) use lanes::{Kernel, Lanes};

use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_chacha::ChaCha8Rng;

/// What a stream of random numbers is for: streams of one run are independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// The coordinates of $x$.
    Covariates = 1,
    /// The noise $\epsilon$ in the targets.
    Noise = 2,
    /// The order of the rows of a data matrix.
    Order = 3,
    /// The Brownian motion of C-HSGD.
    Brownian = 4,
    /// $\chi^2$ lengths of the collapsed forms.
    Lengths = 5,
    /// The noise of private SGD.
    Privacy = 7,
}

/// The generator that all streams of run `index` of `seed` are seeded from.
///
/// Seed, index and purpose are the key of a cipher, so no two streams are related and none is
/// the continuation of another.
fn key(seed: u64, index: u64, purpose: Purpose) -> ChaCha8Rng {
    let mut bytes = [0; 32];
    for (to, word) in bytes.chunks_exact_mut(8).zip([seed, index, purpose as u64, KEY_TAG]) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    ChaCha8Rng::from_seed(bytes)
}

/// "toclip 1": changes if the meaning of seeds ever has to.
const KEY_TAG: u64 = u64::from_le_bytes(*b"toclip 1");

/// A scalar generator for run `index` of `seed`, to draw noise and whatever is not vectorised.
pub fn scalar_rng(seed: u64, index: u64, purpose: Purpose) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::from_rng(&mut key(seed, index, purpose))
}
