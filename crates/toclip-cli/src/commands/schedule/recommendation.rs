//! Which schedule to use, in words.

use crate::study::schedule_run::ScheduleRun;
use toclip_words::short;
use toclip_words::{percent, signed_percent};

/// Smaller gains in the final risk are not worth a sentence.
const WORTH: f64 = 0.01;

/// The recommendation; the first of the schedules is unclipped SGD.
pub fn recommendation(schedules: &[ScheduleRun], private: bool, time: f64) -> String {
    let [free, others @ ..] = schedules else { return "Nothing was compared.".into() };
    if private {
        return best_private(free, others);
    }
    advice(free, others, time)
        + &same_rate_sentence(others).unwrap_or_default()
        + &lower_sentence(free, others).unwrap_or_default()
}

/// Where the rule of the file ends lower than anything at the effective rate of unclipped SGD.
fn lower_sentence(free: &ScheduleRun, others: &[ScheduleRun]) -> Option<String> {
    let own = others.iter().find(|run| run.key == "file" && !run.same_rate)?;
    let rest = others.iter().filter(|run| run.same_rate).chain([free]);
    let best = rest.filter_map(ScheduleRun::end).min_by(f64::total_cmp)?;
    let end = own.end().filter(|end| *end < (1.0 - WORTH) * best)?;
    let (label, end) = (&own.label, short(end));
    Some(format!(
        " The rule of the file ({label}) ends lower, at {end}, but at a different effective rate."
    ))
}

fn advice(free: &ScheduleRun, others: &[ScheduleRun], time: f64) -> String {
    // Only at the effective rate of unclipped SGD: otherwise a smaller rate would count as a gain.
    // Where unclipped SGD diverges, any schedule that does not is eligible.
    let fair = |run: &&ScheduleRun| free.end().is_none() || run.same_rate;
    let ended = others.iter().filter(fair).filter_map(|run| Some((run, run.end()?)));
    let best = ended.min_by(|a, b| a.1.total_cmp(&b.1));
    let end_of = |key: &str| others.iter().find(|run| run.key == key)?.end();
    let name = |run: &ScheduleRun| match run.key {
        "max_ccc" if run.label.starts_with("max-CCC") => {
            "the threshold with the largest CCC (max-CCC)".to_owned()
        }
        _ => run.label.clone(),
    };
    let ((run, end), free_end) = match (best, free.end()) {
        (None, None) => return "Use a smaller learning rate: every schedule diverges.".into(),
        (None, Some(end)) => {
            return format!(
                "Do not clip: unclipped SGD ends at a risk of {}, every other schedule diverges.",
                short(end)
            );
        }
        (Some((run, end)), None) => {
            let name = name(run);
            if run.path.risk.first().is_some_and(|&start| end > start) {
                return format!(
                    "Use a smaller learning rate: unclipped SGD diverges, and clipped at {name} its risk \
                     still grows, to {}.",
                    short(end)
                );
            }
            let when = match free.path.stop.diverged_at() {
                Some(t) if t > 0.0 => format!("diverges at t = {}", short(t)),
                _ => "diverges at once".into(),
            };
            let end = short(end);
            return format!("Clip: unclipped SGD {when}; with {name} it ends at a risk of {end}.");
        }
        (Some(best), Some(free_end)) => (best, free_end),
    };
    if let Some(&start) = free.path.risk.first()
        && end.min(free_end) > start
    {
        let (start, end) = (short(start), short(end.min(free_end)));
        return format!(
            "Use a smaller learning rate: at that of the file the risk grows from {start} to {end} or more, \
             clipped or not."
        );
    }
    if end >= (1.0 - WORTH) * free_end {
        let text = "Clipping gains nothing here at equal effective rate";
        let huber = end_of("proportional_huber").map_or(String::new(), |end| {
            let change = end / free_end - 1.0;
            format!(" Huber's κ = 1.345 would change it by {}.", signed_percent(change))
        });
        return format!("{text}: the final risk is {} without clipping.{huber}", short(free_end));
    }
    let time = short(time);
    let sooner = reaches(run, free_end).map_or(String::new(), |t| {
        format!(" reaches at t = {t:.1} the risk that unclipped SGD has at t = {time}, and")
    });
    let (name, ends) = (name(run), [end, free_end].map(short));
    // Labels of rules other than clipping name the rule.
    let verb = if run.label.contains(" at ") { "Use" } else { "Clip at" };
    let mut text = format!("{verb} {name}: it{sooner} ends at {} instead of {}.", ends[0], ends[1]);
    if let Some(tuned) = others.iter().find(|other| other.key == "proportional_tuned")
        && let (Some(its), true) = (tuned.end(), tuned.key != run.key)
    {
        let above = percent(its / end - 1.0);
        text += &format!(" The simpler rule {} ends {above} higher.", tuned.label);
    }
    text
}

/// The best private schedule, and unclipped SGD without privacy for comparison.
fn best_private(free: &ScheduleRun, others: &[ScheduleRun]) -> String {
    let ended = others.iter().filter_map(|run| Some((run, run.end()?)));
    let Some((best, end)) = ended.min_by(|a, b| a.1.total_cmp(&b.1)) else {
        return "Use a smaller learning rate: every private schedule diverges.".into();
    };
    let cost = free.end().map_or(String::new(), |free| {
        format!(" Unclipped SGD without privacy ends at {}.", short(free))
    });
    let (label, end) = (&best.label, short(end));
    format!("Best of the private schedules: {label}, which ends at a risk of {end}.{cost}")
}

/// The rule of the file against clipping and unclipped SGD at the same effective rate.
fn same_rate_sentence(schedules: &[ScheduleRun]) -> Option<String> {
    let find = |key: &str| schedules.iter().find(|run| run.key == key);
    let own = find("file")?;
    let [its, clip, free] =
        [own.end()?, find("clip_max_ccc_slower")?.end()?, find("unclipped_slower")?.end()?];
    let [its, clip, free] = [its, clip, free].map(short);
    let label = &own.label;
    Some(format!(
        " At the same effective rate the rule of the file ({label}) ends at {its}, clipping at \
         max-CCC at {clip} and unclipped SGD at {free}."
    ))
}

/// When the risk first falls to a level, by straight lines between the saved times.
pub fn reaches(run: &ScheduleRun, level: f64) -> Option<f64> {
    let (t, r) = (&run.path.times, &run.path.risk);
    // A risk that starts below the level does not reach it.
    let k = (1..r.len()).find(|&k| r[k] <= level).filter(|_| r[0] > level)?;
    let share = if r[k - 1] > r[k] { (r[k - 1] - level) / (r[k - 1] - r[k]) } else { 0.0 };
    Some(t[k - 1] + (t[k] - t[k - 1]) * share.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use toclip::dynamics::{Counts, Stop, Trajectory};

    fn way(key: &'static str, label: &str, risk: &[f64], stop: Stop) -> ScheduleRun {
        let path = Trajectory {
            times: (0..risk.len()).map(|k| k as f64).collect(),
            risk: risk.to_vec(),
            distance: risk.to_vec(),
            path: None,
            stop,
            counts: Counts::default(),
        };
        let same_rate = !matches!(key, "file" | "unclipped_slower");
        ScheduleRun { key, label: label.into(), path, runs: None, same_rate }
    }

    #[test]
    fn the_recommendation_follows_the_numbers() {
        let free = || way("unclipped", "unclipped", &[1.0, 0.6, 0.4], Stop::Finished);
        let best = way("max_ccc", "max-CCC", &[1.0, 0.0625, 0.1], Stop::Finished);
        let kappa = way("proportional_tuned", "κ = 0.3 (tuned)", &[1.0, 0.3, 0.11], Stop::Finished);
        let said = recommendation(&[free(), best, kappa], false, 2.0);
        assert!(said.contains("at t = 0.6 the risk that unclipped SGD has at t = 2, and ends at 0.1 instead of 0.4"), "{said}");
        assert!(said.contains("κ = 0.3 (tuned) ends 10% higher"), "{said}");
        let same = way("max_ccc", "max-CCC", &[1.0, 0.6, 0.4], Stop::Finished);
        assert!(recommendation(&[free(), same], false, 2.0).starts_with("Clipping gains nothing"));
        // A constant threshold ends lower by its smaller rate: no reason to clip.
        let same = way("max_ccc", "max-CCC", &[1.0, 0.6, 0.4], Stop::Finished);
        let slow = way("file", "constant c = 1", &[1.0, 0.6, 0.2], Stop::Finished);
        let said = recommendation(&[free(), slow, same], false, 2.0);
        assert!(said.starts_with("Clipping gains nothing"), "{said}");
        assert!(said.contains("(constant c = 1) ends lower, at 0.2, but at a different"), "{said}");
        // The best of what grows is not recommended.
        let grows = way("unclipped", "unclipped", &[1.0, 9.0, 30.0], Stop::Finished);
        let less = way("max_ccc", "max-CCC", &[1.0, 4.0, 9.0], Stop::Finished);
        let said = recommendation(&[grows, less], false, 2.0);
        assert!(
            said.starts_with("Use a smaller learning rate") && said.contains("from 1 to 9"),
            "{said}"
        );
        let gone = way("unclipped", "unclipped", &[], Stop::Diverged { t: 0.0 });
        let best = way("max_ccc", "max-CCC", &[1.0, 0.2], Stop::Finished);
        let said = recommendation(&[gone, best], false, 2.0);
        assert!(said.starts_with("Clip: unclipped SGD diverges at once"), "{said}");
        let worse = way("max_ccc", "max-CCC", &[1.0], Stop::Diverged { t: 1.0 });
        assert!(recommendation(&[free(), worse], false, 2.0).starts_with("Do not clip"));
    }
}
