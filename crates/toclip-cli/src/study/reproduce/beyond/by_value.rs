//! Clip by value or by norm?

use anyhow::Result;
use toclip::ensemble::Ensemble;
use toclip::spectrum::{Modes, Spectrum, Start};
use toclip::{Rule, Step};

use super::tuned_rate::{
    TunedCurve, TuningProblem, agreement_claim, change, log_spaced, point_columns, rows,
};
use super::{FigureSection, RunSizes, check, contaminated, digits, small_ensemble, two_scales};
use crate::output::Table;
use crate::plot::{Axis, Chart, Figure};
use crate::report::Claim;

const RULES: [(Rule, &str); 2] = [(Rule::Clip, "by norm"), (Rule::ByValue, "by value")];
const THRESHOLDS: (f64, f64) = (0.03, 3.0);
const POINTS: usize = 9;
const TIME: f64 = 20.0;
/// Differences below this count as none.
const ALIKE: f64 = 0.05;

/// Both rules on one spectrum.
struct Compared {
    title: &'static str,
    dim: f64,
    /// In the order of [`RULES`].
    curves: [TunedCurve; 2],
}

impl Compared {
    fn new(title: &'static str, spectrum: &Spectrum, ensemble: &Ensemble) -> Result<Self> {
        let modes = Modes::new(spectrum, &Start::Uniform { norm: 1.0 })?;
        let curve = |(rule, name): &(Rule, &str)| -> Result<TunedCurve> {
            let step = Step::new(contaminated()?).with_rule(rule.clone())?;
            let problem =
                TuningProblem { modes: &modes, step, time: TIME, collapsed: false, ensemble };
            let mut curve = TunedCurve::new(&problem, &log_spaced(THRESHOLDS, POINTS))?;
            let (points, name) = ((1..POINTS).step_by(4), format!("{title}, {name}"));
            curve.simulate(points, &name, &problem)?;
            Ok(curve)
        };
        Ok(Compared { title, dim: modes.dim(), curves: [curve(&RULES[0])?, curve(&RULES[1])?] })
    }

    /// The lowest R(T) by norm and by value.
    fn ends(&self) -> Result<[f64; 2]> {
        Ok([self.curves[0].best()?.risk, self.curves[1].best()?.risk])
    }

    fn chart(&self) -> Chart {
        let chart = Chart::new(self.title)
            .subtitle(&format!("d = {:.0}", self.dim))
            .x(Axis::log("threshold c"))
            .y(Axis::log("R(T) at the best rate"));
        let named = RULES.iter().zip(&self.curves).enumerate();
        named.fold(chart, |chart, (slot, ((_, name), curve))| curve.draw(chart, name, slot))
    }
}

/// On isotropic data, on the power law and on two scales.
fn claims(ends: [[f64; 2]; 3]) -> Vec<Claim> {
    let measured = |[norm, value]: [f64; 2]| {
        let ([by_norm, by_value], change) = ([norm, value].map(digits), change(norm, value));
        format!("lowest R(T): {by_norm} by norm, {by_value} by value ({change})")
    };
    let ratio = |[norm, value]: [f64; 2]| value / norm - 1.0;
    let [isotropic, power_law, scales] = ends;
    vec![
        check("by_value_misses_outliers", measured(isotropic), ratio(isotropic) > ALIKE),
        check("by_value_is_alike", measured(power_law), ratio(power_law).abs() <= ALIKE),
        check("by_value_evens_scales", measured(scales), ratio(scales) < -ALIKE),
    ]
}

fn table(all: &[Compared]) -> Table {
    let curves = all.iter().flat_map(|one| {
        let rules = RULES.iter().zip(&one.curves);
        rules.map(|((_, rule), curve)| ((one.title, *rule), curve))
    });
    let rows = rows(curves);
    let table = Table::default()
        .text("spectrum", rows.iter().map(|row| row.0.0.to_owned()))
        .text("rule", rows.iter().map(|row| row.0.1.to_owned()));
    point_columns(table, &rows)
}

pub fn by_value_or_norm(sizes: &RunSizes) -> Result<FigureSection> {
    let spectra = [
        ("isotropic", Spectrum::isotropic(300)?),
        ("power law, λ_j = j^(-1/2)", Spectrum::power_law(500, 0.5)?),
        ("two scales, λ = 1 and 0.1", two_scales()?),
    ];
    let ensemble = small_ensemble(sizes);
    let all = spectra
        .iter()
        .map(|(title, spectrum)| Compared::new(title, spectrum, &ensemble))
        .collect::<Result<Vec<_>>>()?;
    let Ensemble { runs, seed, .. } = ensemble;
    let simulated = all.iter().flat_map(|one| &one.curves).flat_map(|curve| &curve.runs);
    let figure = Figure::new("Clip by value or by norm? Theory (lines), C-SGD (points)").columns(2);
    Ok(FigureSection::new("beyond-by-value", "clip by value or by norm?")
        .settings(format!(
            "300, 500 and 800 dimensions; noise 90% σ = 0.3, 10% σ = 3; constant c and the constant η \
             that ends lowest with it; T = {TIME}; {runs} runs for each point, seed {seed}"
        ))
        .claims(claims([all[0].ends()?, all[1].ends()?, all[2].ends()?]))
        .claims([agreement_claim("best_rates_follow_the_ode", simulated, runs)])
        .figure(all.iter().fold(figure, |figure, one| figure.chart(one.chart())))
        .table(table(&all)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict::{Fails, Holds};

    #[test]
    fn claims_can_fail() {
        let verdicts = |ends| claims(ends).iter().map(|c| c.verdict).collect::<Vec<_>>();
        assert_eq!(verdicts([[1.0, 1.2], [1.0, 1.02], [1.0, 0.8]]), [Holds; 3]);
        assert_eq!(verdicts([[1.0, 1.0], [1.0, 1.2], [1.0, 1.0]]), [Fails; 3]);
        assert_eq!(verdicts([[f64::NAN; 2]; 3]), [Fails; 3]);
    }
}
