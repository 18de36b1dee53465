//! The report for programs.

use super::{Claim, Correction, Report, Section};
use serde_json::{Value, json};

/// Everything but the curves, which the tables beside the report hold.
pub fn render(report: &Report) -> Value {
    json!({
        "title": report.title,
        "intro": report.intro,
        "summary": {
            "claims": report.claims().count(),
            "holds": report.count(super::Verdict::Holds),
            "differs": report.count(super::Verdict::Differs),
            "fails": report.count(super::Verdict::Fails),
        },
        "sections": report.sections.iter().map(section).collect::<Vec<_>>(),
        "corrections": report.corrections.iter().map(correction).collect::<Vec<_>>(),
        "facts": report.facts.iter().map(|(k, v)| json!({ "name": k, "value": v })).collect::<Vec<_>>(),
        "timings": report.timings.iter().map(|(k, s)| json!({ "name": k, "seconds": s })).collect::<Vec<_>>(),
    })
}

fn section(s: &Section) -> Value {
    json!({
        "id": s.id,
        "title": s.title,
        "settings": s.settings,
        "claims": s.claims.iter().map(claim).collect::<Vec<_>>(),
        "notes": s.notes,
        "files": s.files,
        "command": s.command,
    })
}

fn claim(c: &Claim) -> Value {
    json!({ "paper": c.paper, "measured": c.measured, "verdict": c.verdict.word() })
}

fn correction(c: &Correction) -> Value {
    json!({ "place": c.place, "printed": c.printed, "right": c.right })
}
