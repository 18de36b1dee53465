//! The best rate and threshold, batches whose mean is clipped, and ensembles in which runs diverge.

use super::{OPEN, constant, problem, sgd, taught};
use std::sync::Arc;
use toclip::dynamics::{Ode, Sgd, Simulator, Stop};
use toclip::ensemble::Ensemble;
use toclip::model::{Huber, Logistic, Model};
use toclip::noise::StudentT;
use toclip::policy::{OpenLoop, Schedule};
use toclip::spectrum::{Modes, Spectrum};
use toclip::tuning::{RateShape, tune_clip, tune_rate};
use toclip::{Batch, Problem};

fn teacher(dim: u64, norm: f64) -> Modes {
    taught(&Spectrum::isotropic(dim).unwrap(), norm)
}

/// The loss at time 4.
fn end(problem: &Problem, shape: RateShape, eta: f64, c: f64) -> f64 {
    let eta = shape.schedule(eta, 4.0).unwrap();
    let policy = OpenLoop::new(eta, Schedule::constant(c).unwrap());
    let problem = problem.with_policy(policy).unwrap();
    Ode::new(&problem).unwrap().solve(&[4.0]).unwrap().measures.unwrap()[0].loss
}

#[test]
fn no_other_rate_or_threshold_ends_lower() {
    let single = problem(&teacher(300, 3.0), &Logistic::new(0.1).unwrap(), &constant(1.0, OPEN));
    for batch in [Batch::single(), Batch::per_sample(16).unwrap()] {
        let problem = single.clone().with_batch(batch).unwrap();
        for shape in [RateShape::Constant, RateShape::Cosine] {
            let end = |eta: f64, c: f64| end(&problem, shape, eta, c);
            for c in [0.3, OPEN] {
                let best = tune_rate(&problem, c, shape, 4.0).unwrap();
                assert!((best.end - end(best.eta, c)).abs() < 1e-5);
                for factor in [0.5, 0.9, 1.1, 2.0] {
                    assert!(end(factor * best.eta, c) > best.end, "{best:?} {factor}");
                }
            }
            let best = tune_clip(&problem, shape, 4.0).unwrap();
            for c in [0.2, 0.4, 0.6, 0.8, OPEN] {
                let other = tune_rate(&problem, c, shape, 4.0).unwrap();
                assert!(best.end < other.end + 2e-6, "{best:?} {other:?}");
            }
        }
    }
}

#[test]
fn errors_say_why_there_is_no_best_rate() {
    let says = |modes: &Modes, model: &Arc<dyn Model>, c: f64| {
        let problem = problem(modes, model, &constant(1.0, OPEN));
        tune_rate(&problem, c, RateShape::Constant, 2.0).unwrap_err().to_string()
    };
    let flips = |flips| -> Arc<dyn Model> { Arc::new(Logistic::new(flips).unwrap()) };
    let (modes, logistic) = (teacher(50, 2.0), flips(0.0));
    assert!(says(&teacher(50, 0.0), &logistic, 0.4).starts_with("the teacher is zero"));
    assert!(says(&modes, &flips(0.5), 0.4).contains("(b = 0)"));
    assert!(says(&modes, &logistic, 0.0).contains("a threshold must be positive"));
    let cauchy = Huber::new(Arc::new(StudentT::new(1.0, 0.5).unwrap()), 1.0).unwrap();
    assert!(
        says(&modes, &(Arc::new(cauchy) as Arc<dyn Model>), 0.4)
            .contains("is infinite at every time")
    );
    let mean = problem(&modes, &logistic, &constant(1.0, 0.4)).with_batch(Batch::mean(4).unwrap());
    let mean = mean.and_then(|problem| tune_rate(&problem, 0.4, RateShape::Cosine, 2.0));
    assert!(mean.unwrap_err().to_string().contains("clips single samples"));
}

#[test]
fn a_clipped_mean_of_a_batch_is_that_of_an_independent_simulation() {
    // PyTorch, 1000 runs: Q = 1.37356 ± 0.00086, P = 3.22606 ± 0.00121.
    let logistic = Logistic::new(0.1).unwrap();
    let single = problem(&teacher(1000, 3.0), &logistic, &constant(4.0, 0.45));
    let sgd = Sgd::new(&single.with_batch(Batch::mean(8).unwrap()).unwrap()).unwrap();
    let band = Ensemble::new(40, 1).run(&sgd, &[2.0], None).unwrap().measures.unwrap();
    for (found, (expected, error)) in [(&band.q, (1.37356, 0.00086)), (&band.p, (3.22606, 0.00121))]
    {
        let (gap, own) = (found.mean[0] - expected, found.standard_error[0]);
        assert!(gap.abs() < 4.0 * own.hypot(error), "{gap} ± {own}, not {expected}");
    }
}

#[test]
fn diverged_runs_are_counted_and_left_out() {
    // Least squares under heavy tails without clipping: some runs diverge early, others late.
    let model = Huber::new(Arc::new(StudentT::new(1.0, 0.5).unwrap()), OPEN).unwrap();
    let sgd = sgd(&teacher(60, 0.8), &model, &constant(6.0, OPEN));
    let times = [0.0, 0.5, 1.3, 1.4, 4.0];
    let band = Ensemble::new(30, 2).run(&sgd, &times, None).unwrap();
    let runs: Vec<_> = (0..30).map(|index| sgd.run(2, index, &times)).collect();
    for (k, alive) in band.alive.iter().enumerate() {
        let here = runs.iter().filter_map(|run| Some(run.overlaps.as_ref()?.get(k)?.q));
        let here: Vec<f64> = here.collect();
        assert_eq!(*alive, here.len() as u64);
        let mean = here.iter().sum::<f64>() / here.len() as f64;
        assert!((band.measures.as_ref().unwrap().q.mean[k] - mean).abs() <= 1e-12 * mean);
    }
    for (index, run) in runs.iter().enumerate() {
        let t = if let Stop::Diverged { t } = run.stop { Some(t) } else { None };
        assert_eq!(band.diverged.get(&(index as u64)).copied(), t);
    }
    assert!(band.alive[2] < 30 && band.alive[3] > 0 && band.times == times[..4], "{band:?}");
}
