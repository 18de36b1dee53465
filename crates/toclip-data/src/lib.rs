//! Data for `toclip`: matrices and spectra from files.
