//! How fast logs are read: a table, with and without norms of layers, and JSON lines.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use toclip_logs::{LogRow, ReadOptions, read};

/// A table of `rows` lines with ten columns of which four are wanted.
fn table(rows: usize) -> String {
    let mut text = String::from(
        "step,epoch,train/loss,train/grad_norm,train/learning_rate,tokens,tps,mfu,memory,time\n",
    );
    for i in 0..rows {
        let x = (i as f64 * 0.7).sin();
        text.push_str(&format!(
            "{i},{:.6},{:.6},{:.6},{:.3e},{},{:.1},{:.2},{:.2},{:.3}\n",
            i as f64 / 1e4,
            2.0 + x,
            1.5 + x * x,
            3e-4 * (1.0 - 0.5 * x),
            i * 4096,
            41234.5 + x,
            42.17,
            61.25,
            1.7e9 + i as f64
        ));
    }
    text
}

/// The same columns as JSON lines.
fn json_lines(rows: usize) -> String {
    let row = |i: usize| {
        let x = (i as f64 * 0.7).sin();
        format!(
            "{{\"step\": {i}, \"epoch\": {:.6}, \"loss\": {:.6}, \"grad_norm\": {:.6}, \
             \"learning_rate\": {:.3e}, \"tokens\": {}}}\n",
            i as f64 / 1e4,
            2.0 + x,
            1.5 + x * x,
            3e-4 * (1.0 - 0.5 * x),
            i * 4096
        )
    };
    (0..rows).map(row).collect()
}

/// A table with the norms of a hundred layers.
fn layers(rows: usize) -> String {
    let names: Vec<String> = (0..100).map(|i| format!("grad_2.0_norm/layers.{i}.weight")).collect();
    let row = |i: usize| {
        let norms = (0..100).map(|k| format!(",{:.6}", 1.0 + ((i * k) as f64).sin().abs()));
        format!("{i}{}\n", norms.collect::<String>())
    };
    let rows: String = (0..rows).map(row).collect();
    format!("step,{}\n{rows}", names.join(","))
}

fn logs(c: &mut Criterion) {
    let mut group = c.benchmark_group("read");
    group.sample_size(10);
    for (name, text) in
        [("csv", table(200_000)), ("jsonl", json_lines(150_000)), ("layers", layers(20_000))]
    {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut sum = 0.0;
                let visit = &mut |row: &LogRow| sum += row.norm.unwrap_or(0.0);
                read(text.as_bytes(), &ReadOptions::default(), visit).ok();
                black_box(sum)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, logs);
criterion_main!(benches);
