//! Claims about figure 7, decided by the tables.

use super::dimension::{PAPER_END, PAPER_START, PAPER_VIT, mode_words, of};
use super::factor_claims::{of_paper, when};
use super::run::{Networks, Run};
use super::table::Dimension;
use crate::commands::reproduce::claims::{check, differs, near};
use crate::report::Claim;
use crate::words::short;

/// The paper's numbers are read off a figure: "about" is taken as half more or less.
const ABOUT: f64 = 0.5;

pub fn figure_7(networks: &Networks) -> Vec<Claim> {
    let resnet = of_paper(networks, "resnet18").into_iter().flat_map(|run| [start(run), rise(run)]);
    let vit = of_paper(networks, "vit_s16").into_iter().map(steady);
    resnet.chain(vit).collect()
}

/// "109.8 ± 2.2".
fn words(d: &Dimension) -> String {
    d.d().words()
}

/// The mode in which the network is trained, where it was measured.
fn main_mode(run: &Run) -> &'static str {
    if of(run, "train").is_empty() { "eval" } else { "train" }
}

fn mode_word(mode: &str) -> String {
    mode_words(mode).0
}

fn start(run: &Run) -> Claim {
    let paper = "For ResNet-18 d starts at about 100.";
    let said = ["train", "eval"].into_iter().filter_map(|mode| {
        let first = *of(run, mode).first()?;
        Some(format!("{} {} in {}", words(first), when(first.epoch), mode_word(mode)))
    });
    let said: Vec<String> = said.collect();
    let found = of(run, main_mode(run));
    let holds = found.first().is_some_and(|d| near(d.d().value, PAPER_START, ABOUT));
    check(paper, format!("d = {}", said.join(", ")), holds)
}

fn rise(run: &Run) -> Claim {
    let paper = "For ResNet-18 d rises tenfold over 200 epochs, to about 1000.";
    let mut said = Vec::new();
    for mode in ["train", "eval"] {
        let found = of(run, mode);
        let (Some(first), Some(last)) = (found.first(), found.last()) else { continue };
        let value = |d: &Dimension| d.d().value;
        let least = found.iter().min_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(first);
        let top = found.iter().map(|d| value(d)).fold(0.0, f64::max);
        said.push(format!(
            "in {} d = {} {}, {:.2} times what it was {}; least {} {}, and at most {} in {} measurements",
            mode_word(mode),
            words(last),
            when(last.epoch),
            last.d().value / first.d().value,
            when(first.epoch),
            words(least),
            when(least.epoch),
            short(top),
            found.len()
        ));
    }
    let found = of(run, main_mode(run));
    let (Some(first), Some(last)) = (found.first(), found.last()) else {
        return check(paper, "d was not measured", false);
    };
    let factor = last.d().value / first.d().value;
    let measured = said.join("; ");
    if near(last.d().value, PAPER_END, ABOUT) && near(factor, PAPER_END / PAPER_START, ABOUT) {
        return check(paper, measured, true);
    }
    // Decided against it only if the interval is clear of what would be called about 1000.
    differs(paper, measured, last.d().high() < PAPER_END * (1.0 - ABOUT))
}

fn steady(run: &Run) -> Claim {
    let paper = "For ViT S/16 d stays steady at about 300.";
    let found = of(run, main_mode(run));
    let value = |d: &&Dimension| d.d().value;
    let (low, high) = (
        found.iter().map(value).fold(f64::INFINITY, f64::min),
        found.iter().map(value).fold(0.0, f64::max),
    );
    let (Some(first), Some(last)) = (found.first(), found.last()) else {
        return check(paper, "d was not measured", false);
    };
    let measured = format!(
        "d = {} {}, {} {}, between {} and {} in {} measurements: steady within a factor of {:.1}, at \
         most {:.2} of the paper's level",
        words(first),
        when(first.epoch),
        words(last),
        when(last.epoch),
        short(low),
        short(high),
        found.len(),
        high / low,
        high / PAPER_VIT
    );
    if found.iter().all(|d| near(d.d().value, PAPER_VIT, ABOUT)) {
        return check(paper, measured, true);
    }
    let clear = found.iter().all(|d| d.d().high() < PAPER_VIT * (1.0 - ABOUT));
    differs(paper, measured, clear)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    /// The run of one model, with d = `of(epoch)` in training mode and nothing else.
    fn with(model: &str, of: impl Fn(f64) -> (f64, f64)) -> Vec<Verdict> {
        let mut networks = Networks::load(None).unwrap();
        networks.runs.retain(|run| run.settings.model == model);
        for d in networks.runs.iter_mut().flat_map(|run| &mut run.dimensions) {
            d.mode = "train".into();
            (d.dimension, d.dimension_stderr) = of(d.epoch);
        }
        figure_7(&networks).iter().map(|c| c.verdict).collect()
    }

    #[test]
    fn what_was_measured() {
        let claims = figure_7(&Networks::load(None).unwrap());
        let verdicts: Vec<Verdict> = claims.iter().map(|c| c.verdict).collect();
        assert_eq!(verdicts, [Verdict::Holds, Verdict::Differs, Verdict::Differs]);
        assert!(claims[0].measured.contains("in training mode"), "{}", claims[0].measured);
        let rise = &claims[1].measured;
        assert!(rise.contains("least 27.3 ± 1.2 at epoch 0.8, and at most 113.7"), "{rise}");
    }

    #[test]
    fn other_tables_give_other_verdicts() {
        use Verdict::{Differs, Fails, Holds};
        let as_printed = |epoch: f64| (100.0 + 9.0 * epoch, 1.0);
        assert_eq!(with("resnet18", as_printed), [Holds, Holds]);
        assert_eq!(with("resnet18", |_| (20.0, 1.0)), [Fails, Differs]);
        // So wide an interval decides nothing.
        assert_eq!(with("resnet18", |_| (100.0, 300.0)), [Holds, Fails]);
        assert_eq!(with("resnet18", |_| (f64::NAN, 1.0)), [Fails, Fails]);
        assert_eq!(with("vit_s16", |_| (310.0, 5.0)), [Holds]);
        assert_eq!(with("vit_s16", |_| (20.0, 1.0)), [Differs]);
        assert_eq!(with("vit_s16", |epoch| (20.0 + 3.0 * epoch, 1.0)), [Fails]);
        assert!(with("vit_s4", |_| (300.0, 1.0)).is_empty(), "the paper has no ViT-S/4");
    }
}
