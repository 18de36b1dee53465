//! The layers of both families of models, on the tensors of the inference crate.
//!
//! Everything takes a batch of `B` sequences of one length `T`: shape `(B, T, width)`.

use candle_core::{Device, Result, Tensor};

use crate::config::Activation;
use crate::error::bail;
use crate::ops;

/// Vectors of the tokens, (vocabulary, width), and of their positions, (most tokens, width).
pub(crate) struct Tables {
    pub tokens: Tensor,
    pub positions: Tensor,
}

impl Tables {
    /// The number of token ids.
    pub fn vocabulary(&self) -> usize {
        self.tokens.dims()[0]
    }

    /// The most tokens that the model can read at once.
    pub fn max_tokens(&self) -> usize {
        self.positions.dims()[0]
    }

    /// The length of a vector.
    pub fn width(&self) -> usize {
        self.positions.dims()[1]
    }

    /// The vectors of sequences of one length, token and position together: (B, T, width).
    pub fn forward(&self, batch: &[&[u32]]) -> crate::Result<Tensor> {
        let length = self.check(batch)?;
        let ids = Tensor::from_vec(batch.concat(), batch.len() * length, &Device::Cpu)?;
        let x = self.tokens.index_select(&ids, 0)?.reshape((batch.len(), length, ()))?;
        ops::add(&x, &self.positions.narrow(0, 0, length)?)?;
        Ok(x)
    }

    /// The one length of the sequences, if the model can read them.
    fn check(&self, batch: &[&[u32]]) -> crate::Result<usize> {
        let (most, vocabulary) = (self.max_tokens(), self.vocabulary());
        let length = batch.first().map_or(0, |ids| ids.len());
        if length == 0 || batch.iter().any(|ids| ids.len() != length) {
            bail!("a batch must have sequences of one length, of at least one token");
        }
        if length > most {
            bail!("{length} tokens are too many: the model reads at most {most}");
        }
        if let Some(id) = batch.iter().copied().flatten().find(|id| **id as usize >= vocabulary) {
            bail!("the token id {id} is out of range: the model has {vocabulary}");
        }
        Ok(length)
    }
}

/// $x W + b$, with $W$ of shape (in, out).
pub(crate) struct Linear {
    pub weight: Tensor,
    pub bias: Tensor,
}

impl Linear {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = self.without_bias(x)?;
        ops::add(&y, &self.bias)?;
        Ok(y)
    }

    fn without_bias(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, length, width) = x.dims3()?;
        // One large product instead of one a sequence.
        let rows = x.reshape((batch * length, width))?;
        rows.matmul(&self.weight)?.reshape((batch, length, ()))
    }
}

/// Each vector centred and scaled to variance 1, then multiplied by weights.
pub(crate) struct LayerNorm {
    pub weight: Tensor,
    pub bias: Tensor,
    pub epsilon: f64,
}

impl LayerNorm {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        candle_nn::ops::layer_norm(x, &self.weight, &self.bias, self.epsilon as f32)
    }
}

/// Attention of every token to all, or to those before it.
pub(crate) struct Attention {
    /// Query, key and value side by side: (width, 3 width).
    pub project: Linear,
    pub output: Linear,
    pub heads: usize,
    /// What scores are multiplied by.
    pub scale: f64,
    /// Whether a token sees only itself and those before it.
    pub causal: bool,
}

impl Attention {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, length, width) = x.dims3()?;
        let parts = self
            .project
            .forward(x)?
            .reshape((batch, length, 3, self.heads, width / self.heads))?
            .permute((2, 0, 3, 1, 4))?;
        let part = |i: usize| parts.get(i)?.contiguous();
        let weights = part(0)?.matmul(&part(1)?.t()?)?;
        ops::softmax(&weights, self.scale, self.causal)?;
        let mixed = weights.matmul(&part(2)?)?;
        self.output.forward(&mixed.transpose(1, 2)?.reshape((batch, length, width))?)
    }
}

/// Two layers with a function between them.
pub(crate) struct FeedForward {
    pub inner: Linear,
    pub outer: Linear,
    pub activation: Activation,
}

impl FeedForward {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let inner = self.inner.without_bias(x)?;
        ops::add_and_activate(&inner, &self.inner.bias, self.activation)?;
        self.outer.forward(&inner)
    }
}
