//! More than two thousand damaged logs: a clear message or a correct partial reading, never a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::collections::HashSet;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toclip_logs::{AdviceOptions, Format, Framework, ReadOptions, advise, load};

/// Formats that have not all the columns of the others.
const MORE: [&str; 2] = ["mlflow_run/metrics/train/grad_norm", "lightning_layers.csv"];

const ROUNDS: usize = 12;
const KINDS: usize = 11;

fn logs() -> impl Iterator<Item = &'static str> {
    common::WITH_NORMS.into_iter().chain(MORE)
}

/// Cuts bytes off at the end: what is left of the rows must be rows of the whole.
fn cut(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let end = rng.random_range(0..=bytes.len());
    bytes.truncate(end);
}

/// Cuts bytes off at the start, and with them the header of a table or the opening of a list.
fn cut_start(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let start = rng.random_range(0..=bytes.len());
    bytes.drain(..start);
}

fn garble(bytes: &mut [u8], rng: &mut ChaCha8Rng) {
    for _ in 0..rng.random_range(1..40) {
        let at = rng.random_range(0..bytes.len());
        bytes[at] = rng.random();
    }
}

fn swap_lines(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    for _ in 0..lines.len() {
        let (a, b) = (rng.random_range(0..lines.len()), rng.random_range(0..lines.len()));
        lines.swap(a, b);
    }
    *bytes = lines.join(&b'\n');
}

/// Puts something in the place of a number.
fn replace_numbers(bytes: &mut Vec<u8>, with: &[&str], rng: &mut ChaCha8Rng) {
    let mut out = Vec::new();
    let mut i = 0;
    while i < bytes.len() {
        let starts = bytes[i].is_ascii_digit() && (i == 0 || !bytes[i - 1].is_ascii_alphanumeric());
        if starts && rng.random_bool(0.1) {
            out.extend_from_slice(with[rng.random_range(0..with.len())].as_bytes());
            while i < bytes.len() && (bytes[i].is_ascii_digit() || bytes[i] == b'.') {
                i += 1;
            }
        } else {
            out.push(bytes[i]);
            i += 1;
        }
    }
    *bytes = out;
}

fn insert_binary(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let at = rng.random_range(0..=bytes.len());
    let noise: Vec<u8> = (0..rng.random_range(1..3000)).map(|_| rng.random()).collect();
    bytes.splice(at..at, noise);
}

fn drop_middle(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let a = rng.random_range(0..bytes.len());
    let b = rng.random_range(a..bytes.len().min(a + 500));
    bytes.drain(a..b);
}

fn twice(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let again = bytes[rng.random_range(0..bytes.len())..].to_vec();
    bytes.extend(again);
}

/// Steps and norms as bits, or the message.
fn read(bytes: &[u8], options: &ReadOptions) -> Result<Vec<(u64, u64)>, String> {
    match load(bytes, options) {
        Ok(log) => {
            assert!(!log.points.is_empty() || !log.non_finite.is_empty());
            for pair in log.points.windows(2) {
                assert!(pair[0].step < pair[1].step, "steps are in order");
            }
            assert!(log.points.iter().all(|p| p.norm.is_finite() && p.norm >= 0.0));
            for finding in &log.findings {
                assert!(finding.sentence().ends_with('.'));
            }
            // Whatever was read, the adviser has something to say about it.
            let advice = advise(&log, &AdviceOptions::default()).unwrap();
            let verdict = advice.verdict(Framework::of(&log));
            assert!(!verdict.headline.is_empty() && !verdict.reasons.is_empty());
            assert!(advice.findings.iter().all(|finding| finding.sentence().ends_with('.')));
            assert!(advice.details().iter().all(|section| !section.text.is_empty()));
            Ok(log.points.iter().map(|p| (p.step.to_bits(), p.norm.to_bits())).collect())
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.len() > 10 && !text.contains(char::is_control), "{text:?}");
            Err(text)
        }
    }
}

#[test]
fn damaged_logs_never_panic() {
    let mut rng = ChaCha8Rng::seed_from_u64(20_240_601);
    let huge = ["1e999", "-1e400", "99999999999999999999999999", "1e-400", "0", "-0", "9e15"];
    let odd =
        ["\"text\"", "null", "[1, 2]", "{}", "nan", "inf", "true", "''", "0x1F", "1_000", "٣"];
    let (mut read_some, mut refused, mut total) = (0, 0, 0);
    for name in logs() {
        let whole = common::bytes(name);
        for kind in 0..KINDS {
            for _ in 0..ROUNDS {
                let mut bytes = whole.clone();
                match kind {
                    0 => cut(&mut bytes, &mut rng),
                    1 => garble(&mut bytes, &mut rng),
                    2 => swap_lines(&mut bytes, &mut rng),
                    3 => replace_numbers(&mut bytes, &huge, &mut rng),
                    4 => replace_numbers(&mut bytes, &odd, &mut rng),
                    5 => insert_binary(&mut bytes, &mut rng),
                    6 => drop_middle(&mut bytes, &mut rng),
                    7 => twice(&mut bytes, &mut rng),
                    8 => cut_start(&mut bytes, &mut rng),
                    9 => {
                        bytes =
                            if rng.random() { common::gzip(&bytes) } else { common::zstd(&bytes) };
                        match rng.random() {
                            true => cut(&mut bytes, &mut rng),
                            false => garble(&mut bytes, &mut rng),
                        }
                    }
                    _ => rng.fill_bytes(&mut bytes),
                }
                total += 1;
                match read(&bytes, &ReadOptions::default()) {
                    Ok(_) => read_some += 1,
                    Err(_) => refused += 1,
                }
                // And read as what it is not.
                let wrong = Format::all()[rng.random_range(0..Format::all().len())];
                let _ =
                    read(&bytes, &ReadOptions { format: Some(wrong), ..ReadOptions::default() });
            }
        }
    }
    assert_eq!(total, logs().count() * KINDS * ROUNDS);
    // Most damage leaves something to read; noise alone never does.
    assert!(read_some > total / 2, "{read_some} read, {refused} refused");
    assert!(refused >= logs().count() * ROUNDS, "{read_some} read, {refused} refused");
}

#[test]
fn what_is_left_of_a_cut_log_is_right() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for name in logs() {
        let whole = common::bytes(name);
        let truth: HashSet<(u64, u64)> =
            read(&whole, &ReadOptions::default()).unwrap().into_iter().collect();
        for _ in 0..40 {
            let mut bytes = whole.clone();
            cut(&mut bytes, &mut rng);
            let Ok(left) = read(&bytes, &ReadOptions::default()) else { continue };
            let wrong: Vec<_> = left.iter().filter(|p| !truth.contains(p)).collect();
            assert!(wrong.is_empty(), "{name} cut at {}: {wrong:?}", bytes.len());
        }
    }
}

#[test]
fn nothing_at_all_is_said_to_be_nothing() {
    for (bytes, says) in [
        (&b""[..], "empty"),
        (b"\n\n \t\n", "empty"),
        (b"{}", "no gradient norm"),
        (b"[]", "no gradient norm"),
        (b"step,grad_norm\n", "no gradient norm"),
        (b"step,grad_norm\n1,nan\n", "all norms are NaN, infinite or negative (1 found)"),
    ] {
        let error = read(bytes, &ReadOptions::default()).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}

/// The smallest inputs that once broke a promise.
#[test]
fn names_with_line_breaks_leave_a_message_of_one_line() {
    let event = b"\x12\0\0\0\0\0\0\0$\x1fd%\x10\x01*\x0e\n\x0c\n\x05lo\nss\x15\0\0\x80?U,\xef\xb1";
    for (bytes, format) in [
        (&b"{\"lo\\\nss\":1}"[..], Format::Jsonl),
        (b"{\"lo\x1bss\":1}", Format::Jsonl),
        (b"lo\x07ss,x\n1,2\n", Format::Csv),
        (event, Format::TensorBoard),
    ] {
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        let error = read(bytes, &options).unwrap_err();
        assert!(error.contains("lo\u{fffd}ss"), "{error}");
    }
    // Nor does a name of a megabyte stand in it.
    let long = format!("{{\"{}\": 1}}\n", "x".repeat(250)).repeat(2);
    let error = read(long.as_bytes(), &ReadOptions::default()).unwrap_err();
    assert!(error.contains("xxx…`") && error.len() < 500, "{error}");
}

#[test]
fn a_norm_that_unscaling_makes_infinite_is_left_out() {
    let text = b"step,grad_norm,loss_scale\n1,1e300,1e-300\n2,3,2\n";
    let log = load(&text[..], &ReadOptions { unscale: true, ..ReadOptions::default() }).unwrap();
    assert_eq!((log.norms(), log.non_finite.len()), (vec![1.5], 1));
}
