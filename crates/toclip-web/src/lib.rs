//! The theory behind the page of `toclip explore`, compiled to WebAssembly.
//!
//! The page asks in JSON and is answered in JSON: [`answer`] takes a [`Request`], whose experiment is
//! the one of `toclip run` as a JSON object, and returns `{"ok": …}` or `{"error": "a sentence"}`.
//! [`read_dropped_file`] takes the bytes of a file that was dropped on the page.
//!
//! ```
//! let question = r#"{ "ask": "factors", "risk": 0.1, "thresholds": [0.5, 1.0], "experiment": {
//!     "spectrum": { "kind": "isotropic", "dim": 100 }, "start": { "kind": "uniform", "norm": 1 },
//!     "noise": { "family": "student_t", "df": 3, "scale": 1 },
//!     "time": 10, "learning_rate": 0.5, "clip": 1 } }"#;
//! let answer: serde_json::Value = serde_json::from_str(&toclip_web::answer(question)).unwrap();
//! assert!((answer["ok"]["mu"][1].as_f64().unwrap() - 0.5709641).abs() < 1e-7);
//! ```

mod answers;
mod boundary;
mod dropped;
mod explored;
mod kept;
mod moment;
mod request;
mod setting;

pub use request::Request;

use serde::Serialize;

/// The answer to a [`Request`] in JSON.
pub fn answer(question: &str) -> String {
    reply(match serde_json::from_str::<Request>(question) {
        Ok(request) => request.answer(),
        Err(error) => Err(format!("unknown question from the page: {error}")),
    })
}

/// The content of a file as JSON: an experiment, residuals or a training log.
pub fn read_dropped_file(bytes: &[u8]) -> String {
    reply(dropped::read(bytes).and_then(to_json))
}

fn to_json(value: impl Serialize) -> Result<serde_json::Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

fn reply(result: Result<serde_json::Value, String>) -> String {
    match result {
        Ok(value) => serde_json::json!({ "ok": value }),
        Err(error) => serde_json::json!({ "error": error }),
    }
    .to_string()
}
