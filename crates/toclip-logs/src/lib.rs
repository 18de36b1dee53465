//! Training logs for `toclip`: gradient norms out of what people have, and advice from them.
//!
//! [`read()`] goes over a log of any supported format once, in bounded memory, and hands on rows;
//! [`load`] keeps what the analysis needs and names the log's traps ([`Finding`]);
//! [`advise::advise`] answers what a person wants to know.
//! What no format has in common is in one file each; what they share is that columns are found by
//! their names and can be given by the user ([`Options`]).

pub mod advise;
mod choose;
mod collect;
mod csv;
mod error;
mod events;
mod finding;
mod format;
mod objects;
mod order;
mod pile;
mod read;
mod roles;
mod row;
mod source;
mod text;
mod traps;
mod words;

pub use choose::Column;
pub use collect::{Log, Point, load};
pub use error::{Error, Result};
pub use finding::Finding;
pub use format::Format;
pub use read::{Options, Reading, read};
pub use roles::Role;
pub use row::Row;
