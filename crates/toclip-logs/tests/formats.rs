//! Every format gives back the numbers that were written into it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use toclip_logs::{
    Error, Finding, Format, Hint, Log, LogColumn, LogRow, ReadOptions, ReadSummary, Role, load,
};

fn read(name: &str) -> Log {
    load(&common::bytes(name)[..], &ReadOptions::default())
        .unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn message(name: &str) -> String {
    load(&common::bytes(name)[..], &ReadOptions::default()).unwrap_err().to_string()
}

fn column(log: &Log, role: Role) -> &LogColumn {
    log.summary.columns.iter().find(|c| c.role == role).unwrap()
}

/// Step, norm, loss and learning rate, by hand from the table.
fn truth() -> Vec<[f64; 4]> {
    let text = String::from_utf8(common::bytes("truth.csv")).unwrap();
    let row = |line: &str| -> [f64; 4] {
        let cells: Vec<f64> = line.split(',').map(|c| c.parse().unwrap()).collect();
        cells.try_into().unwrap()
    };
    text.lines().skip(1).map(row).collect()
}

/// `digits`: relative accuracy with which the format writes norms; NaN steps of the fixture.
fn check(name: &str, format: Format, digits: f64, nan: &[usize], has: [bool; 3]) {
    let log = read(name);
    assert_eq!(log.summary.format, format, "{name}");
    let truth = truth();
    let kept: Vec<&[f64; 4]> =
        truth.iter().enumerate().filter(|(i, _)| !nan.contains(i)).map(|(_, t)| t).collect();
    assert_eq!(log.points.len(), kept.len(), "{name}: {:?}", log.findings);
    assert_eq!(log.non_finite.len(), nan.len(), "{name}");
    for (point, [step, norm, loss, rate]) in log.points.iter().zip(kept) {
        let near = |a: f64, b: f64| (a - b).abs() <= digits * b.abs().max(1e-2);
        assert!(near(point.norm, *norm), "{name}: {} {norm}", point.norm);
        if has[0] {
            assert_eq!(point.step, *step, "{name}");
        }
        let loss_near = point.loss.is_some_and(|read| near(read, *loss));
        assert!(!has[1] || loss_near, "{name}: {:?} {loss}", point.loss);
        let rate_near = (point.learning_rate - rate).abs() <= 0.01 * rate + 1e-6;
        assert!(!has[2] || rate_near, "{name}: {} {rate}", point.learning_rate);
    }
}

#[test]
fn the_numbers_come_back() {
    let all = [true; 3];
    check("truth.csv", Format::Csv, 1e-15, &[], all);
    check("log.jsonl", Format::Jsonl, 1e-15, &[], all);
    check("concatenated.json", Format::Jsonl, 1e-15, &[5], all);
    check("trainer_state.json", Format::TrainerState, 1e-15, &[3], all);
    check("printed.txt", Format::Printed, 1e-15, &[], [false, true, true]);
    check("wandb.csv", Format::Csv, 1e-15, &[], [true, false, false]);
    check("lightning.csv", Format::Csv, 1e-15, &[], [true, true, false]);
    check("megatron.log", Format::Megatron, 1e-15, &[], all);
    check("torchtitan.log", Format::Torchtitan, 1e-15, &[], [true, true, false]);
    check("llmc_main.log", Format::LlmC, 1e-2, &[], all);
    check("llmc_stdout.log", Format::LlmC, 1e-15, &[], all);
    check("fairseq.log", Format::Text, 1e-15, &[], all);
    // Written by tensorboardX and by TensorBoard itself; single precision.
    check("events.simple_value", Format::TensorBoard, 1e-7, &[], all);
    check("events.tensor", Format::TensorBoard, 1e-7, &[], all);
    check("run.wandb", Format::Wandb, 1e-15, &[], all);
}

/// Every log of text, packed or in another encoding, gives the same.
#[test]
fn packed_logs_are_read_as_they_are() {
    for name in common::WITH_NORMS {
        let (bytes, whole) = (common::bytes(name), read(name));
        let mut packed = vec![common::gzip(&bytes), common::zstd(&bytes)];
        if let Ok(text) = std::str::from_utf8(&bytes) {
            packed.push([b"\xef\xbb\xbf", &bytes[..]].concat());
            packed.push(common::utf16(text));
            packed.push(common::gzip(&common::utf16(text)));
        }
        for packed in packed {
            let log = load(&packed[..], &ReadOptions::default()).unwrap();
            // NaN is not equal to itself.
            assert_eq!(format!("{:?}", log), format!("{whole:?}"), "{name}");
        }
    }
}

#[test]
fn a_name_does_not_make_the_format() {
    // Nothing but bytes is looked at, so a wrong format given by hand is what it takes to fail.
    let options = ReadOptions { format: Some(Format::Csv), ..ReadOptions::default() };
    let error = load(&common::bytes("log.jsonl")[..], &options).unwrap_err();
    assert!(matches!(error, Error::NoNorm { format: Format::Csv, .. }), "{error}");
}

#[test]
fn what_has_no_norm_says_how_to_log_it() {
    let error = |text: &str, options: &ReadOptions| load(text.as_bytes(), options).unwrap_err();
    let default = ReadOptions::default();
    let list = format!("{{\"step\": [1, 2], \"grad_norm\": [{}]}}", vec!["1.5"; 50].join(", "));
    let unnamed = error("step,loss\n1,2\n", &default);
    assert_eq!(unnamed.hint(), Some(Hint::NormColumn));
    let named = |name: &str| ReadOptions { norm: Some(name.into()), ..ReadOptions::default() };
    let messages = [
        message("nanogpt.log"),
        message("deepspeed.log"),
        error(&list, &default).to_string(),
        unnamed.to_string(),
        error("step,loss,train/weight_norm_2\n1,2,3\n", &named("grad_norm_2")).to_string(),
        error("step,weight_norm,bias_norm\n1,2,3\n", &named("norm")).to_string(),
        error("step,grad_norm\n1,nan\n", &default).to_string(),
        "excel".parse::<Format>().unwrap_err().to_string(),
    ];
    insta::assert_snapshot!("errors", messages.join("\n"));
}

#[test]
fn the_columns_taken_are_named_and_can_be_changed() {
    let log = read("wandb.csv");
    let norm = column(&log, Role::Norm);
    assert_eq!(norm.name, "brave-fog-7 - train/grad_norm");
    assert_eq!(norm.others, ["old-sea-3 - train/grad_norm"]);
    let other = ReadOptions { norm: Some(norm.others[0].clone()), ..ReadOptions::default() };
    let log = load(&common::bytes("wandb.csv")[..], &other).unwrap();
    assert_eq!(log.norms(), [1.25; 20]);
    assert_eq!(read("megatron.log").summary.clip, Some(1.0));
    assert_eq!(read("megatron.log").summary.batch_size, Some(8.0));
    assert_eq!(read("llmc_stdout.log").summary.clip, Some(1.0));
}

#[test]
fn both_real_logs_are_read_whole() {
    let mistral = read("mistral7b-translator.trainer_state.json");
    assert_eq!(mistral.points.len(), 866);
    assert_eq!(mistral.points[0].norm, 11.009225845336914);
    assert_eq!(mistral.points[865].step, 8660.0);
    assert_eq!(mistral.findings, [Finding::Subsampled { stride: 10.0 }]);
    let star = read("star.trainer_state.json");
    assert_eq!(star.points.len(), 2000);
    assert_eq!(column(&star, Role::LearningRate).name, "lr");
    assert_eq!(star.points[0].learning_rate, 1e-4);
    assert_eq!(star.findings, [Finding::Subsampled { stride: 20.0 }]);
}

#[test]
fn a_wrong_checksum_keeps_the_rest() {
    let mut bytes = common::bytes("events.simple_value");
    let at = bytes.windows(9).rposition(|w| w == b"grad_norm").unwrap();
    bytes[at + 10] ^= 1;
    let log = load(&bytes[..], &ReadOptions::default()).unwrap();
    assert_eq!(log.points.len(), 39);
    assert!(matches!(log.findings[..], [Finding::WrongChecksum { count: 1, stopped: false, .. }]));
    // A length that is wrong leaves no way to go on.
    let mut bytes = common::bytes("events.simple_value");
    let half = bytes.windows(9).position(|w| w == b"eval/loss").unwrap();
    let frame = (0..half).rev().find(|&i| bytes[i..].starts_with(&[0x23, 0, 0, 0, 0, 0, 0, 0]));
    if let Some(frame) = frame {
        bytes[frame + 3] = 9;
        let log = load(&bytes[..], &ReadOptions::default()).unwrap();
        assert!(log.points.len() >= 9, "{}", log.points.len());
        let stopped = log.findings.iter();
        let mut stopped =
            stopped.filter(|f| matches!(f, Finding::WrongChecksum { stopped: true, .. }));
        assert!(stopped.next().is_some());
    }
}

#[test]
fn an_event_file_with_a_broken_length_is_said_to_be_damaged() {
    let mut bytes = common::bytes("events.simple_value");
    bytes[3] ^= 0x40;
    let error = load(&bytes[..], &ReadOptions::default()).unwrap_err().to_string();
    insta::assert_snapshot!("broken_length", error);
}

#[test]
fn a_step_that_starts_again_with_each_epoch() {
    let mut text = String::from("epoch,step,grad_norm,end\n");
    for i in 0..1000 {
        text.push_str(&format!("{},{},{},0\n", i / 100, i % 100, 1 + i % 7));
    }
    let log = load(text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(log.points.len(), 1000);
    assert!(log.findings.contains(&Finding::StepsByEpoch { epochs: 10 }), "{:?}", log.findings);
    assert!(log.points.windows(2).all(|w| w[1].step - w[0].step == 1.0));
}

#[test]
fn other_norms_are_not_taken_for_the_norm() {
    for name in ["grad_norm_squared", "log_grad_norm", "grad_norm_inf"] {
        let text = format!("step,{name},end\n1,2,0\n2,3,0\n");
        let error = load(text.as_bytes(), &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(error.hint(), Some(Hint::NormColumn));
        let options = ReadOptions { norm: Some(name.into()), ..ReadOptions::default() };
        assert_eq!(load(text.as_bytes(), &options).unwrap().norms(), [2.0, 3.0]);
    }
}

/// Steps, norms and layers of a log in text.
fn layers(text: &str) -> (ReadSummary, Vec<LogRow>) {
    let mut rows = Vec::new();
    let visit = &mut |row: &LogRow| rows.push(row.clone());
    (toclip_logs::read(text.as_bytes(), &ReadOptions::default(), visit).unwrap(), rows)
}

#[test]
fn norms_of_layers_are_combined_unless_there_is_a_total() {
    let table = "step,grad_2.0_norm/fc1.weight,grad_2.0_norm/fc1.bias,grad_2.0_norm/fc2.weight\n\
                 1,3,4,0\n2,1,2,2\n3,,,\n4,nan,1,1\n";
    let (summary, rows) = layers(table);
    assert_eq!(summary.layers, ["fc1.weight", "fc1.bias", "fc2.weight"]);
    assert!(summary.combined);
    let norms: Vec<f64> = rows.iter().filter_map(|r| r.norm).collect();
    assert_eq!(norms[..2], [5.0, 3.0]);
    assert!(norms.len() == 3 && norms[2].is_nan());
    assert_eq!(rows[0].layers, [(0, 3.0), (1, 4.0), (2, 0.0)]);
    let with_total =
        "step,grad_2.0_norm/a.weight,grad_2.0_norm/b.weight,grad_2.0_norm_total\n1,3,4,5.5\n";
    let (summary, rows) = layers(with_total);
    assert_eq!((summary.combined, rows[0].norm), (false, Some(5.5)));
    assert_eq!(rows[0].layers.len(), 2);
}

#[test]
fn the_layers_that_lightning_logs() {
    let log = read("lightning_layers.csv");
    assert_eq!(log.summary.layers, ["fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"]);
    assert_eq!((log.points.len(), log.summary.combined), (40, true));
    let first: [f64; 4] =
        [0.37391120195388794, 1.2322622537612915, 1.154123067855835, 3.3151533603668213];
    let total = first.iter().map(|norm| norm * norm).sum::<f64>().sqrt();
    assert!((log.points[0].norm - total).abs() < 1e-12);
}

#[test]
fn norms_of_layers_in_other_formats() {
    // A nested object; a group of layers is not counted twice.
    let nested = "{\"step\": 1, \"grad_norm\": {\"enc\": 5, \"enc.0\": 3, \"enc.1\": 4}}\n\
                  {\"step\": 2, \"grad_norm\": {\"enc\": 5, \"enc.0\": 4, \"enc.1\": 3}}\n";
    let (summary, rows) = layers(nested);
    assert_eq!(column_name(&summary), "2 layers combined");
    assert_eq!(rows.iter().filter_map(|r| r.norm).collect::<Vec<_>>(), [5.0, 5.0]);
    // One value a record, as TensorBoard has them; the last step is cut off in the middle.
    let (_, rows) = layers(
        "{\"step\": 1, \"fc1.grad_norm\": 3}\n{\"step\": 1, \"fc2.grad_norm\": 4}\n\
         {\"step\": 2, \"fc1.grad_norm\": 6}\n{\"step\": 2, \"fc2.grad_norm\": 8}\n\
         {\"step\": 3, \"fc1.grad_norm\": 6}\n",
    );
    assert_eq!(
        rows.iter().map(|r| (r.step, r.norm)).collect::<Vec<_>>(),
        [(Some(1.0), Some(5.0)), (Some(2.0), Some(10.0))]
    );
    // More layers than are kept still have a total.
    let many = |step| {
        let values: Vec<String> = (0..2000).map(|i| format!("\"h.{i}.grad_norm\": 1")).collect();
        format!("{{\"step\": {step}, {}}}\n", values.join(", "))
    };
    let text: String = (0..3000).map(many).collect();
    let (summary, rows) = layers(&text);
    assert!(summary.layers.is_empty() && rows.iter().all(|r| r.layers.is_empty()));
    assert_eq!((rows.len(), rows[7].norm), (3000, Some(2000f64.sqrt())));
}

fn column_name(summary: &ReadSummary) -> &str {
    &summary.columns.iter().find(|c| c.role == Role::Norm).unwrap().name
}
