//! The schedules that are compared on a problem.

use anyhow::Result;
use toclip::policy::{Compensation, Proportional, Schedule, Shape};
use toclip::tuning::{TunedKappa, tune_kappa, tune_private};
use toclip::verdict::{Rate, Threshold};
use toclip::{Rule, privacy};

use crate::experiment::{
    Clip, Experiment, GroupsChoice, LearningRate, Origin, Prepared, RuleChoice,
};
use crate::study::schedule_run::{ScheduleRun, Treatment};
use toclip_words::short;

/// The threshold with the largest CCC at every moment, at the effective rate of unclipped SGD.
const MAX_CCC: Option<(Threshold, Rate)> = Some((Threshold::MaxCcc, Rate::Compensated));
/// The δ at which the privacy of a pass is stated.
const DELTA: f64 = 1e-5;

/// The schedules of the theory for the problem of an experiment, and its own.
pub struct Candidates<'a> {
    experiment: &'a Experiment,
    origin: &'a Origin,
    problem: &'a Prepared,
    simulate: bool,
    /// Unclipped SGD first.
    pub schedules: Vec<ScheduleRun>,
    pub notes: Vec<String>,
}

impl<'a> Candidates<'a> {
    /// Predicts, and with `simulate` also simulates, each schedule.
    pub fn compare(
        experiment: &'a Experiment,
        origin: &'a Origin,
        problem: &'a Prepared,
        simulate: bool,
    ) -> Result<Self> {
        let (schedules, notes) = (Vec::new(), Vec::new());
        let mut all = Candidates { experiment, origin, problem, simulate, schedules, notes };
        let unclipped = Experiment { clip: Clip::None, ..all.clipping_by_norm() };
        if experiment.privacy.is_some() {
            all.add("unclipped", "unclipped, not private".into(), unclipped, None)?;
            all.add_private()?;
        } else {
            all.add("unclipped", "unclipped".into(), unclipped, None)?;
            all.add_own()?;
            all.add_theory()?;
        }
        Ok(all)
    }

    /// The experiment without its rule, groups and privacy.
    fn clipping_by_norm(&self) -> Experiment {
        let (rule, groups) = (RuleChoice::default(), GroupsChoice::default());
        Experiment { rule, groups, privacy: None, ..self.experiment.clone() }
    }

    fn add(
        &mut self,
        key: &'static str,
        label: String,
        experiment: Experiment,
        how: Option<(Threshold, Rate)>,
    ) -> Result<()> {
        self.schedules.push(self.run(key, label, experiment, how)?);
        Ok(())
    }

    fn run(
        &self,
        key: &'static str,
        label: String,
        experiment: Experiment,
        how: Option<(Threshold, Rate)>,
    ) -> Result<ScheduleRun> {
        let rule = match experiment.groups.is_empty() {
            true => experiment.rule.0.clone(),
            false => self.problem.problem.step().rule().clone(),
        };
        let treatment = how.map(|(threshold, rate)| Treatment { rule, threshold, rate });
        let run = ScheduleRun::new((key, label), experiment, self.origin, self.simulate)?;
        Ok(ScheduleRun { treatment, ..run })
    }

    fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Whether σ is a number.
    fn is_finite(&self) -> bool {
        self.problem.problem.step().noise().second_moment().is_finite()
    }

    /// The schedule of the file, and unclipped SGD at the same effective rate where that is lower.
    fn add_own(&mut self) -> Result<()> {
        let Some(Own { label, threshold, rate }) = Own::of(self.experiment) else {
            if self.experiment.clip == Clip::None {
                self.note("The file does not clip, so it adds no rule to the comparison.");
            }
            return Ok(());
        };
        let own = self.run("file", label, self.experiment.clone(), Some((threshold, rate)))?;
        if rate == Rate::Keep {
            if let (Some(_), true, Ok(rate)) =
                (own.end(), self.is_finite(), own.effective_rate().map(LearningRate::from))
            {
                let slower = Experiment { learning_rate: rate, ..self.clipping_by_norm() };
                let unclipped = Experiment { clip: Clip::None, ..slower.clone() };
                self.add("unclipped_slower", "unclipped at rate ημ".into(), unclipped, None)?;
                if *self.problem.problem.step().rule() != Rule::Clip {
                    let best = Experiment { clip: Clip::MaxCcc, ..slower };
                    let label = "clip at max-CCC, rate ημ".into();
                    self.add("clip_max_ccc_slower", label, best, None)?;
                }
            }
            self.note(
                "The rule in the file does not compensate for clipping: its effective learning rate ημ is \
                 smaller than that of the others, which alone may lower the risk.",
            );
        }
        self.schedules.push(own);
        Ok(())
    }

    /// Max-CCC and thresholds in proportion to the residual: of the rule in the file where it has a
    /// threshold to choose, and else of clipping.
    fn add_theory(&mut self) -> Result<()> {
        let rule = self.problem.problem.step().rule().clone();
        let clips = rule == Rule::Clip;
        let chooses = clips || matches!(rule, Rule::Skip | Rule::Smooth(_));
        let by_norm = self.clipping_by_norm();
        if !clips {
            let best = Experiment { clip: Clip::MaxCcc, ..by_norm.clone() };
            self.add("clip_max_ccc", "clip at max-CCC".into(), best, MAX_CCC)?;
        }
        let name = rule.name();
        if !chooses {
            let why = match rule {
                Rule::ByValue | Rule::PerGroup(_) => "one pair of factors for all directions",
                _ => "a threshold that changes its CCC",
            };
            self.note(format!(
                "Max-CCC and thresholds in proportion to the residual are those of clipping by norm: the \
                 rule {name} does not have {why}."
            ));
        }
        let base = if chooses { self.experiment.clone() } else { by_norm };
        let prefix = match (clips, chooses) {
            (true, _) => String::new(),
            (false, true) => format!("{name} at "),
            (false, false) => "clip at ".into(),
        };
        if chooses {
            let file = if self.experiment.clip == Clip::MaxCcc { " (file)" } else { "" };
            let best = Experiment { clip: Clip::MaxCcc, ..base.clone() };
            self.add("max_ccc", format!("{prefix}max-CCC{file}"), best, MAX_CCC)?;
        }
        let best = self.schedules.last().and_then(ScheduleRun::end);
        if best.is_some_and(|end| end > self.problem.problem.risk()) {
            self.note(
                "With max-CCC at the compensated rate η/μ the risk grows: the learning rate in the file is \
                 too large for this noise.",
            );
        }
        self.add_proportional(&base, &prefix)
    }

    fn add_proportional(&mut self, base: &Experiment, prefix: &str) -> Result<()> {
        if !self.is_finite() {
            self.note(
                "Thresholds in proportion to the residual are not defined here: the noise has no finite \
                 variance. Max-CCC needs none.",
            );
            return Ok(());
        }
        let Some(rate) = self.experiment.learning_rate.schedule() else {
            self.note(
                "Thresholds in proportion to the residual need a learning rate that is not greedy.",
            );
            return Ok(());
        };
        let rate = rate.scaled(self.problem.spectrum.rescaling().learning_rate(1.0))?;
        let with = |kappa| Clip::Proportional { kappa, compensation: Compensation::Exact };
        let how = |kappa| Some((Threshold::Proportional(kappa), Rate::Compensated));
        match self.tuned_kappa(base, rate) {
            Ok(tuned) if tuned.kappa.is_finite() => {
                let label = format!("{prefix}κ = {} (tuned)", short(tuned.kappa));
                let best = Experiment { clip: with(tuned.kappa), ..base.clone() };
                self.add("proportional_tuned", label, best, how(tuned.kappa))?;
            }
            Ok(_) => self.note("The tuned κ is ∞: no clipping is better than any κ."),
            Err(error) => self.note(format!("κ could not be tuned: {error}.")),
        }
        let kappa = Proportional::HUBER;
        let label = format!("{prefix}κ = {kappa} (Huber)");
        let huber = Experiment { clip: with(kappa), ..base.clone() };
        self.add("proportional_huber", label, huber, how(kappa))
    }

    fn tuned_kappa(&self, base: &Experiment, rate: Schedule) -> Result<TunedKappa> {
        let unclipped = Experiment { clip: Clip::None, ..base.clone() };
        let problem = Prepared::new(&unclipped, self.origin)?.compressed;
        Ok(tune_kappa(&problem, rate, Compensation::Exact, base.time)?)
    }

    /// Private SGD: that of the file, the best constants, and the schedule of fastest descent.
    fn add_private(&mut self) -> Result<()> {
        let (own, problem) = (self.experiment.clone(), self.problem);
        if let Some(Own { label, threshold, rate }) = Own::of(self.experiment) {
            self.add("file", label, own.clone(), Some((threshold, rate)))?;
        }
        if problem.problem.optimizer().momentum().is_some() {
            self.note("The best constants are not shown: they are searched without momentum.");
        } else {
            match tune_private(&problem.compressed, own.time) {
                Ok(best) => {
                    let back = problem.spectrum.rescaling().inverse();
                    let (eta, c) = (back.learning_rate(best.eta), back.threshold(best.c));
                    let label = format!("best constants η = {}, c = {}", short(eta), short(c));
                    let learning_rate = Schedule::constant(eta)?.into();
                    let clip = Clip::Schedule(Schedule::constant(c)?);
                    let best = Experiment { learning_rate, clip, ..own.clone() };
                    self.add(
                        "best_constants",
                        label,
                        best,
                        Some((Threshold::At(c), Rate::Best(eta))),
                    )?;
                }
                Err(error) => self.note(format!("The best constants were not found: {error}.")),
            }
        }
        let greedy = (LearningRate::Greedy, Clip::MaxCcc);
        if (&own.learning_rate, &own.clip) != (&greedy.0, &greedy.1) {
            let fastest = Experiment { learning_rate: greedy.0, clip: greedy.1, ..own };
            let how = Some((Threshold::MaxCcc, Rate::Fastest));
            self.add("fastest_descent", "fastest descent".into(), fastest, how)?;
        }
        let multiplier =
            problem.problem.step().privacy().map_or(0.0, |privacy| privacy.noise_multiplier());
        if let Ok(epsilon) = privacy::epsilon(multiplier, DELTA) {
            self.note(format!(
                "One pass over the data is (ε, δ)-private with ε = {} at δ = {DELTA:e}.",
                short(epsilon)
            ));
        }
        Ok(())
    }
}

/// The schedule of a file.
struct Own {
    label: String,
    threshold: Threshold,
    /// Compensated where it has the effective rate of unclipped SGD.
    rate: Rate,
}

impl Own {
    /// `None` for those that are compared anyway.
    fn of(experiment: &Experiment) -> Option<Self> {
        let rule = match (experiment.groups.is_empty(), experiment.rule.is_clip()) {
            (false, _) => "per group, ",
            (true, true) => "",
            (true, false) => &format!("{}, ", experiment.rule.0.name()),
        };
        if experiment.rule.0 == Rule::Optimal {
            // Whatever the threshold, μ = 1.
            let (threshold, rate) = (Threshold::Any, Rate::Compensated);
            return Some(Own { label: "optimal (file)".into(), threshold, rate });
        }
        let (kappa, compensation, online) = match &experiment.clip {
            Clip::Schedule(schedule) => {
                let (label, threshold) = match schedule.shape() {
                    Shape::Constant { value } => {
                        (format!("{rule}constant c = {value}"), Threshold::At(*value))
                    }
                    _ => (format!("{rule}threshold of the file"), Threshold::Schedule),
                };
                return Some(Own { label, threshold, rate: Rate::Keep });
            }
            Clip::Proportional { kappa, compensation } => (*kappa, compensation, ""),
            Clip::Online { kappa, compensation, .. } => (*kappa, compensation, ", online"),
            Clip::MaxCcc if experiment.privacy.is_some() => {
                let (threshold, rate) = (Threshold::MaxCcc, Rate::Keep);
                return Some(Own { label: "fastest descent (file)".into(), threshold, rate });
            }
            _ => return None,
        };
        let rate = match compensation {
            Compensation::Exact => Rate::Compensated,
            _ => Rate::Keep,
        };
        let label = format!("{rule}κ = {}{online} (file)", short(kappa));
        Some(Own { label, threshold: Threshold::Proportional(kappa), rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment;
    use std::path::Path;

    fn compared(text: &str) -> (Vec<ScheduleRun>, Vec<String>) {
        let (experiment, origin) = experiment::parse(text, Path::new("e.toml")).unwrap();
        let problem = Prepared::new(&experiment, &origin).unwrap();
        let found = Candidates::compare(&experiment, &origin, &problem, false).unwrap();
        (found.schedules, found.notes)
    }

    fn end(schedules: &[ScheduleRun], key: &str) -> f64 {
        schedules.iter().find(|run| run.key == key).and_then(ScheduleRun::end).unwrap()
    }

    #[test]
    fn a_tuned_rule_sees_the_scale_of_the_data() {
        // x' = 2x, θ' = θ/2 and η' = η/4 are the same problem: κ and the final risk must agree.
        let text = |values: &str, norm: f64, eta: f64| {
            format!(
                "spectrum = {{ kind = 'eigenvalues', values = {values} }}\ntime = 5\n\
                 start = {{ kind = 'uniform', norm = {norm} }}\nlearning_rate = {eta}\nclip = 'none'\n\
                 noise = {{ family = 'rademacher', sigma = 0.8, p = 0.2 }}\n"
            )
        };
        let tuned = |text: &str| {
            let run =
                compared(text).0.into_iter().find(|run| run.key == "proportional_tuned").unwrap();
            (run.end().unwrap(), run.label)
        };
        let unit = tuned(&text("[1.0, 0.5, 0.25]", 1.0, 0.2));
        let double = tuned(&text("[4.0, 2.0, 1.0]", 0.5, 0.05));
        assert!((unit.0 / double.0 - 1.0).abs() < 1e-6, "{unit:?} {double:?}");
        assert_eq!(unit.1, double.1);
    }

    const PROBLEM: &str = "spectrum = { kind = 'power_law', dim = 100, exponent = 0.5 }\ntime = 3\n\
        start = { kind = 'uniform', norm = 2.0 }\nnoise = { family = 'laplace', sigma = 1.0 }\n";

    #[test]
    fn every_rule_is_compared_with_unclipped_sgd_and_with_clipping() {
        for rule in ["skip", "normalise", "tanh", "root", "optimal", "by_value"] {
            let text = format!("{PROBLEM}learning_rate = 0.2\nclip = 2.5\nrule = '{rule}'\n");
            let (found, _) = compared(&text);
            // Max-CCC at the same effective rate never ends above unclipped SGD (Theorem 4), and no
            // rule ends below the optimal one.
            if rule == "optimal" {
                assert!(end(&found, "file") <= end(&found, "clip_max_ccc") * (1.0 + 1e-6));
            } else {
                let slower = end(&found, "unclipped_slower");
                assert!(end(&found, "clip_max_ccc_slower") <= slower * (1.0 + 1e-6), "{rule}");
            }
            assert!(end(&found, "clip_max_ccc") <= end(&found, "unclipped"), "{rule}");
            assert!(found.iter().any(|run| run.key == "file"), "{rule}");
            let own = found.iter().any(|run| run.key == "max_ccc");
            assert_eq!(own, ["skip", "tanh", "root"].contains(&rule), "{rule}");
        }
    }

    #[test]
    fn the_best_private_constants_are_no_worse_than_those_of_the_file() {
        let text = format!(
            "{PROBLEM}learning_rate = 0.2\nclip = 1.0\nprivacy = {{ noise_multiplier = 0.3 }}\n\
             batch = {{ size = 20, rule = 'per_sample' }}"
        );
        let (found, notes) = compared(&text);
        assert!(end(&found, "best_constants") <= end(&found, "file"));
        // On this spectrum the schedule is that of the fastest descent of the distance, not the best.
        assert!(end(&found, "fastest_descent") < end(&found, "file"));
        assert!(notes.iter().any(|note| note.contains("-private with ε = ")));
    }
}
