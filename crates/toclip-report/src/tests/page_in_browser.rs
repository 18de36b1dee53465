//! The report in a real browser, at the width of a phone and of a desk. Where no browser is
//! found the tests say so and pass. `cargo test -p toclip-report -- --ignored write_report` leaves
//! a report in `target/report-sample` to be looked at.

use super::browser::Browser;
use super::sample;
use crate::{Report, html};

fn charts(report: &Report) -> usize {
    let opening = report.opening.iter().map(|(figure, _)| figure);
    let sections = report.sections.iter().flat_map(|s| &s.figures);
    opening.chain(sections).map(|figure| figure.charts.len()).sum()
}

fn works(report: &Report, width: u32) {
    let Some(browser) = Browser::find() else { return };
    let found = browser.try_out(&html(report), width);
    assert_eq!(found["width"], width);
    assert_eq!(found["plots"], charts(report), "every chart is drawn: {found}");
    assert_eq!(found["stills"], 0, "still pictures give way: {found}");
    assert_eq!(found["failed"], serde_json::json!([]), "{found}");
    assert!(found["checks"].as_u64() > Some(10 * charts(report) as u64), "{found}");
    assert!(found["overflow"].as_i64() <= Some(0), "the page is too wide: {found}");
    assert_eq!(found["outside"], serde_json::json!([]), "{found}");
    assert_eq!(found["faults"], serde_json::json!([]), "{found}");
    assert_eq!(found["log"], serde_json::json!([]), "nothing on the console: {found}");
}

#[test]
fn plots_work_on_a_phone() {
    works(&sample::report(), 360);
}

#[test]
fn plots_work_on_a_desk() {
    works(&sample::report(), 1280);
}

#[test]
fn awkward_texts_and_values_break_nothing() {
    works(&sample::hostile(), 360);
}

/// The rules for paper applied to the screen: the still pictures come back, nothing sticks out.
#[test]
fn paper_gets_the_still_pictures() {
    let Some(browser) = Browser::find() else { return };
    let report = sample::report();
    let found = browser.try_out(&html(&report).replace("@media print", "@media all"), 700);
    let figures = 1 + report.sections.iter().map(|s| s.figures.len()).sum::<usize>();
    assert_eq!(found["stills"], figures, "{found}");
    assert_eq!(found["live"], 0, "{found}");
    assert!(found["overflow"].as_i64() <= Some(0), "{found}");
}

#[test]
fn the_page_is_painted_in_both_themes() {
    let Some(browser) = Browser::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = html(&sample::report());
    for (theme, ground) in [("light", 0xff), ("dark", 0x14)] {
        let file = folder.path().join(format!("{theme}.html"));
        let open = format!("<html data-theme=\"{theme}\" ");
        std::fs::write(&file, page.replacen("<html ", &open, 1)).unwrap();
        let picture = browser.photograph(&file, 1280);
        let picture = tiny_skia::Pixmap::decode_png(&picture).unwrap();
        assert_eq!(picture.pixels()[0].red(), ground, "{theme}");
        let inked = picture.pixels().iter().filter(|p| p.red().abs_diff(ground) > 60).count();
        assert!(inked > 10_000, "{theme}: {inked}");
    }
}

#[test]
#[ignore = "writes a report to be looked at"]
fn write_report() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/report-sample");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, report) in [("report", sample::report()), ("hostile", sample::hostile())] {
        std::fs::write(folder.join(format!("{name}.html")), html(&report)).unwrap();
    }
    print!("{}", crate::terminal(&sample::report()));
}
