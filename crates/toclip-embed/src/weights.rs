//! Named tensors of a `model.safetensors`, as `f32`, with the shapes that the configuration implies.

use std::path::{Path, PathBuf};

use candle_core::safetensors::BufferedSafetensors;
use candle_core::{DType, Device, Tensor};

use crate::error::read;
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
            let message = format!("there is no tensor {name}, nor {longer}");
            return Err(Error::file(&self.path, message));
        };
        let unread = |e| Error::file(&self.path, format!("the tensor {found}: {e}"));
        let tensor = self
            .file
            .load(found, &Device::Cpu)
            .and_then(|t| t.to_dtype(DType::F32))
            .map_err(unread)?;
        if tensor.dims() != shape {
            let message = format!(
                "the tensor {found} has shape {:?}; config.json asks for {shape:?}",
                tensor.dims()
            );
            return Err(Error::file(&self.path, message));
        }
        Ok(tensor)
    }
}
