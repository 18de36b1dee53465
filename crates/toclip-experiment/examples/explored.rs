//! An experiment of the page of `toclip explore`; needs the crate `toclip-experiment`.

use std::path::Path;
use toclip_experiment::{Prepared, parse, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = r#"
noise = { family = "rademacher", sigma = 0.8, p = 0.2 }
spectrum = { kind = "power_law", dim = 500, exponent = 0.2 }
start = { kind = "uniform", norm = 1 }
time = 15
learning_rate = 0.4
clip = 0.5
methods = ["ode", "unclipped", "sgd"]
"#;
    let (experiment, origin) = parse(text, Path::new("explored.toml"))?;
    let prepared = Prepared::new(&experiment, &origin)?;
    for curve in run::run_all(&experiment, &prepared)? {
        println!("{}: {:?}", curve.method.key(), curve.risk().last());
    }
    Ok(())
}
