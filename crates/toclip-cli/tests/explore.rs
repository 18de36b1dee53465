//! `toclip explore` writes a page, with or without an experiment.

mod support;

use support::run;

const EXPERIMENT: &str = "spectrum = { kind = 'isotropic', dim = 50 }\n\
    start = { kind = 'uniform', norm = 1.0 }\nnoise = { family = 'laplace', sigma = 0.3 }\n\
    time = 4\nlearning_rate = 0.2\nclip = 0.9\n";

#[test]
fn a_page_is_written_and_carries_the_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said, _) = run(folder.path(), &["explore", "--no-open", "--out", "page.html"]);
    assert_eq!((code, said.trim()), (0, "Wrote page.html"));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("const INITIAL = \"\";"));
    std::fs::write(folder.path().join("e.toml"), EXPERIMENT).unwrap();
    assert_eq!(run(folder.path(), &["explore", "e.toml", "--no-open", "--out", "e.html"]).0, 0);
    let page = std::fs::read_to_string(folder.path().join("e.html")).unwrap();
    assert!(page.contains("const INITIAL = \"#experiment=") && page.contains("laplace"));
}

#[test]
fn classification_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/classification.toml");
    let (code, _, error) = run(folder.path(), &["explore", file, "--no-open", "--out", "c.html"]);
    assert_eq!(code, 0, "{error}");
    let page = std::fs::read_to_string(folder.path().join("c.html")).unwrap();
    assert!(page.contains("const INITIAL = \"#experiment=") && page.contains("flips%20%3D%200.1"));
}

#[test]
fn what_cannot_be_opened_is_said() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("wrong.toml"), EXPERIMENT.replace("0.2", "'fast'")).unwrap();
    let criteria = "criteria = { curves = ['ccc'], risk = 3, threshold = [0.1, 5] }\n\
                    noise = { family = 'gaussian', sigma = 1.0 }\n";
    std::fs::write(folder.path().join("criteria.toml"), criteria).unwrap();
    for (arguments, words) in [
        (&["explore", "gone.toml", "--no-open"][..], "cannot read the experiment gone.toml"),
        (&["explore", "wrong.toml", "--no-open"], "wrong.toml, line 5: learning_rate"),
        (&["explore", "criteria.toml", "--no-open"], "the file defines no trajectories"),
        (&["explore", "--no-open", "--out", "."], "is a folder"),
    ] {
        let (code, _, error) = run(folder.path(), arguments);
        assert!(code == 1 && error.contains(words), "{arguments:?}: {error}");
    }
}
