//! Metrics of the MLflow file store: one file per metric, one line `timestamp value step` per value.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::bytes::Lines;
use super::columns::{ColumnChooser, ColumnId};
use super::file_damage::FileDamage;
use super::row::parse_number;
use crate::Result;

/// Bytes of each file in memory. Files are closed in between: there can be one for each layer.
const CHUNK: usize = 1 << 14;

/// One value of a metric.
struct Value {
    time: f64,
    value: f64,
    step: f64,
}

/// Parses a line; `None` if it is damaged.
fn value(line: &[u8]) -> Option<Value> {
    let mut cells = line.split(|b| *b == b' ').map(parse_number);
    let (time, value, step) = (cells.next()??, cells.next()??, cells.next()??);
    cells.next().is_none().then_some(Value { time, value, step })
}

/// Whether the first lines are those of a metric: a time in milliseconds, a value and a step.
pub(super) fn is_metric(text: &[u8]) -> bool {
    let mut lines = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii_end);
    let first = lines.next().and_then(value);
    first.is_some_and(|v| v.time > 1e11 && v.time.fract() == 0.0 && v.step.fract() == 0.0)
}

/// Reads the file of a single metric, which is taken for the norm.
pub(super) fn read(reader: impl Read, chooser: &mut ColumnChooser) -> Result<()> {
    let (step, norm) = (chooser.column(b"step"), chooser.column(b"norm"));
    let mut lines = Lines::new(reader, false);
    while let Some(value) = next_value(&mut lines, &mut chooser.damage)? {
        put(&value, step, norm, chooser);
    }
    Ok(())
}

/// The next line that can be read.
fn next_value(lines: &mut Lines<impl Read>, damage: &mut FileDamage) -> Result<Option<Value>> {
    while let Some(line) = lines.next()? {
        match value(line.text.trim_ascii_end()) {
            // The last line may be cut.
            _ if !line.complete => damage.truncated = true,
            None if line.text.is_empty() => {}
            None => damage.unreadable.add(line.number),
            found => return Ok(found),
        }
    }
    Ok(None)
}

fn put(
    value: &Value,
    step: Option<ColumnId>,
    column: Option<ColumnId>,
    chooser: &mut ColumnChooser,
) {
    for (id, number) in [(step, value.step), (column, value.value)] {
        if let Some(id) = id {
            chooser.put(id, number);
        }
    }
    chooser.end_record();
}

/// Reads the files of a run, each with the name of its metric, in the order of time.
pub(super) fn read_run(
    metrics: &[(&str, &Path)],
    chooser: &mut ColumnChooser,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let progress = RefCell::new(progress);
    chooser.fix_step("step");
    let step = chooser.column(b"step");
    let mut files = Vec::new();
    for (name, path) in metrics {
        // A metric called `step` is not the step of the values.
        let column = if *name == "step" { None } else { chooser.column(name.as_bytes()) };
        if column.is_some() {
            let reader = Reopened { path, offset: 0, progress: &progress };
            let lines = Lines::with_capacity(CHUNK, reader, false);
            let mut file = MetricFile { lines, column, time: 0.0, next: None };
            file.advance(&mut chooser.damage)?;
            files.push(file);
        }
    }
    loop {
        // Several steps may be logged in one millisecond.
        let earlier = |a: &&mut MetricFile, b: &&mut MetricFile| match (&a.next, &b.next) {
            (Some(a), Some(b)) => a.time.total_cmp(&b.time).then(a.step.total_cmp(&b.step)),
            (a, b) => b.is_some().cmp(&a.is_some()),
        };
        let Some(file) = files.iter_mut().min_by(earlier) else { return Ok(()) };
        let Some(value) = file.next.take() else { return Ok(()) };
        put(&value, step, file.column, chooser);
        file.advance(&mut chooser.damage)?;
    }
}

/// A metric file and its next value.
struct MetricFile<'a, 'b> {
    lines: Lines<Reopened<'a, 'b>>,
    column: Option<ColumnId>,
    /// The time of the last line.
    time: f64,
    next: Option<Value>,
}

impl MetricFile<'_, '_> {
    /// Reads the next value; none at the end.
    fn advance(&mut self, damage: &mut FileDamage) -> Result<()> {
        self.next = next_value(&mut self.lines, damage)?;
        if let Some(value) = &mut self.next {
            // Clocks are set back at times; the lines are in order.
            self.time = self.time.max(value.time);
            value.time = self.time;
        }
        Ok(())
    }
}

/// A file that is closed after each chunk.
struct Reopened<'a, 'b> {
    path: &'a Path,
    offset: u64,
    progress: &'a RefCell<&'b mut dyn FnMut(u64)>,
}

impl Read for Reopened<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut file = File::open(self.path)?;
        file.seek(SeekFrom::Start(self.offset))?;
        let count = file.read(buffer)?;
        self.offset += count as u64;
        (self.progress.borrow_mut())(count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LogRow, ReadOptions};

    #[test]
    fn steps_of_the_same_millisecond_stay_apart() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let norm = write("norm", "9 1.5 1\n9 2.5 2\n8 3.5 3\n9 4");
        let loss = write("loss", "9 0.1 1\noops\n9 0.2 2\n9 0.3 3\n");
        let metrics = [("grad_norm", &*norm), ("loss", &*loss)];
        let (options, mut rows) = (ReadOptions::default(), Vec::new());
        let mut visit = |row: &LogRow| rows.push((row.step, row.norm, row.loss));
        let mut chooser = ColumnChooser::new(&options, &mut visit);
        let mut bytes = 0;
        read_run(&metrics, &mut chooser, &mut |read| bytes += read).unwrap();
        let damage = chooser.finish().unwrap().damage;
        let row = |step: f64, norm, loss| (Some(step), Some(norm), Some(loss));
        assert_eq!(rows, [row(1.0, 1.5, 0.1), row(2.0, 2.5, 0.2), row(3.0, 3.5, 0.3)]);
        let unreadable = crate::Finding::Unreadable { count: 1, first: 2 };
        assert_eq!(damage.findings(), [unreadable, crate::Finding::Truncated]);
        assert_eq!(bytes, [norm, loss].iter().map(|f| f.metadata().unwrap().len()).sum::<u64>());
    }

    #[test]
    fn lines_of_a_metric() {
        assert!(is_metric(b"1794797868837 1.5 0\n1794797868844 2.5 1\n"));
        assert!(is_metric(b"1794797868837 nan 0\n"));
        for other in [&b"1 2 3\n"[..], b"1.5\n", b"step norm\n1 2\n", b"", b"1794797868837 1 2 3\n"]
        {
            assert!(!is_metric(other), "{other:?}");
        }
    }
}
