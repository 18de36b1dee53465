//! What a step costs the monitor, with its 64 candidates: less than a microsecond is wanted.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use toclip::monitor::{Monitor, MonitorMemory, MonitorSettings};
use toclip::threshold_rules::{Monitored, ThresholdRule};

/// Norms over two decades, in an order that no branch can guess.
fn norms() -> Vec<f64> {
    let uniform = |k: u32| (f64::from(k) * 0.618_033_988_749_895).fract();
    (0..10_000).map(|k| (4.6 * uniform(k)).exp()).collect()
}

fn steps(c: &mut Criterion) {
    let norms = norms();
    let mut group = c.benchmark_group("monitor");
    group.throughput(Throughput::Elements(norms.len() as u64));
    let watched = MonitorSettings { watched: Some(1.0), ..MonitorSettings::default() };
    let window =
        MonitorSettings { memory: MonitorMemory::Last(5_000), ..MonitorSettings::default() };
    for (name, settings) in [
        ("observe", MonitorSettings::default()),
        ("observe, watched", watched),
        ("observe, window", window),
    ] {
        let mut monitor = Monitor::new(settings).unwrap();
        group.bench_function(name, |b| {
            b.iter(|| norms.iter().for_each(|norm| monitor.observe(black_box(*norm))));
        });
    }
    let mut monitor = Monitor::new(MonitorSettings::default()).unwrap();
    group.bench_function("observe_aligned", |b| {
        b.iter(|| norms.iter().for_each(|norm| monitor.observe_aligned(black_box(*norm), 0.5)));
    });
    let mut rule = Monitored::new(window, 500).unwrap();
    group.bench_function("rule, asked every 500", |b| {
        b.iter(|| norms.iter().map(|norm| rule.threshold(black_box(*norm))).sum::<f64>());
    });
    group.finish();
    let mut monitor = Monitor::new(MonitorSettings::default()).unwrap();
    norms.iter().for_each(|norm| monitor.observe(*norm));
    c.bench_function("monitor/advice", |b| b.iter(|| monitor.advice()));
    c.bench_function("monitor/curve", |b| b.iter(|| monitor.curve()));
}

criterion_group!(benches, steps);
criterion_main!(benches);
