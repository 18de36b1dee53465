//! Runs of networks: those measured for the project, which are compiled in, or those of a folder.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::record::{CURVATURE_COLUMNS, FACTOR_COLUMNS, Record};

/// The files of a run.
const FILES: [&str; 3] = ["run.json", "factors.jsonl", "curvature.jsonl"];

/// One trained and measured network.
#[derive(Debug, Clone)]
pub struct NetworkRun {
    /// The name of its folder.
    pub folder: String,
    pub settings: Record,
    /// By step, batch and threshold; the whole model only.
    pub factors: Vec<Record>,
    /// By step; all modes together.
    pub dimensions: Vec<Record>,
}

impl NetworkRun {
    /// The name that people know the network by, and its loss if it is not the paper's.
    fn network(&self) -> String {
        let model = match &*self.settings.words["model"] {
            "resnet18" => "ResNet-18",
            "vit_s16" => "ViT-S/16",
            "vit_s4" => "ViT-S/4",
            "small_cnn" => "small CNN",
            other => other,
        };
        match &*self.settings.words["loss"] {
            "mse" => model.into(),
            loss => format!("{model}, {}", loss.replace('_', " ")),
        }
    }

    /// A name that no other run has.
    pub fn name(&self, all: &[NetworkRun]) -> String {
        let name = self.network();
        match all.iter().filter(|run| run.network() == name).count() {
            0 | 1 => name,
            _ => format!("{name} ({})", self.folder),
        }
    }

    /// The batch size of the training.
    pub fn batch(&self) -> f64 {
        self.settings["batch"]
    }

    /// The name of its folder, as a part of the name of a file.
    pub fn file_name(&self) -> String {
        let safe = |c: char| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' };
        self.folder.chars().map(safe).collect()
    }

    /// The lines at one batch size, in order of time.
    pub fn at_batch(&self, batch: f64) -> impl Iterator<Item = &Record> {
        self.factors.iter().filter(move |line| line["batch"] == batch)
    }
}

/// All the runs to draw.
#[derive(Debug, Clone, Default)]
pub struct Networks {
    pub runs: Vec<NetworkRun>,
    /// The folder, if they are not the compiled-in ones.
    pub folder: Option<String>,
    /// Notes about lines of the files that were skipped.
    pub notes: Vec<String>,
}

/// The project's run of one network: its folder and the contents of its files.
macro_rules! measured {
    ($run:literal) => {
        measured!($run, "/run.json", "/factors.jsonl", "/curvature.jsonl")
    };
    ($run:literal, $($file:literal),*) => {
        ($run, [$(include_str!(concat!("../../../results/networks/", $run, $file))),*])
    };
}

impl Networks {
    /// The runs of a folder, or without one those that are compiled in.
    pub fn load(folder: Option<&Path>) -> Result<Self> {
        if let Some(folder) = folder {
            return Self::from_folder(folder);
        }
        let mut networks = Networks::default();
        let runs = [measured!("resnet18-mse"), measured!("vit_s16-mse"), measured!("vit_s4-mse")];
        for (run, texts) in runs {
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
        let keys = "model loss batch steps seed epochs rate momentum";
        let settings = Record::parse(texts[0], &run, keys)?;
        let keys = format!("{FACTOR_COLUMNS} gradient_norm");
        let (mut lines, cut) = Record::parse_lines(texts[1], &factors, &keys)?;
        let keys = format!("{CURVATURE_COLUMNS} mode");
        let (mut dimensions, also_cut) = Record::parse_lines(texts[2], &curvature, &keys)?;
        self.notes.extend(cut.into_iter().chain(also_cut));
        lines.retain(|line| line.words.get("group").is_none_or(|group| group == "all"));
        if lines.is_empty() {
            bail!("{factors} has no line with the group \"all\", the whole model");
        }
        // Numbers that are not negative are in the order of their bits.
        lines.sort_by_key(|line| ["step", "batch", "threshold"].map(|key| line[key].to_bits()));
        dimensions.sort_by_key(|line| line["step"].to_bits());
        self.runs.push(NetworkRun { folder: folder.into(), settings, factors: lines, dimensions });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"model": "resnet18", "loss": "mse", "epochs": 2, "batch": 128, "rate": 0.1,
        "momentum": 0.9, "seed": 1, "steps": 20}"#;
    const CURVATURE: &str = r#"{"step": 20, "epoch": 2.0, "dimension": NaN, "dimension_stderr": 1, "converged": true, "samples": 64, "mode": "eval"}
"#;

    fn factors() -> String {
        let lines = measured!("resnet18-mse").1[1].lines().take(18);
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// A folder with one run.
    fn folder(run: &str, factors: &str, curvature: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("mine");
        std::fs::create_dir(&folder).unwrap();
        for (name, text) in FILES.into_iter().zip([run, factors, curvature]) {
            std::fs::write(folder.join(name), text).unwrap();
        }
        root
    }

    #[test]
    fn a_folder_of_runs_or_one_run_is_read() {
        let root = folder(RUN, &factors(), CURVATURE);
        let found = Networks::load(Some(root.path())).unwrap();
        assert_eq!((found.runs.len(), found.runs[0].factors.len()), (1, 18));
        assert_eq!(found.runs[0].name(&found.runs), "ResNet-18");
        assert!(found.notes.is_empty() && found.runs[0].dimensions[0]["dimension"].is_nan());
        assert_eq!(found.runs[0].dimensions[0]["epoch"], 2.0);
        let one = Networks::load(Some(&root.path().join("mine"))).unwrap();
        let twice = [found.runs[0].clone(), one.runs[0].clone()];
        assert_eq!(twice[0].name(&twice), "ResNet-18 (mine)");
    }

    #[test]
    fn a_killed_run_is_read_up_to_its_last_complete_line() {
        let text = factors();
        let root = folder(RUN, &text[..text.len() - 40], CURVATURE);
        let found = Networks::load(Some(root.path())).unwrap();
        assert_eq!((found.runs[0].factors.len(), found.notes.len()), (17, 1));
    }

    #[test]
    fn errors_name_the_file_and_what_is_expected() {
        let error = |path: &Path, root: &Path| {
            let error = format!("{:#}", Networks::load(Some(path)).unwrap_err());
            error.replace(&root.display().to_string(), "ROOT").replace("\\", "/")
        };
        let with = |run: &str, factors: &str, curvature: &str| {
            let root = folder(run, factors, curvature);
            error(root.path(), root.path())
        };
        let (lines, none) = (factors(), Path::new("no/such"));
        let root = folder(RUN, &lines, CURVATURE);
        std::fs::remove_file(root.path().join("mine/curvature.jsonl")).unwrap();
        let missing = error(root.path(), root.path());
        std::fs::remove_file(root.path().join("mine/run.json")).unwrap();
        let errors = [
            missing,
            error(root.path(), root.path()),
            error(none, none),
            with("{}", &lines, CURVATURE),
            with("", &lines, CURVATURE),
            with(&RUN.replace("20}", "0}"), &lines, CURVATURE),
            with(RUN, "", CURVATURE),
            with(RUN, &lines.replace("\"threshold\": 0.1,", "\"threshold\": -0.1,"), CURVATURE),
            with(RUN, &lines.replace("\"mu_direct\"", "\"mu\""), CURVATURE),
            with(RUN, &lines.replace("\"all\"", "\"head\""), CURVATURE),
            with(RUN, &lines, "{\"step\": 1}\n"),
        ];
        insta::assert_snapshot!(errors.join("\n"));
    }
}
