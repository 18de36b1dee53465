//! The script of the page: uPlot, and the modules that draw with it. The explorer, whose page is put
//! together by `scripts/web`, takes the same files.

const UPLOT: &str = include_str!("../page/vendor/uPlot.iife.min.js");
const LICENCE: &str = include_str!("../page/vendor/uPlot-LICENSE");
/// Each after those that it imports.
const MODULES: [&str; 7] = [
    include_str!("../page/numbers.js"),
    include_str!("../page/marks.js"),
    include_str!("../page/chart.js"),
    include_str!("../page/figure.js"),
    include_str!("../page/report_chart.js"),
    include_str!("../page/gestures.js"),
    include_str!("../page/page.js"),
];

/// The modules as one script that can stand in a page.
pub(super) fn script() -> String {
    let line = |line: &'static str| line.strip_prefix("export ").unwrap_or(line);
    let modules: Vec<&str> = MODULES
        .iter()
        .flat_map(|module| module.lines())
        .filter(|line| !line.starts_with("import "))
        .map(line)
        .collect();
    format!("/*\n{LICENCE}*/\n{UPLOT}\n(() => {{\n\"use strict\";\n{}\n}})();", modules.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_joined_in_the_order_of_their_imports() {
        let script = script();
        assert!(!script.contains("\nimport ") && !script.contains("\nexport "));
        assert!(!script.contains("</script"), "it would end the script");
        for (i, module) in MODULES.iter().enumerate() {
            let imports = module.lines().filter(|line| line.starts_with("import "));
            for name in imports.filter_map(|line| line.split(['{', '}']).nth(1)) {
                for name in name.split(',').map(str::trim) {
                    let defined = |earlier: &&str| {
                        ["function", "class", "const"]
                            .iter()
                            .any(|kind| earlier.contains(&format!("export {kind} {name}")))
                    };
                    assert!(MODULES[..i].iter().any(defined), "{name} comes too late");
                }
            }
        }
    }

    #[test]
    fn no_name_is_defined_twice() {
        let mut names: Vec<&str> = Vec::new();
        for line in MODULES.iter().flat_map(|module| module.lines()) {
            let line = line.strip_prefix("export ").unwrap_or(line);
            let kinds = ["function ", "class ", "const ", "let "];
            let Some(rest) = kinds.iter().find_map(|kind| line.strip_prefix(kind)) else {
                continue;
            };
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            assert!(!names.contains(&&rest[..end]), "{}", &rest[..end]);
            names.push(&rest[..end]);
        }
        assert!(names.len() > 20);
    }
}
