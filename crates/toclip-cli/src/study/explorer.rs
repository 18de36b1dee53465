//! The page of the explorer, and links that open it with an experiment.

use toml::{Table, Value};

/// The page, which `scripts/build-web` makes of `crates/toclip-web`.
pub const PAGE: &str = include_str!("../commands/explore/page.html");
/// Its name beside a report.
pub const FILE: &str = "explore.html";
/// Where the page keeps what it opens with.
const EMPTY: &str = "const INITIAL = \"\";";

/// The page that opens with an experiment.
pub fn opening_with(toml: &str) -> String {
    let initial = format!("const INITIAL = \"{}\";", fragment(toml, None));
    PAGE.replacen(EMPTY, &initial, 1)
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

/// The problems of sections that are made without an experiment file, with one of the settings that they
/// compare.
const PROBLEMS: [(&str, &str); 4] = [
    (
        "beyond-paths",
        "noise = { family = 'student_t', df = 3.0, scale = 0.4 }\n\
         spectrum = { kind = 'power_law', dim = 500, exponent = 0.2 }\n\
         start = { kind = 'uniform', norm = 1.0 }\ntime = 8.0\nlearning_rate = 0.5\nclip = 0.6\n",
    ),
    (
        "beyond-momentum",
        "noise = { family = 'gaussian', sigma = 0.5 }\nspectrum = { kind = 'isotropic', dim = 500 }\n\
         start = { kind = 'uniform', norm = 1.0 }\ntime = 12.0\nlearning_rate = 0.06\nclip = 0.9\n\
         momentum = 0.9\n",
    ),
    (
        "beyond-privacy",
        "noise = { family = 'gaussian_mixture', weights = [0.9, 0.1], means = [0.0, 0.0], stds = [0.3, 3.03] }\n\
         spectrum = { kind = 'isotropic', dim = 250 }\nstart = { kind = 'uniform', norm = 1.0 }\n\
         batch = { size = 128, rule = 'per_sample' }\nprivacy = { noise_multiplier = 0.653 }\n\
         time = 3.0\nlearning_rate = 4.5\nclip = 0.178\n",
    ),
    (
        "beyond-classification",
        "model = { kind = 'logistic', flips = 0.1 }\nteacher = { kind = 'uniform', norm = 3.0 }\n\
         spectrum = { kind = 'isotropic', dim = 400 }\ntime = 10.0\nlearning_rate = 1.0\nclip = 0.4\n",
    ),
];

/// A link to the problem of such a section, by its name.
pub fn link_to_problem(id: &str) -> Option<String> {
    PROBLEMS.iter().find(|(name, _)| *name == id).and_then(|(_, experiment)| link(experiment))
}

/// An experiment that starts at the risk of curves against the threshold, under the noise for which
/// clipping matters most: the outliers, or the heaviest tail.
fn at_start(criteria: &Value) -> Option<Table> {
    // Of a range the largest: training runs through the others.
    let risk = match criteria.get("risk")? {
        Value::Array(range) => range.last()?.as_float()?,
        risk => risk.as_float()?,
    };
    let noises = criteria.get("noises")?.as_array()?;
    let has_outliers =
        |noise: &&Value| noise.get("label")?.as_str()?.starts_with("Rad").then_some(());
    let chosen = noises.iter().find(|noise| has_outliers(noise).is_some()).or(noises.last())?;
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
        let page = opening_with("noise = { family = \"none\" }\n");
        assert!(
            page.contains("#experiment=noise%20%3D%20%7B%20family%20%3D%20%22none%22%20%7D%0A")
        );
    }

    #[test]
    fn problems_are_experiments() {
        for (name, text) in PROBLEMS {
            let parsed = toclip_experiment::parse_file(text, std::path::Path::new(name));
            assert!(parsed.is_ok(), "{name}: {parsed:?}");
        }
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
        assert!(link_to_problem("beyond-paths").unwrap().contains("student_t"));
        assert_eq!(link_to_problem("beyond-rules"), None);
    }
}
