//! The samples to fit, and the paper's settings for its data sets.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use toclip_data::cifar10::Cifar10;
use toclip_data::{DataSet, Design, Features, SampleSource, Target, cache_folder, open_samples};

use crate::study::figure_section::shell_quoted;

/// A data set of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PaperDataSet {
    /// CIFAR-10, animals against vehicles (figure 1c)
    Cifar10,
    /// WikiText-2, embedded by `toclip embed` (figure 1d)
    Wikitext2,
}

/// Samples, and what their inputs are centred by if not by their own mean.
pub struct Input {
    source: Box<dyn SampleSource>,
    centre: Option<Vec<f64>>,
    /// Its name, if not that of the source.
    name: Option<String>,
    /// Notes on the files for the user.
    pub notes: Vec<String>,
}

impl Input {
    pub fn open(
        known: Option<PaperDataSet>,
        file: Option<&PathBuf>,
        target: Option<&str>,
        from: Option<&PathBuf>,
    ) -> Result<Self> {
        match (known, file) {
            (Some(PaperDataSet::Cifar10), None) => Self::cifar10(from),
            (Some(PaperDataSet::Wikitext2), None) => Self::wikitext2(from, target),
            (None, Some(file)) => Self::file(file, &target.map_or(Target::Last, Target::from_word)),
            _ => bail!(
                "no samples given; expected a file (toclip fit data.csv --target y) or a data set \
                 (toclip fit --dataset cifar10)"
            ),
        }
    }

    pub fn cifar10(from: Option<&PathBuf>) -> Result<Self> {
        let path = match from {
            Some(path) => path.clone(),
            None => DataSet::Cifar10.locate()?,
        };
        let cifar = Cifar10::read(&path)?;
        // The paper takes off the mean over all ten classes.
        let centre = Some(cifar.train.pixel_means());
        let source = Box::new(cifar.train.into_two_classes());
        Ok(Input { source, centre, name: None, notes: cifar.notes })
    }

    /// The rows that `toclip embed` wrote, and the targets beside them.
    pub fn wikitext2(from: Option<&PathBuf>, target: Option<&str>) -> Result<Self> {
        let path = match from {
            Some(path) => path.clone(),
            None => wikitext_embedding()?,
        };
        if !path.is_file() {
            bail!(
                "{} does not exist. Embed WikiText-2 first: `toclip data get wikitext2`, then `cargo run \
                 --release --features embed -- embed --model minilm --text {} --out {}` (the default \
                 build contains no models)",
                path.display(),
                shell_quoted(
                    &cache_folder()?.join("wikitext2").join("train.txt").display().to_string()
                ),
                shell_quoted(&path.display().to_string())
            );
        }
        let target = match target {
            Some(target) => Target::from_word(target),
            None => Target::File(path.with_file_name("targets.npy")),
        };
        let input = Self::file(&path, &target)?;
        let name = wikitext_name(input.source.rows(), input.source.cols());
        Ok(Input { name: Some(name), ..input })
    }

    fn file(path: &PathBuf, target: &Target) -> Result<Self> {
        let source = open_samples(path, target)?;
        Ok(Input { source, centre: None, name: None, notes: Vec::new() })
    }

    pub fn design(&self, features: Features, seed: u64) -> Result<Design> {
        let design = Design::about(&*self.source, self.centre.as_deref(), features, seed);
        let design = design.context("the features")?;
        Ok(match &self.name {
            Some(name) => design.named(name.clone()),
            None => design,
        })
    }
}

/// Lines of the training text.
const LINES: usize = 36_718;

/// How much of the text, and by which kind of model: the files do not name it, but its width does.
fn wikitext_name(rows: usize, width: usize) -> String {
    let part = match rows {
        LINES => "all lines".into(),
        rows => format!("{rows} of {LINES} lines"),
    };
    let model = match width {
        384 => ", as of MiniLM",
        768 => ", as of GPT-2",
        _ => "",
    };
    format!("WikiText-2, {part}, embedded in {width} dimensions{model}")
}

/// Where the embedding of WikiText-2 is looked for.
pub fn wikitext_embedding() -> Result<PathBuf> {
    Ok(cache_folder()?.join("embeddings").join("wikitext2").join("embeddings.npy"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_embedding_is_named_by_its_size() {
        let name = wikitext_name(12_000, 384);
        assert_eq!(
            name,
            "WikiText-2, 12000 of 36718 lines, embedded in 384 dimensions, as of MiniLM"
        );
        assert!(
            wikitext_name(LINES, 768)
                .contains("all lines, embedded in 768 dimensions, as of GPT-2")
        );
    }
}
