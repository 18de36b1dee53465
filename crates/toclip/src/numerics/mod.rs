//! Special functions, quadrature, Gauss rules, sums, maxima, Student quantiles, Chebyshev series and
//! tables.

pub(crate) mod chebyshev;
pub(crate) mod complex;
pub(crate) mod gauss_rules;
pub(crate) mod maximise;
pub(crate) mod quadrature;
pub(crate) mod risk_table;
pub(crate) mod special;
pub(crate) mod student;
pub(crate) mod sum;
pub(crate) mod tridiagonal;
