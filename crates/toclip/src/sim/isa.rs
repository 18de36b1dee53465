//! Which instructions this machine has.

use super::lanes::{Kernel, Portable};
use crate::error::{Error, Result};

/// A set of vector instructions that the full simulation can use.
///
/// The best one is found when a simulation starts. Results are the same to the last bit with every
/// one of them; choosing one is for benchmarks and tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InstructionSet {
    /// AVX-512F and AVX-512DQ: eight numbers a register.
    Avx512,
    /// AVX2 and FMA: four numbers a register.
    Avx2,
    /// Whatever the compiler makes of plain Rust; slow on x86, where the fused multiply–add then is
    /// a function call.
    Portable,
}

impl InstructionSet {
    /// Those that this machine has, the fastest first.
    ///
    /// ```
    /// use toclip::dynamics::InstructionSet;
    /// assert!(InstructionSet::available().contains(&InstructionSet::Portable));
    /// ```
    pub fn available() -> Vec<Self> {
        let all = [Self::Avx512, Self::Avx2, Self::Portable];
        all.into_iter().filter(|set| set.is_available()).collect()
    }

    fn is_available(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Portable => true,
        }
    }
}

/// An instruction set that this machine has been found to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(InstructionSet);

impl Isa {
    /// The fastest that this machine has.
    pub fn best() -> Self {
        let all = [InstructionSet::Avx512, InstructionSet::Avx2];
        Self(all.into_iter().find(|set| set.is_available()).unwrap_or(InstructionSet::Portable))
    }

    /// A given one.
    ///
    /// # Errors
    /// [`Error::MissingInstructions`] if this machine does not have it.
    pub fn new(set: InstructionSet) -> Result<Self> {
        if set.is_available() {
            Ok(Self(set))
        } else {
            Err(Error::MissingInstructions { set, available: InstructionSet::available() })
        }
    }

    /// Runs a loop compiled for this instruction set.
    #[inline]
    pub(crate) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self.0 {
            // SAFETY: the constructors found the instructions on this machine.
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx512 => unsafe { super::x86::with_avx512(kernel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => unsafe { super::x86::with_avx2(kernel) },
            _ => kernel.run(Portable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_is_the_first_available() {
        assert_eq!(Isa::best().0, InstructionSet::available()[0]);
    }

    #[test]
    #[cfg(not(target_arch = "x86_64"))]
    fn missing_instructions_are_refused() {
        let message = Isa::new(InstructionSet::Avx2).unwrap_err().to_string();
        assert!(message.contains("does not have Avx2"), "{message}");
    }
}
