//! A model with its tokenizer: from lines to vectors.

use std::path::Path;

use candle_core::{D, Tensor};

use crate::config::{Sentence, model_type};
use crate::error::bail;
use crate::tokens::Tokens;
use crate::{Result, Transformer};

/// A model in a folder, ready to embed lines.
pub struct Embedder {
    model: Transformer,
    tokens: Tokens,
    max_tokens: usize,
    /// For a BERT.
    sentence: Option<Sentence>,
}

impl Embedder {
    /// Opens the model in a folder: `config.json`, `model.safetensors`, and `tokenizer.json`, which
    /// a GPT-2 does not need. Lines are truncated to `max_tokens`, or to what the model can read.
    ///
    /// # Errors
    /// A file is missing or wrong; the message names it.
    pub fn open(folder: &Path, max_tokens: usize) -> Result<Self> {
        if max_tokens == 0 {
            bail!("the number of tokens of a line must be at least 1");
        }
        let (sentence, model) = match model_type(folder)?.as_str() {
            "gpt2" => (None, Transformer::gpt2(folder)?),
            "bert" => (Some(Sentence::read(folder)?), Transformer::bert(folder)?),
            other => {
                bail!(in &folder.join("config.json"), "unknown model_type `{other}`; expected \
                           one of: gpt2, bert")
            }
        };
        let trained_for = sentence.and_then(|s| s.max_tokens).unwrap_or(usize::MAX);
        let max_tokens = max_tokens.min(model.tables.max_tokens()).min(trained_for);
        let vocabulary = model.tables.vocabulary();
        let tokens = match sentence {
            None => Tokens::for_gpt2(folder, vocabulary, max_tokens)?,
            Some(_) => Tokens::read(folder, vocabulary, max_tokens)?,
        };
        Ok(Self { model, tokens, max_tokens, sentence })
    }

    /// The length of a vector.
    pub fn width(&self) -> usize {
        self.model.tables.width()
    }

    /// The most tokens of a line that are read.
    pub fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// A description of the vectors.
    pub fn describe(&self) -> &'static str {
        match self.sentence.map(|sentence| sentence.normalise) {
            None => "GPT-2, mean of the last hidden state",
            Some(true) => "BERT, mean of the last hidden state, scaled to length 1",
            Some(false) => "BERT, mean of the last hidden state",
        }
    }

    /// The token ids of a line, at least one and at most [`Embedder::max_tokens`].
    ///
    /// # Errors
    /// The line cannot be tokenized.
    pub fn ids(&self, line: &str) -> Result<Vec<u32>> {
        self.tokens.ids(line, self.max_tokens)
    }

    /// One vector for each sequence of ids, all of one length.
    ///
    /// # Errors
    /// The sequences are empty, of several lengths or too long, or a vector is not finite, which
    /// only damaged weights can cause.
    pub fn embed(&self, batch: &[&[u32]]) -> Result<Vec<Vec<f32>>> {
        let mut means = self.model.last_hidden_state(batch)?.mean(D::Minus2)?;
        if self.sentence.is_some_and(|sentence| sentence.normalise) {
            means = to_length_one(&means)?;
        }
        let vectors = means.to_vec2::<f32>()?;
        if vectors.iter().flatten().any(|x| !x.is_finite()) {
            bail!("a vector of the model is not finite; are its weights damaged?");
        }
        Ok(vectors)
    }
}

/// Each row divided by its length. A zero row stays: its length counts as at least 1e-12.
fn to_length_one(rows: &Tensor) -> candle_core::Result<Tensor> {
    let lengths = rows.sqr()?.sum_keepdim(1)?.sqrt()?;
    rows.broadcast_div(&lengths.maximum(1e-12_f32)?)
}
