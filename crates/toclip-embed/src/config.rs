//! The configuration of a model, in the files beside the weights.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::{bail, read};
use crate::{Error, Result};

/// `config.json` of a GPT-2. Old files leave out some keys.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Gpt2Config {
    pub vocab_size: usize,
    pub n_positions: usize,
    pub n_embd: usize,
    pub n_layer: usize,
    pub n_head: usize,
    pub n_inner: Option<usize>,
    pub activation_function: Option<Activation>,
    layer_norm_epsilon: Option<f64>,
    pub scale_attn_weights: Option<bool>,
    #[serde(default)]
    pub scale_attn_by_inverse_layer_idx: bool,
}

/// `config.json` of a BERT.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct BertConfig {
    pub vocab_size: usize,
    pub max_position_embeddings: usize,
    pub hidden_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub intermediate_size: usize,
    pub type_vocab_size: usize,
    pub hidden_act: Activation,
    pub layer_norm_eps: f64,
    pub position_embedding_type: Option<String>,
}

/// The function between the two layers of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Activation {
    /// $x \Phi(x)$.
    Gelu,
    /// The same with a hyperbolic tangent in place of the error function.
    #[serde(alias = "gelu_pytorch_tanh", alias = "gelu_fast")]
    GeluNew,
    Relu,
}

impl Gpt2Config {
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let config: Self = json(&path)?;
        let c = &config;
        let sizes = [c.vocab_size, c.n_positions, c.n_embd, c.n_head, c.n_inner.unwrap_or(1)];
        check(&path, &sizes, c.n_embd, c.n_head, c.epsilon())?;
        Ok(config)
    }

    pub fn epsilon(&self) -> f64 {
        self.layer_norm_epsilon.unwrap_or(1e-5)
    }
}

impl BertConfig {
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("config.json");
        let config: Self = json(&path)?;
        let c = &config;
        let heads = c.num_attention_heads;
        let tables = [c.vocab_size, c.max_position_embeddings, c.type_vocab_size];
        let sizes = [&tables[..], &[c.hidden_size, heads, c.intermediate_size]].concat();
        check(&path, &sizes, c.hidden_size, heads, c.layer_norm_eps)?;
        if let Some(other) = c.position_embedding_type.as_ref().filter(|kind| *kind != "absolute") {
            bail!(in &path, "unsupported position_embedding_type `{other}`; expected `absolute`");
        }
        Ok(config)
    }
}

fn check(path: &Path, sizes: &[usize], width: usize, heads: usize, epsilon: f64) -> Result<()> {
    if sizes.contains(&0) {
        bail!(in path, "a size is 0; every size must be at least 1");
    }
    if !width.is_multiple_of(heads) {
        bail!(in path, "a width of {width} cannot be divided by {heads} heads");
    }
    if !(epsilon > 0.0) {
        bail!(in path, "the epsilon of the layer norm is {epsilon}; it must be positive");
    }
    Ok(())
}

/// The family of the model in a folder.
pub(crate) fn model_type(folder: &Path) -> Result<String> {
    #[derive(Deserialize)]
    struct Any {
        model_type: String,
    }
    if !folder.is_dir() {
        bail!(in folder, "no such folder; expected one with config.json and model.safetensors");
    }
    json::<Any>(&folder.join("config.json")).map(|any| any.model_type)
}

/// What a sentence model does with the hidden states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sentence {
    /// The tokens it was trained for, if known.
    pub max_tokens: Option<usize>,
    /// Whether vectors are scaled to length 1.
    pub normalise: bool,
}

impl Sentence {
    /// Reads `modules.json`, `sentence_bert_config.json` and the pooling's `config.json`; a folder
    /// without them is a plain BERT, whose vectors are means.
    pub fn read(folder: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Module {
            path: String,
            #[serde(rename = "type")]
            kind: String,
        }
        #[derive(Deserialize)]
        struct Limits {
            max_seq_length: Option<usize>,
        }
        let limits = optional::<Limits>(&folder.join("sentence_bert_config.json"))?;
        let max_tokens = limits.and_then(|l| l.max_seq_length);
        let modules_path = folder.join("modules.json");
        let mut normalise = false;
        for module in optional::<Vec<Module>>(&modules_path)?.unwrap_or_default() {
            match module.kind.rsplit('.').next().unwrap_or_default() {
                "Transformer" => {}
                "Normalize" => normalise = true,
                "Pooling" => pooling(&folder.join(&module.path).join("config.json"))?,
                _ => bail!(in &modules_path, "unsupported module {}", module.kind),
            }
        }
        Ok(Self { max_tokens, normalise })
    }
}

/// Checks that the pooling is the mean.
fn pooling(path: &Path) -> Result<()> {
    let modes = json::<serde_json::Map<String, serde_json::Value>>(path)?;
    let on = |(key, value): (&String, &serde_json::Value)| {
        let mode = key.strip_prefix("pooling_mode_")?;
        (value == &serde_json::Value::Bool(true)).then(|| mode.to_owned())
    };
    let used: Vec<String> = modes.iter().filter_map(on).collect();
    if used != ["mean_tokens"] {
        bail!(in path, "unsupported pooling {}; expected mean_tokens", used.join(" and "));
    }
    Ok(())
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    serde_json::from_slice(&read(path)?).map_err(|e| {
        let plain = [("missing field", "missing key"), ("unknown variant", "unknown value")];
        let message =
            plain.iter().fold(e.to_string(), |text, (serde, json)| text.replace(serde, json));
        Error::file(path, message)
    })
}

fn optional<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if path.exists() { json(path).map(Some) } else { Ok(None) }
}
