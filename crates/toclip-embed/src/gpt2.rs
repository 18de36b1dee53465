//! GPT-2 up to its last hidden state.

use std::path::Path;

use candle_core::{Device, Tensor};

use crate::config::Gpt2Config;
use crate::layers::{Attention, Block, Linear, Norm};
use crate::ops;
use crate::weights::Weights;
use crate::{Error, Result};

/// GPT-2: blocks of causal attention, normalised before each part, and once more at the end.
pub struct Gpt2 {
    tokens: Tensor,
    places: Tensor,
    layers: Vec<Layer>,
    norm: Norm,
    vocabulary: usize,
}

struct Layer {
    before_attention: Norm,
    attention: Attention,
    before_block: Norm,
    block: Block,
}

impl Gpt2 {
    /// Reads `config.json` and `model.safetensors` in a folder; names of tensors may begin with
    /// `transformer.` or not.
    ///
    /// # Errors
    /// A file is missing or is not what a GPT-2 needs; the message names it.
    pub fn read(folder: &Path) -> Result<Self> {
        let config = Gpt2Config::read(folder)?;
        let weights = Weights::open(folder, "transformer.")?;
        let width = config.n_embd;
        let layers = (0..config.n_layer)
            .map(|i| Layer::read(&weights, &config, i))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            tokens: weights.get("wte.weight", &[config.vocab_size, width])?,
            places: weights.get("wpe.weight", &[config.n_positions, width])?,
            layers,
            norm: norm(&weights, &config, "ln_f")?,
            vocabulary: config.vocab_size,
        })
    }

    /// The number of token ids.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The most tokens that the model can read at once.
    pub fn max_tokens(&self) -> usize {
        self.places.dims()[0]
    }

    /// The numbers in a vector.
    pub fn width(&self) -> usize {
        self.places.dims()[1]
    }

    /// The last hidden state, after the last normalisation, of sequences of one length:
    /// `(sequences, tokens, width)`.
    ///
    /// # Errors
    /// The sequences are empty, of several lengths or too long, or an id is out of range.
    pub fn last_hidden_state(&self, batch: &[&[u32]]) -> Result<Tensor> {
        let ids = id_tensor(batch, self.max_tokens(), self.vocabulary)?;
        let (_, length) = ids.dims2()?;
        let mut x = look_up(&self.tokens, &ids)?;
        ops::add(&x, &self.places.narrow(0, 0, length)?)?;
        for layer in &self.layers {
            let attended = layer.attention.forward(&layer.before_attention.forward(&x)?)?;
            ops::add(&attended, &x)?;
            x = layer.block.forward(&layer.before_block.forward(&attended)?)?;
            ops::add(&x, &attended)?;
        }
        Ok(self.norm.forward(&x)?)
    }
}

impl Layer {
    fn read(weights: &Weights, config: &Gpt2Config, index: usize) -> Result<Self> {
        let name = |part: &str| format!("h.{index}.{part}");
        let width = config.n_embd;
        let inner = config.n_inner.unwrap_or(4 * width);
        let mut scale = 1.0;
        if config.scale_attn_weights {
            scale /= ((width / config.n_head) as f64).sqrt();
        }
        if config.scale_attn_by_inverse_layer_idx {
            scale /= (index + 1) as f64;
        }
        let attention = Attention {
            project: linear(weights, &name("attn.c_attn"), width, 3 * width)?,
            output: linear(weights, &name("attn.c_proj"), width, width)?,
            heads: config.n_head,
            scale,
            causal: true,
        };
        let block = Block {
            inner: linear(weights, &name("mlp.c_fc"), width, inner)?,
            outer: linear(weights, &name("mlp.c_proj"), inner, width)?,
            activation: config.activation_function,
        };
        Ok(Self {
            before_attention: norm(weights, config, &name("ln_1"))?,
            attention,
            before_block: norm(weights, config, &name("ln_2"))?,
            block,
        })
    }
}

/// GPT-2's files hold the matrices as they are multiplied from the right: (in, out).
fn linear(weights: &Weights, name: &str, from: usize, to: usize) -> Result<Linear> {
    Ok(Linear {
        weight: weights.get(&format!("{name}.weight"), &[from, to])?,
        bias: weights.get(&format!("{name}.bias"), &[to])?,
    })
}

fn norm(weights: &Weights, config: &Gpt2Config, name: &str) -> Result<Norm> {
    Ok(Norm {
        weight: weights.get(&format!("{name}.weight"), &[config.n_embd])?,
        bias: weights.get(&format!("{name}.bias"), &[config.n_embd])?,
        epsilon: config.layer_norm_epsilon,
    })
}

/// The rows of a table that the ids name: (B, T) to (B, T, width).
pub(crate) fn look_up(table: &Tensor, ids: &Tensor) -> candle_core::Result<Tensor> {
    let (batch, length) = ids.dims2()?;
    table.index_select(&ids.flatten_all()?, 0)?.reshape((batch, length, ()))
}

/// Ids as a tensor (B, T), if a model with these limits can read them.
pub(crate) fn id_tensor(batch: &[&[u32]], most: usize, vocabulary: usize) -> Result<Tensor> {
    let length = batch.first().map_or(0, |ids| ids.len());
    if length == 0 || batch.iter().any(|ids| ids.len() != length) {
        let message = "a batch must hold sequences of one length, of at least one token";
        return Err(Error::Invalid(message.into()));
    }
    if length > most {
        let message = format!("{length} tokens are too many: the model reads at most {most}");
        return Err(Error::Invalid(message));
    }
    if let Some(id) = batch.iter().copied().flatten().find(|id| **id as usize >= vocabulary) {
        let message = format!("the token id {id} is out of range: the model knows {vocabulary}");
        return Err(Error::Invalid(message));
    }
    let shape = (batch.len(), length);
    Ok(Tensor::from_vec(batch.concat(), shape, &Device::Cpu)?)
}
