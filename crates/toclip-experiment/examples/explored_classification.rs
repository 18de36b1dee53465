//! An experiment of the page of `toclip explore`; needs the crate `toclip-experiment`.

use std::path::Path;
use toclip_experiment::{GlmProblem, Method, parse_file};

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
    let (file, origin) = parse_file(text, Path::new("explored.toml"))?;
    let experiment = file.glm.ok_or("the experiment has no model")?;
    let problem = GlmProblem::new(&experiment, &origin)?;
    for method in [Method::Ode, Method::Unclipped] {
        let path = problem.ode(method, experiment.tolerance).solve(&problem.times)?;
        println!("{}: {:?}", method.key(), path.measures(&*problem.model).last());
    }
    let run = problem.simulator()?.run(experiment.ensemble.seed, 0, &problem.times);
    println!("one run of C-SGD: {:?}", run.measures(&*problem.model).last());
    Ok(())
}
