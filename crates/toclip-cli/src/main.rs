//! The command `toclip`.
fn main() {}
