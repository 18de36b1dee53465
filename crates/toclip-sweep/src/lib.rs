//! Sweeps: an experiment whose keys take several values, as a grid of cells that run one by one.
//!
//! A sweep file is an experiment file with `[vary]`, and where needed `[[together]]`, `[[exclude]]` and
//! `keep`. [`Sweep::read`] understands it, [`Sweep::check`] refuses what cannot run before anything does,
//! and [`Sweep::run`] computes one cell. A cell depends on nothing but the file and its number, so cells
//! may run anywhere and in any order.
//!
//! ```
//! use std::path::Path;
//! use std::sync::atomic::AtomicBool;
//! use toclip_sweep::Sweep;
//!
//! let text = r#"
//!     spectrum      = { kind = "isotropic", dim = 100 }
//!     start         = { kind = "uniform", norm = 1.0 }
//!     noise         = { family = "student_t", df = 2.5, scale = 0.5 }
//!     time          = 3.0
//!     learning_rate = 0.5
//!
//!     [vary]
//!     noise.df = [1.5, 3.0]
//!     clip     = { log = [0.1, 10.0], count = 3 }
//! "#;
//! let sweep = Sweep::parse(text, Path::new("tails.toml"))?;
//! assert_eq!((sweep.cells(), sweep.columns()[0].as_str()), (6, "ode_final_risk"));
//! let row = sweep.run(4, &AtomicBool::new(false)).unwrap();
//! assert!(row.values[0] < 0.5 && row.error.is_none());
//! # Ok::<(), toclip_sweep::Error>(())
//! ```

mod axis;
mod cell;
mod check;
mod dotted_keys;
mod error;
mod exclude;
mod keep;
mod row;
mod shard;
mod sweep;

pub use axis::{KeyKind, KeyValues, SweepAxis, number, text};
pub use error::{Error, Result};
pub use keep::{Keep, Measure};
pub use row::{CellCurve, Row};
pub use shard::Shard;
pub use sweep::{MOST_CELLS, Sweep};
