//! Which lines are computed together.

use std::collections::HashMap;

/// Tokens in a batch, about: enough rows for a fast product, few enough to stay in the cache.
const TOKENS: usize = 1024;

/// Lines grouped for speed: equal ones computed once, those of one length together.
///
/// ```
/// use toclip_embed::Batches;
/// let batches = Batches::new(vec![vec![1], vec![2, 3], vec![1], vec![4, 5]]);
/// assert_eq!(batches.len(), 2);
/// assert_eq!(batches.sequences(0), [&[2, 3], &[4, 5]]);
/// assert_eq!(batches.lines(1).collect::<Vec<_>>(), [[0, 2]]);
/// ```
#[derive(Debug, Clone)]
pub struct Batches {
    /// Different sequences, and the lines that have them.
    sequences: Vec<(Vec<u32>, Vec<usize>)>,
    /// Ranges of them.
    batches: Vec<std::ops::Range<usize>>,
}

impl Batches {
    /// Groups the token ids of lines. Long lines come first: threads then end together.
    pub fn new(lines: Vec<Vec<u32>>) -> Self {
        let mut known: HashMap<Vec<u32>, Vec<usize>> = HashMap::new();
        for (line, ids) in lines.into_iter().enumerate() {
            known.entry(ids).or_default().push(line);
        }
        let mut sequences: Vec<_> = known.into_iter().collect();
        sequences.sort_by_key(|(ids, lines)| (usize::MAX - ids.len(), lines[0]));
        let mut batches = Vec::new();
        let mut start = 0;
        for group in sequences.chunk_by(|a, b| a.0.len() == b.0.len()) {
            let size = (TOKENS / group[0].0.len().max(1)).max(1);
            for chunk in group.chunks(size) {
                batches.push(start..start + chunk.len());
                start += chunk.len();
            }
        }
        Self { sequences, batches }
    }

    /// The number of batches.
    pub fn len(&self) -> usize {
        self.batches.len()
    }

    /// Whether there is nothing to compute.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// The number of different lines.
    pub fn distinct(&self) -> usize {
        self.sequences.len()
    }

    /// The token ids of a batch, one sequence for all equal lines.
    pub fn sequences(&self, batch: usize) -> Vec<&[u32]> {
        self.sequences[self.batches[batch].clone()].iter().map(|(ids, _)| ids.as_slice()).collect()
    }

    /// The lines that each sequence of a batch stands for.
    pub fn lines(&self, batch: usize) -> impl Iterator<Item = &[usize]> {
        self.sequences[self.batches[batch].clone()].iter().map(|(_, lines)| lines.as_slice())
    }

    /// The tokens of a batch.
    pub fn tokens(&self, batch: usize) -> usize {
        self.sequences(batch).iter().map(|ids| ids.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_in_one_batch_of_one_length() {
        let lines: Vec<Vec<u32>> =
            (0..3000_u32).map(|i| (0..i * 7 % 600 + 1).map(|j| i % 900 + j).collect()).collect();
        let batches = Batches::new(lines.clone());
        let mut seen = vec![0; lines.len()];
        for batch in 0..batches.len() {
            let sequences = batches.sequences(batch);
            assert!(sequences.iter().all(|s| s.len() == sequences[0].len()));
            assert!(sequences.len() == 1 || batches.tokens(batch) <= TOKENS);
            for (ids, same) in sequences.iter().zip(batches.lines(batch)) {
                for line in same {
                    assert_eq!(lines[*line], *ids);
                    seen[*line] += 1;
                }
            }
        }
        assert!(seen.iter().all(|n| *n == 1));
        assert!(batches.distinct() < lines.len());
    }
}
