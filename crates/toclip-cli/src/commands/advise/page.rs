//! The answers as one HTML file.

use super::{Read1, figures, text};
use crate::report::{escape, html_figure, html_page};

/// The whole page.
pub fn of(logs: &[Read1]) -> String {
    let title = match logs {
        [one] => format!("Clipping: {}", short_name(&one.name)),
        _ => format!("Clipping: {} logs", logs.len()),
    };
    let mut body = String::new();
    if logs.len() > 1 {
        body.push_str("<section><h2>Side by side</h2><table class=\"slim\"><tbody>\n");
        for (i, one) in logs.iter().enumerate() {
            body.push_str(&format!(
                "<tr><th scope=\"row\"><a href=\"#log-{i}\">{}</a></th><td>{}</td></tr>\n",
                escape(short_name(&one.name)),
                escape(&text::line(one))
            ));
        }
        body.push_str("</tbody></table></section>\n");
    }
    for (i, one) in logs.iter().enumerate() {
        body.push_str(&section(one, i));
    }
    html_page(&title, &body)
}

fn short_name(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

fn section(one: &Read1, index: usize) -> String {
    let (log, advised) = (&one.log, &one.advised);
    let recommendation = &advised.recommendation;
    let mut out =
        format!("<section class=\"part\" id=\"log-{index}\">\n<h2>{}</h2>\n", escape(&one.name));
    let summary =
        format!("{}: {} norms. {}", log.reading.format, advised.points, text::columns(one));
    out.push_str(&format!("<p class=\"settings\">{}</p>\n", escape(&summary)));
    out.push_str(&format!("<p class=\"tally\"><b>{}</b></p>\n", escape(&recommendation.headline)));
    if !advised.findings.is_empty() {
        let items: String = advised
            .findings
            .iter()
            .map(|f| format!("<li>{}</li>\n", escape(&f.sentence())))
            .collect();
        out.push_str(&format!("<h3>To know about this log</h3>\n<ul>\n{items}</ul>\n"));
    }
    // The figures that belong to the first three answers.
    let mut figures = figures::of(one).into_iter();
    for answer in advised.answers() {
        out.push_str(&format!("<h3>{}</h3>\n", escape(answer.title)));
        out.extend(answer.text.iter().map(|text| paragraph(text)));
        out.extend(figures.next().map(|figure| html_figure(&figure)));
    }
    if !recommendation.code.is_empty() {
        let rows: String = recommendation
            .code
            .iter()
            .map(|code| {
                format!(
                    "<tr><th scope=\"row\">{}</th><td><code>{}</code></td></tr>\n",
                    code.framework,
                    escape(&code.line)
                )
            })
            .collect();
        out.push_str(&format!("<table class=\"slim\"><tbody>\n{rows}</tbody></table>\n"));
    }
    if !advised.comparison.is_empty() {
        let rows: String = advised
            .comparison
            .iter()
            .map(|rule| {
                format!(
                    "<tr><th scope=\"row\">{}</th><td class=\"num\">{:.1}%</td>\
                     <td class=\"num\">{:.1}%</td><td>{}</td></tr>\n",
                    escape(&rule.rule),
                    100.0 * rule.fires,
                    100.0 * rule.step_factor,
                    text::interval(&rule.ccc)
                )
            })
            .collect();
        out.push_str(&format!(
            "<h3>What other rules would have done on this log</h3>\n<table class=\"slim\"><thead>\
             <tr><th scope=\"col\">Rule</th><th scope=\"col\">Fires</th>\
             <th scope=\"col\">Mean step</th><th scope=\"col\">CCC</th></tr></thead>\n\
             <tbody>\n{rows}</tbody></table>\n"
        ));
    }
    out + "</section>\n"
}
