//! A monitor's state: merging, saving, scaling, and the norms it leaves out.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails fails the test"
)]

use proptest::prelude::*;
use toclip::monitor::{
    LeftOut, Monitor, MonitorAdvice, MonitorMemory, MonitorSettings, NormScale, Reason,
};
use toclip::threshold_rules::{Monitored, ThresholdRule};

fn norms(most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-3.0..3.0_f64).prop_map(f64::exp), 0..most)
}

fn fed(settings: MonitorSettings, norms: &[f64]) -> Monitor {
    let mut monitor = Monitor::new(settings).unwrap();
    norms.iter().for_each(|norm| monitor.observe(*norm));
    monitor
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() < 1e-11 * a.abs().max(b.abs())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// With a fixed scale, merging two workers' monitors gives the result of one that saw all.
    #[test]
    fn merging_is_seeing_both(a in norms(1500), b in norms(1500)) {
        let settings = MonitorSettings {
            scale: NormScale::Fixed(1.3),
            watched: Some(0.9),
            components: Some(7.0),
            ..MonitorSettings::default()
        };
        let all = fed(settings, &[a.clone(), b.clone()].concat());
        let mut merged = fed(settings, &a);
        merged.merge(&fed(settings, &b)).unwrap();
        prop_assert_eq!(merged.steps(), all.steps());
        for (x, y) in merged.curve().iter().zip(&all.curve()) {
            prop_assert_eq!(x.exceedances, y.exceedances);
            prop_assert!(close(x.mu.value, y.mu.value) && close(x.nu.value, y.nu.value));
            prop_assert!(close(x.step_factor.value, y.step_factor.value));
            prop_assert!(close(x.ccc.value, y.ccc.value));
        }
        if let (Some(x), Some(y)) = (merged.watched(), all.watched()) {
            prop_assert!(close(x.ccc.value, y.ccc.value));
        }
    }

    /// With a running scale no step is lost, whichever worker was still waiting for its scale.
    #[test]
    fn merging_loses_no_step(a in norms(200), b in norms(200)) {
        let settings = MonitorSettings::default();
        let (x, y) = (fed(settings, &a), fed(settings, &b));
        let mut merged = x.clone();
        merged.merge(&y).unwrap();
        // One more norm settles those that waited.
        (0..32).for_each(|_| merged.observe(1.0));
        prop_assert_eq!(merged.steps() as usize, a.len() + b.len() + 32);
    }

    /// A monitor that was saved and read continues with the same bits.
    #[test]
    fn saving_changes_no_bit(
        before in norms(1200),
        after in norms(600),
        window in prop::sample::select(vec![MonitorMemory::All, MonitorMemory::Last(512)]),
    ) {
        let settings = MonitorSettings { memory: window, watched: Some(1.0), ..MonitorSettings::default() };
        let mut one = fed(settings, &before);
        let text = serde_json::to_string(&one).unwrap();
        let mut two: Monitor = serde_json::from_str(&text).unwrap();
        for norm in &after {
            one.observe(*norm);
            two.observe(*norm);
        }
        prop_assert_eq!(&one, &two);
        prop_assert_eq!(one.advice(), two.advice());
    }

    /// Norms in other units: the same multiples, thresholds in those units.
    #[test]
    fn units_do_not_matter(norms in norms(1200), exponent in -200..200_i32) {
        // A power of two, so that the logarithms alone are rounded differently.
        let unit = 2.0_f64.powi(exponent);
        let settings = MonitorSettings::default();
        let scaled: Vec<f64> = norms.iter().map(|norm| unit * norm).collect();
        let (x, y) = (fed(settings, &norms), fed(settings, &scaled));
        for (x, y) in x.curve().iter().zip(&y.curve()) {
            // A norm at a candidate may fall to either side.
            prop_assert!(x.exceedances.abs_diff(y.exceedances) <= 1);
            prop_assert!((x.threshold * unit / y.threshold - 1.0).abs() < 1e-9);
            prop_assert!((x.step_factor.value - y.step_factor.value).abs() < 1e-8);
            prop_assert!((x.nu.value - y.nu.value).abs() < 1e-8);
        }
    }

    /// Anything may come: no panic, and only numbers in range.
    #[test]
    fn any_norms_are_survived(
        values in prop::collection::vec(any::<f64>(), 0..900),
        repeat in 1..3_usize,
        watched in prop::option::of(1e-300..1e300_f64),
    ) {
        let values = values.repeat(repeat);
        let monitor = fed(MonitorSettings { watched, ..MonitorSettings::default() }, &values);
        let LeftOut { zero, not_finite } = monitor.left_out();
        prop_assert!(monitor.steps() + zero + not_finite <= values.len() as u64);
        for at in monitor.curve().iter().chain(&monitor.watched()) {
            prop_assert!((0.0..=1.0).contains(&at.clip_fraction.value), "{:?}", at);
            prop_assert!(at.nu.value.is_nan() || (0.0..=1.0).contains(&at.nu.value), "{:?}", at);
            prop_assert!(at.mu.value.is_nan() || (0.0..=1.0).contains(&at.mu.value), "{:?}", at);
        }
        let said = monitor.advice().to_string();
        prop_assert!(!said.is_empty());
        monitor.tail();
        monitor.drift();
    }
}

#[test]
fn bad_norms_are_counted_and_left_out() {
    let mut monitor = Monitor::new(MonitorSettings::default()).unwrap();
    for norm in [0.0, f64::NAN, f64::INFINITY, -1.0, 0.0, 1.0] {
        monitor.observe(norm);
    }
    monitor.observe_aligned(1.0, f64::NAN);
    assert_eq!(monitor.left_out(), LeftOut { zero: 2, not_finite: 4 });
    assert_eq!(monitor.scale(), Some(1.0));
}

#[test]
fn too_few_steps_are_no_evidence() {
    let monitor = fed(MonitorSettings::default(), &[1.0; 100]);
    let MonitorAdvice::Stay(Reason::TooFew { seen: 100, needed }) = monitor.advice() else {
        panic!("{}", monitor.advice())
    };
    assert!(needed > 100);
    // Norms all alike are no evidence either.
    let alike = fed(MonitorSettings::default(), &[1.0; 5000]);
    assert!(matches!(alike.advice(), MonitorAdvice::Stay(Reason::NoGain(_))), "{}", alike.advice());
}

#[test]
fn different_settings_are_not_merged() {
    let other = MonitorSettings { components: Some(2.0), ..MonitorSettings::default() };
    let mut monitor = Monitor::new(MonitorSettings::default()).unwrap();
    assert!(monitor.merge(&Monitor::new(other).unwrap()).is_err());
}

#[test]
fn where_all_are_clipped_the_gentlest_is_taken_and_kept() {
    // Norms of 1 and 4 in turn, many components: below 1 all thresholds are the same.
    let mut rule = Monitored::new(MonitorSettings::default(), 50).unwrap();
    let mut taken = Vec::new();
    for k in 0..20_000_u32 {
        let golden = (f64::from(k) * 0.618_033_988_749_895).fract();
        let now = rule.threshold(if golden < 0.5 { 1.0 } else { 4.0 });
        let multiple = now / rule.monitor().scale().unwrap();
        if now.is_finite()
            && taken.last().is_none_or(|last: &f64| (last / multiple - 1.0).abs() > 0.1)
        {
            taken.push(multiple);
        }
    }
    // One choice for good: half of the geometric mean, where 1 is just not clipped, or a little
    // less.
    assert_eq!(taken.len(), 1, "{taken:?}");
    assert!((0.4..0.6).contains(&taken[0]), "{taken:?}");
}

#[test]
fn the_rule_takes_up_a_threshold_and_gives_it_up() {
    let settings = MonitorSettings {
        components: Some(1.0),
        memory: MonitorMemory::Last(1024),
        ..MonitorSettings::default()
    };
    let mut rule = Monitored::new(settings, 100).unwrap();
    let uniform = |k: u32| (f64::from(k) * 0.618_033_988_749_895).fract();
    let mut run = |outliers: bool, steps: u32| {
        let mut last = 0.0;
        for k in 0..steps {
            let far = outliers && k % 10 == 3;
            last = rule.threshold(if far { 20.0 + uniform(k) } else { 1.5 * uniform(k) + 0.01 });
        }
        (last, rule.rate_factor())
    };
    let (threshold, rate) = run(true, 4000);
    assert!(threshold < 3.0 && rate > 1.0, "{threshold} {rate}");
    let (threshold, rate) = run(false, 4000);
    assert_eq!((threshold, rate), (f64::INFINITY, 1.0));
}
