//! GPT-2 up to its last hidden state.

use std::path::Path;

use candle_core::Tensor;

use crate::Result;
use crate::config::Gpt2Config;
use crate::layers::{Attention, Block, Norm, Tables};
use crate::ops;
use crate::weights::Weights;

/// GPT-2: blocks of causal attention, normalised before each part, and once more at the end.
pub struct Gpt2 {
    pub(crate) tables: Tables,
    layers: Vec<Layer>,
    norm: Norm,
}

struct Layer {
    before_attention: Norm,
    attention: Attention,
    before_block: Norm,
    block: Block,
}

impl Gpt2 {
    /// Reads `config.json` and `model.safetensors` in a folder; the names of the tensors may start
    /// with `transformer.`.
    ///
    /// # Errors
    /// A file is missing or does not fit a GPT-2; the message names it.
    pub fn read(folder: &Path) -> Result<Self> {
        let config = Gpt2Config::read(folder)?;
        let weights = Weights::open(folder, "transformer.")?;
        let width = config.n_embd;
        let layers = (0..config.n_layer)
            .map(|i| Layer::read(&weights, &config, i))
            .collect::<Result<Vec<_>>>()?;
        let tables = Tables {
            tokens: weights.get("wte.weight", &[config.vocab_size, width])?,
            positions: weights.get("wpe.weight", &[config.n_positions, width])?,
        };
        Ok(Self { tables, layers, norm: weights.norm("ln_f", width, config.layer_norm_epsilon)? })
    }

    /// The last hidden state, after the last normalisation, of sequences of one length:
    /// `(sequences, tokens, width)`.
    ///
    /// # Errors
    /// The sequences are empty, of several lengths or too long, or an id is out of range.
    pub fn last_hidden_state(&self, batch: &[&[u32]]) -> Result<Tensor> {
        let mut x = self.tables.forward(batch)?;
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
        let (width, epsilon) = (config.n_embd, config.layer_norm_epsilon);
        let linear = |part: &str, from, to| weights.linear(&name(part), from, to, false);
        let inner = config.n_inner.unwrap_or(4 * width);
        let mut scale = 1.0;
        if config.scale_attn_weights {
            scale /= ((width / config.n_head) as f64).sqrt();
        }
        if config.scale_attn_by_inverse_layer_idx {
            scale /= (index + 1) as f64;
        }
        let attention = Attention {
            project: linear("attn.c_attn", width, 3 * width)?,
            output: linear("attn.c_proj", width, width)?,
            heads: config.n_head,
            scale,
            causal: true,
        };
        let block = Block {
            inner: linear("mlp.c_fc", width, inner)?,
            outer: linear("mlp.c_proj", inner, width)?,
            activation: config.activation_function,
        };
        Ok(Self {
            before_attention: weights.norm(&name("ln_1"), width, epsilon)?,
            attention,
            before_block: weights.norm(&name("ln_2"), width, epsilon)?,
            block,
        })
    }
}
