//! Lines of text: Megatron, torchtitan, llm.c, nanoGPT, DeepSpeed, dictionaries printed among
//! progress bars, and whatever else writes a name before a number.
//!
//! One rule reads them all: a number belongs to the words before it, back to the last separator.

use std::io::Read;

use super::bytes::{Bytes, Lines};
use super::columns::ColumnChooser;
use super::json::{Scanner, Stop};
use super::row::parse_number;
use crate::Result;

/// Names are at most this long.
const LONGEST_NAME: usize = 80;

/// Reads a log of lines.
pub(super) fn read(reader: impl Read, chooser: &mut ColumnChooser) -> Result<()> {
    chooser.rows.joins = true;
    let mut lines = Lines::new(reader, true);
    let mut scanner = Scanner::default();
    let mut plain = Vec::new();
    while let Some(line) = lines.next()? {
        strip_colours(line.text, &mut plain);
        if let Some(brace) = opening(&plain) {
            match scanner.object(&mut Bytes::new(&plain[brace..]), chooser) {
                Ok(()) => {}
                Err(Stop::End) if !line.complete => chooser.damage.truncated = true,
                Err(_) => chooser.damage.unreadable.add(line.number),
            }
        } else if pairs(&plain, chooser) {
            // A value at the end of an incomplete line may be cut: 1.2 instead of 1.25.
            if line.complete {
                chooser.end_record();
            } else {
                chooser.discard();
                chooser.damage.truncated = true;
            }
        }
    }
    Ok(())
}

/// Where a dictionary starts in a line.
fn opening(line: &[u8]) -> Option<usize> {
    memchr::memchr_iter(b'{', line).find(|&i| matches!(line.get(i + 1), Some(b'\'' | b'"')))
}

/// The line without terminal colours.
fn strip_colours(line: &[u8], plain: &mut Vec<u8>) {
    plain.clear();
    let mut rest = line;
    while let Some(i) = memchr::memchr(0x1b, rest) {
        plain.extend_from_slice(&rest[..i]);
        rest = &rest[i + 1..];
        if rest.first() == Some(&b'[') {
            let end = rest[1..].iter().position(|b| (0x40..=0x7e).contains(b));
            rest = end.map_or(&[][..], |end| &rest[end + 2..]);
        }
    }
    plain.extend_from_slice(rest);
}

/// Finds the pairs of a name and a number in a line, and passes those that are columns on. True if
/// there was at least one.
fn pairs(line: &[u8], chooser: &mut ColumnChooser) -> bool {
    let (mut from, mut i, mut found) = (0, 0, false);
    while i < line.len() {
        let starts = i == 0 || b" \t:=[(|,".contains(&line[i - 1]);
        if !starts || !b"0123456789+-.nNiI".contains(&line[i]) {
            i += 1;
            continue;
        }
        let stop = |b: &u8| b" \t,;|)]}(:/=".contains(b);
        let end = line[i..].iter().position(stop).map_or(line.len(), |n| i + n);
        let digit = |at: usize| line.get(at).is_some_and(u8::is_ascii_digit);
        let clock = digit(i) && line.get(end) == Some(&b':') && digit(end + 1);
        if clock {
            let blank = line[i..].iter().position(|b| matches!(b, b' ' | b'\t'));
            i = blank.map_or(line.len(), |n| i + n);
            from = i;
        } else if let Some(value) = parse_number(&line[i..end]) {
            if let Some(key) = key(&line[from..i]) {
                found = true;
                if let Some(id) = chooser.column_of_phrase(key) {
                    chooser.put(id, value);
                }
            }
            i = end;
            // "25/ 1000": the second number is the last step.
            if line.get(i) == Some(&b'/') {
                i += 1;
                i += line[i..].iter().take_while(|b| **b == b' ').count();
                i += line[i..].iter().take_while(|b| b.is_ascii_digit()).count();
            }
            from = i;
        } else {
            // A number with a unit attached is not a number here.
            i = end.max(i + 1);
        }
    }
    found
}

/// The name before a number.
fn key(before: &[u8]) -> Option<&[u8]> {
    let trim = |b: &&u8| b" \t:=.[(|,;-".contains(b);
    let trimmed = |text: &[u8]| text.len() - text.iter().rev().take_while(trim).count();
    let mut kept = &before[..trimmed(before)];
    // "norm: tensor(1.2)" names the norm.
    let wraps = |call: &&[u8]| kept.ends_with(call) && before.get(kept.len()) == Some(&b'(');
    let calls: [&[u8]; 3] = [b"tensor", b"np.float32", b"np.float64"];
    if let Some(call) = calls.iter().find(|call| wraps(call)) {
        kept = &kept[..kept.len() - call.len()];
        kept = &kept[..trimmed(kept)];
    }
    let before = &kept[kept.len().saturating_sub(LONGEST_NAME)..];
    let mut start = 0;
    for i in 0..before.len() {
        if b"|,;])}>:\t".contains(&before[i]) || before[i..].starts_with(b"  ") {
            start = i + 1;
        } else if before[i..].starts_with(b" - ") {
            start = i + 3;
        }
    }
    let lead = |b: &&u8| b" \t[(-".contains(b);
    let skipped = before[start.min(before.len())..].iter().take_while(lead).count();
    before.get(start + skipped..).filter(|name| name.iter().any(u8::is_ascii_alphabetic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LogRow, ReadOptions};

    fn rows(text: &str) -> Vec<LogRow> {
        let (options, mut rows) = (ReadOptions::default(), Vec::new());
        let mut visit = |row: &LogRow| rows.extend(row.norm.or(row.loss).map(|_| row.clone()));
        let mut sink = ColumnChooser::new(&options, &mut visit);
        read(text.as_bytes(), &mut sink).unwrap();
        let settings = sink.finish().unwrap().settings;
        let (clip, batch_size) = (settings.clip(), settings.batch_size());
        let (clip, batch_size) = (clip.map(|c| c.0), batch_size.map(|b| b.0));
        rows.push(LogRow { clip, batch_size, ..LogRow::default() });
        rows
    }

    #[test]
    fn megatron() {
        let text = "  clip_grad ....................................... 1.0\n\
            [2024-05-01 10:00:00]  iteration       25/    1000 | consumed samples:          200 | \
            elapsed time per iteration (ms): 134.5 | learning rate: 1.6E-08 | global batch size: \
            8 | lm loss: 1.08E+01 | loss scale: 65536.0 | grad norm: 0.042 | number of skipped \
            iterations:   0 | number of nan iterations:   0 |\n";
        let rows = rows(text);
        assert_eq!(rows.len(), 2, "{rows:?}");
        assert_eq!((rows[0].step, rows[0].norm), (Some(25.0), Some(0.042)));
        assert_eq!((rows[0].loss, rows[0].learning_rate), (Some(10.8), Some(1.6e-8)));
        assert_eq!(rows[0].loss_scale, Some(65536.0));
        assert_eq!((rows[1].clip, rows[1].batch_size), (Some(1.0), Some(8.0)));
    }

    #[test]
    fn torchtitan_in_colours() {
        let text = "[rank0]:[titan] 2025-02-08 01:02:03,123 - root - INFO - \u{1b}[31mstep:  1  \
            \u{1b}[32mloss: 12.2421  \u{1b}[33mgrad_norm:  1.4285  \u{1b}[34mmemory: 3.61GiB(3%)  \
            tps: 1,234  tflops: 5.0  mfu: 1.2%\u{1b}[39m\n";
        let rows = rows(text);
        assert_eq!(
            (rows[0].step, rows[0].norm, rows[0].loss),
            (Some(1.0), Some(1.4285), Some(12.2421))
        );
    }

    #[test]
    fn llm_c_twice() {
        let log = rows("s:0 tel:11.0129\ns:1 trl:10.95 lr:0.000001 norm:15.35\n");
        assert_eq!((log[0].step, log[0].norm, log[0].loss), (Some(1.0), Some(15.35), Some(10.95)));
        let out = rows(
            "step    1/18865 | loss 10.955029 (+nanz)| norm 15.3484 (+nanz)| lr 8.57e-07 | \
             3056.36 ms | 42.6% bf16 MFU | 171541 tok/s\n",
        );
        assert_eq!((out[0].step, out[0].norm), (Some(1.0), Some(15.3484)));
        assert_eq!((out[0].loss, out[0].learning_rate), (Some(10.955029), Some(8.57e-7)));
    }

    #[test]
    fn dictionaries_among_progress_bars() {
        let text = " 10%|█         | 10/100 [00:05<00:45,  2.00it/s]\r                    \
            {'loss': 0.36, 'grad_norm': '20.19', 'learning_rate': 2e-05, 'epoch': 0.1}\r\n\
            2020-01-01 00:00:00 | INFO | train_inner | {\"epoch\": 1, \"gnorm\": \"1.5\", \
            \"num_updates\": \"100\"}\n";
        let rows = rows(text);
        let norms: Vec<f64> = rows.iter().filter_map(|r| r.norm).collect();
        // Two names for the norm: the better one is taken.
        assert_eq!(norms, [20.19]);
    }

    #[test]
    fn a_line_for_each_value() {
        let rows = rows(
            "2024-02-01 12:00:00.000\thost:0\tolmo:700\tINFO\t[step=1/9]\n    train/loss=3.5\n    optim/total_grad_norm=0.5\n    tps=1,234\n\
             INFO\t[step=2/9]\n    train/loss=3.4\n    optim/total_grad_norm=0.6\n",
        );
        let read: Vec<_> = rows[..2].iter().map(|r| (r.step, r.loss, r.norm)).collect();
        let row = |step, loss, norm| (Some(step), Some(loss), Some(norm));
        assert_eq!(read, [row(1.0, 3.5, 0.5), row(2.0, 3.4, 0.6)]);
    }

    #[test]
    fn norms_of_other_things_are_not_the_gradients() {
        let rows = rows("step 1 | params norm: 90.5 | weight norm: 80.5 | lr 1e-4\n");
        assert!(rows.iter().all(|row| row.norm.is_none()), "{rows:?}");
    }

    #[test]
    fn tensors_printed_whole() {
        let text = "Step 1, Loss: np.float64(2.5), Grad norm: tensor(1.25, device='cuda:0')\n";
        let rows = rows(text);
        assert_eq!((rows[0].step, rows[0].loss, rows[0].norm), (Some(1.0), Some(2.5), Some(1.25)));
    }

    #[test]
    fn no_step_out_of_other_counts() {
        let rows = rows("time per step: 0.5 grad_norm: 2\nsteps of warmup: 100\n");
        assert_eq!((rows[0].step, rows[0].norm), (None, Some(2.0)));
    }
}
