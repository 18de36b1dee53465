//! BERT up to its last hidden state, the encoder of most small sentence models.

use std::path::Path;

use candle_core::Tensor;

use crate::Result;
use crate::config::BertConfig;
use crate::layers::{Attention, Block, Linear, Norm, Tables};
use crate::ops;
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
    /// Reads `config.json` and `model.safetensors` in a folder; the names of the tensors may start
    /// with `bert.`.
    ///
    /// # Errors
    /// A file is missing or does not fit a BERT; the message names it.
    pub fn read(folder: &Path) -> Result<Self> {
        let config = BertConfig::read(folder)?;
        let weights = Weights::open(folder, "bert.")?;
        let width = config.hidden_size;
        let table = |name: &str, rows: usize| {
            weights.get(&format!("embeddings.{name}_embeddings.weight"), &[rows, width])
        };
        // A line has only one segment, whose vector is added at every position.
        let segment = table("token_type", config.type_vocab_size)?.narrow(0, 0, 1)?;
        let positions =
            table("position", config.max_position_embeddings)?.broadcast_add(&segment)?;
        let layers = (0..config.num_hidden_layers)
            .map(|i| Layer::read(&weights, &config, i))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            tables: Tables { tokens: table("word", config.vocab_size)?, positions },
            norm: weights.norm("embeddings.LayerNorm", width, config.layer_norm_eps)?,
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
        let linear = |part: &str, from, to| weights.linear(&name(part), from, to, true);
        let norm = |part: &str| weights.norm(&name(part), width, config.layer_norm_eps);
        let parts = ["query", "key", "value"]
            .iter()
            .map(|part| linear(&format!("attention.self.{part}"), width, width))
            .collect::<Result<Vec<_>>>()?;
        // One product instead of three.
        let side_by_side = |of: fn(&Linear) -> &Tensor, dim: usize| {
            Tensor::cat(&parts.iter().map(of).collect::<Vec<_>>(), dim)
        };
        let project =
            Linear { weight: side_by_side(|l| &l.weight, 1)?, bias: side_by_side(|l| &l.bias, 0)? };
        let attention = Attention {
            project,
            output: linear("attention.output.dense", width, width)?,
            heads: config.num_attention_heads,
            scale: 1.0 / ((width / config.num_attention_heads) as f64).sqrt(),
            causal: false,
        };
        let block = Block {
            inner: linear("intermediate.dense", width, inner)?,
            outer: linear("output.dense", inner, width)?,
            activation: config.hidden_act,
        };
        Ok(Self {
            attention,
            after_attention: norm("attention.output.LayerNorm")?,
            block,
            after_block: norm("output.LayerNorm")?,
        })
    }
}
