//! What clipping at one threshold does, with intervals.

use super::interval::{Interval, Product, wilson};
use super::table::{Column, Form, Table};
use serde::{Deserialize, Serialize};

/// What clipping at one threshold $\tau$ does to gradients of norm $G$.
///
/// | field | symbol | |
/// |---|---|---|
/// | `clip_fraction` | $P(G > \tau)$ | how often it fires |
/// | `step_factor` | $E\min(1, \tau/G)$ | what is left of the mean step |
/// | `mu_single` | $P(G \le \tau)$ | the share of the descent that is kept, for single samples |
/// | `mu` | $P(G \le \tau) + (1-\tfrac1N) E\[\tau/G; G > \tau\]$ | the same for batches of $N$ residual components |
/// | `nu` | $E\min(G^2, \tau^2)/E G^2$ | what is left of the variance |
/// | `csc` | $\mu/\nu$ | above one: larger learning rates are stable |
/// | `ccc` | $\mu^2/\nu$ | above one: better than any learning rate without clipping |
///
/// Intervals are for each number by itself. Above the largest norms seen, $\nu$ is one as far as
/// anyone can tell, with no interval: `exceedances` says how many norms an estimate rests on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimates {
    /// $\tau$, at the present scale.
    pub threshold: f64,
    /// $\tau$ over the scale; for a watched number, over the present scale.
    pub multiple: f64,
    /// Norms above $\tau$.
    pub exceedances: u64,
    /// $P(G > \tau)$.
    pub clip_fraction: Interval,
    /// $E\min(1, \tau/G)$.
    pub step_factor: Interval,
    /// $P(G \le \tau)$.
    pub mu_single: Interval,
    /// $\mu$, batch form.
    pub mu: Interval,
    /// $\nu$.
    pub nu: Interval,
    /// CSC $= \mu/\nu$.
    pub csc: Interval,
    /// CCC $= \mu^2/\nu$.
    pub ccc: Interval,
    /// $\mu$, CSC and CCC from inner products, where enough were given.
    pub direct: Option<Direct>,
}

/// The direct form: $\mu = \langle E \operatorname{clip} g, E g\rangle/\Vert E g\Vert ^2$.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Direct {
    /// $\mu$; above one where large gradients point the wrong way.
    pub mu: Interval,
    /// CSC $= \mu/\nu$.
    pub csc: Interval,
    /// CCC $= \mu^2/\nu$.
    pub ccc: Interval,
}

const NOTHING: Interval = Interval { value: f64::NAN, low: 0.0, high: f64::INFINITY };

impl Estimates {
    pub(super) fn new(table: &Table, at: &Column, threshold: f64, multiple: f64, t: f64) -> Self {
        let inflation = inflation(table);
        let clip_fraction = wilson(&at.above, &table.count, inflation, t);
        let mu_single = Interval {
            value: 1.0 - clip_fraction.value,
            low: 1.0 - clip_fraction.high,
            high: 1.0 - clip_fraction.low,
        };
        // Where nothing was clipped, what could have been is all that is not known; and where all
        // was, no fewer than the share that is not clipped are kept.
        let share = |product: Option<Product>| {
            let mut interval = product.map_or(NOTHING, |p| p.interval_of_share(t));
            if clip_fraction.value == 0.0 {
                interval.low = mu_single.low;
            }
            interval
        };
        let step_factor = share(Product::new(&[(&at.step, 1.0), (&table.count, -1.0)]));
        let single = at.mu.iter().zip(&at.above).zip(&table.count).all(|((m, a), n)| *m == n - a);
        let mu = if single { mu_single } else { share(table.mu(at, Form::Norms)) };
        let nu = Product::new(&[(&at.square, 1.0), (&table.square, -1.0)]);
        let criterion = |form, power| {
            table.criterion(at, form, power).map_or(NOTHING, |product| product.interval(t))
        };
        let direct =
            table.direct().then(|| table.mu(at, Form::Direct)).flatten().map(|mu| Direct {
                mu: mu.interval(t),
                csc: criterion(Form::Direct, 1.0),
                ccc: criterion(Form::Direct, 2.0),
            });
        Estimates {
            threshold,
            multiple,
            exceedances: at.exceedances() as u64,
            clip_fraction,
            step_factor,
            mu_single,
            mu,
            nu: nu.map_or(NOTHING, |p| p.interval_of_share(t)),
            csc: criterion(Form::Norms, 1.0),
            ccc: criterion(Form::Norms, 2.0),
            direct,
        }
    }
}

/// How many steps count for one independent step, by the means of $(\ln u)^2$: the spread of their
/// means over that of single steps, which for near normal $\ln u$ is $2 E\[(\ln u)^2\]^2$.
pub(super) fn inflation(table: &Table) -> f64 {
    let squares: Vec<f64> = table.whole.iter().map(|w| w.log_square).collect();
    let relative = Product::new(&[(&squares, 1.0), (&table.count, -1.0)]);
    relative.map_or(1.0, |p| (0.5 * p.error().powi(2) * table.steps()).max(1.0))
}
