// An experiment as TOML, one key a line, tables inline: as people write files for `toclip run`.

/** The order in which people read them; others follow. */
const KEYS = ["name", "model", "teacher", "noise", "batch", "rule", "spectrum", "start", "time", "learning_rate", "clip"];

function ordered(experiment) {
  const place = ([key]) => (KEYS.includes(key) ? KEYS.indexOf(key) : KEYS.length);
  return Object.entries(experiment).sort((a, b) => place(a) - place(b));
}

export function toToml(experiment) {
  return ordered(experiment)
    .map(([key, value]) => `${key} = ${tomlValue(value)}\n`)
    .join("");
}

function tomlValue(value) {
  if (value === "inf") return "inf";
  if (typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`;
  const named = (key) => key !== "kind" && key !== "family";
  const entries = Object.entries(value).sort(([a], [b]) => named(a) - named(b));
  const items = entries.map(([key, item]) => `${key} = ${tomlValue(item)}`);
  return `{ ${items.join(", ")} }`;
}

export function toPython(experiment) {
  const value = (v) => {
    if (v === true) return "True";
    if (v === false) return "False";
    if (typeof v !== "object") return JSON.stringify(v);
    if (Array.isArray(v)) return `[${v.map(value).join(", ")}]`;
    return `{${Object.entries(v).map(([key, item]) => `"${key}": ${value(item)}`).join(", ")}}`;
  };
  const items = ordered(experiment).map(([key, v]) => `    "${key}": ${value(v)},\n`);
  const quantity = "model" in experiment ? "loss" : "risk";
  return `import toclip

curves = toclip.experiment({
${items.join("")}})
print(curves["ode"].${quantity}[-1], curves["unclipped"].${quantity}[-1])
`;
}

const RUST = `//! An experiment of the page of \`toclip explore\`; needs the crate \`toclip-experiment\`.

use std::path::Path;
use toclip_experiment::{Prepared, parse, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = r#"
TOML"#;
    let (experiment, origin) = parse(text, Path::new("explored.toml"))?;
    let prepared = Prepared::new(&experiment, &origin)?;
    for curve in run::run_all(&experiment, &prepared)? {
        println!("{}: {:?}", curve.method.key(), curve.risk().last());
    }
    Ok(())
}
`;
const RUST_CLASSIFICATION = `//! An experiment of the page of \`toclip explore\`; needs the crate \`toclip-experiment\`.

use std::path::Path;
use toclip::model::Quantity;
use toclip_experiment::{Prepared, parse, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = r#"
TOML"#;
    let (experiment, origin) = parse(text, Path::new("explored.toml"))?;
    let prepared = Prepared::new(&experiment, &origin)?;
    for curve in run::run_all(&experiment, &prepared)? {
        let last = curve.times().len().saturating_sub(1);
        println!("{}: {:?}", curve.method.key(), curve.at(Quantity::Loss, last));
    }
    Ok(())
}
`;

/** A program; for the settings of the presets "Outliers" and "Classification" it is an example of
 * toclip-experiment, which the compiler checks. */
export function toRust(experiment) {
  const program = "model" in experiment ? RUST_CLASSIFICATION : RUST;
  return program.replace("TOML", () => toToml(experiment));
}
