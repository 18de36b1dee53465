//! The binary; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    toclip_cli::main()
}
