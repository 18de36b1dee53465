//! The advice as one HTML page.

use toclip::percent;

use super::{LogReport, figures, options_to_add, text};
use crate::report::{escape, html_figure, html_page};

/// The whole page.
pub fn of(reports: &[LogReport]) -> String {
    let title = match reports {
        [one] => format!("Clipping: {}", file_name(&one.name)),
        _ => format!("Clipping: {} logs", reports.len()),
    };
    let mut body = String::new();
    if reports.len() > 1 {
        let row = |(i, report): (usize, &LogReport)| {
            let link = format!("<a href=\"#log-{i}\">{}</a>", escape(file_name(&report.name)));
            [link, escape(&text::summary(report))]
        };
        let rows = reports.iter().enumerate().map(row);
        body = format!("<section><h2>Summary</h2>{}</section>\n", table("", rows));
    }
    body.extend(reports.iter().enumerate().map(|(i, report)| section(report, i)));
    html_page(&title, &body)
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// A table; the cells are HTML, the first of a row is its heading.
fn table<const N: usize>(head: &str, rows: impl Iterator<Item = [String; N]>) -> String {
    let row = |cells: [String; N]| {
        let cells = cells.join("</td><td>").replacen("</td>", "</th>", 1);
        format!("<tr><th scope=\"row\">{cells}</td></tr>\n")
    };
    let rows: String = rows.map(row).collect();
    format!("<table class=\"slim\">{head}<tbody>\n{rows}</tbody></table>\n")
}

fn section(report: &LogReport, index: usize) -> String {
    let (log, advice) = (&report.log, &report.advice);
    let wording = &advice.recommendation.wording;
    let (format, columns) = (&log.summary.format, text::columns(report));
    let summary = format!("{format}: {} norms. {columns}", advice.points);
    let mut out = format!(
        "<section class=\"part\" id=\"log-{index}\">\n<h2>{}</h2>\n<p class=\"settings\">{}</p>\n\
         <p class=\"tally\"><b>{}</b></p>\n",
        escape(&report.name),
        escape(&summary),
        escape(&wording.headline)
    );
    if !advice.findings.is_empty() {
        let item = |sentence: String| format!("<li>{}</li>\n", escape(&sentence));
        let items: String = advice.findings.iter().map(|f| item(f.sentence())).collect();
        out += &format!("<h3>About this log</h3>\n<ul>\n{items}</ul>\n");
    }
    let paragraph = |text: &String| format!("<p>{}</p>\n", escape(text));
    // The first three answers have a figure.
    let mut figures = figures::of(report).into_iter();
    for answer in advice.answers() {
        out += &format!("<h3>{}</h3>\n", escape(answer.title));
        out.extend(answer.text.iter().map(paragraph));
        out.extend(figures.next().map(|figure| html_figure(&figure)));
    }
    if !wording.code.is_empty() {
        let row = |line: &str| format!("<code>{}</code>", escape(line));
        out += &table("", wording.code.iter().map(|c| [c.framework.to_owned(), row(&c.line)]));
    }
    out.extend(options_to_add(report).iter().map(paragraph));
    if !advice.comparison.is_empty() {
        out += "<h3>What other rules would have done on this log</h3>\n";
        let head = "<thead><tr><th scope=\"col\">Rule</th><th scope=\"col\">Clips</th>\
                    <th scope=\"col\">Mean step</th><th scope=\"col\">CCC</th></tr></thead>\n";
        let rows = advice.comparison.iter().map(|rule| {
            let (rule_name, ccc) = (escape(&rule.rule), advice.interval(&rule.ccc));
            [rule_name, percent(rule.fires), percent(rule.step_factor), ccc]
        });
        out += &table(head, rows);
    }
    out + "</section>\n"
}
