//! Runs of networks: those measured for the project, which are compiled in, or those of a folder.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::json_lines;
use super::measurements::{Dimension, FactorLine, Settings};

/// The files of a run.
const FILES: [&str; 3] = ["run.json", "factors.jsonl", "curvature.jsonl"];

/// One trained and measured network.
#[derive(Debug, Clone)]
pub struct Run {
    /// The name of its folder.
    pub folder: String,
    pub settings: Settings,
    /// By step, batch and threshold; the whole model only.
    pub factors: Vec<FactorLine>,
    /// By step; all modes together.
    pub dimensions: Vec<Dimension>,
}

impl Run {
    /// A name that no other run has.
    pub fn name(&self, all: &[Run]) -> String {
        let name = self.settings.name();
        match all.iter().filter(|run| run.settings.name() == name).count() {
            0 | 1 => name,
            _ => format!("{name} ({})", self.folder),
        }
    }

    /// The name of its folder, as a part of the name of a file.
    pub fn file_name(&self) -> String {
        let safe = |c: char| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' };
        self.folder.chars().map(safe).collect()
    }

    /// Where it stopped, in epochs.
    pub fn epochs_done(&self) -> f64 {
        let factors = self.factors.iter().map(|line| line.epoch);
        factors.chain(self.dimensions.iter().map(|d| d.epoch)).fold(0.0, f64::max)
    }
}

/// All the runs to draw.
#[derive(Debug, Clone, Default)]
pub struct Networks {
    pub runs: Vec<Run>,
    /// The folder, if they are not the compiled-in ones.
    pub folder: Option<String>,
    /// What was left out of the files.
    pub notes: Vec<String>,
}

macro_rules! measured {
    ($run:literal) => {
        (
            $run,
            [
                measured!($run, "run.json"),
                measured!($run, "factors.jsonl"),
                measured!($run, "curvature.jsonl"),
            ],
        )
    };
    ($run:literal, $file:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/results/networks/", $run, "/", $file))
    };
}

impl Networks {
    /// The runs of a folder, or without one those that are compiled in.
    pub fn load(folder: Option<&Path>) -> Result<Self> {
        match folder {
            Some(folder) => Self::from_folder(folder),
            None => Self::compiled_in(),
        }
    }

    fn compiled_in() -> Result<Self> {
        let mut networks = Networks::default();
        for (run, texts) in
            [measured!("resnet18-mse"), measured!("vit_s16-mse"), measured!("vit_s4-mse")]
        {
            networks.add(&format!("results/networks/{run}"), run, texts)?;
        }
        Ok(networks)
    }

    /// `folder` is a run or holds runs.
    fn from_folder(folder: &Path) -> Result<Self> {
        let shown = folder.display();
        let mut networks = Networks { folder: Some(shown.to_string()), ..Self::default() };
        let is_run = |path: &Path| path.join(FILES[0]).is_file();
        let mut found = vec![folder.to_owned()];
        if !is_run(folder) {
            found = std::fs::read_dir(folder)
                .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
                .with_context(|| format!("cannot read the folder {shown} of --networks"))?;
            found.retain(|path| is_run(path));
            found.sort();
        }
        if found.is_empty() {
            bail!(
                "{shown} contains no run of a network. A run is a folder with {}, as \
                 `python python/experiments/train.py --out FOLDER` writes it; give --networks one run \
                 or a folder of runs",
                FILES.join(", ")
            );
        }
        for path in &found {
            let read = |file: &str| {
                let file = path.join(file);
                let missing = || format!("cannot read {}, which train.py writes", file.display());
                std::fs::read_to_string(&file).with_context(missing)
            };
            let texts = [read(FILES[0])?, read(FILES[1])?, read(FILES[2])?];
            // "." has a name too.
            let whole = path.canonicalize().unwrap_or_else(|_| path.clone());
            let name = whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy();
            networks.add(&path.to_string_lossy(), &name, texts.each_ref().map(|text| &**text))?;
        }
        Ok(networks)
    }

    /// Adds the run in `path` from the contents of its files.
    fn add(&mut self, path: &str, folder: &str, texts: [&str; 3]) -> Result<()> {
        let [run, factors, curvature] = FILES.map(|file| format!("{path}/{file}"));
        let settings: Settings = json_lines::read_one(texts[0], &run)?;
        let (mut lines, cut) = json_lines::read::<FactorLine>(texts[1], &factors)?;
        let (mut dimensions, also_cut) = json_lines::read::<Dimension>(texts[2], &curvature)?;
        self.notes.extend(cut.into_iter().chain(also_cut));
        lines.retain(|line| line.group == "all");
        if lines.is_empty() {
            bail!("{factors} has no line with the group \"all\", the whole model");
        }
        lines.sort_by(|a, b| {
            (a.step, a.batch).cmp(&(b.step, b.batch)).then(a.threshold.total_cmp(&b.threshold))
        });
        dimensions.sort_by_key(|d| d.step);
        self.runs.push(Run { folder: folder.into(), settings, factors: lines, dimensions });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"model": "resnet18", "loss": "mse", "epochs": 2, "batch": 128, "rate": 0.1,
        "momentum": 0.9, "seed": 1, "steps": 20}"#;

    fn curvature(step: u64, mode: &str) -> String {
        format!(
            "{{\"step\": {step}, \"epoch\": {}, \"dimension\": 20, \"dimension_stderr\": 1, \
             \"converged\": true, \"samples\": 64, \"mode\": \"{mode}\"}}\n",
            step as f64 / 10.0
        )
    }

    fn factors() -> String {
        let all = Networks::embedded().unwrap();
        assert_eq!(all.runs.len(), 3);
        text!("resnet18-mse", "/factors.jsonl").lines().take(18).fold(
            String::new(),
            |mut text, line| {
                text += line;
                text += "\n";
                text
            },
        )
    }

    /// A folder with one run, its files changed.
    fn with(
        change: impl Fn(&str, String) -> Option<String>,
    ) -> (tempfile::TempDir, Result<Networks>) {
        let root = tempfile::tempdir().unwrap();
        let run = root.path().join("mine");
        std::fs::create_dir(&run).unwrap();
        for (name, text) in [
            ("run.json", RUN.to_owned()),
            ("factors.jsonl", factors()),
            ("curvature.jsonl", curvature(10, "eval") + &curvature(20, "eval")),
        ] {
            if let Some(text) = change(name, text) {
                std::fs::write(run.join(name), text).unwrap();
            }
        }
        let found = Networks::load(Some(root.path()));
        (root, found)
    }

    fn said(file: &'static str, text: &'static str) -> String {
        let (_root, found) = with(|name, old| Some(if name == file { text.into() } else { old }));
        format!("{:#}", found.unwrap_err())
    }

    #[test]
    fn a_folder_of_runs_or_one_run_is_read() {
        let (root, found) = with(|_, text| Some(text));
        let found = found.unwrap();
        assert_eq!((found.runs.len(), found.runs[0].factors.len()), (1, 18));
        assert_eq!(found.runs[0].name(&found.runs), "ResNet-18");
        assert!(found.notes.is_empty());
        assert!((found.runs[0].epochs_done() - 2.0).abs() < 1e-12);
        let one = Networks::load(Some(&root.path().join("mine"))).unwrap();
        assert_eq!(one.runs[0].dimensions.len(), 2);
        let twice = [found.runs[0].clone(), one.runs[0].clone()];
        assert_eq!(twice[0].name(&twice), "ResNet-18 (mine)");
    }

    #[test]
    fn a_killed_run_is_drawn_up_to_its_last_whole_line() {
        let (_root, found) = with(|name, text| {
            Some(if name == "factors.jsonl" { text[..text.len() - 40].into() } else { text })
        });
        let found = found.unwrap();
        assert_eq!(found.runs[0].factors.len(), 17);
        assert!(found.notes[0].contains("factors.jsonl: line 18"), "{:?}", found.notes);
    }

    #[test]
    fn wrong_files_are_named_with_what_would_be_right() {
        let (root, found) = with(|name, text| (name != "curvature.jsonl").then_some(text));
        let error = format!("{:#}", found.unwrap_err());
        assert!(error.contains("mine/curvature.jsonl") && error.contains("train.py"), "{error}");
        std::fs::remove_file(root.path().join("mine/run.json")).unwrap();
        let error = format!("{:#}", Networks::load(Some(root.path())).unwrap_err());
        assert!(error.contains("holds no run") && error.contains("run.json"), "{error}");
        let error = format!("{:#}", Networks::load(Some(Path::new("no/such"))).unwrap_err());
        assert!(error.contains("no/such") && error.contains("--networks"), "{error}");
        assert!(said("run.json", "{}").contains("run.json: missing field `model`"));
        assert!(said("run.json", "").contains("mine/run.json"));
        assert!(said("factors.jsonl", "").contains("no measurement"));
        assert!(said("curvature.jsonl", "{\"step\": 1}\n").contains("line 1: missing field"));
        let zero = RUN.replace("\"steps\": 20", "\"steps\": 0").leak();
        assert!(said("run.json", zero).contains("`steps` is 0"));
        let minus = factors().replace("\"threshold\": 0.1,", "\"threshold\": -0.1,").leak();
        assert!(said("factors.jsonl", minus).contains("`threshold` is -0.1"));
        let other = factors().replace("\"group\": \"all\"", "\"group\": \"head\"").leak();
        assert!(said("factors.jsonl", other).contains("whole model"));
    }

    #[test]
    fn the_measurements_beside_the_runs_fill_gaps_only() {
        let mut networks = with(|_, text| Some(text)).1.unwrap();
        let line = |at: &str, mode: &str, n: u64| {
            format!(
                "{{\"model\": \"resnet18\", \"at\": {at}, \"mode\": \"{mode}\", \"n\": {n}, \"d\": 110, \
                 \"se\": 1, \"conv\": true}}\n"
            )
        };
        let text = line("\"init\"", "train", 64)
            + &line("20", "train", 64)
            + &line("20", "eval", 64)
            + &line("20", "train", 512);
        networks.add_aside(&text, "x.jsonl").unwrap();
        let run = &networks.runs[0];
        let found: Vec<(u64, &str)> =
            run.dimensions.iter().map(|d| (d.step, d.mode.as_str())).collect();
        assert_eq!(found, [(0, "train"), (10, "eval"), (20, "eval"), (20, "train")]);
        assert_eq!(run.others.len(), 2, "known from the run, and another number of images");
        let wrong = networks.add_aside(&line("\"end\"", "train", 64), "x.jsonl").unwrap_err();
        assert!(wrong.to_string().contains("x.jsonl: `at` is \"end\""), "{wrong}");
    }
}
