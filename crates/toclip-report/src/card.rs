//! One section of the report as a card: title, verdict, picture, caption; claims and notes folded.

use super::math::html as typeset;
use super::{Claim, Section, Verdict, embedded_figure};
use toclip_plot::{self as plot, Figure, Theme, escape};

/// A path beside the report as a link; a colon is escaped: it could make the path a scheme.
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

pub(super) fn paragraphs(texts: &[String]) -> String {
    texts.iter().map(|text| format!("<p>{}</p>\n", typeset(text))).collect()
}

/// A table that becomes cards on a phone.
pub(super) fn table(header: &[&str], rows: &str) -> String {
    let header: String =
        header.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    format!(
        "<table class=\"cards\"><thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
    )
}

/// Something that opens on a click.
fn folded(class: &str, title: &str, body: &str) -> String {
    details("", class, title, body)
}

/// The same, open from the start.
fn unfolded(class: &str, title: &str, body: &str) -> String {
    details("open ", class, title, body)
}

fn details(open: &str, class: &str, title: &str, body: &str) -> String {
    format!("<details {open}class=\"{class}\"><summary>{title}</summary>\n{body}</details>\n")
}

/// A plot, still and alive.
pub fn figure(figure: &Figure) -> String {
    format!(
        "<figure class=\"plot\">\n<div class=\"still\">{}</div>\n\
         <script type=\"application/json\">{}</script>\n</figure>\n",
        plot::svg(figure, Theme::Auto),
        embedded_figure::render(figure)
    )
}

fn verdict(verdict: Verdict) -> String {
    let (mark, word) = (verdict.mark(), verdict.word());
    format!("<span class=\"verdict {word}\"><span aria-hidden=\"true\">{mark}</span> {word}</span>")
}

/// The worst outcome of the claims; none without claims.
pub(super) fn outcome(section: &Section) -> Option<Verdict> {
    let worst = |v: &Verdict| match v {
        Verdict::Holds => 0,
        Verdict::Differs => 1,
        Verdict::Fails => 2,
    };
    section.claims.iter().map(|claim| claim.verdict).max_by_key(worst)
}

/// "5 of 6 claims hold", in the colour of the worst of them.
fn badge(section: &Section) -> String {
    let Some(worst) = outcome(section) else { return String::new() };
    let all = section.claims.len();
    let hold = section.claims.iter().filter(|claim| claim.verdict == Verdict::Holds).count();
    let words = match all {
        1 => format!("1 claim {}", worst.word()),
        _ => format!("{hold} of {all} claims hold"),
    };
    let (mark, class) = (worst.mark(), worst.word());
    format!("<p class=\"badge {class}\"><span aria-hidden=\"true\">{mark}</span> {words}</p>\n")
}

/// A row for a claim; on a phone each cell stands under its name.
fn row(claim: &Claim) -> String {
    format!(
        "<tr><td data-name=\"\">{}</td><td data-name=\"Measured\">{}</td><td data-name=\"\">{}</td></tr>\n",
        typeset(&claim.paper),
        typeset(&claim.measured),
        verdict(claim.verdict)
    )
}

/// The figure without a title that the card has already.
fn untitled(shown: &Figure, section: &Section) -> Figure {
    let repeated = |title: &str| !title.is_empty() && section.title.ends_with(title);
    let mut shown = shown.clone();
    if repeated(&shown.title) {
        shown.title.clear();
    }
    if let [only] = &mut shown.charts[..]
        && repeated(&only.title)
    {
        only.title.clear();
    }
    shown
}

/// The pictures: the first in sight, the others folded.
fn pictures(section: &Section) -> String {
    let Some((first, more)) = section.figures.split_first() else { return String::new() };
    let mut out = figure(&untitled(first, section));
    if !more.is_empty() {
        let title = match more.len() {
            1 => "One more picture".into(),
            n => format!("{n} more pictures"),
        };
        out += &folded("more", &title, &more.iter().map(figure).collect::<String>());
    }
    out
}

/// The whole card.
pub(super) fn card(section: &Section, anchor: &str, open: bool) -> String {
    let number = match section.title_has_id {
        true => String::new(),
        false => format!("{} · ", escape(&section.id)),
    };
    let mut out = format!(
        "<section class=\"card\" id=\"{anchor}\">\n<header><h2>{number}{}</h2>\n{}</header>\n{}",
        typeset(&section.title),
        badge(section),
        pictures(section)
    );
    if !section.settings.is_empty() {
        out += &format!("<p class=\"caption\">{}</p>\n", typeset(&section.settings));
    }
    if let Some(link) = &section.explore {
        out += &format!(
            "<p class=\"explore\"><a href=\"{}\">Open in the explorer</a></p>\n",
            escape(link)
        );
    }
    if !section.claims.is_empty() {
        let rows: String = section.claims.iter().map(row).collect();
        let title = match section.claims.len() {
            1 => "The claim, and what was measured".into(),
            n => format!("The {n} claims, and what was measured"),
        };
        out += &folded("claims", &title, &table(&["Claim", "Measured", "Verdict"], &rows));
    }
    if !section.notes.is_empty() {
        // A section without claims is not from the paper.
        let title = match section.claims.is_empty() {
            true => "Notes",
            false => "Notes and differences from the paper",
        };
        let notes = if open { unfolded } else { folded };
        out += &notes("notes", title, &paragraphs(&section.notes));
    }
    out + &again(section) + "</section>\n"
}

/// The files, and the command that makes them again.
fn again(section: &Section) -> String {
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
    match again.is_empty() {
        true => again,
        false => {
            folded("data", "Data and command", &format!("<dl class=\"again\">\n{again}</dl>\n"))
        }
    }
}
