//! Which schedule to use: the verdict, and what else the comparison shows, in words.

use toclip::verdict::{Choice, Comparison, JudgedBy, Rate, Unclipped, Verdict, WORTH_IT};
use toclip_words::verdict::sentence;
use toclip_words::{percent, short, signed_percent};

use crate::study::schedule_run::ScheduleRun;

/// Whether to clip and how, from a risk at the start; the first of the schedules is unclipped SGD,
/// which is no choice in private SGD.
pub fn verdict(schedules: &[ScheduleRun], private: bool, start: f64) -> Verdict {
    let unclipped = schedules.first().filter(|_| !private);
    Comparison {
        judged_by: JudgedBy::Risk,
        start,
        unclipped: unclipped.map(|free| Unclipped { rate: Rate::Keep, end: free.verdict_end() }),
        candidates: schedules.iter().filter_map(ScheduleRun::candidate).collect(),
    }
    .verdict()
}

/// The verdict in words, and what else the comparison shows.
pub fn recommendation(
    verdict: &Verdict,
    schedules: &[ScheduleRun],
    private: bool,
    time: f64,
) -> String {
    let find = |key: &str| schedules.iter().find(|run| run.key == key);
    let end = |key: &str| find(key)?.end();
    let best = verdict.best().and_then(|best| Some((best, best.end.risk()?)));
    let open = end("unclipped");
    let mut text = sentence(verdict);
    let mut say = |more: Option<String>| {
        text.extend(more.into_iter().flat_map(|more| [" ".to_owned(), more]));
    };
    if private {
        say(open.map(|end| format!("Unclipped SGD without privacy ends at {}.", short(end))));
        return text;
    }
    match (verdict.choice, best, open) {
        (Choice::Clip { .. }, Some((best, its)), Some(open)) => {
            let when = find(best.name).and_then(|run| reaches(run, open));
            say(when.map(|t| {
                format!(
                    "It reaches the final risk of unclipped SGD at t = {t:.1} of {}.",
                    short(time)
                )
            }));
            let tuned = find("proportional_tuned").filter(|tuned| tuned.key != best.name);
            say(tuned.and_then(|tuned| {
                let above = percent(tuned.end()? / its - 1.0);
                Some(format!("The simpler rule {} ends {above} higher.", tuned.label))
            }));
        }
        (Choice::DoNotClip, _, Some(open)) => say(end("proportional_huber").map(|end| {
            let change = signed_percent(end / open - 1.0);
            format!("Huber's κ = 1.345 would change the final risk by {change}.")
        })),
        _ => {}
    }
    say(same_rate_sentence(schedules));
    say(lower_sentence(best.map(|best| best.1).into_iter().chain(open), schedules));
    text
}

/// The rule of the file against clipping and unclipped SGD at the same effective rate.
fn same_rate_sentence(schedules: &[ScheduleRun]) -> Option<String> {
    let find = |key: &str| schedules.iter().find(|run| run.key == key);
    let own = find("file")?;
    let [its, clip, free] =
        [own, find("clip_max_ccc_slower")?, find("unclipped_slower")?].map(ScheduleRun::end);
    let [its, clip, free] = [its?, clip?, free?].map(short);
    let label = &own.label;
    Some(format!(
        "At the same effective rate the rule of the file ({label}) ends at {its}, clipping at \
         max-CCC at {clip} and unclipped SGD at {free}."
    ))
}

/// Where the rule of the file ends lower than the best at the effective rate of unclipped SGD.
fn lower_sentence(
    compared: impl Iterator<Item = f64>,
    schedules: &[ScheduleRun],
) -> Option<String> {
    let keeps_rate = |run: &&ScheduleRun| {
        run.key == "file" && run.treatment.as_ref().is_some_and(|how| how.rate == Rate::Keep)
    };
    let own = schedules.iter().find(keeps_rate)?;
    let best = compared.reduce(f64::min)?;
    let end = own.end().filter(|end| *end < (1.0 - WORTH_IT) * best)?;
    Some(format!(
        "The rule of the file ({}) ends lower, at {}, but at a different effective rate.",
        own.label,
        short(end)
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
    use crate::study::schedule_run::Treatment;
    use toclip::Rule;
    use toclip::dynamics::{Counts, Stop, Trajectory};
    use toclip::verdict::Threshold;

    fn way(key: &'static str, label: &str, risk: &[f64], stop: Stop) -> ScheduleRun {
        let path = Trajectory {
            times: (0..risk.len()).map(|k| k as f64).collect(),
            risk: risk.to_vec(),
            distance: risk.to_vec(),
            path: None,
            overlaps: None,
            measures: None,
            stop,
            counts: Counts::default(),
        };
        let how = match key {
            "max_ccc" => Some((Threshold::MaxCcc, Rate::Compensated)),
            "proportional_tuned" => Some((Threshold::Proportional(0.3), Rate::Compensated)),
            "file" => Some((Threshold::At(1.0), Rate::Keep)),
            _ => None,
        };
        let treatment =
            how.map(|(threshold, rate)| Treatment { rule: Rule::Clip, threshold, rate });
        ScheduleRun { key, label: label.into(), path, runs: None, treatment }
    }

    fn said(schedules: &[ScheduleRun]) -> String {
        recommendation(&verdict(schedules, false, 1.0), schedules, false, 2.0)
    }

    #[test]
    fn the_recommendation_follows_the_numbers() {
        let free = || way("unclipped", "unclipped", &[1.0, 0.6, 0.4], Stop::Finished);
        let best = way("max_ccc", "max-CCC", &[1.0, 0.0625, 0.1], Stop::Finished);
        let kappa = way("proportional_tuned", "κ = 0.3 (tuned)", &[1.0, 0.3, 0.11], Stop::Finished);
        assert_eq!(
            said(&[free(), best, kappa]),
            "Clip at the threshold with the largest CCC (max-CCC), with the learning rate raised to η/μ: it \
             ends at a risk of 0.1, 75% below the 0.4 of unclipped SGD. It reaches the final risk of unclipped \
             SGD at t = 0.6 of 2. The simpler rule κ = 0.3 (tuned) ends 10% higher."
        );
        // A constant threshold ends lower by its smaller rate: no reason to clip.
        let same = || way("max_ccc", "max-CCC", &[1.0, 0.6, 0.4], Stop::Finished);
        let slow = || way("file", "constant c = 1", &[1.0, 0.6, 0.2], Stop::Finished);
        assert_eq!(
            said(&[free(), slow(), same()]),
            "Do not clip: unclipped SGD ends at a risk of 0.4, the best threshold at 0.4, at equal effective \
             rate. The rule of the file (constant c = 1) ends lower, at 0.2, but at a different effective rate."
        );
        // The best of what grows is not recommended.
        let grows = way("unclipped", "unclipped", &[1.0, 9.0, 30.0], Stop::Finished);
        let less = || way("max_ccc", "max-CCC", &[1.0, 4.0, 9.0], Stop::Finished);
        let lower = "Use a smaller learning rate: from 1 training ends at a risk of 9 or more, clipped or not.";
        assert_eq!(said(&[grows, less()]), lower);
        let gone = || way("unclipped", "unclipped", &[], Stop::Diverged { t: 0.0 });
        assert_eq!(said(&[gone(), less()]), lower);
        // Where unclipped SGD diverges, a threshold at the same rate may be the answer.
        assert_eq!(
            said(&[gone(), slow(), less()]),
            "Clip at c = 1, at the same learning rate: it ends at a risk of 0.2, unclipped SGD diverges at once."
        );
        let worse = || way("max_ccc", "max-CCC", &[1.0], Stop::Diverged { t: 1.0 });
        assert!(
            said(&[free(), worse()])
                .starts_with("Do not clip: unclipped SGD ends at a risk of 0.4, and")
        );
        assert_eq!(said(&[gone(), worse()]), "Use a smaller learning rate: everything diverges.");
    }
}
