//! The stretches that the gain must not rest on alone.

/// A stretch with a larger share than this of what is left weighs like a spike.
const SPIKE: f64 = 0.2;

/// The stretches without the heaviest, and without any that then has more than a fifth of what is left:
/// a few equal spikes hide one another. `squares` are the sums of $u^2$, what each weighs in $E G^2$.
///
/// An interval comes from the spread of the stretches, and one spike among them tells nothing of how
/// often such spikes come: what it makes of $E G^2$, and so of CCC, has no honest interval.
pub(super) fn without_heaviest(squares: &[f64]) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..squares.len()).collect();
    kept.sort_by(|a, b| squares[*a].total_cmp(&squares[*b]));
    kept.pop();
    let mut left: f64 = kept.iter().map(|b| squares[*b]).sum();
    while let Some(last) = kept.last()
        && kept.len() > 1
        && squares[*last] > SPIKE * left
    {
        kept.pop();
        // Anew, because of rounding where one is larger than the rest by sixteen digits.
        left = kept.iter().map(|b| squares[*b]).sum();
    }
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heaviest_goes_and_spikes_with_it() {
        let mut squares = vec![1.0; 20];
        squares[7] = 1.5;
        let even = without_heaviest(&squares);
        assert!(even.len() == 19 && !even.contains(&7));
        squares[3] = 1e300;
        squares[12] = 1e6;
        let spikes = without_heaviest(&squares);
        // 1.5 of 18.5 is no spike.
        assert!(spikes.len() == 18 && !spikes.contains(&3) && !spikes.contains(&12));
        assert!(without_heaviest(&[1.0]).is_empty() && without_heaviest(&[]).is_empty());
    }
}
