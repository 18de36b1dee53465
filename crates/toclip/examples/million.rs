//! A million points (R, c): seconds for μ, m2, ν, CSC and CCC of each family, the best of five.
//!
//! `cargo run --release -p toclip --example million`; `python/benchmarks/million.py` compares.

use std::hint::black_box;
use std::time::Instant;
use toclip::Factors;
use toclip::noise::{Gaussian, Laplace, Noise, Rademacher};

fn main() -> toclip::Result<()> {
    let noises: [(&str, Box<dyn Noise>); 3] = [
        ("gaussian", Box::new(Gaussian::new(0.7)?)),
        ("rademacher", Box::new(Rademacher::new(2.0, 0.3)?)),
        ("laplace", Box::new(Laplace::new(0.9)?)),
    ];
    // The same grid as NumPy's: risks from 1e-3 to 10, thresholds from 0.05 to 5.
    let points: Vec<(f64, f64)> = (0..1000)
        .flat_map(|i| (0..1000).map(move |j| (i, j)))
        .map(|(i, j)| (1e-3 + f64::from(i) * 9.999 / 999.0, 0.05 + f64::from(j) * 4.95 / 999.0))
        .collect();
    for (name, noise) in &noises {
        let mut best = f64::INFINITY;
        for _ in 0..5 {
            let start = Instant::now();
            let found = Factors::at_points(&**noise, &points)?;
            let sum: f64 = found
                .iter()
                .map(|at| Ok(at.nu()? + at.csc()? + at.ccc()?))
                .sum::<toclip::Result<f64>>()?;
            black_box(sum);
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("{name} {best:.4}");
    }
    Ok(())
}
