//! The price of compressing a spectrum and its start, for 10^3 to 10^6 distinct eigenvalues.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use toclip::spectrum::{Modes, Spectrum, Start};

fn compress(c: &mut Criterion) {
    for exponent in [0.2, 1.0] {
        let mut group = c.benchmark_group(format!("compress/power_law_{exponent}"));
        group.sample_size(10);
        for dim in [1_000, 10_000, 100_000, 1_000_000] {
            let spectrum = Spectrum::power_law(dim, exponent).unwrap();
            let modes = Modes::new(&spectrum, &Start::Uniform { norm: 1.0 }).unwrap();
            let small = modes.compress(1e-10).unwrap();
            println!("{dim} modes become {}, {:?}", small.modes().len(), small.bound());
            group.bench_function(BenchmarkId::from_parameter(dim), |b| {
                b.iter(|| modes.compress(1e-10).unwrap());
            });
        }
        group.finish();
    }
}

criterion_group!(benches, compress);
criterion_main!(benches);
