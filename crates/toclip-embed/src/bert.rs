//! BERT up to its last hidden state, the encoder of most small sentence models.

use std::path::Path;

use candle_core::Tensor;

use crate::Result;
use crate::config::BertConfig;
use crate::layers::{Attention, Block, Linear, Norm};
use crate::ops;
use crate::tables::Tables;
use crate::weights::Weights;

/// BERT: blocks of attention in both directions, normalised after each part.
pub struct Bert {
    pub(crate) tables: Tables,
    norm: Norm,
    layers: Vec<Layer>,
}

struct Layer {
    attention: Attention,
    after_attention: Norm,
    block: Block,
    after_block: Norm,
}

impl Bert {
    /// Reads `config.json` and `model.safetensors` in a folder; names of tensors may begin with
    /// `bert.` or not.
    ///
    /// # Errors
    /// A file is missing or is not what a BERT needs; the message names it.
    pub fn read(folder: &Path) -> Result<Self> {
        let config = BertConfig::read(folder)?;
        let weights = Weights::open(folder, "bert.")?;
        let width = config.hidden_size;
        let table = |name: &str, rows: usize| {
            weights.get(&format!("embeddings.{name}_embeddings.weight"), &[rows, width])
        };
        // A line has no second kind of segment: the vector of the first goes with every place.
        let segment = table("token_type", config.type_vocab_size)?.narrow(0, 0, 1)?;
        let places = table("position", config.max_position_embeddings)?.broadcast_add(&segment)?;
        let layers = (0..config.num_hidden_layers)
            .map(|i| Layer::read(&weights, &config, i))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            tables: Tables { tokens: table("word", config.vocab_size)?, places },
            norm: norm(&weights, &config, "embeddings.LayerNorm")?,
            layers,
        })
    }

    /// The last hidden state of sequences of one length: `(sequences, tokens, width)`.
    ///
    /// # Errors
    /// The sequences are empty, of several lengths or too long, or an id is out of range.
    pub fn last_hidden_state(&self, batch: &[&[u32]]) -> Result<Tensor> {
        let mut x = self.norm.forward(&self.tables.forward(batch)?)?;
        for layer in &self.layers {
            let attended = layer.attention.forward(&x)?;
            ops::add(&attended, &x)?;
            let attended = layer.after_attention.forward(&attended)?;
            let changed = layer.block.forward(&attended)?;
            ops::add(&changed, &attended)?;
            x = layer.after_block.forward(&changed)?;
        }
        Ok(x)
    }
}

impl Layer {
    fn read(weights: &Weights, config: &BertConfig, index: usize) -> Result<Self> {
        let name = |part: &str| format!("encoder.layer.{index}.{part}");
        let (width, inner) = (config.hidden_size, config.intermediate_size);
        let parts = ["query", "key", "value"]
            .iter()
            .map(|part| linear(weights, &name(&format!("attention.self.{part}")), width, width))
            .collect::<Result<Vec<_>>>()?;
        // Side by side, three products become one.
        let side_by_side = |of: fn(&Linear) -> &Tensor, dim: usize| {
            Tensor::cat(&parts.iter().map(of).collect::<Vec<_>>(), dim)
        };
        let project =
            Linear { weight: side_by_side(|l| &l.weight, 1)?, bias: side_by_side(|l| &l.bias, 0)? };
        let attention = Attention {
            project,
            output: linear(weights, &name("attention.output.dense"), width, width)?,
            heads: config.num_attention_heads,
            scale: 1.0 / ((width / config.num_attention_heads) as f64).sqrt(),
            causal: false,
        };
        let block = Block {
            inner: linear(weights, &name("intermediate.dense"), width, inner)?,
            outer: linear(weights, &name("output.dense"), inner, width)?,
            activation: config.hidden_act,
        };
        Ok(Self {
            attention,
            after_attention: norm(weights, config, &name("attention.output.LayerNorm"))?,
            block,
            after_block: norm(weights, config, &name("output.LayerNorm"))?,
        })
    }
}

/// BERT's files hold the matrices transposed: (out, in).
fn linear(weights: &Weights, name: &str, from: usize, to: usize) -> Result<Linear> {
    Ok(Linear {
        weight: weights.get(&format!("{name}.weight"), &[to, from])?.t()?.contiguous()?,
        bias: weights.get(&format!("{name}.bias"), &[to])?,
    })
}

fn norm(weights: &Weights, config: &BertConfig, name: &str) -> Result<Norm> {
    Norm::read(weights, name, config.hidden_size, config.layer_norm_eps)
}
