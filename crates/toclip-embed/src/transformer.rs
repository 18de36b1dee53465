//! GPT-2 and BERT up to their last hidden state.

use std::path::Path;

use candle_core::Tensor;

use crate::Result;
use crate::config::{Activation, BertConfig, Gpt2Config};
use crate::layers::{Attention, FeedForward, LayerNorm, Linear, Tables};
use crate::ops;
use crate::weights::Weights;

/// Blocks of attention and a pair of linear layers.
pub struct Transformer {
    pub(crate) tables: Tables,
    layers: Vec<Layer>,
    /// Of the vectors of the tokens (BERT) or of the last state (GPT-2).
    norm: LayerNorm,
    order: Order,
}

/// Where the normalisations are.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// Before each part, and at the end (GPT-2).
    NormFirst,
    /// At the start, and after each part (BERT).
    NormLast,
}

struct Layer {
    attention: Attention,
    attention_norm: LayerNorm,
    block: FeedForward,
    block_norm: LayerNorm,
}

impl Transformer {
    /// Reads `config.json` and `model.safetensors` of a GPT-2 in a folder; the names of the tensors
    /// may start with `transformer.`.
    ///
    /// # Errors
    /// A file is missing or does not fit a GPT-2; the message names it.
    pub fn gpt2(folder: &Path) -> Result<Self> {
        let config = Gpt2Config::read(folder)?;
        let weights = Weights::open(folder, "transformer.")?;
        let width = config.n_embd;
        let layers = (0..config.n_layer).map(|i| gpt2_layer(&weights, &config, i));
        let layers = layers.collect::<Result<_>>()?;
        let tables = Tables {
            tokens: weights.get("wte.weight", &[config.vocab_size, width])?,
            positions: weights.get("wpe.weight", &[config.n_positions, width])?,
        };
        let norm = weights.norm("ln_f", width, config.epsilon())?;
        Ok(Self { tables, layers, norm, order: Order::NormFirst })
    }

    /// Reads `config.json` and `model.safetensors` of a BERT in a folder; the names of the tensors
    /// may start with `bert.`.
    ///
    /// # Errors
    /// A file is missing or does not fit a BERT; the message names it.
    pub fn bert(folder: &Path) -> Result<Self> {
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
        let layers = (0..config.num_hidden_layers).map(|i| bert_layer(&weights, &config, i));
        let layers = layers.collect::<Result<_>>()?;
        let tables = Tables { tokens: table("word", config.vocab_size)?, positions };
        let norm = weights.norm("embeddings.LayerNorm", width, config.layer_norm_eps)?;
        Ok(Self { tables, layers, norm, order: Order::NormLast })
    }

    /// The last hidden state of sequences of one length, for a GPT-2 after the last normalisation:
    /// `(sequences, tokens, width)`.
    ///
    /// # Errors
    /// The sequences are empty, of several lengths or too long, or an id is out of range.
    pub fn last_hidden_state(&self, batch: &[&[u32]]) -> Result<Tensor> {
        let mut x = self.tables.forward(batch)?;
        if self.order == Order::NormLast {
            x = self.norm.forward(&x)?;
        }
        for layer in &self.layers {
            x = self.add_part(&x, &layer.attention_norm, |x| layer.attention.forward(x))?;
            x = self.add_part(&x, &layer.block_norm, |x| layer.block.forward(x))?;
        }
        match self.order {
            Order::NormFirst => Ok(self.norm.forward(&x)?),
            Order::NormLast => Ok(x),
        }
    }

    /// $x + f(x)$, normalised before or after.
    fn add_part(
        &self,
        x: &Tensor,
        norm: &LayerNorm,
        part: impl Fn(&Tensor) -> candle_core::Result<Tensor>,
    ) -> candle_core::Result<Tensor> {
        let y = match self.order {
            Order::NormFirst => part(&norm.forward(x)?)?,
            Order::NormLast => part(x)?,
        };
        ops::add(&y, x)?;
        if self.order == Order::NormFirst { Ok(y) } else { norm.forward(&y) }
    }
}

fn gpt2_layer(weights: &Weights, config: &Gpt2Config, index: usize) -> Result<Layer> {
    let name = |part: &str| format!("h.{index}.{part}");
    let width = config.n_embd;
    let inner = config.n_inner.unwrap_or(4 * width);
    let linear = |part: &str, from, to| weights.linear(&name(part), from, to, false);
    let norm = |part: &str| weights.norm(&name(part), width, config.epsilon());
    let mut scale = 1.0;
    if config.scale_attn_weights.unwrap_or(true) {
        scale /= ((width / config.n_head) as f64).sqrt();
    }
    if config.scale_attn_by_inverse_layer_idx {
        scale /= (index + 1) as f64;
    }
    Ok(Layer {
        attention: Attention {
            project: linear("attn.c_attn", width, 3 * width)?,
            output: linear("attn.c_proj", width, width)?,
            heads: config.n_head,
            scale,
            causal: true,
        },
        attention_norm: norm("ln_1")?,
        block: FeedForward {
            inner: linear("mlp.c_fc", width, inner)?,
            outer: linear("mlp.c_proj", inner, width)?,
            activation: config.activation_function.unwrap_or(Activation::GeluNew),
        },
        block_norm: norm("ln_2")?,
    })
}

fn bert_layer(weights: &Weights, config: &BertConfig, index: usize) -> Result<Layer> {
    let name = |part: &str| format!("encoder.layer.{index}.{part}");
    let (width, inner) = (config.hidden_size, config.intermediate_size);
    let linear = |part: &str, from, to| weights.linear(&name(part), from, to, true);
    let norm = |part: &str| weights.norm(&name(part), width, config.layer_norm_eps);
    let parts = ["query", "key", "value"]
        .map(|part| linear(&format!("attention.self.{part}"), width, width))
        .into_iter()
        .collect::<Result<Vec<_>>>()?;
    // One product instead of three.
    let side_by_side = |of: fn(&Linear) -> &Tensor, dim: usize| {
        Tensor::cat(&parts.iter().map(of).collect::<Vec<_>>(), dim)
    };
    let project =
        Linear { weight: side_by_side(|l| &l.weight, 1)?, bias: side_by_side(|l| &l.bias, 0)? };
    Ok(Layer {
        attention: Attention {
            project,
            output: linear("attention.output.dense", width, width)?,
            heads: config.num_attention_heads,
            scale: 1.0 / ((width / config.num_attention_heads) as f64).sqrt(),
            causal: false,
        },
        attention_norm: norm("attention.output.LayerNorm")?,
        block: FeedForward {
            inner: linear("intermediate.dense", width, inner)?,
            outer: linear("output.dense", inner, width)?,
            activation: config.hidden_act,
        },
        block_norm: norm("output.LayerNorm")?,
    })
}
