//! `toclip embed` from outside.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use assert_cmd::Command;

fn toclip() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("toclip"))
}

#[test]
#[cfg(not(feature = "embed"))]
fn a_light_build_says_how_to_get_it() {
    let output = toclip().args(["embed", "--model", "m", "--text", "t"]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(message.contains("--features embed"), "{message}");
}

#[cfg(feature = "embed")]
mod with_models {
    use super::toclip;
    use serde_json::Value;
    use std::path::{Path, PathBuf};
    use toclip_data::Matrix;

    const TEXT: &str = " \n = Games = \n \n the game and the games . \n = Games = \n the end ! \n";

    fn model() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../toclip-embed/tests/data/bert-tiny")
    }

    fn embed(folder: &Path, more: &[&str]) -> (bool, String, String) {
        std::fs::write(folder.join("text.txt"), TEXT).unwrap();
        let output = toclip()
            .current_dir(folder)
            .args(["embed", "--text", "text.txt", "--model"])
            .arg(model())
            .args(more)
            .output()
            .unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.success(), text(output.stdout), text(output.stderr))
    }

    #[test]
    fn one_row_and_one_target_for_each_line() {
        let folder = tempfile::tempdir().unwrap();
        let (good, out, err) = embed(folder.path(), &["--json", "--out", "new/e.npy"]);
        assert!(good, "{err}");
        let summary: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&summary["lines"], &summary["different_lines"]), (&6.into(), &4.into()));
        assert_eq!((&summary["width"], &summary["max_tokens"]), (&16.into(), &32.into()));
        let rows = Matrix::read(folder.path().join("new/e.npy")).unwrap();
        assert_eq!((rows.rows(), rows.cols()), (6, 16));
        assert!(
            (0..6).all(|i| (rows.row(i).iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-6)
        );
        assert_eq!((rows.row(0), rows.row(1)), (rows.row(2), rows.row(4)));
        assert_ne!(rows.row(0), rows.row(1));
        // " =", empty, " the", " =", " the", and the end.
        let ids = [796.0, 50256.0, 262.0, 796.0, 262.0, 50256.0];
        let mean = ids.iter().sum::<f64>() / 6.0;
        let targets = Matrix::read(folder.path().join("new/targets.npy")).unwrap();
        for (found, id) in targets.data().iter().zip(ids) {
            assert!((found - (id - mean) / mean).abs() < 1e-12);
        }
        let mut left: Vec<_> = std::fs::read_dir(folder.path().join("new"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["e.npy", "targets.npy"]);
    }

    #[test]
    fn a_subset_is_said_aloud_and_the_next_line_still_counts() {
        let folder = tempfile::tempdir().unwrap();
        let more = ["--lines", "4", "--target-rule", "next-token-id", "--targets", "ids.npy"];
        let (good, out, _) = embed(folder.path(), &more);
        assert!(good && out.contains("the first 4 of 6: a subset"), "{out}");
        let ids = Matrix::read(folder.path().join("ids.npy")).unwrap();
        assert_eq!(ids.data(), [796.0, 50256.0, 262.0, 796.0]);
        assert_eq!(Matrix::read(folder.path().join("embeddings.npy")).unwrap().rows(), 4);
        let (good, out, _) = embed(folder.path(), &["--target-rule", "none", "--lines", "99"]);
        assert!(
            good && out.contains("all 6, 4 different") && !out.contains("targets.npy"),
            "{out}"
        );
    }

    #[test]
    fn what_is_wrong_is_said_in_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let nowhere = ["--model", "nowhere", "--text", "text.txt"];
        let (_, _, err) = embed(folder.path(), &["--max-tokens", "2"]);
        assert!(err.contains("no room for text"), "{err}");
        let says = |args: &[&str]| {
            let output = toclip().current_dir(folder.path()).arg("embed").args(args).output();
            let output = output.unwrap();
            assert!(!output.status.success());
            String::from_utf8(output.stderr).unwrap()
        };
        assert!(says(&nowhere).starts_with("error: nowhere: no such folder"), "{}", says(&nowhere));
        let missing = says(&["--model", "nowhere", "--text", "missing.txt"]);
        assert!(missing.contains("cannot read missing.txt"), "{missing}");
        std::fs::write(folder.path().join("embeddings.npy.partial"), "notes").unwrap();
        let (good, _, err) = embed(folder.path(), &[]);
        assert!(!good && err.contains("is not a progress file of toclip embed"), "{err}");
    }
}
