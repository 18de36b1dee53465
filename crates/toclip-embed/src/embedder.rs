//! A model and its tokens: lines in, vectors out.

use std::path::Path;

use candle_core::Tensor;

use crate::config::{Sentence, model_type};
use crate::layers::mean_over_tokens;
use crate::tokens::Tokens;
use crate::{Bert, Error, Gpt2, Result};

/// A model in a folder, ready to embed lines.
pub struct Embedder {
    model: Model,
    tokens: Tokens,
    max_tokens: usize,
    normalise: bool,
}

enum Model {
    Gpt2(Gpt2),
    Bert(Bert),
}

impl Embedder {
    /// Opens the model in a folder: `config.json`, `model.safetensors`, and `tokenizer.json`, which
    /// a GPT-2 can do without. Lines are cut to `max_tokens`, or to what the model can read.
    ///
    /// # Errors
    /// A file is missing or not what it should be; the message names it.
    pub fn open(folder: &Path, max_tokens: usize) -> Result<Self> {
        if max_tokens == 0 {
            return Err(Error::Invalid("a line needs room for at least one token".into()));
        }
        match model_type(folder)?.as_str() {
            "gpt2" => {
                let model = Gpt2::read(folder)?;
                let max_tokens = max_tokens.min(model.tables.max_tokens());
                let tokens = Tokens::for_gpt2(folder, model.tables.vocabulary(), max_tokens)?;
                Ok(Self { model: Model::Gpt2(model), tokens, max_tokens, normalise: false })
            }
            "bert" => {
                let sentence = Sentence::read(folder)?;
                let model = Bert::read(folder)?;
                let trained_for = sentence.max_tokens.unwrap_or(usize::MAX);
                let max_tokens = max_tokens.min(model.tables.max_tokens()).min(trained_for);
                let tokens = Tokens::read(folder, model.tables.vocabulary(), max_tokens)?;
                let normalise = sentence.normalise;
                Ok(Self { model: Model::Bert(model), tokens, max_tokens, normalise })
            }
            other => Err(Error::file(
                &folder.join("config.json"),
                format!("model_type {other:?}: only \"gpt2\" and \"bert\" are known"),
            )),
        }
    }

    /// The numbers in a vector.
    pub fn width(&self) -> usize {
        match &self.model {
            Model::Gpt2(model) => model.tables.width(),
            Model::Bert(model) => model.tables.width(),
        }
    }

    /// The most tokens of a line that are read.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// What the vectors are, in words.
    pub fn rule(&self) -> &'static str {
        match (&self.model, self.normalise) {
            (Model::Gpt2(_), _) => "GPT-2, mean of the last hidden state",
            (Model::Bert(_), true) => "BERT, mean of the last hidden state, scaled to length 1",
            (Model::Bert(_), false) => "BERT, mean of the last hidden state",
        }
    }

    /// The token ids of a line, at least one and at most [`Embedder::max_tokens`].
    ///
    /// # Errors
    /// The tokenizer refuses the line.
    pub fn ids(&self, line: &str) -> Result<Vec<u32>> {
        self.tokens.ids(line, self.max_tokens)
    }

    /// One vector for each sequence of ids, all of one length.
    ///
    /// # Errors
    /// The sequences are empty, of several lengths or too long, or a vector is not finite, which
    /// only damaged weights can bring about.
    pub fn embed(&self, batch: &[&[u32]]) -> Result<Vec<Vec<f32>>> {
        let states = match &self.model {
            Model::Gpt2(model) => model.last_hidden_state(batch)?,
            Model::Bert(model) => model.last_hidden_state(batch)?,
        };
        let means = mean_over_tokens(&states)?;
        let means = if self.normalise { to_length_one(&means)? } else { means };
        let vectors = means.to_vec2::<f32>()?;
        if vectors.iter().flatten().any(|x| !x.is_finite()) {
            let message = "the model gives a number that is not finite; are its weights damaged?";
            return Err(Error::Invalid(message.into()));
        }
        Ok(vectors)
    }
}

/// Each row divided by its length. A zero row stays: its length counts as at least 1e-12.
fn to_length_one(rows: &Tensor) -> candle_core::Result<Tensor> {
    let lengths = rows.sqr()?.sum_keepdim(1)?.sqrt()?;
    rows.broadcast_div(&lengths.maximum(1e-12_f32)?)
}
