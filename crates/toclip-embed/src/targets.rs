//! Targets $b_k$ from the text itself: the first token of the next line.

use crate::tokens::gpt2_ids;

/// GPT-2's id for the end of a text.
pub const END_OF_TEXT: u32 = 50_256;

/// For each of the first `rows` lines, the id of the first token of the next line in GPT-2's
/// vocabulary.
///
/// An empty next line (white space alone counts as empty) and the end of the text give
/// [`END_OF_TEXT`].
///
/// ```
/// use toclip_embed::next_tokens;
/// assert_eq!(next_tokens(&[" = Title = ", " ", " The game"], 3), [50256, 383, 50256]);
/// ```
pub fn next_tokens(lines: &[&str], rows: usize) -> Vec<u32> {
    (0..rows.min(lines.len()))
        .map(|k| match lines.get(k + 1) {
            Some(next) if !next.trim().is_empty() => {
                gpt2_ids(next).first().copied().unwrap_or(END_OF_TEXT)
            }
            _ => END_OF_TEXT,
        })
        .collect()
}

/// $b_k = (y_k - \bar y) / \bar y$: ids shifted by their mean and divided by it. `None` without
/// ids or if the mean is zero.
///
/// ```
/// use toclip_embed::relative;
/// assert_eq!(relative(&[1, 3]), Some(vec![-0.5, 0.5]));
/// assert_eq!(relative(&[]), None);
/// ```
pub fn relative(ids: &[u32]) -> Option<Vec<f64>> {
    // Integers below 2^53: the sum is exact.
    let sum: u64 = ids.iter().map(|id| u64::from(*id)).sum();
    let mean = sum as f64 / ids.len() as f64;
    (mean > 0.0).then(|| ids.iter().map(|id| (f64::from(*id) - mean) / mean).collect())
}
