//! Where both families of models begin: a vector for each token and one for its place.

use candle_core::{Device, Tensor};

use crate::ops;
use crate::{Error, Result};

/// Vectors of the tokens, (vocabulary, width), and of the places, (most tokens, width).
pub(crate) struct Tables {
    pub tokens: Tensor,
    pub places: Tensor,
}

impl Tables {
    /// The number of token ids.
    pub fn vocabulary(&self) -> usize {
        self.tokens.dims()[0]
    }

    /// The most tokens that the model can read at once.
    pub fn max_tokens(&self) -> usize {
        self.places.dims()[0]
    }

    /// The numbers in a vector.
    pub fn width(&self) -> usize {
        self.places.dims()[1]
    }

    /// The vectors of sequences of one length, token and place together: (B, T, width).
    pub fn forward(&self, batch: &[&[u32]]) -> Result<Tensor> {
        let length = self.check(batch)?;
        let ids = Tensor::from_vec(batch.concat(), batch.len() * length, &Device::Cpu)?;
        let x = self.tokens.index_select(&ids, 0)?.reshape((batch.len(), length, ()))?;
        ops::add(&x, &self.places.narrow(0, 0, length)?)?;
        Ok(x)
    }

    /// The one length of the sequences, if the model can read them.
    fn check(&self, batch: &[&[u32]]) -> Result<usize> {
        let (most, vocabulary) = (self.max_tokens(), self.vocabulary());
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
            let message =
                format!("the token id {id} is out of range: the model knows {vocabulary}");
            return Err(Error::Invalid(message));
        }
        Ok(length)
    }
}
