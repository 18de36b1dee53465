//! The programs that the page exports are examples of `toclip-experiment`, which the compiler checks.

use std::fs::read_to_string;

/// The text between two marks.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(from)?;
    rest.split_once(to).map(|(found, _)| found)
}

#[test]
fn exported_programs_are_the_examples() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let page = read_to_string(format!("{folder}/page/toml.js")).unwrap();
    for (name, example) in
        [("RUST", "explored"), ("RUST_CLASSIFICATION", "explored_classification")]
    {
        let template = between(&page, &format!("const {name} = `"), "\n`;").unwrap();
        let file = format!("{folder}/../toclip-experiment/examples/{example}.rs");
        let program = read_to_string(file).unwrap();
        let experiment = between(&program, "r#\"\n", "\"#").unwrap();
        let expected = template.replace("\\`", "`") + "\n";
        assert_eq!(program.replace(experiment, "TOML"), expected, "{example}");
    }
}
