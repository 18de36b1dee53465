//! The page of the explorer, and links that open it with an experiment.

use anyhow::{Context, Result};
use toml::{Table, Value};

/// The page, which `scripts/build-web` makes of `crates/toclip-web`.
pub const PAGE: &str = include_str!("explorer.html");
/// Its name beside a report.
pub const FILE: &str = "explore.html";
/// Where the page keeps what it opens with.
const EMPTY: &str = "const INITIAL = \"\";";

/// The page that opens with an experiment.
///
/// # Errors
/// If the page has no place for it: it was built from other sources.
pub fn opening_with(toml: &str) -> Result<String> {
    let (before, after) = PAGE
        .split_once(EMPTY)
        .context("the page of the explorer has no place for an experiment")?;
    Ok(format!("{before}const INITIAL = \"{}\";{after}", fragment(toml, None)))
}

/// A link, from the folder of a report, to what the explorer can show of an experiment file.
pub fn link(experiment: &str) -> Option<String> {
    let mut table: Table = experiment.parse().ok()?;
    let fragment = match table.remove("criteria") {
        Some(criteria) => fragment(&at_start(&criteria)?.to_string(), Some(0.0)),
        None => fragment(&table.to_string(), None),
    };
    Some(format!("{FILE}{fragment}"))
}

/// An experiment that starts at the risk of curves against the threshold, under the noise for which
/// clipping matters most: the outliers, or the heaviest tail.
fn at_start(criteria: &Value) -> Option<Table> {
    // The largest of a range: training passes through the others.
    let risk = match criteria.get("risk")? {
        Value::Array(range) => range.last()?.as_float()?,
        risk => risk.as_float()?,
    };
    let noises = criteria.get("noises")?.as_array()?;
    let family = |noise: &Value| noise.get("noise")?.get("family")?.as_str().map(str::to_owned);
    let has_outliers = |noise: &&Value| family(noise).as_deref() == Some("rademacher");
    let chosen = noises.iter().find(has_outliers).or(noises.last())?;
    // With all eigenvalues 1 the risk is half the squared distance.
    let norm = (2.0 * risk).sqrt();
    let text = format!(
        "spectrum = {{ kind = 'isotropic', dim = 500 }}\nstart = {{ kind = 'uniform', norm = {norm} }}\n\
         time = 15.0\nlearning_rate = 0.1\nclip = 2.0\n"
    );
    let mut table: Table = text.parse().ok()?;
    table.insert("noise".into(), chosen.get("noise")?.clone());
    Some(table)
}

/// The state of the page, as its URL holds it.
fn fragment(toml: &str, moment: Option<f64>) -> String {
    let moment = moment.map_or(String::new(), |moment| format!("&moment={moment}"));
    format!("#experiment={}{moment}", percent_encoded(toml))
}

/// A text as part of a URL, which no string of JavaScript or HTML needs to escape either.
fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_the_experiment() {
        assert_eq!(PAGE.matches(EMPTY).count(), 1);
        let page = opening_with("noise = { family = \"none\" }\n").unwrap();
        assert!(
            page.contains("#experiment=noise%20%3D%20%7B%20family%20%3D%20%22none%22%20%7D%0A")
        );
    }

    #[test]
    fn links_hold_the_experiment_or_the_noise_of_its_curves() {
        let found = |text: &str| link(text).unwrap();
        let plain = found("# a comment\ntime = 15.0\nclip = 1\n");
        assert_eq!(plain, "explore.html#experiment=clip%20%3D%201%0Atime%20%3D%2015.0%0A");
        let figure = |name: &str| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/experiments");
            std::fs::read_to_string(format!("{folder}/{name}.toml")).unwrap()
        };
        let curves = found(&figure("figure-2b"));
        assert!(curves.contains("rademacher") && curves.ends_with("&moment=0"), "{curves}");
        assert!(found(&figure("figure-5")).contains("df%20%3D%202.1"));
        // Figure 3 is drawn against the risk: the path begins at the largest, √20 from the solution.
        assert!(found(&figure("figure-3")).contains("norm%20%3D%204.472"));
    }
}
