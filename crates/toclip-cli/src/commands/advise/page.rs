//! The advice as one HTML page.

use toclip_words::percent;

use super::{LogReport, comparison, figures, options_to_add, text};
use crate::report::{escape, html_figure, html_page};

/// The whole page.
pub fn of(reports: &[LogReport]) -> String {
    let title = match reports {
        [one] => format!("Clipping: {}", file_name(&one.name)),
        _ => format!("Clipping: {} logs", reports.len()),
    };
    let mut body = String::new();
    if reports.len() > 1 {
        let head = comparison::HEAD.map(|name| format!("<th scope=\"col\">{name}</th>")).concat();
        let rows = reports.iter().enumerate().map(|(i, report)| {
            let mut cells = comparison::row(report).map(|cell| escape(&cell));
            cells[0] = format!("<a href=\"#log-{i}\">{}</a>", escape(&report.name));
            cells
        });
        let table = table(&format!("<thead><tr>{head}</tr></thead>\n"), rows);
        let figure = html_figure(&comparison::figure(reports));
        body = format!(
            "<section><h2>Comparison</h2><div class=\"scroll\">{table}</div>{figure}</section>\n"
        );
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
        let cell = |(i, cell): (usize, &String)| match i {
            0 => format!("<th scope=\"row\">{cell}</th>"),
            _ => format!("<td>{cell}</td>"),
        };
        format!("<tr>{}</tr>\n", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let rows: String = rows.map(row).collect();
    format!("<table class=\"slim\">{head}<tbody>\n{rows}</tbody></table>\n")
}

fn section(report: &LogReport, index: usize) -> String {
    let (advice, verdict) = (&report.advice, &report.verdict);
    let paragraph = |text: &String| format!("<p>{}</p>\n", escape(text));
    let list = |items: &[String]| {
        let items = items.iter().map(|item| format!("<li>{}</li>\n", escape(item)));
        format!("<ul>\n{}</ul>\n", items.collect::<String>())
    };
    let mut out = format!(
        "<section class=\"part\" id=\"log-{index}\">\n<h2>{}</h2>\n<p class=\"settings\">{}</p>\n\
         <p class=\"tally\"><b>{}</b></p>\n{}",
        escape(&report.name),
        escape(&text::source(report)),
        escape(&verdict.headline),
        list(&verdict.reasons)
    );
    if let Some(code) = &verdict.code {
        let lines = escape(&code.lines.join("\n"));
        out += &format!("<p>{}:</p>\n<pre><code>{lines}</code></pre>\n", code.framework.name());
    }
    if let Some((text, runs)) = verdict.experiment.split_first() {
        out += &format!("<h3>An experiment</h3>\n{}{}", paragraph(text), list(runs));
    }
    let mut figures = figures::of(report).into_iter();
    out.extend(figures.next().map(|figure| html_figure(&figure)));
    let others = text::other_findings(report);
    if !others.is_empty() {
        out += &format!("<h3>Also found</h3>\n{}", list(&others));
    }
    for section in advice.details() {
        out += &format!("<h3>{}</h3>\n", escape(section.title));
        out.extend(section.text.iter().map(paragraph));
    }
    out.extend(figures.map(|figure| html_figure(&figure)));
    if !advice.analysis.comparison.is_empty() {
        out += "<h3>What other rules would have done to these norms</h3>\n";
        let head = "<thead><tr><th scope=\"col\">Rule</th><th scope=\"col\">Clips</th>\
                    <th scope=\"col\">Mean step</th></tr></thead>\n";
        let rows = advice
            .analysis
            .comparison
            .iter()
            .map(|rule| [escape(&rule.rule), percent(rule.fires), percent(rule.step_factor)]);
        out += &table(head, rows);
    }
    out.extend(options_to_add(report).iter().map(paragraph));
    out + "</section>\n"
}
