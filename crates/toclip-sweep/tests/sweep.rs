//! Sweeps as a user writes them: what is read, what is refused, and what a cell gives.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use toclip_experiment::{Prepared, of_values, run};
use toclip_sweep::{Error, Row, Sweep};

const BASE: &str = r#"
spectrum      = { kind = "power_law", dim = 100, exponent = 0.2 }
start         = { kind = "uniform", norm = 1.0 }
noise         = { family = "student_t", df = 2.5, scale = 0.5 }
time          = 3.0
learning_rate = 0.5
points        = 11
"#;

fn sweep(rest: &str) -> Result<Sweep, Error> {
    Sweep::parse(&format!("{BASE}{rest}"), Path::new("x/tails.toml"))
}

fn run_cell(sweep: &Sweep, cell: u64) -> Row {
    sweep.run(cell, &AtomicBool::new(false)).expect("it is not cancelled")
}

fn column(sweep: &Sweep, row: &Row, name: &str) -> f64 {
    let at = sweep.columns().iter().position(|column| column == name);
    row.values[at.unwrap_or_else(|| panic!("no column {name} in {:?}", sweep.columns()))]
}

#[test]
fn a_product_counts_like_digits_and_zipped_keys_change_together() {
    let sweep = sweep(
        "[vary]\nnoise.df = [1.5, 3.0]\nclip = [0.5, 'none']\n\
         [[together]]\nbatch = [1, 4, 16]\nlearning_rate = [0.1, 0.2, 0.4]",
    )
    .unwrap();
    assert_eq!(sweep.cells(), 12);
    assert_eq!(
        sweep.describe(0),
        "cell 0 (clip = 0.5, noise.df = 1.5, batch = 1, learning_rate = 0.1)"
    );
    assert_eq!(
        sweep.describe(11),
        "cell 11 (clip = \"none\", noise.df = 3, batch = 16, learning_rate = 0.4)"
    );
    let seen: std::collections::BTreeSet<String> =
        (0..12).map(|k| sweep.describe(k)[8..].into()).collect();
    assert_eq!(seen.len(), 12);
    sweep.check(&|| {}).unwrap();
}

#[test]
fn excluded_cells_are_not_counted() {
    let sweep = sweep(
        "[vary]\nclip = [0.5, 1, 2, 'none']\nbatch = [1, 2, 4]\n\
         [[exclude]]\nclip = { above = 1 }\nbatch = [1, 2]\n[[exclude]]\nclip = 0.5\nbatch = 4",
    )
    .unwrap();
    // Of 12, the thresholds 2 and none at batches of 1 and 2, and 0.5 at 4.
    assert_eq!(sweep.cells(), 7);
    let has = |clip: &str, batch: &str| {
        (0..7).any(|k| sweep.describe(k).ends_with(&format!("(batch = {batch}, clip = {clip})")))
    };
    assert!(has("0.5", "1") && has("2", "4") && has("\"none\"", "4") && has("1", "4"));
    assert!(!has("2", "1") && !has("\"none\"", "2") && !has("0.5", "4"));
    // The bounds themselves stay.
    let bounds = "[vary]\nclip = [0.5, 1, 2, 4]\n[[exclude]]\nclip = { below = 1 }\n\
                  [[exclude]]\nclip = { above = 2 }";
    let inner = Sweep::parse(&format!("{BASE}{bounds}"), Path::new("e.toml")).unwrap();
    assert_eq!((inner.describe(0), inner.cells()), ("cell 0 (clip = 1)".into(), 2));
}

/// The numbers of a cell are those of `toclip run` on the same experiment, bit for bit.
#[test]
fn a_cell_is_the_experiment_that_it_describes() {
    let sweep = sweep(
        "methods = ['ode', 'sgd']\nensemble = { runs = 5 }\n\
         keep = ['final_risk', { time_to = 0.2 }, 'best_threshold', 'curves']\n\
         [vary]\nclip = [0.3, 1.0]\nensemble.seed = [1, 2]",
    )
    .unwrap();
    for cell in 0..sweep.cells() {
        let row = run_cell(&sweep, cell);
        let (file, origin) = of_values(&sweep.values(cell), Path::new("")).unwrap();
        let experiment = file.into_trajectories(&origin).unwrap();
        let problem = Prepared::new(&experiment, &origin).unwrap();
        let curves = run::run_all(&experiment, &problem).unwrap();
        let last = |k: usize| *curves[k].risk().last().unwrap();
        assert_eq!(column(&sweep, &row, "ode_final_risk"), last(0));
        assert_eq!(column(&sweep, &row, "sgd_final_risk"), last(1));
        let (low, high) = (
            column(&sweep, &row, "sgd_final_risk_low"),
            column(&sweep, &row, "sgd_final_risk_high"),
        );
        assert!(low < last(1) && last(1) < high);
        assert_eq!(row.curves[0].value, curves[0].risk());
        assert_eq!(row.curves[1].high, curves[1].band().unwrap().risk.quantiles[1]);
        // Between the saved times around the level.
        let t = column(&sweep, &row, "ode_time_to_0.2");
        let at = curves[0].risk().iter().position(|r| *r <= 0.2).unwrap();
        assert!(curves[0].times()[at - 1] <= t && t <= curves[0].times()[at]);
        // No threshold on a grid has a larger CCC.
        let best = column(&sweep, &row, "best_ccc");
        for k in 1..60 {
            let c = 0.05 * f64::from(k);
            assert!(
                toclip::Factors::new(&problem.problem, last(0), c).unwrap().ccc().unwrap()
                    <= best + 1e-9
            );
        }
    }
}

#[test]
fn divergence_is_a_result() {
    let sweep = sweep("[vary]\nlearning_rate = [0.5, 50.0]\nclip = ['none']").unwrap();
    let row = run_cell(&sweep, 1);
    assert_eq!(column(&sweep, &row, "ode_final_risk"), f64::INFINITY);
    assert!(column(&sweep, &row, "ode_diverged_at") < 3.0 && row.error.is_none());
    assert!(column(&sweep, &run_cell(&sweep, 0), "ode_diverged_at").is_nan());
}

/// The reason in the table names neither the sweep file nor the cell, so that equal sweeps give equal tables
/// wherever they lie.
#[test]
fn a_cell_that_fails_says_why_and_not_where() {
    let folder = std::env::temp_dir().join(format!("toclip-sweep-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("r.csv"), "residual\nx\n").unwrap();
    let text = format!(
        "{BASE}[vary]\nclip = [0.5, -1.0]\n\
         noise = [{{ family = 'none' }}, {{ family = 'empirical', file = 'r.csv' }}]"
    );
    let sweep = Sweep::parse(&text, &folder.join("s.toml")).unwrap();
    let failed = [2, 1].map(|cell| run_cell(&sweep, cell));
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(failed.iter().all(|row| row.values.iter().all(|x| x.is_nan())));
    let [clip, file] = failed.map(|row| row.error.unwrap());
    assert_eq!(clip, "clip is -1; expected a positive number, \"none\" or inf");
    assert!(file.contains("r.csv") && !file.contains(folder.to_str().unwrap()), "{file}");
    assert_eq!(sweep.named_files(), ["r.csv"]);
}

#[test]
fn integers_can_be_drawn_for_keys_that_need_them() {
    let sweep = sweep(
        "[[together]]\nbatch = { log_uniform = [1, 64], count = 20, integer = true }\n\
         clip = { log_uniform = [0.1, 5.0], count = 20 }",
    )
    .unwrap();
    sweep.check(&|| {}).unwrap();
    assert_eq!(sweep.cells(), 20);
    assert!(sweep.axes()[0].keys.iter().all(|key| key.random));
}

#[test]
fn the_sweeps_of_the_repository_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/sweeps");
    let mut found = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let sweep = Sweep::read(&file.unwrap().path()).unwrap();
        let row = run_cell(&sweep, 0);
        assert_eq!(row.error, None, "{}", sweep.name);
        assert!(row.values[0] > 0.0, "{}: {:?}", sweep.name, row.values);
        found += 1;
    }
    assert!(found >= 2);
}

#[test]
fn models_are_swept_alike() {
    let text = "model = { kind = 'logistic', flips = 0.1 }\nteacher = { kind = 'uniform', norm = 3.0 }\n\
        spectrum = { kind = 'isotropic', dim = 50 }\ntime = 2\nlearning_rate = 1.0\npoints = 5\n\
        methods = ['ode', 'sgd']\nensemble = { runs = 3 }\n\
        [vary]\nclip = [0.3, 'none']\nmodel.flips = [0.0, 0.2]";
    let sweep = Sweep::parse(text, Path::new("e.toml")).unwrap();
    sweep.check(&|| {}).unwrap();
    let row = run_cell(&sweep, 3);
    let (loss, error) =
        (column(&sweep, &row, "ode_final_loss"), column(&sweep, &row, "sgd_final_error_rate"));
    assert!(loss > 0.3 && loss < 0.7 && error > 0.0 && error < 0.5, "{loss} {error}");
}

/// What cannot run is refused before anything does, in one line that says where and what is right.
#[test]
fn mistakes_are_refused_in_one_sentence() {
    let mistakes = [
        "",
        "vary = 3",
        "[vary]",
        "[vary]\nclip = []",
        "[vary]\nclip = 0.5",
        "[vary]\nclip = { from = 1, to = 3, count = 4 }",
        "[vary]\nclip = { log = [0.0, 1.0], count = 4 }",
        "[vary]\nclip = { log = [0.1, 1.0] }",
        "[vary]\nclip = { log = [0.1, 1.0], count = -1 }",
        "[vary]\nclip = { log = [0.1, 1.0], count = 4, seed = 3 }",
        "[vary]\nclip = { log = [0.1, 1.0], linear = [0, 1], count = 4 }",
        "[vary]\nclip = { linear = [0.1, nan], count = 4 }",
        "[vary]\nclip = { uniform = [0.1, 1.0], count = 4, seed = -3 }",
        "[vary]\nclip = [0.5, 0.5]",
        "[vary]\nclipp = [0.5]",
        "[vary]\nclip = [0.5]\nnoise.dff = [1.0]",
        "[vary]\nclip = [0.5]\nlearning_rate.from = [1.0]",
        "[vary]\nclip = [0.5, -1.0]",
        "[vary]\nclip = [0.5]\nmethods = [['ode']]",
        "[vary]\nclip = [0.5]\n[[together]]\nclip = [1.0]",
        "[vary]\nclip = [0.5]\n[[together]]\nbatch = [1, 2]\ntime = [1.0]",
        "[vary]\nclip = [0.5]\n[[together]]",
        "[vary]\nclip = [0.5]\n[[exclude]]\nbatch = 1",
        "[vary]\nclip = [0.5]\n[[exclude]]\nclip = 0.7",
        "[vary]\nclip = [0.5]\n[[exclude]]\nclip = { below = 'x' }",
        "[vary]\nclip = [0.5]\n[[exclude]]\nclip = 0.5",
        "[vary]\nclip = [0.5]\n[[exclude]]\nclip = [0.5, 0.7]",
        "[vary]\nclip = [0.5]\n[[exclude]]\nclip = {}",
        "[vary]\nclip = [0.5]\n[[exclude]]\nclip = { above = 1, belw = 3 }",
        "[vary]\nclip = [0.5]\n[[exclude]]\nclip = { abov = 1 }",
        "[vary]\nnoise.df = [2.5]\n[[exclude]]\nnoise = { dff = 1 }",
        "[vary]\nclip = [1, 1.0]",
        "[vary]\nclip = ['none', inf]",
        "keep = []\n[vary]\nclip = [0.5]",
        "keep = 'final_risk'\n[vary]\nclip = [0.5]",
        "keep = ['final_rsk']\n[vary]\nclip = [0.5]",
        "keep = ['final']\n[vary]\nclip = [0.5]",
        "keep = ['time_to']\n[vary]\nclip = [0.5]",
        "keep = [{ time_to = -1 }]\n[vary]\nclip = [0.5]",
        "keep = ['final_loss']\n[vary]\nclip = [0.5]",
        "keep = ['final_risk', 'final_risk']\n[vary]\nclip = [0.5]",
        "criteria = { curves = ['ccc'] }\n[vary]\nclip = [0.5]",
        "[vary]\nclip = { linear = [0.1, 1.0], count = 1000000 }\n\
         time = { linear = [0.1, 1.0], count = 1000000 }",
        "[vary]\nclip = [0.5",
        "clip = 0.5\nmomentum = 0.9\nmethods = ['volterra']\n[vary]\nbatch = [1]",
        "clip = { kind = 'constant', value = 0.5 }\n[vary]\nlearning_rate = [0.5, 'greedy']",
    ];
    let mut said = String::new();
    for mistake in mistakes {
        let error = sweep(mistake).and_then(|sweep| sweep.check(&|| {})).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{mistake} says: {error}");
        said += &format!("{}\n    {error}\n", mistake.replace('\n', " | "));
    }
    insta::assert_snapshot!(said);
}
