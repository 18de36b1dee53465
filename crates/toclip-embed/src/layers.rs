//! What both families of models are made of, on the tensors of the inference crate.
//!
//! Everything takes a batch of `B` sequences of one length `T`: shape `(B, T, width)`.

use candle_core::{D, Result, Tensor};

use crate::config::Activation;
use crate::ops;
use crate::weights::Weights;

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

/// Each vector centred and scaled to variance 1, then weighed.
pub(crate) struct Norm {
    weight: Tensor,
    bias: Tensor,
    epsilon: f64,
}

impl Norm {
    pub fn read(weights: &Weights, name: &str, width: usize, epsilon: f64) -> crate::Result<Self> {
        Ok(Self {
            weight: weights.get(&format!("{name}.weight"), &[width])?,
            bias: weights.get(&format!("{name}.bias"), &[width])?,
            epsilon,
        })
    }

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
pub(crate) struct Block {
    pub inner: Linear,
    pub outer: Linear,
    pub activation: Activation,
}

impl Block {
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let inner = self.inner.without_bias(x)?;
        ops::add_and_activate(&inner, &self.inner.bias, self.activation)?;
        self.outer.forward(&inner)
    }
}

/// The mean over the tokens of each sequence: (B, T, width) to (B, width).
pub(crate) fn mean_over_tokens(x: &Tensor) -> Result<Tensor> {
    x.mean(D::Minus2)
}
