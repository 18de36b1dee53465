//! The report for programs.

use super::{Report, Verdict};
use serde_json::{Value, json};

/// Everything but the curves, which the tables beside the report hold.
pub fn render(report: &Report) -> Value {
    let facts = report.facts.iter().map(|(k, v)| json!({ "name": k, "value": v }));
    let timings = report.timings.iter().map(|(k, s)| json!({ "name": k, "seconds": s }));
    json!({
        "title": report.title,
        "intro": report.intro,
        "summary": {
            "claims": report.claims().count(),
            "holds": report.count(Verdict::Holds),
            "differs": report.count(Verdict::Differs),
            "fails": report.count(Verdict::Fails),
        },
        "sections": report.sections,
        "corrections": report.corrections,
        "facts": facts.collect::<Vec<_>>(),
        "timings": timings.collect::<Vec<_>>(),
    })
}
