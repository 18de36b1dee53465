//! What both families of models are made of, on the tensors of the inference crate.
//!
//! Everything takes a batch of `B` sequences of one length `T`: shape `(B, T, width)`.

use candle_core::{D, Result, Tensor};
use candle_nn::ops;

use crate::config::Activation;

/// $x W + b$, with $W$ of shape (in, out).
pub(crate) struct Linear {
    pub weight: Tensor,
    pub bias: Tensor,
}

impl Linear {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let (batch, length, width) = x.dims3()?;
        // One large product instead of one a sequence.
        let rows = x.reshape((batch * length, width))?;
        let y = rows.matmul(&self.weight)?.broadcast_add(&self.bias)?;
        y.reshape((batch, length, ()))
    }
}

/// Each vector centred and scaled to variance 1, then weighed.
pub(crate) struct Norm {
    pub weight: Tensor,
    pub bias: Tensor,
    pub epsilon: f64,
}

impl Norm {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        ops::layer_norm(x, &self.weight, &self.bias, self.epsilon as f32)
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
}

impl Attention {
    /// `mask` is added to the scores: 0 where a token may look, $-\infty$ where not.
    pub fn forward(&self, x: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
        let (batch, length, width) = x.dims3()?;
        let parts = self
            .project
            .forward(x)?
            .reshape((batch, length, 3, self.heads, width / self.heads))?
            .permute((2, 0, 3, 1, 4))?;
        let part = |i: usize| parts.get(i)?.contiguous();
        let (query, key, value) = ((part(0)? * self.scale)?, part(1)?, part(2)?);
        let mut scores = query.matmul(&key.t()?)?;
        if let Some(mask) = mask {
            scores = scores.broadcast_add(mask)?;
        }
        let mixed = ops::softmax_last_dim(&scores)?.matmul(&value)?;
        self.output.forward(&mixed.transpose(1, 2)?.reshape((batch, length, width))?)
    }
}

/// Two layers with a function between them.
pub(crate) struct Block {
    pub inner: Linear,
    pub outer: Linear,
    pub activation: Activation,
}

impl Block {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let inner = self.inner.forward(x)?;
        let inner = match self.activation {
            Activation::Gelu => inner.gelu_erf()?,
            Activation::GeluNew => inner.gelu()?,
            Activation::Relu => inner.relu()?,
        };
        self.outer.forward(&inner)
    }
}

/// The mean over the tokens of each sequence: (B, T, width) to (B, width).
pub(crate) fn mean_over_tokens(x: &Tensor) -> Result<Tensor> {
    x.mean(D::Minus2)
}
