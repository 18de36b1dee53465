//! Figures of every kind, checked for text that overlaps or leaves the picture by the outlines of
//! the PNG. `cargo test -p toclip-plot -- --ignored write_samples` writes them to
//! `target/plot-samples` to be looked at.

use tiny_skia::Rect;

use crate::compose::compose;
use crate::font_outlines::Faces;
use crate::shapes::{Drawing, Element};
use crate::*;

fn grid(from: f64, to: f64, n: usize) -> Vec<f64> {
    (0..n).map(|i| from + (to - from) * i as f64 / (n - 1) as f64).collect()
}

fn map(x: &[f64], f: impl Fn(f64) -> f64) -> Vec<f64> {
    x.iter().map(|&x| f(x)).collect()
}

/// Jagged edges without a random generator.
fn rough(i: usize) -> f64 {
    ((i as f64 * 12.9898).sin() * 43758.5453).fract()
}

fn criterion() -> Chart {
    let c = grid(0.1, 15.0, 300);
    let bump = |c: f64| 1.0 + (1.6 - 0.11 * c) * (-(c - 2.0).powi(2) / 22.0).exp() - 0.04;
    Chart::new("When clipping helps")
        .subtitle("σ = 5, risk R = 1")
        .x(Axis::linear("threshold c"))
        .y(Axis::linear("CCC = μ²/ν"))
        .line("Gaussian", &c, &map(&c, |c| 1.0 - 0.36 * (-c * c / 30.0).exp()))
        .line("Rademacher-like", &c, &map(&c, bump))
        .line("uniform", &c, &map(&c, |c| 1.0 - 0.58 * (-c * c / 50.0).exp()))
        .line("Laplace", &c, &map(&c, |c| 1.0 + 0.06 * c * (-c / 4.6).exp() - 0.03 / (1.0 + c)))
        .hline(1.0, "1")
}

fn cauchy() -> Chart {
    let t = grid(0.0, 15.0, 400);
    let risk = map(&t, |t| 0.045 + 0.135 * (-t / 7.0).exp());
    let edge = |side: f64, shift: usize| -> Vec<f64> {
        let spread = |i: usize| 0.0055 * (1.0 - (-t[i]).exp()) + 0.0008 * rough(i + shift);
        (0..t.len()).map(|i| risk[i] + side * spread(i)).collect()
    };
    Chart::new("Clipped SGD under Cauchy noise")
        .x(Axis::linear("time t = k/d"))
        .y(Axis::linear("risk R(t)"))
        .band("C-HSGD, 80 % of runs", &t, &edge(-1.25, 7), &edge(1.0, 11))
        .band("C-SGD, 80 % of runs", &t, &edge(-1.0, 3), &edge(1.2, 5))
        .line("ODE", &t, &risk)
        .note("500 dimensions, eigenvalues k^(−0.2); 100 runs, seed 1.")
}

fn log_axes() -> Chart {
    let d: Vec<f64> = (4..=12).map(|k| 10f64.powf(f64::from(k) / 2.0)).collect();
    Chart::new("Distance between simulation and theory")
        .x(Axis::log("intrinsic dimension d"))
        .y(Axis::log("sup |R − ODE|"))
        .points("C-SGD, 100 runs", &d, &map(&d, |d| (1.0 + 0.2 * d.sin()) * d.powf(-0.5)))
        .points("C-HSGD, 100 runs", &d, &map(&d, |d| 0.3 * (1.0 + 0.2 * d.cos()) * d.powf(-0.5)))
        .dashed("slope −1/2", &d, &map(&d, |d| d.powf(-0.5)))
}

fn schedules() -> Chart {
    let t = grid(0.0, 20.0, 500);
    let risk = |k: f64| map(&t, move |t| 1e-6 + (-k * t).exp());
    let scaled = |v: &[f64], by: f64| map(v, |v| v * by);
    let (fast, slow) = (risk(0.9), risk(0.5));
    Chart::new("Best threshold against a constant one")
        .x(Axis::linear("time t"))
        .y(Axis::log("excess risk R(t)"))
        .series(Series::band("max-CCC, 80 %", &t, &scaled(&fast, 0.6), &scaled(&fast, 1.8)).slot(0))
        .series(Series::line("max-CCC, ODE", &t, &fast).slot(0))
        .series(
            Series::band("constant c = 0.4", &t, &scaled(&slow, 0.7), &scaled(&slow, 1.5))
                .slot(1)
                .middle(&slow),
        )
        .series(Series::dashed("no clipping, ODE", &t, &risk(0.3)).slot(2))
        .vline(6.0, "warm-up ends")
        .vline(7.5, "target reached")
        .hline(1e-3, "target risk of the experiment")
}

fn panels() -> Figure {
    let c: Vec<f64> = grid(-2.0, 1.2, 200).iter().map(|u| 10f64.powf(*u)).collect();
    let step = Chart::new("Stability: how much larger a step may be")
        .x(Axis::log("threshold c"))
        .y(Axis::log("CSC = μ/ν"))
        .line("Gaussian", &c, &map(&c, |c| 1.0 + 0.8 / c))
        .line("Rademacher-like", &c, &map(&c, |c| 0.7 + 0.5 / c + 0.3 * (-10.0 / c).exp()))
        .line("uniform", &c, &map(&c, |c| 1.0 + 0.65 / c))
        .line("Laplace", &c, &map(&c, |c| 1.0 + 1.1 / c))
        .hline(1.0, "1");
    Figure::new("Two criteria for clipping").chart(step).chart(criterion())
}

/// TextLine where it is hard: long, foreign, and full of markup.
fn wordy() -> Figure {
    let long = "A title that goes on for so long that no chart of this width could carry it in \
                one line, <b>&amp; \"markup\" that must stay as it is</b> ]]> \u{7}";
    let x = grid(1e-7, 3e-7, 20);
    let chart = Chart::new(long)
        .subtitle(long)
        .x(Axis::linear(long))
        .y(Axis::log(long).range(0.5, 5e7))
        .line(long, &x, &map(&x, |x| x * 1e13))
        .line("короткий μ₀ — 中文", &x, &map(&x, |x| x * 1e14))
        .line("Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichenverordnungen", &x, &x)
        .hline(1e3, "low")
        .hline(1.2e3, "lower")
        .hline(1.1e3, "lowest")
        .vline(2e-7, "first of them")
        .vline(1e-7, long)
        .note(long);
    Figure::new(long).chart(chart.clone()).chart(criterion()).chart(log_axes()).chart(chart)
}

/// Data of every awkward kind, one chart each.
fn awkward() -> Figure {
    let x = [1.0, 2.0, 3.0, 4.0];
    let gaps = [f64::NAN, f64::INFINITY, -1.0, 0.0];
    let far: Vec<f64> = (-12..=12).map(|k| 10f64.powi(k)).collect();
    let many = grid(0.0, 1.0, 100_000);
    let noisy: Vec<f64> = (0..many.len()).map(rough).collect();
    let chart = |title: &str| Chart::new(title).x(Axis::linear("x")).y(Axis::linear("y"));
    Figure::new("Edge cases")
        .columns(3)
        .chart(Chart::default())
        .chart(chart("nothing to draw").y(Axis::log("y")).line("gaps", &x, &gaps))
        .chart(chart("a reference alone").hline(0.3, "0.3"))
        .chart(chart("one point").line("line", &[1.0], &[2.0]))
        .chart(chart("one point of a band").band("band", &[1.0], &[1.0], &[2.0]))
        .chart(chart("constant").line("3", &x, &[3.0; 4]).line("zero", &x, &[0.0; 4]))
        .chart(chart("24 decades").y(Axis::log("y")).x(Axis::log("x")).line("y", &far, &far))
        .chart(chart("gaps").line(
            "with gaps",
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
            &[1.0, 2.0, f64::NAN, 1.0, f64::NAN, 2.0],
        ))
        .chart(chart("many").line("noise", &many, &noisy))
        .chart(chart("far offset").line("y", &x, &map(&x, |x| 1.0 + 1e-10 * x)))
        .chart(chart("offset abscissae").line("y", &map(&x, |x| 1e6 + 1e-6 * x), &x))
        .chart(chart("unequal lengths").line("y", &x, &[1.0, 2.0]).band("b", &x, &[], &x))
        .chart(chart("huge").line("y", &x, &[1e300, -1e300, f64::MAX, 0.0]))
        .chart(chart("tiny").line("y", &[5e-324, 1e-320], &[5e-324, 1e-310]))
        .chart(chart("tiny, log").y(Axis::log("y")).line("y", &x, &[5e-324, 1e-310, 1e-3, 1.0]))
        .chart(chart("narrow log").y(Axis::log("y")).line("y", &x, &[3.1, 3.2, 3.3, 3.35]))
}

fn offset() -> Chart {
    let x = [1e6 + 1e-6, 1e6 + 2e-6, 1e6 + 4e-6];
    Chart::new("Labels of many digits").x(Axis::linear("x")).y(Axis::linear("y")).line("y", &x, &x)
}

fn crowd() -> Chart {
    let x = grid(0.0, 10.0, 50);
    (0..12).fold(Chart::new("Twelve curves").x(Axis::linear("x")), |chart, k| {
        chart.line(&format!("k = {k}"), &x, &map(&x, |x| (f64::from(k) + 1.0) * (x / 3.0).sin()))
    })
}

fn all() -> Vec<(&'static str, Figure)> {
    vec![
        ("criterion", criterion().into()),
        ("cauchy", cauchy().into()),
        ("log", log_axes().into()),
        ("schedules", schedules().into()),
        ("panels", panels()),
        ("wordy", wordy()),
        ("awkward", awkward()),
        ("crowd", crowd().into()),
        ("offset", offset().into()),
        ("empty", Figure::default()),
    ]
}

/// Every text and the box of its line, as high as the font goes, after every transformation.
fn boxes(drawing: &Drawing) -> Vec<(&str, Rect)> {
    let faces = Faces::new().unwrap();
    let mut found = Vec::new();
    for item in &drawing.items {
        let Element::TextLine(text) = item else { continue };
        let size = text.font.size as f32;
        let (path, place) = faces.outline(text);
        let ink = path.unwrap().bounds();
        // Ascent and descent of DejaVu Sans.
        let line = Rect::from_ltrb(ink.left(), -0.928 * size, ink.right(), 0.236 * size).unwrap();
        found.push((&*text.content, line.transform(place).unwrap()));
    }
    found
}

#[test]
fn no_text_overlaps_another_or_leaves_the_picture() {
    for (name, figure) in all() {
        let drawing = compose(&figure);
        let (width, height) = (drawing.width as f32, drawing.height as f32);
        let found = boxes(&drawing);
        assert!(name == "empty" || found.len() >= 5, "{name}: texts are not seen");
        for (i, (text, a)) in found.iter().enumerate() {
            let inside = a.left() >= 1.0
                && a.top() >= 1.0
                && a.right() <= width - 1.0
                && a.bottom() <= height - 1.0;
            assert!(inside, "{name}: {text:?} leaves the picture: {a:?}");
            for (other, b) in &found[..i] {
                let apart = a.left() > b.right()
                    || b.left() > a.right()
                    || a.top() > b.bottom()
                    || b.top() > a.bottom();
                assert!(apart, "{name}: {text:?} {a:?} overlaps {other:?} {b:?}");
            }
        }
    }
}

#[test]
fn every_svg_is_well_formed_small_and_free_of_bad_numbers() {
    for (name, figure) in all() {
        for theme in [Theme::Auto, Theme::Light, Theme::Dark] {
            let svg = svg(&figure, theme);
            let tree = roxmltree::Document::parse(&svg).unwrap();
            let bad = |v: &str| v.contains("NaN") || v.contains("inf");
            for node in tree.descendants().filter(|n| n.is_element()) {
                assert!(node.attributes().all(|a| !bad(a.value())), "{name}: {node:?}");
            }
            let panels = figure.charts.len().max(1);
            assert!(svg.len() < 24_000 * panels, "{name}: {}", svg.len());
        }
    }
}

#[test]
fn text_is_shown_as_it_was_given() {
    let label = "a < b & \"c\" <script>alert(1)</script>";
    let svg = svg(&Chart::new(label).line(label, &[1.0, 2.0], &[1.0, 2.0]).into(), Theme::Auto);
    let tree = roxmltree::Document::parse(&svg).unwrap();
    assert!(!tree.descendants().any(|n| n.has_tag_name("script")));
    let texts = tree.descendants().filter(|n| n.has_tag_name("text"));
    assert_eq!(texts.filter(|n| n.text() == Some(label)).count(), 2, "heading and legend");
}

#[test]
fn nothing_to_draw_says_so() {
    let said = |chart: Chart| svg(&chart.into(), Theme::Auto).contains(">no data<");
    assert!(said(Chart::default()));
    assert!(said(Chart::new("").y(Axis::log("")).line("", &[1.0, 2.0], &[0.0, -1.0])));
    assert!(said(Chart::new("").x(Axis::linear("").range(5.0, 6.0)).line("", &[1.0], &[1.0])));
    assert!(!said(Chart::new("").line("", &[1.0], &[1.0])));
}

#[test]
fn a_png_has_the_size_of_its_svg_and_the_ground_of_its_theme() {
    let figure: Figure = criterion().into();
    let Drawing { width, height, .. } = compose(&figure);
    assert!(svg(&figure, Theme::Light).contains(&format!("width=\"{width}\" height=\"{height}\"")));
    for (theme, ground) in [(Theme::Light, 0xff), (Theme::Auto, 0xff), (Theme::Dark, 0x14)] {
        let bytes = png(&figure, theme, 2.0).unwrap();
        let image = tiny_skia::Pixmap::decode_png(&bytes).unwrap();
        assert_eq!(image.width(), 2 * width as u32);
        assert_eq!(image.height(), 2 * height as u32);
        assert_eq!(image.pixels()[0].red(), ground);
        let inked = image.pixels().iter().filter(|p| p.red().abs_diff(ground) > 60).count();
        assert!(inked > 10_000, "text and curves are drawn: {inked}");
    }
    assert!(png(&figure, Theme::Light, 1e9).is_err(), "too large is an error, not an abort");
}

#[test]
fn the_description_serialises_with_gaps_as_null() {
    let chart = Chart::new("t").y(Axis::log("y")).line("a", &[1.0, 2.0], &[f64::NAN, 3.0]);
    let json = serde_json::to_value(Figure::from(chart.hline(1.0, "1"))).unwrap();
    let chart = &json["charts"][0];
    assert_eq!(chart["y"]["scale"], "log");
    assert_eq!(chart["series"][0]["y"], serde_json::json!([null, 3.0]));
    assert_eq!(chart["series"][0]["kind"], "line");
    assert_eq!(chart["lines"][0]["direction"], "horizontal");
}

#[test]
#[ignore = "writes pictures to be looked at"]
fn write_samples() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plot-samples");
    std::fs::create_dir_all(&folder).unwrap();
    for (name, figure) in all() {
        let write = |end: &str, bytes: &[u8]| {
            std::fs::write(folder.join(format!("{name}{end}")), bytes).unwrap();
        };
        write(".svg", svg(&figure, Theme::Auto).as_bytes());
        write(".png", &png(&figure, Theme::Light, 2.0).unwrap());
        write("-dark.png", &png(&figure, Theme::Dark, 2.0).unwrap());
    }
}
