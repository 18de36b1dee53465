//! The report as one HTML file: style, script, data and pictures inside, nothing from outside.
//!
//! The page opens with the takeaway and one figure; every section is a card, with its claims folded.
//! Every plot is there twice: as a still picture, for paper and where scripts do not run, and as
//! data from which the script draws one that can be read and zoomed.

use super::card::{card, figure, outcome, paragraphs, table};
use super::math::html as typeset;
use super::script::script;
use super::{Correction, Report, Section};
use std::time::Duration;
use toclip_plot::escape;
use toclip_words::duration;

const STYLE: &str =
    concat!(include_str!("../page/vendor/uPlot.min.css"), include_str!("../page/style.css"));
/// The browser itself refuses whatever is not in the file.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// How to use the plots.
const HINT: &str = include_str!("../page/hint.txt");

/// The whole page.
pub fn render(report: &Report) -> String {
    let anchors = anchors(&report.sections);
    // The notes of a section that is alone on its page are open.
    let alone = report.sections.len() == 1;
    let sections: String =
        report.sections.iter().zip(&anchors).map(|(s, anchor)| card(s, anchor, alone)).collect();
    let body = [
        opening(report),
        contents(report, &anchors),
        sections,
        reproduce(report),
        corrections(&report.corrections),
        remarks(report),
        run(report),
    ];
    page(&report.title, &body.concat())
}

/// A page around a body that is HTML already.
pub fn page(title: &str, body: &str) -> String {
    let (title, script) = (escape(title), script());
    format!(
        include_str!("../page/page.html"),
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

/// The takeaway, the figure that shows it, and the introduction.
fn opening(report: &Report) -> String {
    let mut out = format!("<div class=\"takeaway\">\n{}</div>\n", paragraphs(&report.takeaway));
    if let Some((shown, caption)) = &report.opening {
        out += &format!(
            "<div class=\"opening\">\n{}<p class=\"caption\">{}</p>\n</div>\n",
            figure(shown),
            typeset(caption)
        );
    }
    if report.claims().next().is_some() {
        out += &format!("<p class=\"tally\">{}</p>\n", escape(&report.tally()));
    }
    out + &paragraphs(&report.about)
}

/// The sections in a list, with the worst outcome of each.
fn contents(report: &Report, anchors: &[String]) -> String {
    let hint = format!("<p class=\"sub hint\">{HINT}</p>\n");
    if report.sections.len() < 2 {
        return hint;
    }
    let mut items = String::new();
    let mut add = |target: &str, mark: &str, title: &str| {
        items.push_str(&format!(
            "<li><span class=\"mark\" aria-hidden=\"true\">{mark}</span><a href=\"#{target}\">{}</a></li>\n",
            typeset(title)
        ));
    };
    for (section, anchor) in report.sections.iter().zip(anchors) {
        add(anchor, outcome(section).map_or("·", |v| v.mark()), &section.title);
    }
    if !report.command.is_empty() {
        add("reproduce", "", "Reproduce with");
    }
    if !report.corrections.is_empty() {
        add("corrections", "", "Corrected formulas");
    }
    for (i, (title, _)) in report.remarks.iter().enumerate() {
        add(&format!("remarks-{i}"), "", title);
    }
    add("run", "", "This run");
    format!(
        "<nav aria-labelledby=\"contents\"><h2 id=\"contents\">Contents</h2>\n<ul>\n{items}</ul></nav>\n{hint}"
    )
}

/// The command that makes the whole report again.
fn reproduce(report: &Report) -> String {
    if report.command.is_empty() {
        return String::new();
    }
    format!(
        "<section class=\"part\" id=\"reproduce\">\n<h2>Reproduce with</h2>\n\
         <pre tabindex=\"0\"><code>{}</code></pre>\n\
         <p>The same seed gives the same numbers on every machine. The files beside this page hold \
         the data and the experiments of all figures.</p>\n</section>\n",
        escape(&report.command)
    )
}

fn corrections(corrections: &[Correction]) -> String {
    if corrections.is_empty() {
        return String::new();
    }
    let row = |c: &Correction| {
        format!(
            "<tr><td data-name=\"\"><b>{}</b></td><td class=\"wrong\" data-name=\"Printed\">{}</td>\
             <td data-name=\"Correct\">{}</td></tr>\n",
            typeset(&c.place),
            typeset(&c.printed),
            typeset(&c.right)
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

fn remarks(report: &Report) -> String {
    let one = |(i, (title, texts)): (usize, &(String, Vec<String>))| {
        format!(
            "<section class=\"part\" id=\"remarks-{i}\">\n<h2>{}</h2>\n{}</section>\n",
            typeset(title),
            paragraphs(texts)
        )
    };
    report.remarks.iter().enumerate().map(one).collect()
}

/// Versions, seeds and times.
fn run(report: &Report) -> String {
    let row = |name: &str, class: &str, value: &str| {
        let (name, value) = (escape(name), escape(value));
        format!("<tr><th scope=\"row\">{name}</th><td{class}>{value}</td></tr>")
    };
    let time = |name: &str, seconds| {
        row(name, " class=\"num\"", &duration(Duration::from_secs_f64(seconds)))
    };
    let facts: String =
        report.facts.iter().map(|(name, value)| row(name, "", value) + "\n").collect();
    let times: String =
        report.timings.iter().map(|(name, seconds)| time(name, *seconds) + "\n").collect();
    let mut out = String::from("<section class=\"part\" id=\"run\">\n<h2>This run</h2>\n");
    if !facts.is_empty() {
        out += "<h3>Versions, seeds and settings</h3>\n";
        out += &format!("<table class=\"slim\"><tbody>\n{facts}</tbody></table>\n");
    }
    if !times.is_empty() {
        let total = time("Total", report.timings.iter().map(|t| t.1).sum());
        out += "<h3>Time taken</h3>\n";
        out += &format!(
            "<table class=\"slim\"><tbody>\n{times}</tbody><tfoot>{total}</tfoot></table>\n"
        );
    }
    out + "</section>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::sample;
    use toclip_plot::{self as plot, Figure, Theme};

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
        assert_eq!(scripts, 2 + sample::hostile().sections[0].figures.len());
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
