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

const RUST_RUN = `let (experiment, origin) = parse(text, Path::new("explored.toml"))?;
let problem = Problem::new(&experiment, &origin)?;
for curve in run::run_all(&experiment, &problem)? {
    println!("{}: {:?}", curve.method.key(), curve.risk().last());
}`;
const RUST_RUN_MODEL = `    let (file, origin) = parse_file(text, Path::new("explored.toml"))?;
    let experiment = file.glm.ok_or("no model")?;
    let problem = GlmProblem::new(&experiment, &origin)?;
    let plan = Plan { threads: None, cancel: &AtomicBool::new(false), tick: &|_| {} };
    for curve in run_glm(&experiment, &problem, &plan)?.into_iter().flatten() {
        println!("{}: {:?}", curve.method.key(), curve.outcome);
    }`.replace(/^ {4}/gm, "");

export function toRust(experiment) {
  const model = "model" in experiment;
  const names = model ? "{GlmProblem, parse_file, run::Plan, run_glm}" : "{Problem, parse, run}";
  return `use std::path::Path;
${model ? "use std::sync::atomic::AtomicBool;\n" : ""}use toclip_experiment::${names};

let text = r#"
${toToml(experiment)}"#;
${model ? RUST_RUN_MODEL : RUST_RUN}
`;
}
