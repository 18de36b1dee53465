//! How fast a CSV log is read: an export of training metrics.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use toclip_logs::{ReadOptions, Row, read};

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

fn csv_log(c: &mut Criterion) {
    let text = table(200_000);
    let mut group = c.benchmark_group("read");
    group.throughput(Throughput::Bytes(text.len() as u64)).sample_size(10);
    group.bench_function("csv", |b| {
        b.iter(|| {
            let mut sum = 0.0;
            let visit = &mut |row: &Row| sum += row.norm.unwrap_or(0.0);
            read(text.as_bytes(), &ReadOptions::default(), visit).ok();
            black_box(sum)
        });
    });
    group.finish();
}

criterion_group!(benches, csv_log);
criterion_main!(benches);
