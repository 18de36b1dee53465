//! Puts rows in the order of their steps: restarts, several runs, steps that start again.

use crate::{Finding, LogPoint};

/// Orders the points by step; rows that a restart repeats replace the earlier ones.
pub(super) fn in_order(mut points: Vec<LogPoint>, findings: &mut Vec<Finding>) -> Vec<LogPoint> {
    let without = points.iter().filter(|p| p.step.is_nan()).count();
    if 2 * without > points.len() {
        findings.push(Finding::StepsCounted);
        // A restart shows in the epoch, if every row has one.
        if points.iter().all(|p| p.epoch.is_finite()) && !shuffled(&points, |p| p.epoch) {
            points = resolved(points, |p| p.epoch, false, findings);
        }
        points.iter_mut().enumerate().for_each(|(i, point)| point.step = i as f64);
        return points;
    }
    if without > 0 {
        points.retain(|p| !p.step.is_nan());
        findings.push(Finding::WithoutStep { count: without as u64 });
    }
    let epochs = join_epochs(&mut points);
    if epochs > 1 {
        findings.push(Finding::StepsByEpoch { epochs });
    }
    let forward = points.windows(2).filter(|w| w[1].step > w[0].step).count();
    if steps_back(&points, |p| p.step) > forward {
        points.reverse();
        findings.push(Finding::Reversed);
    } else if shuffled(&points, |p| p.step) {
        // The sort is stable: where steps are equal the later row comes last, and is kept.
        points.sort_by(|a, b| a.step.total_cmp(&b.step));
        findings.push(Finding::Unordered);
    }
    resolved(points, |p| p.step, true, findings)
}

fn steps_back(points: &[LogPoint], at: fn(&LogPoint) -> f64) -> usize {
    points.windows(2).filter(|w| at(&w[1]) < at(&w[0])).count()
}

/// Whether the rows go back too often for restarts.
fn shuffled(points: &[LogPoint], at: fn(&LogPoint) -> f64) -> bool {
    let back = steps_back(points, at);
    back > 20 && 10 * back > points.len()
}

/// The longest run; where its rows overlap the later ones are kept, also at the same place if that is
/// `exact`.
fn resolved(
    points: Vec<LogPoint>,
    at: fn(&LogPoint) -> f64,
    exact: bool,
    findings: &mut Vec<Finding>,
) -> Vec<LogPoint> {
    let mut runs: Vec<Vec<LogPoint>> = Vec::new();
    let mut run: Vec<LogPoint> = Vec::new();
    let (mut restarts, mut replaced) = (0, 0);
    for point in points {
        let Some(last) = run.last() else {
            run.push(point);
            continue;
        };
        if at(&point) < at(last) && run.len() > 1 && at(&point) <= at(&run[0]) {
            runs.push(std::mem::take(&mut run));
        } else if at(&point) < at(last) {
            restarts += 1;
        }
        let covers = |last: &LogPoint| at(last) > at(&point) || exact && at(last) == at(&point);
        while run.last().is_some_and(covers) {
            run.pop();
            replaced += 1;
        }
        run.push(point);
    }
    runs.push(run);
    if runs.len() > 1 {
        findings.push(Finding::SeveralRuns { runs: runs.len() as u64 });
    }
    if restarts > 0 || replaced > 0 {
        findings.push(Finding::Restarts { count: restarts, replaced });
    }
    runs.into_iter().max_by_key(Vec::len).unwrap_or_default()
}

/// Continues the count where the step starts again with each epoch; returns the number of epochs
/// joined, one for other logs.
fn join_epochs(points: &mut [LogPoint]) -> u64 {
    let mut backs = points.windows(2).filter(|w| w[1].step < w[0].step).peekable();
    // After a restart, or in another run, the epoch goes back as well or is the same.
    if backs.peek().is_none() || !backs.all(|w| w[1].epoch > w[0].epoch) {
        return 1;
    }
    let (mut epochs, mut before) = (1, 0.0);
    for i in 1..points.len() {
        if points[i].step + before < points[i - 1].step {
            epochs += 1;
            before = points[i - 1].step + 1.0 - points[i].step;
        }
        points[i].step += before;
    }
    epochs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(step: f64, norm: f64) -> LogPoint {
        let nan = f64::NAN;
        LogPoint { step, norm, loss: None, learning_rate: nan, loss_scale: nan, epoch: nan }
    }

    #[test]
    fn steps_of_each_epoch_are_joined() {
        let by_epoch = |epochs: &[f64]| {
            let mut points: Vec<LogPoint> = (0..epochs.len())
                .map(|i| LogPoint { epoch: epochs[i], ..point((i % 3) as f64, i as f64) })
                .collect();
            let joined = join_epochs(&mut points);
            (joined, points.iter().map(|p| p.step).collect::<Vec<_>>())
        };
        let (joined, steps) = by_epoch(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0]);
        assert_eq!((joined, steps), (3, vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]));
        // Two runs: the epoch starts again as well.
        assert_eq!(by_epoch(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0]).0, 1);
        assert_eq!(by_epoch(&[0.0, 0.5, 1.0, 0.0, 0.5, 1.0]).0, 1);
        assert_eq!(by_epoch(&[f64::NAN; 6]).0, 1);
    }

    fn order(steps: &[f64]) -> (Vec<(f64, f64)>, Vec<Finding>) {
        let points = steps.iter().enumerate().map(|(i, s)| point(*s, i as f64)).collect();
        let mut findings = Vec::new();
        let points = in_order(points, &mut findings);
        (points.iter().map(|p| (p.step, p.norm)).collect(), findings)
    }

    #[test]
    fn the_later_rows_of_a_restart_count() {
        let (points, findings) = order(&[1.0, 2.0, 3.0, 4.0, 3.0, 4.0, 5.0]);
        assert_eq!(points, [(1.0, 0.0), (2.0, 1.0), (3.0, 4.0), (4.0, 5.0), (5.0, 6.0)]);
        assert_eq!(findings, [Finding::Restarts { count: 1, replaced: 2 }]);
    }

    #[test]
    fn without_steps_a_restart_is_seen_by_the_epoch() {
        let by_epoch = |epochs: &[f64]| {
            let row = |(i, e): (usize, &f64)| LogPoint { epoch: *e, ..point(f64::NAN, i as f64) };
            let mut findings = Vec::new();
            let points = in_order(epochs.iter().enumerate().map(row).collect(), &mut findings);
            (points.iter().map(|p| (p.step, p.norm)).collect::<Vec<_>>(), findings)
        };
        // Epochs are rounded, so several rows share one: only rows with a later epoch are replaced.
        let (points, findings) = by_epoch(&[0.1, 0.1, 0.2, 0.3, 0.3, 0.2, 0.3, 0.4]);
        let rows = [0.0, 1.0, 2.0, 5.0, 6.0, 7.0];
        assert_eq!(points, [0, 1, 2, 3, 4, 5].map(|i| (i as f64, rows[i])));
        let restart = Finding::Restarts { count: 1, replaced: 2 };
        assert_eq!(findings, [Finding::StepsCounted, restart]);
        let (points, findings) = by_epoch(&[0.1, 0.2, 0.3, 0.1, 0.2]);
        assert_eq!(points.len(), 3);
        assert_eq!(findings, [Finding::StepsCounted, Finding::SeveralRuns { runs: 2 }]);
        // Where a row has none, nothing is known.
        assert_eq!(by_epoch(&[0.1, 0.2, f64::NAN, 0.1]).0.len(), 4);
    }

    #[test]
    fn of_several_runs_the_longest() {
        let (points, findings) = order(&[1.0, 2.0, 3.0, 1.0, 2.0]);
        assert_eq!(points, [(1.0, 0.0), (2.0, 1.0), (3.0, 2.0)]);
        assert_eq!(findings, [Finding::SeveralRuns { runs: 2 }]);
    }

    #[test]
    fn turned_round_or_without_steps() {
        let (points, findings) = order(&[3.0, 2.0, 1.0]);
        assert_eq!(points, [(1.0, 2.0), (2.0, 1.0), (3.0, 0.0)]);
        assert_eq!(findings, [Finding::Reversed]);
        let (points, findings) = order(&[f64::NAN; 3]);
        assert_eq!(points, [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0)]);
        assert_eq!(findings, [Finding::StepsCounted]);
        let shuffled: Vec<f64> = (0..200).map(|i| f64::from(i * 77 % 200)).collect();
        let (points, findings) = order(&shuffled);
        assert_eq!(points.len(), 200);
        assert_eq!(findings, [Finding::Unordered]);
    }
}
