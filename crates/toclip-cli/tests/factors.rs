//! `toclip factors` as a user sees it.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod support;

use std::path::Path;
use support::{run, session};

fn read_csv(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().map(|row| row.unwrap().iter().map(String::from).collect()).collect()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

const LAPLACE: [&str; 9] =
    ["factors", "--noise", "laplace", "--sigma", "1", "--risk", "0.5", "--clip", "0.9"];
const CAUCHY: [&str; 9] =
    ["factors", "--noise", "student_t", "--df", "1", "--scale", "0.5", "-c", "0.4"];

#[test]
fn points() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(session(
        folder.path(),
        &[
            &LAPLACE,
            &CAUCHY,
            &["factors", "--sigma", "1e308", "--clip", "none"],
            &["factors", "--noise", "gaussian,uniform", "--risk", "1e200"],
            &["factors", "--noise", "student_t", "--df", "2.5", "--scale", "0.5", "--batch", "32"],
            // Without error an atom at zero can be kept alone.
            &[
                "factors",
                "--noise",
                "rademacher",
                "--lambda",
                "1",
                "--p",
                "0.2",
                "--risk",
                "0",
                "--rule",
                "skip",
                "-c",
                "0.5"
            ],
            &[
                "factors",
                "--noise",
                "rademacher",
                "--lambda",
                "1",
                "--p",
                "0.2",
                "--risk",
                "0",
                "--rule",
                "skip",
                "-c",
                "0.5",
                "--batch",
                "4"
            ],
            &["factors", "--noise", "none", "--rule", "skip"],
        ]
    ));
    let point = json(&run(folder.path(), &[&LAPLACE[..], &["--json"]].concat()).1);
    assert!((point["mu"].as_f64().unwrap() - 0.5010494).abs() < 1e-7);
    assert_eq!(point["noise"]["family"], "laplace");
    let point = json(&run(folder.path(), &[&CAUCHY[..], &["--json"]].concat()).1);
    assert!(point["nu"].is_null() && point["mu"].is_f64());
}

#[test]
fn a_curve_is_numbers_and_a_plot() {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    let noises = ["--noise", "gaussian,rademacher", "--sigma", "5", "--p", "0.2"];
    let curve = ["factors", "--risk", "3", "--clip", "0.1..15:50"];
    let files = ["--plot", "a.svg", "--out", "a.csv"];
    assert_eq!(run(folder.path(), &[&curve[..], &noises, &files].concat()).0, 0);
    assert!(read("a.svg").starts_with(b"<svg"));
    let csv = String::from_utf8(read("a.csv")).unwrap();
    let rows = read_csv(&csv);
    assert_eq!(rows.len(), 1 + 2 * 50);
    assert_eq!(rows[0].join(","), "family,params,r,c,mu,m2,nu,csc,ccc");
    // A curve can be read back as a table, and gives itself.
    assert_eq!(run(folder.path(), &["factors", "--table", "a.csv"]).1, csv);
    if cfg!(feature = "png") {
        let curve = ["factors", "--risk", "1e-3..10:20", "--log-x", "--plot", "a.png"];
        assert_eq!(run(folder.path(), &curve).0, 0);
        assert!(read("a.png").starts_with(b"\x89PNG"));
    }
}

fn table(folder: &Path, text: impl AsRef<[u8]>) -> (i32, String, String) {
    std::fs::write(folder.join("in.csv"), text).unwrap();
    run(folder, &["factors", "--table", "in.csv"])
}

#[test]
fn a_table_repeats_its_columns_and_adds_the_factors() {
    let folder = tempfile::tempdir().unwrap();
    let text = "c,family,params,r,note\ninf,uniform,\"{\"\"half_width\"\": 3}\",0.5,x\n\
                1e-8,student_t,\"{\"\"df\"\":1,\"\"scale\"\":0.5}\",0,y\n";
    let (code, text, errors) = table(folder.path(), text);
    assert_eq!((code, errors.as_str()), (0, ""));
    let rows = read_csv(&text);
    assert_eq!(rows[1][..4], ["uniform", "{\"half_width\": 3}", "0.5", "inf"]);
    assert_eq!(rows[1][4], "1.0");
    assert_eq!(rows[2][6..], ["", "", ""]);
    let values = json(&run(folder.path(), &["factors", "--table", "in.csv", "--json"]).1);
    assert_eq!((values.as_array().unwrap().len(), &values[0]["c"]), (2, &"inf".into()));
    let mu: f64 = rows[2][4].parse().unwrap();
    assert_eq!(values[1]["mu"].as_f64().unwrap(), mu, "all digits are there");
}

#[test]
fn bad_rows_are_reported_by_line_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let good = "gaussian,\"{\"\"sigma\"\": 1}\",1,1,1\n";
    let bad = [
        "nosuch,{},1,1,1\n",
        "gaussian,\"{\"\"sigma\"\": -1}\",1,1,1\n",
        "gaussian,\"{\"\"sigma\"\": \"\"x\"\"}\",1,1,1\n",
        "gaussian,not json,1,1,1\n",
        "gaussian,{},1,1,1\n",
        "gaussian,\"{\"\"sigma\"\": 1}\",-1,1,1\n",
        "gaussian,\"{\"\"sigma\"\": 1}\",1,0,1\n",
        "gaussian,\"{\"\"sigma\"\": 1}\",1,NaN,1\n",
        "gaussian,\"{\"\"sigma\"\": 1}\",one,1,1\n",
        "gaussian,\"{\"\"sigma\"\": 1}\",1,1,0.5\n",
        "gaussian\n",
        "gaussian,\"{\"\"sigma\"\": 1, \"\"df\"\": 2}\",1,1,1\n",
    ];
    let mut text = b"family,params,r,c,batch\n".to_vec();
    bad.iter().for_each(|row| text.extend(format!("{row}{good}").bytes()));
    text.extend(b"\xff\xfe,{},1,1,1\n");
    let (code, rows, errors) = table(folder.path(), text);
    assert_eq!((code, read_csv(&rows).len()), (1, 1 + bad.len()));
    insta::assert_snapshot!(errors);
}

#[test]
fn a_table_without_a_valid_row_has_one_header() {
    let folder = tempfile::tempdir().unwrap();
    let (code, rows, errors) = table(folder.path(), "family,params,r,c\ncauchy,{},1,1\n");
    assert_eq!((code, rows.as_str()), (1, "family,params,r,c,mu,m2,nu,csc,ccc\n"));
    assert!(errors.ends_with("evaluated 0 rows, skipped 1 invalid row\n"), "{errors}");
}

#[test]
fn lists_and_ranges_may_start_with_a_negative_number() {
    let folder = tempfile::tempdir().unwrap();
    let mixture =
        ["factors", "--noise", "gaussian_mixture", "--weights", "0.5,0.5", "--stds", "1,1"];
    let (code, text, errors) = run(folder.path(), &[&mixture[..], &["--means", "-1,1"]].concat());
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("Gaussian mixture"), "{text}");
    let (code, _, errors) = run(folder.path(), &["factors", "--clip", "-1..2"]);
    assert_eq!(code, 1);
    assert!(errors.starts_with("error: c = -1 is not allowed"), "{errors}");
}

#[test]
fn a_long_table_keeps_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = "family,params,r,c\n".to_owned();
    // More than one block of rows, and noise that changes from row to row.
    for i in 1..=20_000 {
        let sigma = 1 + i % 7;
        text += &format!("gaussian,\"{{\"\"sigma\"\":{sigma}}}\",{},1\n", 1e-3 * f64::from(i));
    }
    let (code, out, errors) = table(folder.path(), &text);
    assert_eq!((code, errors.as_str()), (0, ""));
    let rows = read_csv(&out);
    assert_eq!(rows.len(), 20_001);
    let same = |(row, line): (&Vec<String>, &str)| line.contains(&format!(",{},1", row[2]));
    assert!(rows.iter().zip(text.lines()).skip(1).all(same));
    let (code, _, _) = run(folder.path(), &["factors", "--table", "in.csv", "--out", "out.csv"]);
    assert_eq!(code, 0);
    assert_eq!(std::fs::read_to_string(folder.path().join("out.csv")).unwrap(), out);
}

#[test]
fn errors() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "x").unwrap();
    insta::assert_snapshot!(session(
        folder.path(),
        &[
            &["factors", "--table", "no-such-file.csv"],
            &["factors", "--table", "file"],
            &["factors", "--table", "file", "--sigma", "1"],
            &["factors", "--clip", "0.1..2", "--plot", "file/out.svg"],
            &["factors", "--clip", "0.1..2", "--plot", "curve.pdf"],
            &["factors", "--clip", "0.1..2", "--risk", "1..2"],
            &["factors", "--plot", "a.svg"],
            &["factors", "--noise", "cauchy"],
            &["factors", "--noise", "gaussian", "--df", "3"],
            &["factors", "--noise", "student_t", "--df", "1.5", "--sigma", "1"],
            &["factors", "--sigma", "-1"],
            &["factors", "--sigma", "x"],
            &["factors", "--clip", "0"],
            &["factors", "--clip", "nan"],
            &["factors", "--params", "[1]"],
            &["factors", "--params", "{\"sigma\":\"x\"}"],
            &["factors", "--noise", "student_t", "--params", "{}"],
            &["factors", "--batch", "0"],
            &["factors", "--batch", "2.5"],
            &["factors", "--rule", "foo"],
            &["factors", "--eigenvalues", "1,2"],
            &["factors", "--rule", "skip", "--ratios", "1,2"],
        ]
    ));
}

#[test]
fn a_curve_of_batches_is_read_back_as_what_it_was() {
    let folder = tempfile::tempdir().unwrap();
    for batches in [&["--batch", "8"][..], &["--batch", "8", "--per-sample", "--outputs", "3"]] {
        let curve = ["factors", "--sigma", "0.5", "--clip", "0.1..2:3", "--out", "curve.csv"];
        assert_eq!(run(folder.path(), &[&curve[..], batches].concat()).0, 0);
        let (code, again, _) = run(folder.path(), &["factors", "--table", "curve.csv"]);
        assert_eq!(code, 0);
        assert_eq!(again, std::fs::read_to_string(folder.path().join("curve.csv")).unwrap());
    }
}

#[test]
fn each_sample_and_several_outputs_have_flags() {
    let folder = tempfile::tempdir().unwrap();
    let mu = |more: &[&str]| {
        let (code, text, errors) =
            run(folder.path(), &[&["factors", "--sigma", "0.5", "--json"], more].concat());
        assert_eq!(code, 0, "{errors}");
        (json(&text)["mu"].as_f64().unwrap(), json(&text)["m2"].as_f64().unwrap())
    };
    let (single, each) = (mu(&[]), mu(&["--batch", "8", "--per-sample"]));
    assert_eq!((each.0, each.1), (single.0, single.1 / 8.0));
    assert_eq!(mu(&["--batch", "2", "--outputs", "10"]).0, mu(&["--batch", "20"]).0);
    assert_eq!(mu(&["--batch", "1e3"]), mu(&["--batch", "1000"]));
    let text = "family,params,r,c,batch\ngaussian,\"{\"\"sigma\"\":0.8}\",0.18,0.5,";
    let of_table = |batch: &str| -> f64 {
        let (_, rows, _) = table(folder.path(), format!("{text}{batch}\n"));
        read_csv(&rows)[1][5].parse().unwrap()
    };
    // 2R + σ² = 1: erf(0.5/√2) for one sample, near 1/2 for many.
    assert!((of_table("1") - 0.38292492254802624).abs() < 1e-14);
    assert!((of_table("32") - 0.496).abs() < 1e-3 && (of_table("1e3") - 0.4999).abs() < 1e-4);
}
