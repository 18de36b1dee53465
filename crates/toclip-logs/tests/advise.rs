//! Advice on logs whose truth is known, and on two real ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::fmt::Write;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use toclip_logs::advise::{Action, Advised, Ask, Effect, Origin, advise};
use toclip_logs::{Options, load};

fn advice(bytes: &[u8], ask: &Ask) -> Advised {
    advise(&load(bytes, &Options::default()).unwrap(), ask).unwrap()
}

/// A log of log-normal norms, ln G = σ x, where x is a stationary AR(1) of coefficient `rho`.
fn log_normal(seed: u64, n: usize, sigma: f64, rho: f64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
    let mut text = String::from("step,grad_norm,end\n");
    let mut x = normal();
    for step in 1..=n {
        let _ = writeln!(text, "{step},{:?},0", (sigma * x).exp());
        x = rho * x + (1.0 - rho * rho).sqrt() * normal();
    }
    text
}

/// E f(G) for the log-normal G, by Simpson's rule over ±9 standard deviations.
fn mean(sigma: f64, f: impl Fn(f64) -> f64) -> f64 {
    let n = 40_000;
    let h = 18.0 / f64::from(n);
    let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let at = |i: i32| {
        let x = -9.0 + h * f64::from(i);
        density(x) * f((sigma * x).exp())
    };
    let weight = |i: i32| if i == 0 || i == n { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    (0..=n).map(|i| weight(i) * at(i)).sum::<f64>() * h / 3.0
}

/// 400 logs of 1000 norms each, at 95%: with full coverage fewer than 366 hits have probability
/// 0.001 for each of the four numbers, in each of the two cases.
#[test]
fn intervals_cover_as_often_as_they_claim() {
    const LOGS: u64 = 400;
    const LEAST: usize = 366;
    let (sigma, c, batch) = (0.4_f64, 1.3, 16.0);
    let fires = mean(sigma, |g| f64::from(g > c));
    let step = mean(sigma, |g| (c / g).min(1.0));
    let mu = mean(sigma, |g| if g > c { (1.0 - 1.0 / batch) * c / g } else { 1.0 });
    let nu = mean(sigma, |g| g.min(c).powi(2)) / mean(sigma, |g| g * g);
    let ask = Ask { clip: Some(c), batch_size: Some(batch), ..Ask::default() };
    for rho in [0.0, 0.7] {
        let mut hits = [0; 4];
        for seed in 0..LOGS {
            let text = log_normal(1000 * seed + (10.0 * rho) as u64, 1000, sigma, rho);
            let now = advice(text.as_bytes(), &ask).current.unwrap();
            let intervals =
                [now.fires, now.step_factor.unwrap(), now.mu.unwrap(), now.ccc.unwrap()];
            for (k, truth) in [fires, step, mu, mu * mu / nu].into_iter().enumerate() {
                hits[k] += usize::from(intervals[k].contains(truth));
            }
        }
        println!("rho {rho}: {hits:?} of {LOGS}");
        assert!(hits.iter().all(|h| *h >= LEAST), "rho {rho}: {hits:?} of {LOGS}");
    }
}

/// For large batches and log-normal norms the best CCC is e^(3σ²): 1.07 at σ = 0.15, which norms
/// alone cannot prove, and 6.8 at σ = 0.8.
#[test]
fn no_change_is_advised_without_evidence() {
    let mut clips = [0; 2];
    for seed in 0..100 {
        for (k, sigma) in [0.15, 0.8].into_iter().enumerate() {
            let text = log_normal(seed, 2000, sigma, 0.0);
            let advised = advice(text.as_bytes(), &Ask::default());
            clips[k] += usize::from(advised.recommendation.action == Action::Clip);
        }
    }
    // A wrong "clip" has probability at most 0.05 for each log, and in fact far less.
    assert!(clips[0] <= 1, "{clips:?}");
    assert!(clips[1] >= 90, "{clips:?}");
}

#[test]
fn a_recommendation_says_what_to_write() {
    let text = log_normal(5, 4000, 0.8, 0.0);
    let advised = advice(text.as_bytes(), &Ask::default());
    let r = &advised.recommendation;
    assert_eq!(r.action, Action::Clip);
    let c = r.threshold.unwrap();
    assert!(c > 0.1 && c < 2.0, "{c}");
    let lines: Vec<&str> = r.code.iter().map(|code| code.framework).collect();
    assert_eq!(lines, ["PyTorch", "Hugging Face", "Lightning", "Optax"]);
    // 1/μ of a log-normal law, by quadrature.
    let truth = mean(0.8, |g| (c / g).min(1.0)).recip();
    assert!((r.rate_change.unwrap() / truth - 1.0).abs() < 0.1, "{:?} {truth}", r.rate_change);
    assert!(r.reason.contains("--clip"));
    // AutoClip at p clips the share 1 − p of stationary norms.
    let rule = |name: &str| advised.comparison.iter().find(|o| o.rule.contains(name)).unwrap();
    assert!((rule("10th").fires - 0.9).abs() < 0.03);
    assert!((rule("50th").fires - 0.5).abs() < 0.03);
    assert!((rule("fixed").fires - 0.5).abs() < 0.03);
}

#[test]
fn norms_after_clipping_are_not_taken_for_more() {
    let mut text = String::from("step,grad_norm,end\n");
    for line in log_normal(1, 1000, 0.5, 0.0).lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let norm: f64 = cells[1].parse().unwrap();
        let _ = writeln!(text, "{},{},0", cells[0], norm.min(0.8));
    }
    let advised = advice(text.as_bytes(), &Ask::default());
    let now = advised.current.as_ref().unwrap();
    assert_eq!((now.threshold, now.origin, now.effect), (0.8, Origin::PileUp, Effect::HiddenRate));
    assert!(now.fires.contains(mean(0.5, |g| f64::from(g > 0.8))));
    assert!(now.step_factor.is_none() && advised.curve.is_empty());
    assert!(advised.recommendation.reason.contains("after clipping at 0.8"));
    assert!(advised.recommendation.code[0].line.contains("returns the norm before clipping"));
}

#[test]
fn a_loss_scale_that_changes_forbids_an_answer() {
    let mut text = String::from("step,grad_norm,loss_scale,end\n");
    for line in log_normal(2, 800, 0.15, 0.0).lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (step, norm): (f64, f64) = (cells[0].parse().unwrap(), cells[1].parse().unwrap());
        let scale = 1024.0 * f64::powi(2.0, (step / 100.0) as i32 % 3);
        let _ = writeln!(text, "{step},{},{scale},0", norm * scale);
    }
    let advised = advice(text.as_bytes(), &Ask::default());
    assert!(advised.recommendation.headline.contains("loss scale"));
    let options = Options { unscale: true, ..Options::default() };
    let advised = advise(&load(text.as_bytes(), &options).unwrap(), &Ask::default()).unwrap();
    assert!((advised.law.unwrap().quantiles[3] - 1.0).abs() < 0.05);
}

#[test]
fn impossible_wishes_are_refused() {
    let log = load(&b"step,grad_norm,x\n1,2,0\n2,3,0\n"[..], &Options::default()).unwrap();
    for (ask, says) in [
        (Ask { clip: Some(-1.0), ..Ask::default() }, "threshold -1"),
        (Ask { clip: Some(f64::NAN), ..Ask::default() }, "threshold NaN"),
        (Ask { batch_size: Some(0.0), ..Ask::default() }, "batch size 0"),
        (Ask { confidence: 1.0, ..Ask::default() }, "confidence 1"),
    ] {
        assert!(advise(&log, &ask).unwrap_err().to_string().contains(says));
    }
    let few = advise(&log, &Ask::default()).unwrap();
    assert_eq!(few.recommendation.action, Action::NotEnoughEvidence);
    assert!(few.recommendation.reason.contains("too few"));
}

/// Against counts and means taken from the files by other means: `sum(x > 1)` and
/// `mean(min(1, 1/x))` of the norms in Python.
#[test]
fn the_two_real_logs() {
    let star = advice(&common::bytes("star.trainer_state.json"), &Ask::default());
    let now = star.current.as_ref().unwrap();
    // Every one of the 2000 norms is above the trainer's default of one.
    assert_eq!((now.threshold, now.origin, now.effect), (1.0, Origin::Default, Effect::HiddenRate));
    assert_eq!(now.fires.value, 1.0);
    assert!((now.step_factor.unwrap().value - STAR_STEP).abs() < 1e-9);
    // With all steps clipped another threshold only rescales them: nothing to gain.
    assert_eq!(star.recommendation.action, Action::Keep);
    assert!(star.law.unwrap().tail.unwrap().index.value < 3.0);

    let mistral =
        advice(&common::bytes("mistral7b-translator.trainer_state.json"), &Ask::default());
    let now = mistral.current.as_ref().unwrap();
    assert_eq!(now.fires.value, MISTRAL_FIRES / 866.0);
    assert!((now.step_factor.unwrap().value - MISTRAL_STEP).abs() < 1e-9);
    assert!(now.fires_lately.unwrap().value < 0.75);
    assert_eq!(mistral.learning_rate, Some(4.999996750557592e-5));
    assert_ne!(mistral.recommendation.action, Action::Loosen);
}

const MISTRAL_FIRES: f64 = 784.0;
const MISTRAL_STEP: f64 = 0.610_737_487_777_828_1;
const STAR_STEP: f64 = 0.210_486_353_011_650_75;
