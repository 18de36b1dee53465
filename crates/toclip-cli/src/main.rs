//! The command `toclip`.

#[allow(dead_code, unused_imports)]
mod plot;

fn main() {}
