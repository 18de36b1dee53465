//! Named tensors of a `model.safetensors`, as `f32`, with the shapes that the configuration implies.

use std::path::{Path, PathBuf};

use candle_core::safetensors::BufferedSafetensors;
use candle_core::{DType, Device, Tensor};

use crate::error::{bail, read};
use crate::layers::{LayerNorm, Linear};
use crate::{Error, Result};

/// An open file of weights.
pub(crate) struct Weights {
    path: PathBuf,
    file: BufferedSafetensors,
    /// What names may begin with: a model saved with its head has one more level.
    prefix: &'static str,
}

impl Weights {
    pub fn open(folder: &Path, prefix: &'static str) -> Result<Self> {
        let path = folder.join("model.safetensors");
        let file = BufferedSafetensors::new(read(&path)?)
            .map_err(|e| Error::file(&path, format!("not a safetensors file: {e}")))?;
        Ok(Self { path, file, prefix })
    }

    /// The tensor of that name, with or without the prefix.
    pub fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor> {
        let longer = format!("{}{name}", self.prefix);
        let found = [name, &longer].into_iter().find(|name| self.file.get(name).is_ok());
        let Some(found) = found else {
            bail!(in &self.path, "missing tensor {name} or {longer}");
        };
        let tensor = self.file.load(found, &Device::Cpu).and_then(|t| t.to_dtype(DType::F32));
        let tensor =
            tensor.map_err(|e| Error::file(&self.path, format!("the tensor {found}: {e}")))?;
        if tensor.dims() != shape {
            bail!(in &self.path, "the tensor {found} has shape {:?}, but config.json implies \
                  {shape:?}", tensor.dims());
        }
        Ok(tensor)
    }

    /// A linear layer, stored as it is multiplied from the right, (in, out), or `transposed`.
    pub fn linear(&self, name: &str, from: usize, to: usize, transposed: bool) -> Result<Linear> {
        let matrix = format!("{name}.weight");
        let weight = match transposed {
            true => self.get(&matrix, &[to, from])?.t()?.contiguous()?,
            false => self.get(&matrix, &[from, to])?,
        };
        Ok(Linear { weight, bias: self.get(&format!("{name}.bias"), &[to])? })
    }

    /// A normalisation.
    pub fn norm(&self, name: &str, width: usize, epsilon: f64) -> Result<LayerNorm> {
        let get = |part: &str| self.get(&format!("{name}.{part}"), &[width]);
        Ok(LayerNorm { weight: get("weight")?, bias: get("bias")?, epsilon })
    }
}
