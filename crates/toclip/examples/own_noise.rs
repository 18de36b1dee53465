//! A noise of your own: a sensor that sometimes sticks.
//!
//! With probability `p` the target carries a fixed error instead of a small Gaussian one. The
//! distribution is a mixture, so its factors are the mixture of two clipped normals:
//!
//! ```sh
//! cargo run --release -p toclip --example own_noise
//! ```

use rand::{Rng, RngExt};
use toclip::criteria::{best_threshold, fisher_limit};
use toclip::noise::{Feature, Gaussian, Noise};
use toclip::{Moments, clipped_normal};

/// ε is Gaussian, but `stuck` with probability `p`.
#[derive(Debug)]
struct Sticky {
    usual: Gaussian,
    stuck: f64,
    p: f64,
}

impl Noise for Sticky {
    fn describe(&self) -> String {
        format!("sticky sensor (stuck at {} with probability {})", self.stuck, self.p)
    }

    fn sample(&self, rng: &mut dyn Rng) -> f64 {
        if rng.random::<f64>() < self.p { self.stuck } else { self.usual.sample(rng) }
    }

    fn mean(&self) -> Option<f64> {
        Some(self.p * self.stuck)
    }

    fn second_moment(&self) -> f64 {
        (1.0 - self.p) * self.usual.second_moment() + self.p * self.stuck * self.stuck
    }

    fn clipped(&self, r: f64, c: f64) -> Moments {
        let usual = self.usual.clipped(r, c);
        let stuck = clipped_normal(self.stuck, (2.0 * r).sqrt(), c);
        let mix = |a: f64, b: f64| (1.0 - self.p) * a + self.p * b;
        Moments { mu: mix(usual.mu, stuck.mu), m2: mix(usual.m2, stuck.m2) }
    }

    fn features(&self, r: f64) -> Vec<Feature> {
        let mut features = self.usual.features(r);
        features.push(Feature::new(-self.stuck, (2.0 * r).sqrt()));
        features
    }
}

fn main() -> toclip::Result<()> {
    let noise = Sticky { usual: Gaussian::new(0.3)?, stuck: 4.0, p: 0.05 };
    for r in [1.0, 0.1, 0.01] {
        let best = best_threshold(&noise, r)?;
        println!("R = {r}: clip at {:.3}, CCC = {:.3}", best.c, best.ccc);
    }
    // A missing method is an error, not a guess.
    if let Err(error) = fisher_limit(&noise, 0.1) {
        println!("{error}");
    }
    Ok(())
}
