//! Lines of text as vectors, for `toclip`: the samples $x_k$ of the paper's figure 1d.
//!
//! [`Embedder::open`] takes a folder with `config.json` and `model.safetensors` as they are usually
//! published, and gives each line of text one vector of `f32`:
//!
//! | `model_type` | tokens | vector |
//! |---|---|---|
//! | `gpt2` | GPT-2's byte pairs | mean over tokens of the last hidden state, after the last normalisation |
//! | `bert` | `tokenizer.json` | the same, scaled to length 1 where the folder's `modules.json` asks for it |
//!
//! [`Batches`] embeds equal lines once and lines of one length together, so that nothing is padded
//! and no mask is needed. [`next_tokens`] and [`relative`] give the targets $b_k$.

mod batches;
mod bert;
mod config;
mod embedder;
mod error;
mod gpt2;
mod layers;
mod ops;
mod targets;
mod tokens;
mod weights;

pub use batches::Batches;
pub use bert::Bert;
pub use embedder::Embedder;
pub use error::{Error, Result};
pub use gpt2::Gpt2;
pub use targets::{END_OF_TEXT, next_tokens, relative};
