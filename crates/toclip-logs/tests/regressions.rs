//! Logs on which the advice was once wrong: synthetic, each with one fault.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::fmt::Write;

use toclip_logs::{
    Action, Advice, AdviceOptions, Finding, OptimizerKind, ReadOptions, advise, load,
};

/// A log of a run that learns: the loss falls from 4 to 1.2, norms are near 0.7. `change` has the last
/// word on loss, norm and rate of a step.
fn log(steps: usize, change: impl Fn(usize, &mut [f64; 3])) -> String {
    let mut text = String::from("step,loss,grad_norm,lr\n");
    for step in 1..=steps {
        let x = step as f64;
        let wave = (x * 0.618_034).fract() - 0.5;
        let mut values = [1.2 + 2.8 * (-x / 300.0).exp() + 0.05 * wave, 0.7 + 0.1 * wave, 1e-3];
        if step < 100 {
            values[1] *= 8.0 - 0.07 * x;
            values[2] *= x / 100.0;
        }
        change(step, &mut values);
        let _ = writeln!(text, "{step},{},{},{}", values[0], values[1], values[2]);
    }
    text
}

fn advice(text: &str, clip: f64, optimizer: OptimizerKind) -> Advice {
    let log = load(text.as_bytes(), &ReadOptions::default()).unwrap();
    let options =
        AdviceOptions { clip: Some(clip), optimizer: Some(optimizer), ..AdviceOptions::default() };
    advise(&log, &options).unwrap()
}

fn has(advice: &Advice, is: impl Fn(&Finding) -> bool) -> bool {
    advice.findings.iter().any(is)
}

const NONE: f64 = f64::INFINITY;

#[test]
fn the_log_itself_is_healthy() {
    let advice = advice(&log(2000, |_, _| {}), NONE, OptimizerKind::Adam);
    assert!(has(&advice, |f| matches!(f, Finding::Healthy { .. })), "{:?}", advice.findings);
    let r = advice.recommendation;
    assert!(r.action == Action::Guard && r.threshold.unwrap() < 2.0, "{r:?}");
}

#[test]
fn an_always_active_threshold_of_sgd_is_not_removed() {
    for clip in [0.05, 0.25, 0.5] {
        let r = advice(&log(2000, |_, _| {}), clip, OptimizerKind::Sgd).recommendation;
        assert_eq!((r.action, r.threshold), (Action::Keep, Some(clip)));
        // Without clipping at the same rate is among the runs to compare.
        assert!(r.experiments.iter().any(|e| e.threshold.is_none() && e.rate_times == 1.0));
    }
}

#[test]
fn the_guard_of_a_diverging_run_is_that_of_its_healthy_part() {
    let text = log(2000, |step, values| {
        let grown = (step as f64 - 1400.0).max(0.0) / 60.0;
        values[0] += 0.5 * grown;
        values[1] *= grown.exp().min(1e5);
    });
    let advice = advice(&text, NONE, OptimizerKind::Adam);
    assert!(has(&advice, |f| matches!(f, Finding::Diverging { .. })), "{:?}", advice.findings);
    let r = advice.recommendation;
    assert_eq!(r.action, Action::LowerRate);
    assert!(r.threshold.unwrap() < 3.0 && r.rate_factor.unwrap() >= 0.09, "{r:?}");
}

#[test]
fn a_rise_in_the_last_steps_is_noticed() {
    let text = log(3000, |step, values| {
        if step > 2970 {
            values[0] += 0.3 * (step - 2970) as f64;
            values[1] *= 2.0 * (step - 2970) as f64;
        }
    });
    let r = advice(&text, NONE, OptimizerKind::Adam).recommendation;
    assert_eq!(r.action, Action::LowerRate);
    assert!((2960.0..=2975.0).contains(&r.roll_back_to.unwrap()), "{r:?}");
}

#[test]
fn warm_restarts_are_not_divergence() {
    let text = log(2400, |step, values| {
        let phase = (step % 600) as f64 / 600.0;
        values[2] = 1e-3 * (1.0 - 0.95 * phase);
        values[0] += 0.5 * (1.0 - phase);
    });
    // The log ends in the middle of a cycle.
    let lines: Vec<&str> = text.lines().take(1950).collect();
    let advice = advice(&lines.join("\n"), NONE, OptimizerKind::Adam);
    assert!(!has(&advice, |f| matches!(f, Finding::Diverging { .. })), "{:?}", advice.findings);
}

#[test]
fn norms_that_double_at_restarts_hold_no_loss_scale() {
    let text = log(2400, |step, values| values[1] *= [1.0, 2.0][step / 400 % 2]);
    let advice = advice(&text, 1.0, OptimizerKind::Adam);
    assert!(!has(&advice, |f| matches!(f, Finding::NormScale { .. })), "{:?}", advice.findings);
}

#[test]
fn numbers_that_end_are_a_run_that_diverged() {
    let whole = log(1000, |_, _| {});
    let ends: String = whole
        .lines()
        .enumerate()
        .map(|(i, line)| if i > 600 { format!("{i},,,0.001\n") } else { format!("{line}\n") })
        .collect();
    let json: String = (1..=1000)
        .map(|i| match i > 600 {
            true => format!("{{\"step\": {i}, \"loss\": null, \"grad_norm\": null}}\n"),
            false => format!("{{\"step\": {i}, \"loss\": 1.5, \"grad_norm\": {}}}\n", 1 + i % 7),
        })
        .collect();
    for text in [ends, json] {
        let advice = advice(&text, NONE, OptimizerKind::Adam);
        let found = |f: &Finding| matches!(f, Finding::Diverged { last_good: Some(600.0), .. });
        assert!(has(&advice, found), "{:?}", advice.findings);
    }
}

#[test]
fn mostly_non_finite_is_diverged() {
    let text = log(1000, |step, values| {
        if step > 600 && step % 10 != 0 {
            values[1] = f64::INFINITY;
        }
    });
    let advice = advice(&text, NONE, OptimizerKind::Adam);
    let found = |f: &Finding| matches!(f, Finding::Diverged { last_good: Some(600.0), .. });
    assert!(has(&advice, found), "{:?}", advice.findings);
}

#[test]
fn a_pile_that_the_user_denies_gets_no_guard() {
    let text = log(2000, |_, values| values[1] = values[1].min(0.7));
    let r = advice(&text, NONE, OptimizerKind::Adam).recommendation;
    assert_eq!(r.action, Action::CannotTell, "{r:?}");
}

#[test]
fn a_long_log_keeps_its_spikes() {
    let mut text = String::from("step,loss,grad_norm\n");
    for step in 1..=2_200_000 {
        let spike = [700_001, 1_500_002].contains(&step);
        let norm = if spike { 90.0 } else { 0.7 + 0.01 * f64::from(step % 11) };
        let _ = writeln!(text, "{step},1.2,{norm}");
    }
    let advice = advice(&text, NONE, OptimizerKind::Adam);
    let spikes = |f: &Finding| matches!(f, Finding::Spikes { events, .. } if events.len() == 2);
    assert!(has(&advice, spikes), "{:?}", advice.findings);
}
