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
//! [`Batches`] embeds equal lines once and lines of one length together, without padding or
//! a mask. [`next_tokens`] and [`relative`] give the targets $b_k$.

mod batches;
mod config;
mod embedder;
mod error;
mod layers;
mod ops;
mod targets;
mod tokens;
mod transformer;
mod weights;

pub use batches::Batches;
pub use embedder::Embedder;
pub use error::{Error, Result};
pub use targets::{END_OF_TEXT, next_tokens, relative};
pub use transformer::Transformer;
