//! What no spectrum and no start are.

/// Eigenvalues that no covariance has, or groups that do not divide them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpectrumError {
    /// A block without dimensions.
    #[error("block {} of {count} has multiplicity 0; give at least 1 or leave it out", block + 1)]
    NoMultiplicity {
        /// Which, from 0.
        block: usize,
        /// How many there are.
        count: usize,
    },
    /// More dimensions than can be counted.
    #[error("the multiplicities add up to more than 2^64 dimensions")]
    TooManyDimensions,
    /// An eigenvalue that is infinite or not a number.
    #[error("eigenvalue {} of {count} is {value}; all must be finite", index + 1)]
    NotFinite {
        /// Which, from 0.
        index: usize,
        /// How many there are.
        count: usize,
        /// Its value.
        value: f64,
    },
    /// An eigenvalue below zero.
    #[error(
        "eigenvalue {} of {count} is {value}; a covariance has none below zero (rounding down to \
         {rounding:e} of the largest, here {largest}, is allowed)", index + 1
    )]
    Negative {
        /// Which, from 0.
        index: usize,
        /// How many there are.
        count: usize,
        /// Its value.
        value: f64,
        /// The largest eigenvalue.
        largest: f64,
        /// The share of it that counts as rounding.
        rounding: f64,
    },
    /// No eigenvalues.
    #[error("a spectrum needs at least one positive eigenvalue, but the list is empty")]
    Empty,
    /// Eigenvalues that are all zero.
    #[error("a spectrum needs at least one positive eigenvalue, but all are zero")]
    AllZero,
    /// Groups that do not divide the coordinates.
    #[error(
        "groups of sizes {sizes:?} must each have a coordinate and together have all {dimensions} \
         of the spectrum"
    )]
    Groups {
        /// Their sizes.
        sizes: Vec<u64>,
        /// The coordinates of the spectrum.
        dimensions: u64,
    },
    /// A spectrum that is in a file.
    #[error(
        "the spectrum is in the file {path:?}, and this crate reads no files; \
         `toclip_data::resolve_spectrum` does"
    )]
    File {
        /// The file.
        path: String,
    },
}

/// A start that does not fit the spectrum.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A squared length beyond the range of numbers.
    #[error("the vector is too long: its squared length overflows")]
    TooFar,
    /// Another number of coordinates than the spectrum has eigenvalues.
    #[error("{coordinates} coordinates for {eigenvalues} eigenvalues; give one for each")]
    Coordinates {
        /// The coordinates of the start.
        coordinates: usize,
        /// The eigenvalues, with their multiplicities.
        eigenvalues: u64,
    },
    /// A coordinate that is infinite or not a number.
    #[error("coordinate {} of {count} is {value}; all must be finite", index + 1)]
    NotFinite {
        /// Which, from 0.
        index: usize,
        /// How many there are.
        count: usize,
        /// Its value.
        value: f64,
    },
    /// A power law with too many coordinates.
    #[error(
        "a power-law start in {dimensions} dimensions: at most {largest} coordinates are written \
         out; use a uniform or a random start"
    )]
    TooManyCoordinates {
        /// The dimensions of the spectrum.
        dimensions: u64,
        /// The most that are written out.
        largest: u64,
    },
}
