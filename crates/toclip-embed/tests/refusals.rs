//! Errors of models name the file.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use std::path::Path;

use tempfile::TempDir;
use toclip_embed::{Embedder, Transformer};

/// A copy of a model of the tests.
fn copy(name: &str) -> TempDir {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("1_Pooling")).unwrap();
    for file in [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "modules.json",
        "sentence_bert_config.json",
        "1_Pooling/config.json",
    ] {
        if from.join(file).exists() {
            std::fs::copy(from.join(file), folder.path().join(file)).unwrap();
        }
    }
    folder
}

fn change(folder: &TempDir, file: &str, from: &str, to: &str) {
    let path = folder.path().join(file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    std::fs::write(path, text.replace(from, to)).unwrap();
}

fn refusal(folder: &TempDir) -> String {
    Embedder::open(folder.path(), 512).err().unwrap().to_string()
}

#[test]
fn a_bert_that_is_not_right() {
    let cases = [
        ("config.json", "\"bert\"", "\"t5\"", "expected one of: gpt2, bert"),
        ("config.json", "\"hidden_size\": 16", "\"hidden_size\": 12", "implies [2, 12]"),
        ("config.json", "\"hidden_size\": 16", "\"hidden_size\": 0", "a size is 0"),
        ("config.json", "\"num_attention_heads\": 4", "\"num_attention_heads\": 3", "3 heads"),
        ("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", "encoder.layer.2."),
        ("config.json", "\"absolute\"", "\"relative_key\"", "expected `absolute`"),
        ("config.json", "\"gelu\"", "\"swish\"", "unknown value `swish`"),
        ("config.json", "1e-12", "-1", "epsilon"),
        ("modules.json", "Normalize\"}", "Dense\"}", "models.Dense"),
        (
            "1_Pooling/config.json",
            "false",
            "true",
            "cls_token and mean_tokens; expected mean_tokens",
        ),
        ("tokenizer.json", "\"the\": 78", "\"the\": 780", "781 token ids, but the model has only"),
        ("tokenizer.json", "WordPiece", "Wordy", "tokenizer.json"),
    ];
    for (file, from, to, message) in cases {
        let folder = copy("bert-tiny");
        change(&folder, file, from, to);
        let found = refusal(&folder);
        assert!(found.contains(message), "{from} -> {to}: {found}");
        assert!(found.contains(".json") || found.contains("model.safetensors"), "{found}");
    }
}

#[test]
fn files_that_are_missing_or_torn() {
    let folder = copy("bert-tiny");
    let weights = folder.path().join("model.safetensors");
    let whole = std::fs::read(&weights).unwrap();
    for length in [0, 4, 100, whole.len() - 1] {
        std::fs::write(&weights, &whole[..length]).unwrap();
        assert!(refusal(&folder).contains("not a safetensors file"), "{length}");
    }
    std::fs::write(&weights, &whole).unwrap();
    for file in ["tokenizer.json", "model.safetensors", "config.json"] {
        std::fs::remove_file(folder.path().join(file)).unwrap();
        assert!(refusal(&folder).contains(file));
    }
    let nowhere = folder.path().join("nowhere");
    let message = Embedder::open(&nowhere, 512).err().unwrap().to_string();
    assert!(message.contains("nowhere") && message.contains("no such folder"), "{message}");
}

#[test]
fn damaged_weights_are_seen() {
    let folder = copy("bert-tiny");
    let weights = folder.path().join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&weights, bytes).unwrap();
    let embedder = Embedder::open(folder.path(), 512).unwrap();
    let ids = embedder.ids("game").unwrap();
    assert!(embedder.embed(&[&ids]).unwrap_err().to_string().contains("not finite"));
}

#[test]
fn what_cannot_be_asked_of_a_model() {
    let folder = copy("gpt2-tiny");
    assert!(refusal(&folder).contains("512 token ids, fewer than GPT-2's 50257"));
    let model = Transformer::gpt2(folder.path()).unwrap();
    let says = |batch: &[&[u32]]| model.last_hidden_state(batch).unwrap_err().to_string();
    assert!(says(&[]).contains("at least one token"));
    assert!(says(&[&[]]).contains("at least one token"));
    assert!(says(&[&[1], &[1, 2]]).contains("one length"));
    assert!(says(&[&[512]]).contains("512 is out of range"));
    assert!(says(&[&[1; 65]]).contains("at most 64"));

    let folder = copy("bert-tiny");
    let open = |most: usize| Embedder::open(folder.path(), most);
    assert!(open(0).err().unwrap().to_string().contains("at least 1"));
    assert!(open(2).err().unwrap().to_string().contains("no room for text"));
    let embedder = open(3).unwrap();
    // The marks stay around what is left of the line.
    assert_eq!(embedder.ids("the game and the game").unwrap(), [2, 78, 3]);
}
