//! What is done with the reshaped gradient.

pub(crate) mod momentum;
