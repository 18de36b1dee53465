//! The programs that the page exports are examples of `toclip-experiment`, which the compiler checks.

use std::fs::read_to_string;

/// The text between two marks.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("{from} is missing"));
    rest.split_once(to).unwrap_or_else(|| panic!("{to} is missing")).0
}

#[test]
fn exported_programs_are_the_examples() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let page = read_to_string(format!("{folder}/page/toml.js")).unwrap();
    for (name, example) in
        [("RUST", "explored"), ("RUST_CLASSIFICATION", "explored_classification")]
    {
        let template =
            between(&page, &format!("const {name} = `"), "\n`;").replace("\\`", "`") + "\n";
        let file = format!("{folder}/../toclip-experiment/examples/{example}.rs");
        let program = read_to_string(file).unwrap();
        let experiment = between(&program, "r#\"\n", "\"#");
        assert_eq!(program.replace(experiment, "TOML"), template, "{example}");
    }
}
