//! The best rate and threshold, batches whose mean is clipped, and ensembles in which runs diverge.

use std::sync::Arc;
use toclip::Batch;
use toclip::dynamics::Stop;
use toclip::ensemble::Ensemble;
use toclip::model::{
    GlmOde, GlmSgd, Huber, Logistic, Model, RateShape, TeacherModes, best_clip, best_rate,
};
use toclip::noise::StudentT;
use toclip::policy::{OpenLoop, Schedule};
use toclip::spectrum::{Spectrum, Start};

const OPEN: f64 = f64::INFINITY;

fn teacher(dim: u64, norm: f64) -> TeacherModes {
    TeacherModes::new(&Spectrum::isotropic(dim).unwrap(), &Start::Uniform { norm }).unwrap()
}

fn policy(eta: Schedule, c: f64) -> OpenLoop {
    let clip = if c < OPEN { Schedule::constant(c).unwrap() } else { Schedule::never() };
    OpenLoop::new(eta, clip)
}

/// The loss at time 4.
fn end(modes: &TeacherModes, batch: Batch, shape: RateShape, (eta, c): (f64, f64)) -> f64 {
    let (model, policy) =
        (Logistic::new(0.1).unwrap(), policy(shape.schedule(eta, 4.0).unwrap(), c));
    let path = GlmOde::new(modes, &model, &policy).with_batch(batch).solve(&[4.0]).unwrap();
    model.expected_loss(&path.overlaps[0])
}

#[test]
fn no_other_rate_or_threshold_ends_lower() {
    let (modes, model) = (teacher(300, 3.0), Logistic::new(0.1).unwrap());
    for batch in [Batch::single(), Batch::per_sample(16).unwrap()] {
        for shape in [RateShape::Constant, RateShape::Cosine] {
            let end = |eta: f64, c: f64| end(&modes, batch, shape, (eta, c));
            for c in [0.3, OPEN] {
                let best = best_rate(&modes, &model, batch, c, shape, 4.0).unwrap();
                assert!((best.loss - end(best.eta, c)).abs() < 1e-5);
                for factor in [0.5, 0.9, 1.1, 2.0] {
                    assert!(end(factor * best.eta, c) > best.loss, "{best:?} {factor}");
                }
            }
            let best = best_clip(&modes, &model, batch, shape, 4.0).unwrap();
            for c in [0.2, 0.4, 0.6, 0.8, OPEN] {
                let other = best_rate(&modes, &model, batch, c, shape, 4.0).unwrap();
                assert!(best.loss < other.loss + 2e-6, "{best:?} {other:?}");
            }
        }
    }
}

#[test]
fn errors_say_why_there_is_no_best_rate() {
    let says = |modes: &TeacherModes, model: &dyn Model, c: f64| {
        let best = best_rate(modes, model, Batch::single(), c, RateShape::Constant, 2.0);
        best.unwrap_err().to_string()
    };
    let (modes, logistic) = (teacher(50, 2.0), Logistic::new(0.0).unwrap());
    assert!(says(&teacher(50, 0.0), &logistic, 0.4).starts_with("the teacher is zero"));
    assert!(says(&modes, &Logistic::new(0.5).unwrap(), 0.4).contains("(b = 0)"));
    assert!(says(&modes, &logistic, 0.0).contains("a threshold must be positive"));
    let cauchy = Huber::new(Arc::new(StudentT::new(1.0, 0.5).unwrap()), 1.0).unwrap();
    assert!(says(&modes, &cauchy, 0.4).contains("is infinite at every time"));
    let mean = best_rate(&modes, &logistic, Batch::mean(4).unwrap(), 0.4, RateShape::Cosine, 2.0);
    assert!(mean.unwrap_err().to_string().contains("clips single samples"));
}

#[test]
fn a_clipped_mean_of_a_batch_is_that_of_an_independent_simulation() {
    // PyTorch, 1000 runs: Q = 1.37356 ± 0.00086, P = 3.22606 ± 0.00121.
    let policy = Arc::new(policy(Schedule::constant(4.0).unwrap(), 0.45));
    let sgd = GlmSgd::new(&teacher(1000, 3.0), Arc::new(Logistic::new(0.1).unwrap()), policy);
    let sgd = sgd.unwrap().with_batch(Batch::mean(8).unwrap()).unwrap();
    let band = sgd.ensemble(&Ensemble::new(40, 1), &[2.0]).unwrap();
    for (found, (expected, error)) in [(&band.q, (1.37356, 0.00086)), (&band.p, (3.22606, 0.00121))]
    {
        let (gap, own) = (found.mean[0] - expected, found.standard_error[0]);
        assert!(gap.abs() < 4.0 * own.hypot(error), "{gap} ± {own}, not {expected}");
    }
}

#[test]
fn diverged_runs_are_counted_and_left_out() {
    // Least squares under heavy tails without clipping: some runs diverge early, others late.
    let policy = Arc::new(policy(Schedule::constant(6.0).unwrap(), OPEN));
    let model = Huber::new(Arc::new(StudentT::new(1.0, 0.5).unwrap()), OPEN).unwrap();
    let sgd = GlmSgd::new(&teacher(60, 0.8), Arc::new(model), policy).unwrap();
    let times = [0.0, 0.5, 1.0, 2.0, 4.0];
    let band = sgd.ensemble(&Ensemble::new(30, 2), &times).unwrap();
    let runs: Vec<_> = (0..30).map(|index| sgd.run(2, index, &times)).collect();
    for (k, alive) in band.alive.iter().enumerate() {
        let here: Vec<f64> = runs.iter().filter_map(|run| Some(run.overlaps.get(k)?.q)).collect();
        assert_eq!(*alive, here.len() as u64);
        let mean = here.iter().sum::<f64>() / here.len() as f64;
        assert!((band.q.mean[k] - mean).abs() <= 1e-12 * mean);
    }
    for (index, run) in runs.iter().enumerate() {
        let t = if let Stop::Diverged { t } = run.stop { Some(t) } else { None };
        assert_eq!(band.diverged.get(&(index as u64)).copied(), t);
    }
    assert!(band.alive[2] < 30 && band.alive[3] > 0 && band.times == times[..4], "{band:?}");
}
