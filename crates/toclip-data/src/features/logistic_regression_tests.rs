use super::*;
use crate::{Features, Matrix, Samples};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use toclip::Problem;
use toclip::dynamics::{Ode, Stream, StreamData};
use toclip::ensemble::Ensemble;
use toclip::model::{Logistic, Measures};
use toclip::policy::{OpenLoop, Schedule};

/// Gaussian features of variance 1 and 1/4 by turns, labels from σ(<x, w>) with w = (size, …).
fn gaussian(rows: usize, cols: usize, size: f64, seed: u64) -> Design {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for _ in 0..rows {
        let row: Vec<f64> = (0..cols)
            .map(|j| {
                let z: f64 = StandardNormal.sample(&mut rng);
                z / (1 + j % 2) as f64
            })
            .collect();
        let v = size * row.iter().sum::<f64>();
        y.push(f64::from(u8::from(rng.random::<f64>() < sigmoid(v))));
        x.extend(row);
    }
    let samples = Samples::new(Matrix::new(rows, cols, x).unwrap(), y).unwrap();
    Design::new(&samples, Features::None, 1).unwrap()
}

#[test]
fn the_gradient_vanishes_at_the_optimum() {
    let design = gaussian(2000, 6, 0.8, 3);
    let labels = design.labels().unwrap();
    let size = |v: Vec<f64>| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    for ridge in [None, Some(0.01)] {
        let fit = LogisticRegression::new(&design, &labels, ridge).unwrap();
        let off: Vec<f64> = fit
            .logits(&design)
            .unwrap()
            .iter()
            .zip(&labels)
            .map(|(u, y)| sigmoid(*u) - y)
            .collect();
        let gradient: Vec<f64> = design
            .mean_of(&off)
            .iter()
            .zip(&fit.optimum)
            .map(|(g, w)| g + ridge.unwrap_or(0.0) * w)
            .collect();
        assert!(size(gradient) < 1e-12);
        assert_eq!(fit.ridge.map(|r| r.value), ridge);
    }
    // The truth, 0.8 in every coordinate: six standard errors, about sqrt(1/(n λ E σ')) each.
    let fit = LogisticRegression::new(&design, &labels, None).unwrap();
    for (j, w) in fit.optimum.iter().enumerate() {
        let truth = 0.8 * design.norm().sqrt();
        let error = (1 + j % 2) as f64 * (1.0 / (2000.0 * 0.15_f64)).sqrt();
        assert!((w - truth).abs() < 6.0 * error, "{j}: {w} {truth}");
    }
}

#[test]
fn separable_and_singular_features_need_a_ridge() {
    // As many features as samples: a plane separates any labels.
    let design = gaussian(30, 30, 0.5, 1);
    let fit = LogisticRegression::new(&design, &design.labels().unwrap(), None).unwrap();
    let ridge = fit.ridge.unwrap();
    assert_eq!((ridge.reason, ridge.value), (RidgeReason::Separable, 1.0 / 30.0));
    assert_eq!(
        ridge.to_string(),
        "a ridge of 0.03333 ||K|| (1/n), because the classes are separable"
    );
    // A column twice.
    let x: Vec<f64> = (0..40).flat_map(|k| [f64::from(k % 7), f64::from(k % 7)]).collect();
    let y = (0..40).map(|k| f64::from(k * k % 3)).map(|y| if y == 0.0 { -1.0 } else { 1.0 });
    let samples = Samples::new(Matrix::new(40, 2, x).unwrap(), y.collect()).unwrap();
    let design = Design::new(&samples, Features::None, 1).unwrap();
    let labels = design.labels().unwrap();
    let fit = LogisticRegression::new(&design, &labels, None).unwrap();
    assert_eq!(fit.ridge.map(|r| r.reason), Some(RidgeReason::Singular(1)));
    assert!(LogisticRegression::new(&design, &labels, Some(-1.0)).is_err());
    assert!(LogisticRegression::new(&design, &labels[1..], None).is_err());
}

#[test]
fn classes_other_than_two_are_refused() {
    let x = Matrix::new(4, 1, vec![1.0, 2.0, 3.0, 5.0]).unwrap();
    let samples = Samples::new(x, vec![1.0, 2.0, 3.5, 2.0]).unwrap();
    let said = Design::new(&samples, Features::None, 1).unwrap().labels().unwrap_err().to_string();
    assert!(
        said.ends_with(
            "the target has three or more different values (1, 2, 3.5 …); logistic regression needs \
             exactly two, one for each class"
        ),
        "{said}"
    );
}

#[test]
fn gaussian_features_with_labels_of_the_model_follow_the_ode() {
    // Rows drawn with replacement and labels redrawn at every step: streaming, from as many rows as
    // there are, whose spectrum and θ* the ODE has. Four standard errors of 60 runs at three times
    // and in three numbers: false alarm 6e-4.
    let design = gaussian(12_000, 240, 0.16, 2);
    let labels = design.labels().unwrap();
    let optimum = LogisticRegression::new(&design, &labels, None).unwrap().optimum;
    let start = vec![0.0; 240];
    let modes = design.teacher_modes(&optimum, &start).unwrap();
    let model = Logistic::new(0.0).unwrap();
    let policy = OpenLoop::new(Schedule::constant(0.8).unwrap(), Schedule::constant(0.35).unwrap());
    let times = [5.0, 10.0, 30.0];
    let problem = Problem::of_model(modes, model, policy.clone()).unwrap();
    let path = Ode::new(&problem).unwrap().solve(&times).unwrap();
    let data = StreamData { targets: labels, ..design.into_data(start, optimum) };
    let stream = Stream::new(data, policy).unwrap().with_model(model).unwrap();
    let stream = stream.with_replacement().with_drawn_labels();
    let band = Ensemble::new(60, 2).run(&stream, &times, None).unwrap().measures.unwrap();
    for (k, at) in path.overlaps.iter().flatten().enumerate() {
        let exact = Measures::new(&model, at);
        for (name, band, exact) in
            [("Q", &band.q, at.q), ("P", &band.p, at.p), ("loss", &band.loss, exact.loss)]
        {
            let z = (band.mean[k] - exact) / band.standard_error[k];
            assert!(
                z.abs() < 4.0,
                "{name} at {}: {} against {exact}, z = {z}",
                times[k],
                band.mean[k]
            );
        }
    }
}
