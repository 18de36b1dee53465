//! Figure 7: the intrinsic dimension d = Tr G/‖G‖ of the Gauss–Newton matrix along training.

use super::record::{CURVATURE_COLUMNS, Estimate, Record};
use super::runs::NetworkRun;
use super::{chart, of_paper, when};
use crate::output::Table;
use crate::plot::{Axis, Chart, Figure};
use crate::report::Claim;
use crate::study::claims::{check, check_or_differs, near};

/// The values that the paper reads off its own runs.
const PAPER_START: f64 = 100.0;
const PAPER_END: f64 = 1000.0;
const PAPER_VIT: f64 = 300.0;
/// The same as lines in the figure, with the network that each belongs to.
const PAPER_LINES: [(&str, f64, &str); 3] = [
    ("resnet18", PAPER_END, "paper, ResNet-18 at the end"),
    ("vit_s16", PAPER_VIT, "paper, ViT-S/16 throughout"),
    ("resnet18", PAPER_START, "paper, ResNet-18 at the start"),
];
/// "About" is taken as half more or less.
const ABOUT: f64 = 0.5;

/// The modes of batch norm: in the files, for people, and the statistics that it takes.
const MODES: [[&str; 3]; 2] = [
    ["train", "training mode", "statistics of the batch"],
    ["eval", "evaluation mode", "running statistics"],
];

fn in_mode<'a>(run: &'a NetworkRun, mode: &str) -> Vec<&'a Record> {
    run.dimensions.iter().filter(|d| d.words["mode"] == mode).collect()
}

fn is_usable(d: &Record) -> bool {
    d["converged"] == 1.0 && d["dimension"] > 0.0 && d["dimension"].is_finite()
}

/// The measurements of a run in one mode that can be judged, in order of time.
fn usable<'a>(run: &'a NetworkRun, mode: &str) -> Vec<&'a Record> {
    in_mode(run, mode).into_iter().filter(|d| is_usable(d)).collect()
}

/// One chart for each mode of batch norm, with the values of the paper as lines.
pub fn figure(networks: &[NetworkRun]) -> Figure {
    let dimensions = || networks.iter().flat_map(|run| &run.dimensions);
    let known = || dimensions().filter(|d| is_usable(d)).map(|d| d.estimate("dimension"));
    let paper =
        || PAPER_LINES.into_iter().filter(|(model, ..)| !of_paper(networks, model).is_empty());
    let top = paper().map(|(_, at, _)| at).fold(0.0, f64::max);
    let low = known().map(Estimate::low).filter(|low| *low > 0.0).fold(5.0, f64::min);
    let high = 1.5 * known().map(Estimate::high).fold(top, f64::max);
    let mut figure = Figure::new("Intrinsic dimension d = Tr G/‖G‖ along training; 95% intervals");
    for [mode, name, statistics] in MODES {
        if !dimensions().any(|d| d.words["mode"] == mode) {
            continue;
        }
        let chart = Chart::new(&format!("Batch norm in {name}"))
            .subtitle(statistics)
            .y(Axis::log("d = Tr G/‖G‖").range(0.9 * low, high));
        let points = |run| {
            usable(run, mode).into_iter().map(|d| (d["epoch"], d.estimate("dimension"))).collect()
        };
        let curves: Vec<_> =
            networks.iter().map(|run| (run.name().to_owned(), points(run))).collect();
        let chart = chart::draw(chart, &curves);
        figure = figure.chart(paper().fold(chart, |chart, (_, at, name)| chart.hline(at, name)));
    }
    figure
}

/// The numbers behind the figure, a table for each network and mode.
pub fn tables(networks: &[NetworkRun]) -> Vec<(String, Table)> {
    let table = |run: &NetworkRun, mode: &str| {
        let lines = in_mode(run, mode);
        let name = format!("figure-7-{}-{mode}", run.folder);
        (!lines.is_empty()).then(|| (name, Record::table(&lines, CURVATURE_COLUMNS)))
    };
    let modes = |run| MODES.into_iter().filter_map(move |[mode, ..]| table(run, mode));
    networks.iter().flat_map(modes).collect()
}

pub fn claims(networks: &[NetworkRun]) -> Vec<Claim> {
    let resnets = of_paper(networks, "resnet18").into_iter();
    let resnets = resnets.flat_map(|run| [starts_at_100(run), rises_tenfold(run)]);
    resnets.chain(of_paper(networks, "vit_s16").into_iter().map(is_steady)).collect()
}

/// The measurements in the mode in which the network is trained, or in evaluation mode.
fn main_mode(run: &NetworkRun) -> Vec<&Record> {
    let train = usable(run, "train");
    if train.is_empty() { usable(run, "eval") } else { train }
}

/// The first and last value of d, and the range.
fn course(found: &[&Record]) -> Option<String> {
    let (first, last, count) = (at(found.first()?), at(found.last()?), found.len());
    let mut sorted = found.to_vec();
    sorted.sort_by(|a, b| a["dimension"].total_cmp(&b["dimension"]));
    let (low, high) = (at(sorted.first()?), at(sorted.last()?));
    Some(format!("d = {first}, {last}; smallest {low}, largest {high} in {count} measurements"))
}

/// "114 (95% CI 112–116) before training".
fn at(d: &Record) -> String {
    format!("{} {}", d.estimate("dimension").describe(), when(d["epoch"]))
}

/// A description of the measurements in each mode of batch norm.
fn by_mode(run: &NetworkRun, describe: fn(&[&Record]) -> Option<String>) -> String {
    let mode =
        |[mode, name, _]: [&str; 3]| Some(format!("in {name} {}", describe(&usable(run, mode))?));
    let modes: Vec<String> = MODES.into_iter().filter_map(mode).collect();
    if modes.is_empty() { "d was not measured".into() } else { modes.join("; ") }
}

fn starts_at_100(run: &NetworkRun) -> Claim {
    let holds = main_mode(run).first().is_some_and(|d| near(d["dimension"], PAPER_START, ABOUT));
    let start = |found: &[&Record]| Some(format!("d = {}", at(found.first()?)));
    check("dimension_starts_at_100", by_mode(run, start), holds)
}

fn rises_tenfold(run: &NetworkRun) -> Claim {
    let found = main_mode(run);
    let (first, last) = (found.first(), found.last());
    let rises = first.zip(last).is_some_and(|(first, last)| {
        near(last["dimension"], PAPER_END, ABOUT)
            && near(last["dimension"] / first["dimension"], PAPER_END / PAPER_START, ABOUT)
    });
    // Decided against the paper only if the interval is clear of "about 1000".
    let clear =
        last.is_some_and(|last| last.estimate("dimension").high() < PAPER_END * (1.0 - ABOUT));
    check_or_differs("dimension_rises_tenfold", by_mode(run, course), rises, clear)
}

fn is_steady(run: &NetworkRun) -> Claim {
    let found = main_mode(run);
    let all = |is: fn(&Record) -> bool| !found.is_empty() && found.iter().all(|d| is(d));
    let holds = all(|d| near(d["dimension"], PAPER_VIT, ABOUT));
    let clear = all(|d| d.estimate("dimension").high() < PAPER_VIT * (1.0 - ABOUT));
    check_or_differs("dimension_of_vit_is_steady", by_mode(run, course), holds, clear)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Series, SeriesKind};
    use crate::report::Verdict;
    use crate::study::networks::runs::measured;

    #[test]
    fn every_mode_has_its_chart_and_a_line_where_it_was_measured_along_the_run() {
        let whole = measured().unwrap();
        // As the tables would be had one mode been measured at the start only.
        let mut networks = measured().unwrap();
        for run in &mut networks {
            run.dimensions.retain(|d| d.words["mode"] == "eval" || d["step"] == 0.0);
        }
        let bands = |figure: &Figure, chart: usize| {
            let named =
                |s: &&Series| matches!(s.kind, SeriesKind::Band { .. }) && !s.label.is_empty();
            figure.charts[chart].series.iter().filter(named).count()
        };
        let before = figure(&networks);
        assert_eq!(before.charts.len(), 2);
        assert!(before.charts[0].title.contains("training mode"));
        assert_eq!((bands(&before, 0), bands(&before, 1)), (0, 3));
        let after = figure(&whole);
        assert_eq!((bands(&after, 0), bands(&after, 1)), (1, 3));
    }

    #[test]
    fn the_paper_is_drawn_beside_its_own_networks_only() {
        let mut networks = measured().unwrap();
        assert_eq!(figure(&networks).charts[0].lines.len(), 4, "three, and the start");
        networks.retain(|run| run.settings.words["model"] == "vit_s4");
        let alone = figure(&networks);
        assert!(alone.charts[0].lines.iter().all(|line| !line.label.contains("paper")));
    }

    #[test]
    fn what_did_not_converge_is_not_drawn() {
        let mut networks = measured().unwrap();
        let count = usable(&networks[0], "eval").len();
        let eval = |d: &&mut Record| d.words["mode"] == "eval";
        let first = networks[0].dimensions.iter_mut().find(eval).unwrap();
        first.numbers.insert("converged".into(), 0.0);
        assert_eq!(usable(&networks[0], "eval").len(), count - 1);
    }

    /// The run of one model, with d = `of(epoch)` in training mode and nothing else.
    fn with(model: &str, of: impl Fn(f64) -> (f64, f64)) -> Vec<Verdict> {
        let mut networks = measured().unwrap();
        networks.retain(|run| run.settings.words["model"] == model);
        for d in networks.iter_mut().flat_map(|run| &mut run.dimensions) {
            d.words.insert("mode".into(), "train".into());
            let (value, error) = of(d["epoch"]);
            d.numbers.insert("dimension".into(), value);
            d.numbers.insert("dimension_stderr".into(), error);
        }
        claims(&networks).iter().map(|c| c.verdict).collect()
    }

    #[test]
    fn what_was_measured() {
        let claims = claims(&measured().unwrap());
        let verdicts: Vec<Verdict> = claims.iter().map(|c| c.verdict).collect();
        assert_eq!(verdicts, [Verdict::Holds, Verdict::Differs, Verdict::Differs]);
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
