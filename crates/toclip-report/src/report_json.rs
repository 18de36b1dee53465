//! The report for programs.

use super::{Report, Verdict, math};
use serde_json::{Value, json};

/// Everything but the curves, which the tables beside the report hold. Formulas are in Unicode.
pub fn render(report: &Report) -> Value {
    let facts = report.facts.iter().map(|(k, v)| json!({ "name": k, "value": v }));
    let timings = report.timings.iter().map(|(k, s)| json!({ "name": k, "seconds": s }));
    let remarks = report.remarks.iter().map(|(k, v)| json!({ "title": k, "text": v }));
    let mut value = json!({
        "title": report.title,
        "takeaway": report.takeaway,
        "about": report.about,
        "summary": {
            "claims": report.claims().count(),
            "holds": report.count(Verdict::Holds),
            "differs": report.count(Verdict::Differs),
            "fails": report.count(Verdict::Fails),
        },
        "sections": report.sections,
        "corrections": report.corrections,
        "remarks": remarks.collect::<Vec<_>>(),
        "command": report.command,
        "facts": facts.collect::<Vec<_>>(),
        "timings": timings.collect::<Vec<_>>(),
    });
    write_out(&mut value);
    value
}

fn write_out(value: &mut Value) {
    match value {
        Value::String(text) => *text = math::plain(text),
        Value::Array(items) => items.iter_mut().for_each(write_out),
        Value::Object(fields) => fields.values_mut().for_each(write_out),
        _ => {}
    }
}
