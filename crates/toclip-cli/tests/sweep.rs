//! `toclip sweep` as a user runs it: tables, shards, kills, exports and pictures.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{Dice, run, session};

const SWEEP: &str = r#"
spectrum      = { kind = "power_law", dim = 100, exponent = 0.2 }
start         = { kind = "uniform", norm = 1.0 }
noise         = { family = "student_t", df = 2.5, scale = 0.5 }
time          = 3.0
learning_rate = 0.5
points        = 11
"#;

/// A folder with a sweep of so many cells.
fn folder(vary: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tails.toml"), format!("{SWEEP}{vary}")).unwrap();
    folder
}

const SMALL: &str = "methods = ['ode', 'sgd']\nensemble = { runs = 3 }\nkeep = ['final_risk', 'curves']\n\
    [vary]\nclip = [0.3, 1.0, 'none']\nnoise.df = { linear = [1.5, 3.0], count = 4 }\n\
    rule = ['clip', 'skip']\n[[exclude]]\nrule = 'skip'\nclip = 'none'\n";

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn ok(folder: &Path, args: &[&str]) -> String {
    let (code, out, err) = run(folder, args);
    assert_eq!(code, 0, "{args:?}: {err}");
    out
}

#[test]
#[cfg(feature = "parquet")]
fn threads_and_shards_in_any_order_give_the_same_bytes() {
    let folder = folder(SMALL);
    let at = folder.path();
    ok(at, &["sweep", "tails.toml", "--out", "one", "--threads", "1"]);
    ok(at, &["sweep", "tails.toml", "--out", "two", "--threads", "2"]);
    for k in [5, 2, 7, 1, 4, 6, 3] {
        let (shard, out) = (format!("{k}/7"), format!("shards/{}", k % 3));
        ok(at, &["sweep", "tails.toml", "--shard", &shard, "--out", &out]);
    }
    ok(at, &["sweep", "merge", "shards/2", "shards/0", "shards/1", "--out", "merged"]);
    for name in ["tails.parquet", "tails.curves.parquet"] {
        let one = bytes(at, &format!("one/{name}"));
        assert_eq!(one, bytes(at, &format!("two/{name}")), "{name}");
        assert_eq!(one, bytes(at, &format!("merged/{name}")), "{name}");
    }
    // What was merged is a sweep like any other.
    ok(at, &["sweep", "export", "merged/tails.sweep", "--out", "merged.csv"]);
    ok(at, &["sweep", "export", "one/tails.sweep", "--out", "one.csv"]);
    assert_eq!(bytes(at, "merged.csv"), bytes(at, "one.csv"));
    let csv = String::from_utf8(bytes(at, "one.csv")).unwrap();
    assert!(csv.starts_with(
        "cell,clip,noise.df,rule,ode_final_risk,ode_diverged_at,sgd_final_risk,sgd_final_risk_low,\
         sgd_final_risk_high,sgd_diverged_share,error\n0,0.3,1.5,clip,"
    ));
    assert_eq!(
        csv.lines().count(),
        21,
        "24 cells less the 4 that skip without a threshold, and the header"
    );
}

#[test]
fn shards_that_are_missing_or_there_twice_are_named() {
    let folder = folder("[vary]\nclip = { log = [0.1, 10.0], count = 9 }\n");
    let at = folder.path();
    for k in [1, 4] {
        ok(at, &["sweep", "tails.toml", "--quiet", "--shard", &format!("{k}/4"), "--out", "a"]);
    }
    ok(at, &["sweep", "tails.toml", "--quiet", "--shard", "4/4", "--out", "b"]);
    ok(at, &["sweep", "tails.toml", "--quiet", "--shard", "1/2", "--out", "c"]);
    std::fs::create_dir(at.join("empty")).unwrap();
    // Another sweep of the same name.
    let other = format!("{SWEEP}[vary]\nclip = [1, 2, 3]\n");
    std::fs::write(at.join("other.toml"), other).unwrap();
    ok(at, &["sweep", "other.toml", "--quiet", "--shard", "2/4", "--out", "d"]);
    insta::assert_snapshot!(session(
        at,
        &[
            &["sweep", "merge", "a"],
            &["sweep", "merge", "a", "b"],
            &["sweep", "merge", "a", "c"],
            &["sweep", "merge", "a", "d"],
            &["sweep", "merge", "empty"],
            &["sweep", "merge", "nowhere"],
            &["sweep", "merge", "a", "--partial"],
            &["sweep", "merge", "a", "--partial"],
            &["sweep", "tails.toml", "--shard", "5/4"],
            &["sweep", "tails.toml", "--shard", "10/10"],
        ]
    ));
}

/// Killed twenty times while it runs, the sweep ends with the bytes of one that was left alone.
#[test]
#[cfg(all(unix, feature = "parquet"))]
fn a_killed_sweep_is_resumed_to_the_bit() {
    use std::os::unix::process::ExitStatusExt as _;
    let folder = folder(
        "methods = ['sgd']\nensemble = { runs = 60 }\n\
         [vary]\nclip = { log = [0.1, 10.0], count = 100 }\nbatch = [1, 4, 16]\n",
    );
    let at = folder.path();
    ok(at, &["sweep", "tails.toml", "--quiet", "--out", "whole"]);
    let args = ["sweep", "tails.toml", "--quiet", "--out", "killed", "--resume", "--threads", "1"];
    let log = at.join("killed/tails.sweep");
    let length = || std::fs::metadata(&log).map_or(0, |file| file.len());
    let mut dice = Dice(7);
    let mut kills = 0;
    while kills < 20 {
        let before = length();
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("toclip"))
            .current_dir(at)
            .args(args)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Beyond the header, which has fewer than 1000 bytes, a cell has been added: the sweep runs, and the
        // next cell is somewhere between its start and its record.
        while length() <= before.max(1000) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros((5000.0 * dice.roll()) as u64));
        child.kill().unwrap();
        if child.wait().unwrap().signal() == Some(9) {
            kills += 1;
        } else {
            // On a machine so busy that the sweep ended first, the next kills are of a new one.
            assert_eq!(bytes(at, "killed/tails.parquet"), bytes(at, "whole/tails.parquet"));
            std::fs::remove_dir_all(at.join("killed")).unwrap();
        }
    }
    ok(at, &args);
    assert_eq!(bytes(at, "killed/tails.parquet"), bytes(at, "whole/tails.parquet"));
}

#[test]
fn a_cell_runs_alone_with_the_same_numbers() {
    let folder = folder("[vary]\nclip = [0.3, 1.0]\nnoise.df = [1.5, 3.0]\n");
    let at = folder.path();
    ok(at, &["sweep", "tails.toml", "--quiet"]);
    ok(at, &["sweep", "export", "results/tails.sweep", "--out", "t.csv", "--quiet"]);
    ok(at, &["sweep", "cell", "tails.toml", "2", "--out", "cell.toml"]);
    let from_log = ok(at, &["sweep", "cell", "results/tails.sweep", "2"]);
    assert_eq!(from_log, String::from_utf8(bytes(at, "cell.toml")).unwrap());
    ok(at, &["run", "cell.toml", "--quiet", "--out", "alone"]);
    let table = String::from_utf8(bytes(at, "t.csv")).unwrap();
    let row: Vec<&str> = table.lines().nth(3).unwrap().split(',').collect();
    assert_eq!(row[..3], ["2", "1.0", "1.5"]);
    let alone = String::from_utf8(bytes(at, "alone/cell.trajectory.csv")).unwrap();
    let header: Vec<&str> = alone.lines().next().unwrap().split(',').collect();
    let risk = header.iter().position(|name| *name == "risk").unwrap();
    assert_eq!(alone.lines().last().unwrap().split(',').nth(risk), Some(row[3]));
}

#[test]
fn what_a_user_sees() {
    let folder = folder("[vary]\nclip = [0.3, 1.0]\nnoise.df = [1.5, 3.0]\n");
    let at = folder.path();
    std::fs::write(at.join("bad.toml"), format!("{SWEEP}[vary]\nclip = [0.3, 0]\n")).unwrap();
    std::fs::write(at.join("not.sweep"), "x").unwrap();
    let said = session(
        at,
        &[
            &["sweep", "tails.toml", "--check"],
            &["sweep", "tails.toml"],
            &["sweep", "tails.toml"],
            &["sweep", "export", "results/tails.sweep", "--out", "t.csv"],
            &["sweep", "export", "results/tails.sweep", "--out", "t.xlsx"],
            &["sweep", "export", "not.sweep"],
            &["sweep", "export", "nowhere.sweep"],
            &["sweep", "plot", "results/tails.sweep", "--out", "map.svg"],
            &[
                "sweep",
                "plot",
                "results/tails.sweep",
                "--x",
                "clip",
                "--lines",
                "noise.df",
                "--out",
                "l.svg",
            ],
            &["sweep", "plot", "results/tails.sweep", "--x", "clipp"],
            &["sweep", "plot", "results/tails.sweep", "--value", "risk"],
            &["sweep", "plot", "results/tails.sweep", "--where", "clip=0.5"],
            &["sweep", "plot", "results/tails.sweep", "--x", "clip", "--y", "clip"],
            &["sweep", "cell", "tails.toml", "4"],
            &["sweep", "cell", "tails.toml", "abc"],
            &["run", "tails.toml"],
            &["sweep", "bad.toml"],
            &["sweep", "nowhere.toml"],
        ],
    );
    // Times differ from run to run.
    let words: Vec<String> = said
        .lines()
        .map(|line| match line.split_once(" cells in ") {
            Some((cells, _)) => format!("{cells} cells in [time]"),
            None => line.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(words.join("\n"));
    let map = String::from_utf8(bytes(at, "map.svg")).unwrap();
    assert!(
        map.contains("clip: 0.3\nnoise.df: 1.5\node_final_risk: 0."),
        "the cells say their values"
    );
}

/// Where tuned clipping does not help, its risk relative to none is 1; where it does, below 1.
#[test]
fn a_picture_can_minimise_and_compare() {
    let folder = folder(
        "[vary]\nclip = [0.1, 0.3, 1.0, 'none']\nlearning_rate = [0.1, 0.3, 0.6]\nnoise.df = [1.5, 2.5]\n\
         batch = [1, 8]\n",
    );
    let at = folder.path();
    ok(at, &["sweep", "tails.toml", "--quiet"]);
    let args = ["sweep", "plot", "results/tails.sweep", "--x", "noise.df", "--y", "batch"];
    let (code, _, said) = run(at, &args);
    assert!(
        code == 1 && said.contains("`clip` varies too; fix it with --where clip=0.1, or"),
        "{said}"
    );
    let more = ["--minimize", "learning_rate,clip", "--relative-to", "clip=none", "--out", "m.svg"];
    ok(at, &[&args[..], &more].concat());
    let svg = String::from_utf8(bytes(at, "m.svg")).unwrap();
    let value = |df: &str, batch: &str| -> f64 {
        let name = "ode_final_risk relative to clip = none: ";
        let start = format!("noise.df: {df}\nbatch: {batch}\n{name}");
        let rest = svg.split(&start).nth(1).unwrap_or_else(|| panic!("no cell {df} {batch}"));
        rest.split('<').next().unwrap().parse().unwrap()
    };
    // The variance is infinite at 1.5 degrees of freedom, so that none diverges: a ratio of 0.
    assert!(value("2.5", "1") < 0.9 && value("2.5", "1") < value("2.5", "8"));
    assert!(value("2.5", "8") <= 1.0);
}

/// More shards than files that may be open.
#[test]
fn many_shards_merge_and_a_log_in_use_is_left_alone() {
    let folder = folder("[vary]\nclip = { log = [0.1, 10.0], count = 203 }\n");
    let at = folder.path();
    for k in 1..=203 {
        ok(
            at,
            &["sweep", "tails.toml", "--quiet", "--shard", &format!("{k}/203"), "--out", "shards"],
        );
    }
    assert_eq!(
        run(at, &["sweep", "tails.toml", "--shard", "204/204"]).0,
        0,
        "an empty shard is no failure"
    );
    ok(at, &["sweep", "tails.toml", "--quiet", "--out", "whole"]);
    ok(at, &["sweep", "merge", "shards", "--out", "merged"]);
    ok(at, &["sweep", "merge", "shards", "--out", "merged"]);
    for name in ["whole", "merged"] {
        let (log, table) = (format!("{name}/tails.sweep"), format!("{name}.csv"));
        ok(at, &["sweep", "export", &log, "--out", &table, "--quiet"]);
    }
    assert_eq!(bytes(at, "merged.csv"), bytes(at, "whole.csv"));
    let held = std::fs::File::open(at.join("merged/tails.sweep")).unwrap();
    held.lock().unwrap();
    let (code, _, said) = run(at, &["sweep", "merge", "shards", "--out", "merged"]);
    assert!(code == 1 && said.contains("another toclip sweep is writing to"), "{said}");
}

fn svg(folder: &Path, more: &[&str]) -> String {
    let args = ["sweep", "plot", "results/tails.sweep", "--out", "p.svg"];
    ok(folder, &[&args[..], more].concat());
    String::from_utf8(bytes(folder, "p.svg")).unwrap()
}

/// What a plot that cannot be drawn says.
fn refused(folder: &Path, more: &[&str]) -> String {
    let args = ["sweep", "plot", "results/tails.sweep", "--out", "p.svg"];
    let (code, _, said) = run(folder, &[&args[..], more].concat());
    assert_eq!(code, 1, "{more:?}: {said}");
    said
}

#[test]
fn random_search_is_drawn_as_points() {
    let folder = folder(
        "keep = [{ time_to = 0.2 }, { time_to = 0.2000001 }]\n[[together]]\n\
         clip = { log_uniform = [0.1, 5.0], count = 9 }\n\
         learning_rate = { log_uniform = [0.1, 0.9], count = 9 }\n",
    );
    let at = folder.path();
    ok(at, &["sweep", "tails.toml", "--quiet"]);
    let picture = svg(at, &["--x", "learning_rate", "--value", "ode_time_to_0.2000001"]);
    assert!(!picture.contains("class=\"cell"), "no map");
    assert!(picture.contains("class=\"dot") && !picture.contains("class=\"line"), "{picture}");
    let said = refused(at, &["--x", "clip", "--y", "learning_rate"]);
    assert!(said.contains("change together; expected keys of two axes"), "{said}");
    let said = refused(at, &["--x", "clip", "--minimize", "clip"]);
    assert!(said.contains("`clip` is given twice; a key is on an axis"), "{said}");
}

/// A picture does not depend on the order in which values are written.
#[test]
fn values_are_drawn_in_ascending_order() {
    let pictures = [
        "learning_rate = [0.5, 0.1, 1.0, 0.2]\nbatch = [4, 1, 16]\n",
        "learning_rate = [0.1, 0.2, 0.5, 1.0]\nbatch = [1, 4, 16]\n",
    ]
    .map(|vary| {
        let folder = folder(&format!("clip = 0.5\n[vary]\n{vary}"));
        ok(folder.path(), &["sweep", "tails.toml", "--quiet"]);
        [&[][..], &["--x", "learning_rate", "--lines", "batch"]]
            .map(|more| svg(folder.path(), more))
    });
    assert_eq!(pictures[0], pictures[1]);
    let folder = folder("[vary]\nclip = { log_uniform = [0.1, 5.0], count = 8 }\nbatch = [1, 4]\n");
    ok(folder.path(), &["sweep", "tails.toml", "--quiet"]);
    let draws = svg(folder.path(), &["--x", "clip"]);
    let shown: Vec<f64> = draws
        .split("clip: ")
        .skip(1)
        .filter_map(|rest| rest.lines().next()?.parse().ok())
        .collect();
    assert_eq!(shown.len(), 16);
    assert!(shown[..8].is_sorted() && shown[8..].is_sorted(), "{shown:?}");
}

/// Cells that would share a place are drawn as points, minimised over knowingly, or refused.
#[test]
fn repeated_values_do_not_hide_cells() {
    let folder = folder(
        "[vary]\nbatch = [1, 4]\n\
         [[together]]\nclip = [0.5, 0.5, 1, 2]\nlearning_rate = [0.1, 0.2, 0.3, 0.4]\n",
    );
    let at = folder.path();
    ok(at, &["sweep", "tails.toml", "--quiet"]);
    let said = refused(at, &["--x", "clip", "--y", "batch"]);
    assert!(
        said.contains("`clip` has the same value more than once; add --minimize learning_rate, or"),
        "{said}"
    );
    let columns = |more: &[&str]| svg(at, more).matches("clip: 0.5\n").count();
    assert_eq!(columns(&["--x", "clip", "--y", "batch", "--minimize", "learning_rate"]), 2);
    let points = svg(at, &["--x", "clip", "--lines", "batch"]);
    assert!(points.contains("class=\"dot") && !points.contains("class=\"line"));
}

#[test]
fn a_picture_says_why_a_place_is_empty() {
    let folder = folder(
        "keep = ['final_risk', { time_to = 0.2 }, { time_to = 0.0001 }]\n\
         [vary]\nclip = [0.5, 'none']\nlearning_rate = [0.1, 0.5, 50.0]\nbatch = [1, 4]\n\
         [[exclude]]\nclip = 0.5\nlearning_rate = 0.1\n",
    );
    let at = folder.path();
    ok(at, &["sweep", "tails.toml", "--quiet"]);
    let note = |more: &[&str]| {
        let args = [&["--x", "clip", "--y", "learning_rate", "--where", "batch=1"], more].concat();
        let picture = svg(at, &args);
        let note = picture.split("Grey: ").nth(1).unwrap_or_default();
        note.split('<').next().unwrap().to_owned()
    };
    assert_eq!(note(&[]), "excluded or diverged.");
    assert_eq!(note(&["--value", "ode_time_to_0.2"]), "excluded or never reached 0.2.");
    assert_eq!(note(&["--value", "ode_diverged_at"]), "excluded or did not diverge.");
    let nothing = ["--x", "clip", "--y", "learning_rate", "--where", "batch=1", "--value"];
    let said = refused(at, &[&nothing[..], &["ode_time_to_0.0001"]].concat());
    assert!(
        said.contains(
            "nothing to draw: no cell has a value of ode_time_to_0.0001 \
             (excluded or never reached 0.0001)"
        ),
        "{said}"
    );
}

/// Of 20,002 cells two are not checked, and one of these fails. The shard that has it runs as the whole sweep
/// would, and its table does not say where the sweep file is.
#[test]
fn a_cell_that_fails_is_a_row_in_every_shard() {
    let clips: Vec<String> = (0..20_002)
        .map(|k| if k == 15_282 { "-1.0".into() } else { format!("{}", 0.1 + 1e-4 * f64::from(k)) })
        .collect();
    let folder = folder("");
    let at = folder.path();
    let sweep = SWEEP.replace("dim = 100", "dim = 2").replace("time          = 3.0", "time = 0.01");
    let sweep = format!("{sweep}[vary]\nclip = [{}]\n", clips.join(", "));
    std::fs::write(at.join("bad.toml"), sweep).unwrap();
    let whole = at.join("bad.toml").display().to_string();
    let tables = [("a", "bad.toml"), ("b", &*whole)].map(|(out, file)| {
        ok(at, &["sweep", file, "--quiet", "--shard", "283/5000", "--out", out]);
        let log = format!("{out}/bad.283-of-5000.sweep");
        let said = ok(at, &["sweep", "export", &log, "--out", "t.csv"]);
        assert!(
            said.contains(
                "Failed: 1 cell: cell 15282 (clip = -1): clip is -1; expected a positive"
            ),
            "{said}"
        );
        bytes(at, "t.csv")
    });
    assert_eq!(tables[0], tables[1]);
    let table = String::from_utf8(tables[0].clone()).unwrap();
    assert_eq!((table.lines().count(), table.matches("bad.toml").count()), (5, 0));
}

/// Without a finite variance SGD diverges at once, which the summary counts.
#[test]
fn divergence_at_the_start_is_counted() {
    let folder = folder("clip = 'none'\n[vary]\nnoise.df = [1.2, 1.5, 4.0]\n");
    assert!(ok(folder.path(), &["sweep", "tails.toml"]).contains("Diverged: 2 cells"));
}

#[test]
fn a_cell_written_elsewhere_finds_its_files() {
    let folder = folder("");
    let at = folder.path();
    std::fs::create_dir_all(at.join("deep/data")).unwrap();
    std::fs::write(at.join("deep/data/r.csv"), "residual\n0.5\n-0.5\n1.5\n-1.0\n").unwrap();
    let text = SWEEP.replace(
        "family = \"student_t\", df = 2.5, scale = 0.5",
        "family = \"empirical\", file = \"data/r.csv\"",
    );
    std::fs::write(at.join("deep/s.toml"), format!("{text}[vary]\nclip = [0.3, 1.0]\n")).unwrap();
    ok(at, &["sweep", "deep/s.toml", "--quiet"]);
    ok(at, &["sweep", "cell", "deep/s.toml", "1", "--out", "cell.toml"]);
    ok(at, &["run", "cell.toml", "--quiet"]);
    // From the log, which lies elsewhere, too; and from that of merged shards.
    ok(at, &["sweep", "cell", "results/s.sweep", "1", "--out", "other/c.toml"]);
    assert_eq!(bytes(at, "other/c.toml"), bytes(at, "cell.toml"));
    std::fs::create_dir_all(at.join("copy/data")).unwrap();
    for name in ["data/r.csv", "s.toml"] {
        std::fs::copy(at.join("deep").join(name), at.join("copy").join(name)).unwrap();
    }
    ok(at, &["sweep", "deep/s.toml", "--quiet", "--shard", "1/2", "--out", "shards"]);
    ok(at, &["sweep", "copy/s.toml", "--quiet", "--shard", "2/2", "--out", "shards"]);
    ok(at, &["sweep", "merge", "shards", "--out", "merged"]);
    ok(at, &["sweep", "cell", "merged/s.sweep", "1", "--out", "merged.toml"]);
    assert_eq!(bytes(at, "merged.toml"), bytes(at, "cell.toml"));
    std::fs::rename(at.join("deep"), at.join("moved")).unwrap();
    let (code, _, said) = run(at, &["sweep", "cell", "results/s.sweep", "1"]);
    assert!(
        code == 1 && said.contains("cannot find data/r.csv, which the cell reads, in results"),
        "{said}"
    );
    std::fs::rename(at.join("moved"), at.join("deep")).unwrap();
    std::fs::write(at.join("deep/data/r.csv"), "residual\n0.5\n").unwrap();
    std::fs::remove_file(at.join("results/s.parquet")).ok();
    let (code, _, said) = run(at, &["sweep", "deep/s.toml", "--resume"]);
    assert!(code == 1 && said.contains("data/r.csv"), "{said}");
}
