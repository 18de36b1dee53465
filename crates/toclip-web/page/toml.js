// An experiment as TOML, one key a line, tables inline: as people write files for `toclip run`.

/** The order in which people read them; others follow. */
const KEYS = ["name", "noise", "batch", "rule", "spectrum", "start", "time", "learning_rate", "clip"];

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
  return `import toclip

curves = toclip.experiment({
${items.join("")}})
print(curves["ode"].risk[-1], curves["unclipped"].risk[-1])
`;
}

export function toRust(experiment) {
  return `use std::path::Path;
use toclip_experiment::{Problem, parse, run};

let text = r#"
${toToml(experiment)}"#;
let (experiment, origin) = parse(text, Path::new("explored.toml"))?;
let problem = Problem::new(&experiment, &origin)?;
for curve in run::run_all(&experiment, &problem)? {
    println!("{}: {:?}", curve.method.key(), curve.risk().last());
}
`;
}
