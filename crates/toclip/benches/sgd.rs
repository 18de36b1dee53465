//! Nanoseconds per step and dimension of C-SGD on 500 distinct eigenvalues, one core, random
//! numbers included: the best of many repetitions, for every instruction set of this machine.
//!
//! `benches/peers/compare.py` runs it beside other implementations.

use std::error::Error;
use std::time::Instant;
use toclip::dynamics::{Covariates, InstructionSet, Sgd, Simulator};
use toclip::noise::{Gaussian, StudentT};
use toclip::policy::OpenLoop;
use toclip::privacy::Privacy;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Group, Groups, Memory, Momentum, Problem, Rule, Smooth, Step};

const DIM: u64 = 500;
const STEPS: f64 = 1000.0;

fn main() -> Result<(), Box<dyn Error>> {
    let modes = Modes::new(&Spectrum::power_law(DIM, 0.2)?, &Start::Uniform { norm: 1.0 })?;
    let problem = Problem::new(modes, Gaussian::new(0.5)?, OpenLoop::constant(0.7, 0.9)?)?;
    let end = [STEPS / problem.dim()];
    let gaussian = Sgd::new(&problem)?;
    for set in InstructionSet::available() {
        let repetitions = if set == InstructionSet::Portable { 5 } else { 100 };
        let ns = best(&gaussian.clone().with_instruction_set(set)?, &end, repetitions);
        println!("{ns:8.3} ns  {set:?}");
    }
    for (name, momentum) in [
        ("momentum, β = 0.9", Momentum::heavy_ball(Memory::Beta(0.9))?),
        ("momentum, δ = 2", Momentum::average(Memory::Delta(2.0))?),
    ] {
        let with = Sgd::new(&problem.clone().with_optimizer(momentum)?)?;
        println!("{:8.3} ns  best instructions, {name}", best(&with, &end, 100));
    }
    let cauchy = Sgd::new(&problem.with_step(StudentT::new(1.0, 0.5)?)?)?;
    println!("{:8.3} ns  best instructions, Cauchy noise", best(&cauchy, &end, 100));
    let step = Step::new(Gaussian::new(0.5)?);
    for rule in [Rule::Clip, Rule::Skip, Rule::Normalise, Rule::Smooth(Smooth::Tanh)] {
        let name = rule.name();
        let sgd = Sgd::new(&problem.with_step(step.clone().with_rule(rule)?)?)?;
        println!("{:8.3} ns  best instructions, rule {name}", best(&sgd, &end, 100));
    }
    let by_value = Sgd::new(&problem.with_step(step.clone().with_rule(Rule::ByValue)?)?)?;
    println!("{:8.3} ns  best instructions, clip by value", best(&by_value, &end, 100));
    let groups = [(200, 1.0), (200, 0.5), (100, 0.2)].map(|(size, ratio)| Group { size, ratio });
    let groups = Groups::new(&groups)?;
    let grouped = Modes::grouped(
        &Spectrum::power_law(DIM, 0.2)?,
        &Start::Uniform { norm: 1.0 },
        &groups.sizes(),
    )?;
    let per_group = step.clone().with_rule(Rule::PerGroup(groups))?;
    let per_group = Sgd::new(&problem.with_modes(grouped)?.with_step(per_group)?)?;
    println!("{:8.3} ns  best instructions, clip in three groups", best(&per_group, &end, 100));
    let private = Sgd::new(&problem.with_step(step.with_privacy(Privacy::new(1.0)?)?)?)?;
    println!("{:8.3} ns  best instructions, private", best(&private, &end, 100));
    for kind in [Covariates::Rademacher, Covariates::Uniform, Covariates::StudentT { df: 5.0 }] {
        let other = gaussian.clone().with_covariates(kind)?;
        println!("{:8.3} ns  best instructions, {kind:?} covariates", best(&other, &end, 5));
    }
    Ok(())
}

fn best(sgd: &Sgd, end: &[f64], repetitions: u64) -> f64 {
    let time = |index| {
        let clock = Instant::now();
        std::hint::black_box(sgd.run(1, index, end));
        clock.elapsed().as_secs_f64() * 1e9 / (STEPS * DIM as f64)
    };
    (0..repetitions).map(time).fold(f64::INFINITY, f64::min)
}
