//! The runs of networks that were measured for the project, which are compiled in.

use anyhow::{Context, Result};

use super::record::Record;

/// One trained and measured network.
#[derive(Debug, Clone)]
pub struct NetworkRun {
    /// The name of its folder.
    pub folder: &'static str,
    pub settings: Record,
    /// By step, batch and threshold.
    pub factors: Vec<Record>,
    /// By step; all modes together.
    pub dimensions: Vec<Record>,
}

impl NetworkRun {
    /// The name that people know the network by.
    pub fn name(&self) -> &str {
        match &*self.settings.words["model"] {
            "resnet18" => "ResNet-18",
            "vit_s16" => "ViT-S/16",
            "vit_s4" => "ViT-S/4",
            other => other,
        }
    }

    /// The batch size of the training.
    pub fn batch(&self) -> f64 {
        self.settings["batch"]
    }

    /// The lines at one batch size, in order of time.
    pub fn at_batch(&self, batch: f64) -> impl Iterator<Item = &Record> {
        self.factors.iter().filter(move |line| line["batch"] == batch)
    }
}

/// A run of the project: its folder and the contents of its files.
macro_rules! measured {
    ($run:literal) => {
        measured!($run, "/run.json", "/factors.jsonl", "/curvature.jsonl")
    };
    ($run:literal, $($file:literal),*) => {
        ($run, [$(include_str!(concat!("../../../results/networks/", $run, $file))),*])
    };
}

/// All runs.
pub fn measured() -> Result<Vec<NetworkRun>> {
    let runs = [measured!("resnet18-mse"), measured!("vit_s16-mse"), measured!("vit_s4-mse")];
    let read = |(folder, texts): (&'static str, [&str; 3])| -> Result<NetworkRun> {
        let settings = Record::parse(texts[0])?;
        let (mut factors, mut dimensions) = (Record::lines(texts[1])?, Record::lines(texts[2])?);
        // Numbers that are not negative are in the order of their bits.
        factors.sort_by_key(|line| ["step", "batch", "threshold"].map(|key| line[key].to_bits()));
        dimensions.sort_by_key(|line| line["step"].to_bits());
        Ok(NetworkRun { folder, settings, factors, dimensions })
    };
    runs.into_iter()
        .map(|run| read(run).with_context(|| format!("results/networks/{}", run.0)))
        .collect()
}
