//! What stands beside figures 6 and 7, in numbers of the tables.

use super::dimension::{mode_words, modes, of};
use super::factor_claims::{epoch, when};
use super::factors::{at, at_median, small_batch, thresholds};
use super::run::{Networks, Run};
use super::table::{Estimator, FactorLine};

/// Epochs of the paper's runs.
const PAPER_EPOCHS: f64 = 200.0;

/// The runs in a line.
pub fn settings(networks: &Networks) -> String {
    let all = &networks.runs;
    let mut said: Vec<String> = all
        .iter()
        .map(|run| {
            let s = &run.settings;
            let done = match run.epochs_done() {
                done if done < 0.999 * s.epochs => format!("{} of {}", epoch(done), s.epochs),
                _ => format!("{}", s.epochs),
            };
            format!(
                "{}: {done} epochs, batch {}, η = {}, momentum {}, seed {}",
                run.name(all),
                s.batch,
                s.rate,
                s.momentum,
                s.seed
            )
        })
        .collect();
    let mut made: Vec<String> = all
        .iter()
        .map(|run| [run.settings.device.as_str(), run.settings.torch.as_str()])
        .filter(|[device, torch]| !device.is_empty() && !torch.is_empty())
        .map(|[device, torch]| format!("{device}, PyTorch {torch}"))
        .collect();
    made.dedup();
    said.extend(made);
    said.push("trained without clipping".into());
    said.join("; ")
}

/// How far the runs went, as against the paper's.
fn epochs(networks: &Networks) -> String {
    let all = &networks.runs;
    let said: Vec<String> =
        all.iter().map(|run| format!("{} {}", run.name(all), epoch(run.epochs_done()))).collect();
    let whole = |run: &Run| run.epochs_done() >= 0.999 * run.settings.epochs;
    let fewer = |run: &Run| run.epochs_done() < 0.999 * PAPER_EPOCHS;
    let decayed = match all.iter().all(whole) && all.iter().any(fewer) {
        true => {
            " Their learning rates decay to zero over their own lengths, so that their ends are ends of \
             training."
        }
        false => "",
    };
    format!("Epochs: {}; the paper trained for {PAPER_EPOCHS}.{decayed}", said.join(", "))
}

pub fn figure_6(networks: &Networks) -> Vec<String> {
    let mut notes = vec![
        "Three estimates of μ from the same batches at fixed weights. The paper's is the fraction of \
         unclipped gradients: right for single samples, and far too small for batches, because a clipped \
         batch still points downhill. The batch form adds what clipped batches keep, (1 − 1/N)·E[c/G; \
         G > c] with N = batch × outputs, and takes the norm G to say nothing of the direction. The \
         direct one is ⟨E clip g, E g⟩/‖E g‖² from independent blocks of batches, and assumes nothing."
            .into(),
        "Where every gradient is clipped the unclipped fraction is 0, and so is its CCC; where none is, \
         all estimates are 1. By it, CCC can pass 1 only in between, whatever clipping does."
            .into(),
    ];
    notes.extend(at_the_median(networks));
    notes.extend(direct(networks));
    notes.extend(undetermined(networks));
    notes.push(epochs(networks));
    notes
}

/// The three estimates where half of the gradients are clipped, on average along the training.
fn at_the_median(networks: &Networks) -> Option<String> {
    let all = &networks.runs;
    let mut said = Vec::new();
    for run in all {
        for batch in std::iter::once(run.settings.batch).chain(small_batch(run)) {
            let mut lines = at_median(run, batch);
            lines.retain(|line| line.determined());
            if lines.is_empty() {
                continue;
            }
            let mean = |by: Estimator| {
                lines.iter().map(|line| line.mu(by).value).sum::<f64>() / lines.len() as f64
            };
            let [direct, form, fraction] = Estimator::ALL.map(mean);
            let name = run.name(all);
            said.push(format!("{name} batch {batch} {fraction:.3}, {form:.3}, {direct:.3}"));
        }
    }
    (!said.is_empty()).then(|| {
        format!(
            "μ at the median norm by the unclipped fraction, the batch form and directly, on average along \
             the training: {}.",
            said.join("; ")
        )
    })
}

/// The range of the direct CCC at the smallest threshold, for each network and batch.
fn direct(networks: &Networks) -> Option<String> {
    let all = &networks.runs;
    let mut said = Vec::new();
    for run in all {
        for batch in std::iter::once(run.settings.batch).chain(small_batch(run)) {
            let Some(&c) = thresholds(run, batch).first() else { continue };
            let lines: Vec<&FactorLine> = at(run, batch, c)
                .into_iter()
                .filter(|line| line.clip_fraction > 0.0 && line.determined())
                .collect();
            let value = |line: &&&FactorLine| line.ccc(Estimator::Direct).value;
            let low = lines.iter().min_by(|a, b| value(a).total_cmp(&value(b)));
            let high = lines.iter().max_by(|a, b| value(a).total_cmp(&value(b)));
            let form =
                lines.iter().map(|line| line.ccc(Estimator::Batch).value).fold(0.0, f64::max);
            if let (Some(low), Some(high)) = (low, high) {
                said.push(format!(
                    "{} batch {batch} from {} (epoch {}) to {} (epoch {}), by the batch form up to {form:.3}",
                    run.name(all),
                    low.ccc(Estimator::Direct).words(),
                    epoch(low.epoch),
                    high.ccc(Estimator::Direct).words(),
                    epoch(high.epoch)
                ));
            }
        }
    }
    (!said.is_empty()).then(|| {
        let norm = |run: &Run| run.settings.model == "resnet18" && small_batch(run).is_some();
        let but = match all.iter().any(norm) {
            true => {
                " In small batches batch norm makes another network of ResNet-18 than the one that was \
                 trained, so that part of its gain there may be batch norm's."
            }
            false => "",
        };
        format!("The direct CCC at the smallest threshold: {}.{but}", said.join("; "))
    })
}

/// Measurements at which no mean gradient was seen.
fn undetermined(networks: &Networks) -> Option<String> {
    let all = &networks.runs;
    let mut said = Vec::new();
    for run in all {
        let mut found: Vec<(u64, String)> = run
            .factors
            .iter()
            .filter(|line| !line.determined())
            .map(|line| (line.batch, epoch(line.epoch)))
            .collect();
        found.sort();
        found.dedup();
        let name = run.name(all);
        said.extend(
            found.into_iter().map(|(batch, at)| format!("{name} epoch {at}, batch {batch}")),
        );
    }
    (!said.is_empty()).then(|| {
        format!(
            "No direct estimate is drawn where the mean gradient cannot be told from the noise of these \
             batches (CCC would be known to no better than ± 50 %): {}. The tables have the numbers.",
            said.join("; ")
        )
    })
}

pub fn figure_7(networks: &Networks) -> Vec<String> {
    let all = &networks.runs;
    let mut notes = Vec::new();
    let mixed = |run: &&Run| !of(run, "train").is_empty() && !of(run, "eval").is_empty();
    for run in all.iter().filter(mixed) {
        let ends: Vec<String> = modes(networks)
            .iter()
            .filter_map(|mode| {
                let found = of(run, mode);
                let (first, last) = (found.first()?, found.last()?);
                Some(format!(
                    "{} {} and {} {} in {}",
                    first.d().words(),
                    when(first.epoch),
                    last.d().words(),
                    when(last.epoch),
                    mode_words(mode).0
                ))
            })
            .collect();
        notes.push(format!(
            "The mode of batch norm decides, and the paper does not say which it used: {} has d = {}. \
             Before training the running statistics of evaluation mode are not yet those of the data.",
            run.name(all),
            ends.join("; ")
        ));
    }
    if all.iter().any(|run| run.settings.model.starts_with("vit_")) {
        notes.push(
            "ViT has neither batch norm nor dropout: its d is the same in both modes.".into(),
        );
    }
    notes.extend(samples(networks));
    if networks.folder.is_none() {
        notes.push(
            "Why d is smaller than in the paper is not known. Here the trace is Hutchinson's estimate with \
             its error, and the norm comes from an iteration that goes on until its residual is small: one \
             that stops early has too small a norm and too large a d. The number of images and the mode of \
             batch norm do not explain it. Open are the paper's code, its initialisation, augmentation and \
             weight decay, none of which it states, and its longer runs."
                .into(),
        );
    }
    notes.push(epochs(networks));
    notes
}

/// How little the number of images matters.
fn samples(networks: &Networks) -> Option<String> {
    let (mut most, mut few, mut many, mut count) = (0.0_f64, u64::MAX, 0, 0);
    for run in &networks.runs {
        let all = || run.dimensions.iter().chain(&run.others).filter(|d| d.says() && d.aside);
        for d in all() {
            for other in all().filter(|o| o.step == d.step && o.mode == d.mode) {
                if other.samples > d.samples {
                    most = most.max((d.d().value / other.d().value - 1.0).abs());
                    few = few.min(d.samples);
                    many = many.max(other.samples);
                    count += 1;
                }
            }
        }
    }
    (count > 0).then(|| {
        format!(
            "The number of images matters little: between {few} and {many} of them d changes by at most \
             {:.0}%.",
            100.0 * most
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_numbers_of_the_tables() {
        let mut networks = Networks::load(None).unwrap();
        let all = figure_6(&networks).join("\n");
        assert!(all.contains("the paper trained for 200"), "{all}");
        assert!(all.contains("No direct estimate is drawn where"), "{all}");
        // What was seen everywhere needs no such note.
        for line in networks.runs.iter_mut().flat_map(|run| &mut run.factors) {
            line.gradient_norm = 1.0;
            line.ccc[Estimator::Direct as usize].error = 0.01;
        }
        assert!(!figure_6(&networks).join("\n").contains("No direct estimate"));
        let run = &mut networks.runs[0];
        run.factors.retain(|line| line.epoch < 20.0);
        run.dimensions.retain(|d| d.epoch < 20.0);
        let wanted = format!("{} of {} epochs", epoch(run.epochs_done()), run.settings.epochs);
        let said = settings(&networks);
        assert!(said.contains(&wanted) && said.contains("PyTorch"), "{said}");
        networks.runs.iter_mut().for_each(|run| run.others.clear());
        assert!(!figure_7(&networks).join("\n").contains("number of images matters"));
    }
}
