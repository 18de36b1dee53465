//! Hatches of bands, to tell overlapping bands apart without colour.

use super::shapes::{Frame, Outline};
use super::simplify::Point;

/// Pixels between two lines of a hatch, along the axis.
const APART: f64 = 9.0;
/// Patterns: none, rising, falling, upright.
const PATTERNS: usize = 4;

/// The lines of a hatch between the upper and the lower edge of a band. Both edges have the same
/// abscissas, in increasing order.
pub(super) fn hatch(order: usize, upper: &[Point], lower: &[Point], frame: Frame) -> Vec<Outline> {
    let rows = columns(upper, lower, frame);
    match order % PATTERNS {
        0 => Vec::new(),
        1 => along(&rows, -1.0),
        2 => along(&rows, 1.0),
        _ => upright(&rows),
    }
}

/// The band at every pixel: x, the upper and the lower ordinate, inside the frame.
fn columns(upper: &[Point], lower: &[Point], frame: Frame) -> Vec<(f64, f64, f64)> {
    let inside = |y: f64| y.clamp(frame.top, frame.bottom);
    let mut rows = Vec::new();
    for (above, below) in upper.windows(2).zip(lower.windows(2)) {
        let [(x0, u0), (x1, u1)] = [above[0], above[1]];
        let [l0, l1] = [below[0].1, below[1].1];
        let (from, to) = (x0.max(frame.left).ceil(), x1.min(frame.right));
        let mut x = from;
        while x < to {
            let share = (x - x0) / (x1 - x0);
            rows.push((x, inside(u0 + share * (u1 - u0)), inside(l0 + share * (l1 - l0))));
            x += 1.0;
        }
    }
    rows
}

/// Lines y = slope·x + k inside the band, for k at even distances.
fn along(rows: &[(f64, f64, f64)], slope: f64) -> Vec<Outline> {
    let offset = |x: f64, y: f64| y - slope * x;
    let ends = rows.iter().flat_map(|&(x, up, low)| [offset(x, up), offset(x, low)]);
    let (least, most) = ends.fold((f64::MAX, f64::MIN), |(a, b), k| (a.min(k), b.max(k)));
    let mut lines = Vec::new();
    let mut k = (least / APART).ceil() * APART;
    while k <= most {
        let mut line: Option<(Point, Point)> = None;
        for &(x, up, low) in rows {
            let y = slope * x + k;
            if (up..=low).contains(&y) {
                line = Some((line.map_or((x, y), |(start, _)| start), (x, y)));
            } else if let Some((start, end)) = line.take() {
                add(&mut lines, start, end);
            }
        }
        if let Some((start, end)) = line {
            add(&mut lines, start, end);
        }
        k += APART;
    }
    lines
}

fn upright(rows: &[(f64, f64, f64)]) -> Vec<Outline> {
    let mut lines = Vec::new();
    for &(x, up, low) in rows.iter().filter(|(x, ..)| x.rem_euclid(APART) < 1.0) {
        add(&mut lines, (x, up), (x, low));
    }
    lines
}

/// Specks would be noise.
fn add(lines: &mut Vec<Outline>, start: Point, end: Point) {
    if (end.0 - start.0).abs().max((end.1 - start.1).abs()) >= 1.5 {
        lines.push(Outline::Line(vec![start, end]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame = Frame { left: 0.0, top: 0.0, right: 100.0, bottom: 50.0 };

    fn ends(order: usize, upper: &[Point], lower: &[Point]) -> Vec<[Point; 2]> {
        let line = |outline| match outline {
            Outline::Line(points) => [points[0], points[1]],
            other => panic!("{other:?}"),
        };
        hatch(order, upper, lower, FRAME).into_iter().map(line).collect()
    }

    #[test]
    fn lines_stay_inside_the_band_and_the_frame() {
        // From 10 to 30, and on the right far below the frame.
        let upper = [(0.0, 10.0), (50.0, 10.0), (100.0, 20.0)];
        let lower = [(0.0, 30.0), (50.0, 30.0), (100.0, 1e9)];
        for order in 1..4 {
            let lines = ends(order, &upper, &lower);
            assert!(lines.len() > 5, "{order}: {}", lines.len());
            for (x, y) in lines.into_iter().flatten() {
                assert!((0.0..=100.0).contains(&x) && (10.0..=50.0).contains(&y), "{x} {y}");
                assert!(x > 50.0 || y <= 30.0, "{x} {y}");
            }
        }
        assert!(ends(0, &upper, &lower).is_empty() && ends(4, &upper, &lower).is_empty());
    }

    #[test]
    fn patterns_have_their_directions() {
        let (upper, lower) = ([(0.0, 10.0), (90.0, 10.0)], [(0.0, 40.0), (90.0, 40.0)]);
        let slope = |order| {
            let [(x0, y0), (x1, y1)] = ends(order, &upper, &lower)[2];
            (y1 - y0) / (x1 - x0)
        };
        // Ordinates grow downwards.
        assert!((slope(1) + 1.0).abs() < 1e-9 && (slope(2) - 1.0).abs() < 1e-9);
        assert!(slope(3).is_infinite());
        assert!(ends(1, &upper[..1], &lower[..1]).is_empty(), "one point has no area");
    }
}
