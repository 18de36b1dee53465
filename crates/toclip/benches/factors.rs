//! The time of one evaluation of $(\mu, m^{(2)})$, family by family.
//!
//! Each point of a set that visits every regime (thresholds and risks from far below to far above
//! the noise) is evaluated in turn, so that no branch is free.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use toclip::criteria::best_threshold;
use toclip::noise::{
    Component, Empirical, Family, Gaussian, Laplace, Mixture, NoNoise, Noise, Rademacher, StudentT,
    Uniform,
};

fn families() -> Vec<(&'static str, Family)> {
    let made: toclip::Result<Vec<(&'static str, Family)>> = (|| {
        // A deterministic cloud of a million residuals: enough to see that their number is free.
        let residuals = |n: u32| -> Vec<f64> {
            (0..n).map(|k| (f64::from(k) * 0.618_033_988_749_895).fract() - 0.5).collect()
        };
        let parts = [(0.39, -0.69, 0.18), (0.27, 0.95, 0.17), (0.34, 0.06, 0.2)];
        Ok(vec![
            ("none", NoNoise.into()),
            ("gaussian", Gaussian::new(0.8)?.into()),
            ("rademacher", Rademacher::from_sigma(0.8, 0.2)?.into()),
            ("uniform", Uniform::from_sigma(0.8)?.into()),
            ("laplace", Laplace::new(0.8)?.into()),
            ("student_t df=1", StudentT::new(1.0, 0.5)?.into()),
            ("student_t df=5", StudentT::new(5.0, 0.5)?.into()),
            ("student_t df=0.1", StudentT::new(0.1, 0.5)?.into()),
            (
                "mixture of 3",
                Mixture::new(&parts.map(|(weight, mean, std)| Component { weight, mean, std }))?
                    .into(),
            ),
            ("empirical 1e3", Empirical::new(&residuals(1_000))?.into()),
            ("empirical 1e6", Empirical::new(&residuals(1_000_000))?.into()),
        ])
    })();
    made.unwrap_or_default()
}

fn factors(criterion: &mut Criterion) {
    let scales = [1e-6, 1e-3, 0.1, 0.3, 0.7, 1.0, 2.0, 5.0, 1e3];
    let points: Vec<(f64, f64)> =
        scales.iter().flat_map(|r| scales.iter().map(move |c| (r * r, *c))).collect();
    let mut group = criterion.benchmark_group("one evaluation");
    group.throughput(Throughput::Elements(1));
    for (name, noise) in families() {
        let mut next = points.iter().cycle();
        group.bench_function(name, |bench| {
            bench.iter(|| {
                let &(r, c) = next.next().unwrap_or(&(1.0, 1.0));
                black_box(noise.clipped(black_box(r), black_box(c)))
            });
        });
    }
    group.finish();
}

fn thresholds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("best threshold");
    for (name, noise) in families().into_iter().filter(|(name, _)| !name.starts_with("empirical")) {
        group.bench_function(name, |bench| bench.iter(|| best_threshold(&noise, black_box(0.1))));
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1))
        .sample_size(20);
    targets = factors, thresholds
}
criterion_main!(benches);
