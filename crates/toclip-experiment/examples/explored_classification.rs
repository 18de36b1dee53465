//! An experiment of the page of `toclip explore`; needs the crate `toclip-experiment`.

use std::path::Path;
use toclip::model::Quantity;
use toclip_experiment::{Prepared, parse, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = r#"
model = { kind = "logistic", flips = 0.1 }
teacher = { kind = "uniform", norm = 6 }
spectrum = { kind = "power_law", dim = 500, exponent = 0.2 }
time = 10
learning_rate = 2
clip = 0.4
methods = ["ode", "unclipped", "sgd"]
"#;
    let (experiment, origin) = parse(text, Path::new("explored.toml"))?;
    let prepared = Prepared::new(&experiment, &origin)?;
    for curve in run::run_all(&experiment, &prepared)? {
        let last = curve.times().len().saturating_sub(1);
        println!("{}: {:?}", curve.method.key(), curve.at(Quantity::Loss, last));
    }
    Ok(())
}
