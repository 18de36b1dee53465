//! Advice on logs whose truth is known, and on two real ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use std::fmt::Write;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use toclip_logs::{
    Action, Advice, AdviceOptions, Finding, Framework, OptimizerKind, ReadOptions, ThresholdEffect,
    ThresholdOrigin, advise, load,
};

fn advice(bytes: &[u8], ask: &AdviceOptions) -> Advice {
    advise(&load(bytes, &ReadOptions::default()).unwrap(), ask).unwrap()
}

/// Everything that people read, and the hints.
fn words(advice: &Advice) -> String {
    let verdict = advice.verdict(Framework::Pytorch);
    let mut text = format!("{:?}: {}\n", verdict.tone, verdict.headline);
    for reason in verdict.reasons.iter().chain(&verdict.experiment) {
        let _ = writeln!(text, "- {reason}");
    }
    for line in verdict.code.iter().flat_map(|code| &code.lines) {
        let _ = writeln!(text, "> {line}");
    }
    for finding in &advice.findings {
        let _ = writeln!(text, "! {}", finding.sentence());
    }
    for section in advice.details() {
        let _ = writeln!(text, "# {}", section.title);
        section.text.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    let rules: Vec<&str> =
        advice.analysis.comparison.iter().map(|rule| rule.rule.as_str()).collect();
    let _ = writeln!(text, "# Rules compared\n{}", rules.join("; "));
    let _ = writeln!(text, "# Hints\n{:?}", advice.hints());
    text
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
fn intervals_of_log_normal_norms_cover_as_often_as_they_claim() {
    const LOGS: u64 = 400;
    const LEAST: usize = 366;
    let (sigma, c, batch) = (0.4_f64, 1.3, 16.0);
    let fires = mean(sigma, |g| f64::from(g > c));
    let step = mean(sigma, |g| (c / g).min(1.0));
    let mu = mean(sigma, |g| if g > c { (1.0 - 1.0 / batch) * c / g } else { 1.0 });
    let nu = mean(sigma, |g| g.min(c).powi(2)) / mean(sigma, |g| g * g);
    let ask = AdviceOptions { clip: Some(c), batch_size: Some(batch), ..AdviceOptions::default() };
    for rho in [0.0, 0.7] {
        let mut hits = [0; 4];
        for seed in 0..LOGS {
            let text = log_normal(1000 * seed + (10.0 * rho) as u64, 1000, sigma, rho);
            let now = advice(text.as_bytes(), &ask).analysis.current.unwrap();
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
/// alone cannot prove. At σ = 0.8 it is 6.8, but most steps would be clipped there; a threshold that
/// clips fewer than a fifth of them gains less, and still enough.
#[test]
fn clipping_is_recommended_to_sgd_only_and_only_with_evidence() {
    let mut clips = [0; 3];
    for seed in 0..50 {
        let sgd = Some(OptimizerKind::Sgd);
        for (k, (sigma, optimizer)) in
            [(0.15, sgd), (0.8, sgd), (0.8, None)].into_iter().enumerate()
        {
            let text = log_normal(seed, 2000, sigma, 0.0);
            let ask =
                AdviceOptions { batch_size: Some(256.0), optimizer, ..AdviceOptions::default() };
            let r = advice(text.as_bytes(), &ask).recommendation;
            clips[k] += usize::from(r.action == Action::Clip);
            assert!(r.fires.is_none_or(|share| share <= 0.2), "{r:?}");
            assert_eq!(r.rate_factor, None);
        }
    }
    // A wrong "clip" has probability at most 0.05 for each log, and in fact far less.
    assert!(clips[0] <= 1 && clips[2] == 0, "{clips:?}");
    assert!(clips[1] >= 45, "{clips:?}");
}

#[test]
fn a_recommendation_says_what_to_write() {
    let text = log_normal(5, 4000, 0.8, 0.0);
    let many = AdviceOptions {
        batch_size: Some(1e6),
        clip: Some(f64::INFINITY),
        optimizer: Some(OptimizerKind::Sgd),
        ..AdviceOptions::default()
    };
    let advised = advice(text.as_bytes(), &many);
    assert_eq!(advised.recommendation.action, Action::Clip);
    insta::assert_snapshot!("clip_sgd", words(&advised));
    for framework in ["pytorch", "huggingface", "lightning", "deepspeed", "axolotl", "optax"] {
        let code = advised.verdict(framework.parse().unwrap()).code.unwrap();
        insta::assert_snapshot!(format!("code_{framework}"), code.lines.join("\n"));
    }
    // AutoClip at p clips the share 1 − p of stationary norms.
    let rules = &advised.analysis.comparison;
    let rule = |name: &str| rules.iter().find(|o| o.rule.contains(name)).unwrap();
    assert!((rule("10th").fires - 0.9).abs() < 0.03);
    assert!((rule("50th").fires - 0.5).abs() < 0.03);
    assert!((rule("fixed 1.0").fires - 0.5).abs() < 0.03);
}

#[test]
fn norms_after_clipping_are_not_taken_for_more() {
    let mut text = String::from("step,grad_norm,end\n");
    for line in log_normal(1, 1000, 0.5, 0.0).lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let norm: f64 = cells[1].parse().unwrap();
        let _ = writeln!(text, "{},{},0", cells[0], norm.min(0.8));
    }
    let advised = advice(text.as_bytes(), &AdviceOptions::default());
    let now = advised.analysis.current.as_ref().unwrap();
    assert_eq!(
        (now.threshold, now.origin, now.effect),
        (0.8, ThresholdOrigin::PileUp, ThresholdEffect::HiddenRate)
    );
    assert!(now.fires.contains(mean(0.5, |g| f64::from(g > 0.8))));
    assert!(now.step_factor.is_none() && advised.analysis.curve.is_empty());
    insta::assert_snapshot!("after_clipping", words(&advised));
    // Another threshold, or none, overrules the pile; the threshold of the pile does not.
    for (clip, seen) in [(f64::INFINITY, true), (2.0, true), (0.5, true), (0.8, false)] {
        let ask = AdviceOptions { clip: Some(clip), ..AdviceOptions::default() };
        let advised = advice(text.as_bytes(), &ask);
        assert_eq!(!advised.analysis.curve.is_empty(), seen, "{clip}");
        assert_eq!(advised.analysis.current.as_ref().unwrap().threshold, clip);
        let overruled = |f: &Finding| matches!(f, Finding::NotClipped { .. });
        assert_eq!(advised.findings.iter().any(overruled), seen, "{clip}");
    }
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
    let advised = advice(text.as_bytes(), &AdviceOptions::default());
    insta::assert_snapshot!("loss_scale", words(&advised));
    let options = ReadOptions { unscale: true, ..ReadOptions::default() };
    let advised =
        advise(&load(text.as_bytes(), &options).unwrap(), &AdviceOptions::default()).unwrap();
    assert!((advised.analysis.distribution.unwrap().quantiles[3] - 1.0).abs() < 0.05);
}

/// Every interval is that of the confidence asked for: Student's with 19 degrees of freedom in the
/// table of rules, the normal distribution's where norms were logged after clipping.
#[test]
fn the_confidence_is_honoured_everywhere() {
    let text = log_normal(5, 2000, 0.5, 0.0);
    let clipped = text.lines().fold(String::new(), |mut out, line| {
        let cells: Vec<&str> = line.split(',').collect();
        let norm = cells[1].parse::<f64>().map_or("grad_norm".into(), |n| n.min(0.8).to_string());
        let _ = writeln!(out, "{},{norm},0", cells[0]);
        out
    });
    let row = |confidence| {
        let ask = AdviceOptions { confidence, ..AdviceOptions::default() };
        let rules = advice(text.as_bytes(), &ask).analysis.comparison;
        let row = rules.into_iter().find(|r| r.rule == "fixed 1.0").unwrap().ccc;
        let share = advice(clipped.as_bytes(), &ask).analysis.current.unwrap().fires;
        ((row.high / row.low).ln() / 2.0, (share.high - share.low) / 2.0)
    };
    let (table, share) = row(0.95);
    for (confidence, student, normal) in [(0.5, 0.6876, 0.6745), (0.99, 2.8609, 2.5758)] {
        let (wide, wide_share) = row(confidence);
        assert!((wide / table / (student / 2.0930) - 1.0).abs() < 1e-3, "{confidence}");
        assert!((wide_share / share / (normal / 1.9600) - 1.0).abs() < 0.01, "{confidence}");
    }
}

#[test]
fn one_burst_is_one_and_zeros_are_told() {
    let mut text = String::from("step,grad_norm,end\n");
    for step in 0..600 {
        let norm = if step == 400 { 9.0 } else { 1.0 + (f64::from(step) * 0.618).fract() };
        let _ = writeln!(text, "{step},{},0", if step % 3 == 0 { 0.0 } else { norm });
    }
    let ask = AdviceOptions { clip: Some(f64::INFINITY), ..AdviceOptions::default() };
    let advised = advice(text.as_bytes(), &ask);
    insta::assert_snapshot!("one_spike", words(&advised));
}

#[test]
fn zeros_change_no_rule_and_are_not_counted() {
    let norms = log_normal(4, 800, 0.5, 0.0);
    let mut zeros = String::from("step,grad_norm,end\n");
    for (i, line) in norms.lines().skip(1).enumerate() {
        let norm = line.split(',').nth(1).unwrap();
        let _ = write!(zeros, "{},0,0\n{},{norm},0\n", 2 * i, 2 * i + 1);
    }
    let ask = AdviceOptions { batch_size: Some(8.0), ..AdviceOptions::default() };
    let (with, without) = (advice(zeros.as_bytes(), &ask), advice(norms.as_bytes(), &ask));
    assert!(with.analysis.comparison.len() > 4);
    assert_eq!(with.analysis.comparison, without.analysis.comparison);
    let none: String = (0..500).map(|i| format!("{i},0\n")).collect();
    let zeros = advice(format!("step,grad_norm\n{none}").as_bytes(), &ask);
    insta::assert_snapshot!("only_zeros", words(&zeros));
}

/// Single Gaussian samples: clipping nearly all of them costs most of the descent.
#[test]
fn a_threshold_that_costs_is_removed_for_sgd() {
    let mut rng = ChaCha8Rng::seed_from_u64(21);
    let mut text = String::from("step,grad_norm,end\n");
    for k in 0..4000 {
        let x: f64 = StandardNormal.sample(&mut rng);
        let _ = writeln!(text, "{k},{},0", x.abs());
    }
    let with = |optimizer| {
        let ask = AdviceOptions {
            clip: Some(0.8),
            batch_size: Some(1.0),
            optimizer,
            ..AdviceOptions::default()
        };
        advice(text.as_bytes(), &ask)
    };
    let sgd = with(Some(OptimizerKind::Sgd));
    assert_eq!(sgd.recommendation.action, Action::Remove);
    insta::assert_snapshot!("remove", words(&sgd));
    // Adam divides by a running scale: the formulas say nothing.
    assert_eq!(with(Some(OptimizerKind::Adam)).recommendation.action, Action::Keep);
}

#[test]
fn rows_that_say_nothing_are_left_out() {
    let text = log_normal(3, 500, 0.5, 0.0).replace(",0\n", "e300,0\n");
    let rows = advice(text.as_bytes(), &AdviceOptions::default()).analysis.comparison;
    assert!(!rows.is_empty() && rows.iter().all(|row| row.rule != "fixed 1.0"), "{rows:?}");
    let few = log_normal(3, 30, 0.5, 0.0);
    assert!(advice(few.as_bytes(), &AdviceOptions::default()).analysis.comparison.is_empty());
}

#[test]
fn impossible_wishes_are_refused() {
    let log = load(&b"step,grad_norm,x\n1,2,0\n2,3,0\n"[..], &ReadOptions::default()).unwrap();
    let default = AdviceOptions::default();
    let errors = [
        AdviceOptions { clip: Some(-1.0), ..default },
        AdviceOptions { clip: Some(f64::NAN), ..default },
        AdviceOptions { batch_size: Some(0.0), ..default },
        AdviceOptions { outputs: Some(f64::INFINITY), ..default },
        AdviceOptions { confidence: 1.0, ..default },
    ]
    .map(|options| advise(&log, &options).unwrap_err().to_string());
    let mut errors = errors.to_vec();
    errors.push("lbfgs".parse::<OptimizerKind>().unwrap_err().to_string());
    insta::assert_snapshot!("invalid_options", errors.join("\n"));
    let few = advise(&log, &AdviceOptions::default()).unwrap();
    assert_eq!(few.recommendation.action, Action::CannotTell);
    insta::assert_snapshot!("too_few", words(&few));
}

/// The norm of a batch of B Gaussian residuals is like a χ of B degrees: clipping gains nothing, and
/// taking B for very large makes a gain of its spread. 40 logs each; a wrong "clip" has probability
/// at most 0.05 for each log, and in fact far less: none is allowed here.
#[test]
fn an_unknown_batch_size_makes_no_gain() {
    let mut rng = ChaCha8Rng::seed_from_u64(11);
    for batch in [1_u32, 2, 4, 8] {
        let mut wrong = [0; 2];
        for _ in 0..40 {
            let mut text = String::from("step,grad_norm,end\n");
            for step in 0..2000 {
                let square: f64 = (0..batch)
                    .map(|_| {
                        let r: f64 = StandardNormal.sample(&mut rng);
                        r * r
                    })
                    .sum();
                let _ = writeln!(text, "{step},{:?},0", (square / f64::from(batch)).sqrt());
            }
            for (k, batch_size) in [None, Some(f64::from(batch))].into_iter().enumerate() {
                let optimizer = Some(OptimizerKind::Sgd);
                let ask = AdviceOptions { batch_size, optimizer, ..AdviceOptions::default() };
                let r = advice(text.as_bytes(), &ask).recommendation;
                wrong[k] += usize::from(r.action == Action::Clip);
            }
        }
        println!("B = {batch}: {wrong:?} of 40");
        assert_eq!(wrong, [0; 2], "B = {batch}");
    }
}

/// One norm of ten is twenty times the others: clipping helps single samples too, so that the batch
/// size need not be known.
#[test]
fn what_holds_for_one_sample_needs_no_batch_size() {
    let mut rng = ChaCha8Rng::seed_from_u64(12);
    let mut text = String::from("step,grad_norm,end\n");
    for step in 0..4000 {
        let r: f64 = StandardNormal.sample(&mut rng);
        let factor = if rng.random_bool(0.1) { 20.0 } else { 1.0 };
        let _ = writeln!(text, "{step},{:?},0", factor * r.abs());
    }
    let ask = AdviceOptions { optimizer: Some(OptimizerKind::Sgd), ..AdviceOptions::default() };
    let advised = advice(text.as_bytes(), &ask);
    insta::assert_snapshot!("clip_single_sample", words(&advised));
    let r = advised.recommendation;
    assert_eq!(r.action, Action::Clip, "{r:?}");
    let one = AdviceOptions { batch_size: Some(1.0), ..ask };
    assert_eq!(advice(text.as_bytes(), &one).recommendation.threshold, r.threshold);
}

/// Against counts and means taken from the files by other means: `sum(x > 1)` and
/// `mean(min(1, 1/x))` of the norms in Python.
#[test]
fn the_two_real_logs() {
    let star = advice(&common::bytes("star.trainer_state.json"), &AdviceOptions::default());
    insta::assert_snapshot!("star", words(&star));
    let now = star.analysis.current.as_ref().unwrap();
    // Every one of the 2000 norms is above the trainer's default of one.
    assert_eq!(
        (now.threshold, now.origin, now.effect),
        (1.0, ThresholdOrigin::Default, ThresholdEffect::HiddenRate)
    );
    assert_eq!(now.fires.value, 1.0);
    assert!((now.step_factor.unwrap().value - STAR_STEP).abs() < 1e-9);
    // With all steps clipped another threshold only rescales them: nothing to gain.
    assert_eq!(star.recommendation.action, Action::Keep);
    let always = |f: &Finding| matches!(f, Finding::AlwaysClipped { .. });
    assert!(star.findings.iter().any(always));

    let mistral = advice(
        &common::bytes("mistral7b-translator.trainer_state.json"),
        &AdviceOptions::default(),
    );
    insta::assert_snapshot!("mistral", words(&mistral));
    let now = mistral.analysis.current.as_ref().unwrap();
    assert_eq!(now.fires.value, MISTRAL_FIRES / 866.0);
    assert!((now.step_factor.unwrap().value - MISTRAL_STEP).abs() < 1e-9);
    assert!(now.fires_lately.unwrap().value < 0.75);
    assert_eq!(mistral.analysis.learning_rate, Some(LAST_RATE));
}

const LAST_RATE: f64 = 2.030_899_195_121_227_5e-10;
const MISTRAL_FIRES: f64 = 784.0;
const MISTRAL_STEP: f64 = 0.610_737_487_777_828_1;
const STAR_STEP: f64 = 0.210_486_353_011_650_75;

#[test]
fn a_threshold_that_no_longer_fires_is_said_to_do_nothing() {
    let mut text = String::from("step,grad_norm,end\n");
    for step in 0..2000 {
        // Above one at an eighth of the first half only.
        let spike = step < 1000 && step % 8 == 3;
        let norm = if spike { 2.0 } else { 0.5 + 0.01 * f64::from(step % 7) };
        let _ = writeln!(text, "{step},{norm},0");
    }
    let found =
        advice(text.as_bytes(), &AdviceOptions { clip: Some(1.0), ..AdviceOptions::default() });
    assert_eq!(found.analysis.current.as_ref().unwrap().effect, ThresholdEffect::Both);
    insta::assert_snapshot!("idle_lately", words(&found));
}

/// The whole advice for the small logs of every format.
#[test]
fn the_fixtures() {
    for name in common::WITH_NORMS {
        insta::assert_snapshot!(
            name,
            words(&advice(&common::bytes(name), &AdviceOptions::default()))
        );
    }
}
