//! The report as one HTML file: style, script, data and pictures inside, nothing from outside.
//!
//! Every plot is there twice: as a still picture, for paper and where scripts do not run, and as
//! data from which the script draws one that can be read and zoomed.

use super::{Claim, Correction, Report, Section, Verdict, duration, figure_json};
use toclip_plot::{self as plot, Figure, Theme, escape};

const STYLE: &str = include_str!("style.css");
const SCRIPT: [&str; 3] =
    [include_str!("marks.js"), include_str!("chart.js"), include_str!("page.js")];
/// The browser itself refuses whatever is not in the file.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// How to use the plots.
const HINT: &str = include_str!("hint.txt");

/// The whole page.
pub fn render(report: &Report) -> String {
    let anchors = anchors(&report.sections);
    let sections: String =
        report.sections.iter().zip(&anchors).map(|(s, anchor)| section(s, anchor)).collect();
    let body = [
        paragraphs(&report.intro),
        summary(report, &anchors),
        contents(report, &anchors),
        sections,
        corrections(&report.corrections),
        run(report),
    ];
    page(&report.title, &body.concat())
}

/// A page around a body that is HTML already.
pub fn page(title: &str, body: &str) -> String {
    let (title, script) = (escape(title), SCRIPT.concat());
    format!(
        include_str!("page.html"),
        policy = POLICY,
        title = title,
        style = STYLE,
        body = body,
        script = script
    )
}

/// Names of the sections inside the page: readable in an address, and no two alike.
fn anchors(sections: &[Section]) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for (i, section) in sections.iter().enumerate() {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let mut name = format!("figure-{}", section.id.chars().map(plain).collect::<String>());
        if taken.contains(&name) {
            name = format!("{name}--{i}");
        }
        taken.push(name);
    }
    taken
}

/// A path beside the report as a link; a colon is written out, so that no path is a scheme.
fn link(path: &str) -> String {
    let mut target = String::new();
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                target.push(char::from(byte));
            }
            _ => target.push_str(&format!("%{byte:02X}")),
        }
    }
    format!("<a href=\"{target}\">{}</a>", escape(path))
}

fn paragraphs(texts: &[String]) -> String {
    texts.iter().map(|text| format!("<p>{}</p>\n", escape(text))).collect()
}

fn verdict(verdict: Verdict) -> String {
    let (mark, word) = (verdict.mark(), verdict.word());
    format!("<span class=\"verdict {word}\"><span aria-hidden=\"true\">{mark}</span> {word}</span>")
}

/// The cells of a claim; on a phone each stands under its name.
fn cells(claim: &Claim) -> String {
    format!(
        "<td data-name=\"\">{}</td><td data-name=\"Measured\">{}</td><td data-name=\"\">{}</td>",
        escape(&claim.paper),
        escape(&claim.measured),
        verdict(claim.verdict)
    )
}

/// A table that becomes cards on a phone.
fn table(header: &[&str], rows: &str) -> String {
    let header: String =
        header.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    format!(
        "<table class=\"cards\"><thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
    )
}

fn summary(report: &Report, anchors: &[String]) -> String {
    let mut rows = String::new();
    for (section, anchor) in report.sections.iter().zip(anchors) {
        for claim in &section.claims {
            let id = escape(&section.id);
            rows.push_str(&format!(
                "<tr><th scope=\"row\"><a href=\"#{anchor}\">{id}</a></th>{}</tr>\n",
                cells(claim)
            ));
        }
    }
    if rows.is_empty() {
        // The place that sections lead back to.
        return "<div id=\"summary\"></div>\n".into();
    }
    let table = table(&["Figure", "Claim", "Measured", "Verdict"], &rows);
    let tally = escape(&report.tally());
    format!(
        "<section id=\"summary\">\n<h2>Summary</h2>\n<p class=\"tally\">{tally}</p>\n{table}</section>\n"
    )
}

fn contents(report: &Report, anchors: &[String]) -> String {
    let mut items = String::new();
    for (section, anchor) in report.sections.iter().zip(anchors) {
        let marks: String = section.claims.iter().map(|c| c.verdict.mark()).collect();
        items.push_str(&format!(
            "<li><span class=\"id\">{}</span> <a href=\"#{anchor}\">{}</a> <span aria-hidden=\"true\">{marks}</span></li>\n",
            escape(&section.id),
            escape(&section.title)
        ));
    }
    if !report.corrections.is_empty() {
        items.push_str(
            "<li><span class=\"id\"></span> <a href=\"#corrections\">Corrected formulas</a></li>\n",
        );
    }
    items.push_str("<li><span class=\"id\"></span> <a href=\"#run\">This run</a></li>\n");
    format!(
        "<section>\n<nav aria-labelledby=\"contents\"><h2 id=\"contents\">Contents</h2>\n<ol>\n{items}</ol></nav>\n\
         <p class=\"sub hint\">{HINT}</p>\n</section>\n"
    )
}

fn section(section: &Section, anchor: &str) -> String {
    // A title that names its figure needs no number before it.
    let numbered = section.title.split([' ', ':']).any(|word| word == section.id)
        || section.title.starts_with("Theorem");
    let number = if numbered { String::new() } else { format!("{} · ", escape(&section.id)) };
    let mut out = format!(
        "<section class=\"part\" id=\"{anchor}\">\n<h2>{number}{}</h2>\n",
        escape(&section.title)
    );
    if !section.settings.is_empty() {
        out.push_str(&format!("<p class=\"settings\">{}</p>\n", escape(&section.settings)));
    }
    out.push_str(&section.figures.iter().map(figure).collect::<String>());
    if !section.claims.is_empty() {
        let rows: String =
            section.claims.iter().map(|claim| format!("<tr>{}</tr>\n", cells(claim))).collect();
        out.push_str(&table(&["Claim", "Measured", "Verdict"], &rows));
    }
    if !section.notes.is_empty() {
        // Without claims there is nothing of the paper's to differ from.
        let heading = match section.claims.is_empty() {
            true => "Notes",
            false => "Notes and differences from the paper",
        };
        out.push_str(&format!(
            "<details open><summary>{heading}</summary>\n{}</details>\n",
            paragraphs(&section.notes)
        ));
    }
    let mut again = String::new();
    if !section.files.is_empty() {
        let links: Vec<String> = section.files.iter().map(|file| link(file)).collect();
        again.push_str(&format!("<div><dt>Data</dt><dd>{}</dd></div>\n", links.join(" ")));
    }
    if !section.command.is_empty() {
        let command = escape(&section.command);
        again.push_str(&format!(
            "<div><dt>Reproduce with</dt><dd><code>{command}</code></dd></div>\n"
        ));
    }
    if !again.is_empty() {
        out.push_str(&format!("<dl class=\"again\">\n{again}</dl>\n"));
    }
    out + "<p class=\"top\"><a href=\"#summary\">Back to the summary</a></p>\n</section>\n"
}

/// A plot, still and alive.
pub fn figure(figure: &Figure) -> String {
    format!(
        "<figure class=\"plot\">\n<div class=\"still\">{}</div>\n\
         <script type=\"application/json\">{}</script>\n</figure>\n",
        plot::svg(figure, Theme::Auto),
        figure_json::render(figure)
    )
}

fn corrections(corrections: &[Correction]) -> String {
    if corrections.is_empty() {
        return String::new();
    }
    let row = |c: &Correction| {
        format!(
            "<tr><td data-name=\"\"><b>{}</b></td><td class=\"math wrong\" data-name=\"Printed\">{}</td>\
             <td class=\"math\" data-name=\"Correct\">{}</td></tr>\n",
            escape(&c.place),
            escape(&c.printed),
            escape(&c.right)
        )
    };
    let rows: String = corrections.iter().map(row).collect();
    format!(
        "<section class=\"part\" id=\"corrections\">\n<h2>Corrected formulas</h2>\n\
         <p>Formulas that the paper prints wrongly, and what this program computes instead.</p>\n\
         {}</section>\n",
        table(&["Where", "Printed", "Correct"], &rows)
    )
}

/// Versions, seeds and times.
fn run(report: &Report) -> String {
    let fact = |(name, value): &(String, String)| {
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(value))
    };
    let time = |(name, seconds): &(String, f64)| {
        format!(
            "<tr><th scope=\"row\">{}</th><td class=\"num\">{}</td></tr>\n",
            escape(name),
            duration(*seconds)
        )
    };
    let facts: String = report.facts.iter().map(fact).collect();
    let times: String = report.timings.iter().map(time).collect();
    let mut out = String::from("<section class=\"part\" id=\"run\">\n<h2>This run</h2>\n");
    if !facts.is_empty() {
        out.push_str("<h3>Versions, seeds and settings</h3>\n");
        out.push_str(&format!("<table class=\"slim\"><tbody>\n{facts}</tbody></table>\n"));
    }
    if !times.is_empty() {
        let total = duration(report.timings.iter().map(|t| t.1).sum());
        out.push_str("<h3>Time taken</h3>\n");
        out.push_str(&format!(
            "<table class=\"slim\"><tbody>\n{times}</tbody><tfoot><tr><th scope=\"row\">Total</th>\
             <td class=\"num\">{total}</td></tr></tfoot></table>\n"
        ));
    }
    out + "</section>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample;

    /// Every tag that opens is closed in order; `<script>` and `<style>` hold no markup.
    fn assert_balanced(page: &str) {
        let void = ["meta", "!doctype"];
        let (mut open, mut rest): (Vec<String>, _) = (Vec::new(), page);
        while let Some(start) = rest.find('<') {
            rest = &rest[start + 1..];
            let end = rest.find('>').expect("a tag ends");
            let (tag, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            let name: String =
                tag.chars().take_while(|c| !c.is_whitespace() && *c != '>').collect();
            if let Some(name) = name.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name), "before {:.60}", rest);
            } else if !tag.ends_with('/') && !void.contains(&name.as_str()) {
                if name == "script" || name == "style" {
                    let end = rest.find(&format!("</{name}>")).expect("raw text ends");
                    rest = &rest[end..];
                }
                open.push(name);
            }
        }
        assert!(open.is_empty(), "left open: {open:?}");
    }

    #[test]
    fn the_page_is_balanced_and_asks_nothing_of_the_network() {
        for report in [sample::report(), sample::hostile(), Report::default()] {
            let page = render(&report);
            assert_balanced(&page);
            for outside in ["<link", "<img", "@import", "url(", " src=", "fetch(", "href=\"http"] {
                assert!(!page.contains(outside), "{outside}");
            }
        }
    }

    #[test]
    fn no_text_becomes_markup() {
        let page = render(&sample::hostile());
        assert!(!page.contains("<b>bold") && !page.contains("alert(1)</script>"));
        assert!(page.contains("&lt;b&gt;bold&lt;/b&gt; &amp; &quot;quoted&quot; '"));
        assert!(!page.contains("href=\"javascript:"), "no path is a scheme");
        let scripts = page.matches("<script").count();
        assert_eq!(scripts, 1 + sample::hostile().sections[0].figures.len());
    }

    #[test]
    fn anchors_are_readable_and_unlike() {
        let named = |id: &str| Section { id: id.into(), ..Section::default() };
        let names = anchors(&[named("1b"), named("Theorem 1"), named("1b"), named("μ")]);
        assert_eq!(names, ["figure-1b", "figure-Theorem-1", "figure-1b--2", "figure--"]);
    }

    #[test]
    fn the_page_has_the_colours_of_the_pictures() {
        // Of the picture's own sheet: "--c0:#0072b2;" for light, and again for dark.
        let svg = plot::svg(&Figure::default(), Theme::Auto);
        let sheets: Vec<&str> = svg.split(".toclip-plot{--").skip(1).take(2).collect();
        let read = |sheet: &str| -> Vec<(String, String)> {
            let body = sheet.split('}').next().unwrap_or_default();
            body.split(';')
                .filter_map(|d| d.trim_start_matches("--").split_once(':'))
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect()
        };
        let (light, dark) = (read(sheets[0]), read(sheets[1]));
        assert!(light.len() >= 12 && light.len() == dark.len());
        for ((name, light), (_, dark)) in light.iter().zip(&dark) {
            let rule = format!("--{name}: light-dark({light}, {dark});");
            assert!(STYLE.contains(&rule), "{rule}");
            assert!(STYLE.contains(&format!("--{name}: inherit;")), "{name}");
        }
    }
}
