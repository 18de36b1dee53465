//! Fewer points for the same picture: a curve of 10^5 points in a few kB.

/// A point in pixels.
pub(super) type Point = (f64, f64);

/// Width of a column of points that are told apart only by their extremes. Half a pixel
/// is one pixel of a PNG at twice the size.
const COLUMN: f64 = 0.5;
/// How far, in pixels, the drawn line may pass from a point left out.
const TOLERANCE: f64 = 0.04;

/// The points that matter for a line through `points`, in their order.
pub(super) fn simplify(points: &[Point]) -> Vec<Point> {
    straighten(&columns(points))
}

/// Of every stretch inside one column: the first, the last and the two extreme points.
fn columns(points: &[Point]) -> Vec<Point> {
    let column = |p: &Point| (p.0 / COLUMN).floor();
    let mut kept = Vec::new();
    for stretch in points.chunk_by(|a, b| column(a) == column(b)) {
        let by_height = |i: &usize, j: &usize| stretch[*i].1.total_cmp(&stretch[*j].1);
        let low = (0..stretch.len()).min_by(by_height).unwrap_or(0);
        let high = (0..stretch.len()).max_by(by_height).unwrap_or(0);
        let mut chosen = vec![0, low, high, stretch.len() - 1];
        chosen.sort_unstable();
        chosen.dedup();
        kept.extend(chosen.into_iter().map(|i| stretch[i]));
    }
    kept
}

/// Leaves out points on the line between their neighbours (Ramer, Douglas and Peucker).
fn straighten(points: &[Point]) -> Vec<Point> {
    if points.len() < 3 {
        return points.to_vec();
    }
    let mut keep = vec![false; points.len()];
    keep[0] = true;
    keep[points.len() - 1] = true;
    let mut open = vec![(0, points.len() - 1)];
    while let Some((from, to)) = open.pop() {
        let farthest = (from + 1..to)
            .map(|i| (i, distance(points[i], points[from], points[to])))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((i, far)) = farthest
            && far > TOLERANCE
        {
            keep[i] = true;
            open.extend([(from, i), (i, to)]);
        }
    }
    points.iter().zip(keep).filter_map(|(&p, keep)| keep.then_some(p)).collect()
}

/// From a point to a segment.
fn distance(p: Point, a: Point, b: Point) -> f64 {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let length2 = dx * dx + dy * dy;
    let along = ((p.0 - a.0) * dx + (p.1 - a.1) * dy) / length2;
    let along = if length2 > 0.0 { along.clamp(0.0, 1.0) } else { 0.0 };
    (p.0 - a.0 - along * dx).hypot(p.1 - a.1 - along * dy)
}

/// Marks that are not hidden exactly below another: one for each half pixel square.
pub(super) fn spread(points: &[Point]) -> Vec<Point> {
    let mut taken = std::collections::HashSet::new();
    let cell = |v: f64| (2.0 * v).round() as i64;
    points.iter().copied().filter(|p| taken.insert((cell(p.0), cell(p.1)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_jagged_curve_keeps_every_extreme() {
        let n = 100_000;
        let points: Vec<Point> = (0..n)
            .map(|i| {
                let spike = if i == 54_321 { 200.0 } else { 0.0 };
                (i as f64 * 400.0 / n as f64, (i as f64 * 0.7).sin() * 50.0 + spike)
            })
            .collect();
        let thinned = simplify(&points);
        assert!(thinned.len() < 4_000, "{}", thinned.len());
        assert!(thinned.contains(&points[54_321]));
        // The extremes of every pixel lie on the line that is drawn.
        for pixel in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
            let by_height = |a: &&Point, b: &&Point| a.1.total_cmp(&b.1);
            for p in [pixel.iter().min_by(by_height), pixel.iter().max_by(by_height)] {
                let p = *p.unwrap();
                let nearest = thinned.windows(2).map(|s| distance(p, s[0], s[1]));
                assert!(nearest.fold(9.9, f64::min) <= TOLERANCE, "{p:?}");
            }
        }
    }

    #[test]
    fn a_smooth_curve_stays_within_the_tolerance() {
        let points: Vec<Point> =
            (0..=2000).map(|i| f64::from(i) * 0.2).map(|x| (x, 100.0 * (x / 40.0).sin())).collect();
        let thinned = simplify(&points);
        assert!(thinned.len() < 200, "{}", thinned.len());
        for p in &points {
            let nearest = thinned.windows(2).map(|s| distance(*p, s[0], s[1])).fold(9.9, f64::min);
            assert!(nearest <= TOLERANCE);
        }
    }

    #[test]
    fn short_and_degenerate_lines_survive() {
        for points in [vec![], vec![(1.0, 2.0)], vec![(1.0, 2.0); 2]] {
            assert_eq!(simplify(&points).len(), points.len().min(2));
        }
        let loops = [(0.0, 0.0), (5.0, 5.0), (0.0, 0.0)];
        assert_eq!(simplify(&loops), loops);
        assert_eq!(spread(&[(1.0, 1.0), (1.1, 1.1), (2.0, 1.0)]), [(1.0, 1.0), (2.0, 1.0)]);
    }
}
