//! The models against values computed in double precision by other programs (`scripts/reference`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, safetensors};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toclip_embed::{Embedder, Transformer};

/// Single precision over a few layers, with numbers of size 1.
const CLOSE: f32 = 1e-5;

#[derive(Deserialize)]
struct Hidden {
    ids: Vec<u32>,
    last_hidden_state: Vec<Vec<f32>>,
    mean: Vec<f32>,
}

#[derive(Deserialize)]
struct Line {
    line: String,
    ids: Vec<u32>,
    vector: Vec<f32>,
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn json<T: DeserializeOwned>(name: &str) -> T {
    serde_json::from_slice(&std::fs::read(data(name)).unwrap()).unwrap()
}

fn gap(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

/// The model's vectors, in batches of one and, where lengths are equal, together.
fn check_gpt2(model: &Transformer, close: f32) {
    for expected in json::<Vec<Hidden>>("gpt2-tiny/expected.json") {
        let state = model.last_hidden_state(&[&expected.ids]).unwrap();
        let state = state.get(0).unwrap().to_vec2::<f32>().unwrap();
        assert!(gap(&state.concat(), &expected.last_hidden_state.concat()) < close);
        let mean: Vec<f32> = (0..state[0].len())
            .map(|j| state.iter().map(|row| row[j]).sum::<f32>() / state.len() as f32)
            .collect();
        assert!(gap(&mean, &expected.mean) < close);

        let other: Vec<u32> = expected.ids.iter().map(|id| (id + 1) % 512).collect();
        let both = model.last_hidden_state(&[&other, &expected.ids]).unwrap();
        let second = both.get(1).unwrap().to_vec2::<f32>().unwrap();
        assert!(gap(&second.concat(), &state.concat()) < close);
        let first = both.get(0).unwrap().to_vec2::<f32>().unwrap();
        assert!(gap(&first.concat(), &state.concat()) > 0.1);
    }
}

#[test]
fn gpt2_agrees_with_the_reference() {
    check_gpt2(&Transformer::gpt2(&data("gpt2-tiny")).unwrap(), CLOSE);
}

#[test]
fn names_with_a_prefix_and_half_precision_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str| folder.path().join(name);
    std::fs::copy(data("gpt2-tiny/config.json"), to("config.json")).unwrap();
    let tensors = safetensors::load(data("gpt2-tiny/model.safetensors"), &Device::Cpu).unwrap();
    let mut renamed: HashMap<_, _> =
        tensors.iter().map(|(name, t)| (format!("transformer.{name}"), t.clone())).collect();
    // Old files carry the mask too.
    let mask = tensors["ln_f.bias"].to_dtype(DType::U8).unwrap();
    renamed.insert("transformer.h.0.attn.bias".into(), mask);
    safetensors::save(&renamed, to("model.safetensors")).unwrap();
    check_gpt2(&Transformer::gpt2(folder.path()).unwrap(), CLOSE);

    let half = |(name, t): (String, candle_core::Tensor)| (name, t.to_dtype(DType::F16).unwrap());
    let halves: HashMap<_, _> = renamed.into_iter().map(half).collect();
    safetensors::save(&halves, to("model.safetensors")).unwrap();
    // Weights rounded to eleven bits.
    check_gpt2(&Transformer::gpt2(folder.path()).unwrap(), 0.05);
}

fn check_lines(folder: &Path, expected: Vec<Line>, most: usize) {
    let embedder = Embedder::open(folder, 512).unwrap();
    assert_eq!(embedder.max_tokens(), most);
    for Line { line, ids, vector } in expected {
        assert_eq!(embedder.ids(&line).unwrap(), ids, "{line:?}");
        let found = embedder.embed(&[&ids, &ids]).unwrap();
        assert_eq!(embedder.width(), vector.len());
        assert!(gap(&found[0], &vector) < CLOSE, "{line:?}: {}", gap(&found[0], &vector));
        assert!(gap(&found[1], &vector) < CLOSE);
    }
}

#[test]
fn a_sentence_model_agrees_with_the_reference() {
    check_lines(&data("bert-tiny"), json("bert-tiny/expected.json"), 32);
}

#[test]
fn all_minilm_agrees_with_the_reference() {
    let Some(folder) = std::env::var_os("TOCLIP_MINILM") else {
        eprintln!("skipped: TOCLIP_MINILM does not name a folder with all-MiniLM-L6-v2");
        return;
    };
    check_lines(Path::new(&folder), json("minilm-expected.json"), 256);
}
