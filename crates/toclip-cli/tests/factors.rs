//! `toclip factors` as a user meets it.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use assert_cmd::Command;
use std::path::Path;

fn toclip() -> Command {
    Command::cargo_bin("toclip").unwrap()
}

fn out(command: &mut Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn read_csv(text: &str) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    reader.records().map(|row| row.unwrap().iter().map(String::from).collect()).collect()
}

#[test]
fn a_point_is_told_in_words_and_in_json() {
    let point = ["factors", "--noise", "laplace", "--sigma", "1", "--risk", "0.5", "--clip", "0.9"];
    let (code, text, _) = out(toclip().args(point));
    assert_eq!(code, 0);
    for words in ["μ", "0.5010494", "CCC", "0.9465702", "best: c = 2.23", "no rule has CCC above"]
    {
        assert!(text.contains(words), "{words} not in\n{text}");
    }
    let (_, text, _) = out(toclip().args(point).arg("--json"));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!((json["mu"].as_f64().unwrap() - 0.5010494).abs() < 1e-7);
    assert_eq!(json["noise"]["family"], "laplace");
}

#[test]
fn infinite_variance_explains_itself() {
    let cauchy = ["factors", "--noise", "student_t", "--df", "1", "--scale", "0.5", "-c", "0.4"];
    let (code, text, _) = out(toclip().args(cauchy));
    assert_eq!(code, 0);
    assert!(text.contains("infinite for this noise") && !text.contains("NaN"), "{text}");
    let (_, text, _) = out(toclip().args(cauchy).arg("--json"));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(json["nu"].is_null() && json["mu"].is_f64());
}

#[test]
fn a_curve_is_numbers_and_a_picture() {
    let dir = tempfile::tempdir().unwrap();
    let (svg, png, csv) =
        (dir.path().join("a.svg"), dir.path().join("a.png"), dir.path().join("a.csv"));
    let noises = ["--noise", "gaussian,rademacher", "--sigma", "5", "--p", "0.2"];
    let (code, _, _) = out(toclip()
        .args(["factors", "--risk", "3", "--clip", "0.1..15:50"])
        .args(noises)
        .args(["--plot", svg.to_str().unwrap(), "--out", csv.to_str().unwrap()]));
    assert_eq!(code, 0);
    assert!(std::fs::read_to_string(&svg).unwrap().starts_with("<svg"));
    let rows = read_csv(&std::fs::read_to_string(&csv).unwrap());
    assert_eq!(rows.len(), 1 + 2 * 50);
    assert_eq!(rows[0].join(","), "family,params,r,c,mu,m2,nu,csc,ccc");
    let (code, _, _) = out(toclip()
        .args(["factors", "--clip", "1", "--risk", "1e-3..10:20", "--log-x"])
        .args(["--plot", png.to_str().unwrap()]));
    assert_eq!(code, 0);
    assert!(std::fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    // A curve can be read back as a table, and gives itself.
    let (code, again, _) = out(toclip().args(["factors", "--table"]).arg(&csv));
    assert_eq!(code, 0);
    assert_eq!(again, std::fs::read_to_string(&csv).unwrap());
}

fn table(dir: &Path, text: impl AsRef<[u8]>) -> (i32, String, String) {
    let input = dir.join("in.csv");
    std::fs::write(&input, text).unwrap();
    out(toclip().args(["factors", "--table"]).arg(&input))
}

#[test]
fn a_table_repeats_its_columns_and_adds_the_factors() {
    let dir = tempfile::tempdir().unwrap();
    let text = "c,family,params,r,note\ninf,uniform,\"{\"\"half_width\"\": 3}\",0.5,x\n\
                1e-8,student_t,\"{\"\"df\"\":1,\"\"scale\"\":0.5}\",0,y\n";
    let (code, text, errors) = table(dir.path(), text);
    assert_eq!((code, errors.as_str()), (0, ""));
    let rows = read_csv(&text);
    assert_eq!(rows[1][..4], ["uniform", "{\"half_width\": 3}", "0.5", "inf"]);
    assert_eq!(rows[1][4], "1.0000000000000000e0");
    assert_eq!(rows[2][6..], ["", "", ""]);
    assert_eq!(rows[2][4].split('e').next().unwrap().len(), 18, "17 digits: {}", rows[2][4]);
}

#[test]
fn bad_rows_are_named_by_line_and_the_rest_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let good = "gaussian,\"{\"\"sigma\"\": 1}\",1,1\n";
    let bad = [
        ("nosuch,{},1,1\n", "no noise family `nosuch`"),
        ("gaussian,\"{\"\"sigma\"\": -1}\",1,1\n", "sigma = -1 is not allowed"),
        ("gaussian,not json,1,1\n", "params must be a JSON object"),
        ("gaussian,\"{\"\"sigma\"\": 1}\",-1,1\n", "R = -1 is not allowed"),
        ("gaussian,\"{\"\"sigma\"\": 1}\",1,0\n", "c = 0 is not allowed"),
        ("gaussian,\"{\"\"sigma\"\": 1}\",1,NaN\n", "c = NaN is not allowed"),
        ("gaussian,\"{\"\"sigma\"\": 1}\",one,1\n", "r = `one` is not a number"),
        ("gaussian\n", "no column `params`"),
        ("gaussian,\"{\"\"sigma\"\": 1, \"\"df\"\": 2}\",1,1\n", "unknown field `df`"),
    ];
    for (row, says) in bad {
        let (code, text, errors) =
            table(dir.path(), format!("family,params,r,c\n{good}{row}{good}"));
        assert_eq!(code, 1, "{row}");
        assert!(errors.contains("in.csv:3: ") && errors.contains(says), "{row} says {errors}");
        assert_eq!(read_csv(&text).len(), 3, "{row} gives {text}");
    }
    // A row that is not text, in the middle of a table.
    let bytes =
        [b"family,params,r,c\n", good.as_bytes(), b"\xff\xfe,{},1,1\n", good.as_bytes()].concat();
    let (code, text, errors) = table(dir.path(), bytes);
    assert!(code == 1 && errors.contains(":3:") && read_csv(&text).len() == 3, "{errors}");
}

#[test]
fn what_cannot_be_read_or_written_is_said_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let inside = file.join("out.svg");
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (vec!["--table", "no-such-file.csv"], "cannot read no-such-file.csv"),
        (vec!["--table", file.to_str().unwrap()], "must name the columns family,params,r,c"),
        (vec!["--clip", "0.1..2", "--plot", inside.to_str().unwrap()], "cannot make the folder"),
        (vec!["--clip", "0.1..2", "--plot", "curve.pdf"], ".svg"),
        (vec!["--clip", "0.1..2", "--risk", "1..2"], "only one of --risk and --clip"),
        (vec!["--plot", "a.svg"], "need a curve"),
        (vec!["--noise", "cauchy"], "there is no noise family `cauchy`"),
        (vec!["--noise", "gaussian", "--df", "3"], "gaussian noise has no parameter `df`"),
        (vec!["--noise", "student_t", "--df", "1.5", "--sigma", "1"], "give `scale` instead"),
        (vec!["--sigma", "-1"], "sigma = -1 is not allowed"),
        (vec!["--clip", "0"], "c = 0 is not allowed"),
        (vec!["--params", "[1]"], "--params must be a JSON object"),
    ];
    for (args, says) in cases {
        let (code, _, errors) = out(toclip().arg("factors").args(&args));
        assert_eq!(code, 1, "{args:?}");
        assert!(errors.contains(says), "{args:?} says {errors}");
        assert_eq!(errors.trim_end().lines().count(), 1, "{args:?} says {errors}");
    }
}

#[test]
fn a_table_says_the_batch_of_each_row() {
    let dir = tempfile::tempdir().unwrap();
    let law = r#"gaussian,"{""sigma"":0.8}",0.18,0.5"#;
    let text = format!("family,params,r,c,batch\n{law},1\n{law},32\n{law},1e3\n{law},0.5\n");
    let (code, text, errors) = table(dir.path(), text);
    assert_eq!(code, 1);
    assert!(errors.contains(":5: batch = `0.5` is not a whole number from 1 to 1e9"), "{errors}");
    let rows = read_csv(&text);
    assert_eq!(rows[0][3..6], ["c", "batch", "mu"]);
    assert_eq!(rows.len(), 4);
    let mu: Vec<f64> = rows[1..].iter().map(|row| row[5].parse().unwrap()).collect();
    // 2R + σ² = 1: erf(0.5/√2) for one sample, near 1/2 for many.
    assert!((mu[0] - 0.38292492254802624).abs() < 1e-14, "{mu:?}");
    assert!((mu[1] - 0.496).abs() < 1e-3 && (mu[2] - 0.4999).abs() < 1e-4, "{mu:?}");
}

#[test]
fn a_curve_of_batches_is_read_back_as_what_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let csv = dir.path().join("curve.csv");
    for rule in [&["--batch", "8"][..], &["--batch", "8", "--per-sample", "--outputs", "3"]] {
        let curve = ["factors", "--sigma", "0.5", "--clip", "0.1..2:3", "--out"];
        let (code, _, errors) = out(toclip().args(curve).arg(&csv).args(rule));
        assert_eq!(code, 0, "{errors}");
        let (code, again, _) = out(toclip().args(["factors", "--table"]).arg(&csv));
        assert_eq!(code, 0);
        assert_eq!(again, std::fs::read_to_string(&csv).unwrap());
    }
}

#[test]
fn each_sample_and_several_outputs_have_flags() {
    let mu = |rule: &[&str]| {
        let (code, text, errors) =
            out(toclip().args(["factors", "--sigma", "0.5", "--json"]).args(rule));
        assert_eq!(code, 0, "{errors}");
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        (json["mu"].as_f64().unwrap(), json["m2"].as_f64().unwrap())
    };
    let (single, each) = (mu(&[]), mu(&["--batch", "8", "--per-sample"]));
    assert_eq!((each.0, each.1), (single.0, single.1 / 8.0));
    assert_eq!(mu(&["--batch", "2", "--outputs", "10"]).0, mu(&["--batch", "20"]).0);
    assert_eq!(mu(&["--batch", "1e3"]), mu(&["--batch", "1000"]));
    for wrong in ["0", "-1", "2.5", "1e10", "many"] {
        let (code, _, errors) = out(toclip().args(["factors", "--batch", wrong]));
        assert_eq!(code, 2, "{wrong}");
        assert!(errors.contains("is not a whole number from 1 to 1e9"), "{errors}");
    }
}
