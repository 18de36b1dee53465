//! The sums of all stretches, by threshold: what every estimate is made of.

use super::block::{Clip, Whole};
use super::blocks::Blocks;
use super::grid::CANDIDATES;
use super::interval::Product;

/// Sums by stretch, oldest first, at one threshold.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    pub above: Vec<f64>,
    /// $\sum \min(1, \tau/G)$.
    pub step: Vec<f64>,
    /// The numerator of $\mu$: $\sum 1\[G \le \tau\] + (1-1/N)\tau/G\thinspace 1\[G > \tau\]$.
    pub mu: Vec<f64>,
    pub square: Vec<f64>,
    pub inner: Vec<f64>,
    pub excess: Vec<f64>,
}

/// Sums by stretch.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub whole: Vec<Whole>,
    pub count: Vec<f64>,
    pub square: Vec<f64>,
    pub inner: Vec<f64>,
    pub candidates: Vec<Column>,
    pub watched: Column,
}

/// Where $\mu$ comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// From norms.
    Norms,
    /// From inner products.
    Direct,
}

impl Table {
    pub fn new(blocks: &Blocks, kept: f64) -> Self {
        let mut table = Table {
            whole: Vec::new(),
            count: Vec::new(),
            square: Vec::new(),
            inner: Vec::new(),
            candidates: vec![Column::default(); CANDIDATES],
            watched: Column::default(),
        };
        for block in blocks.iter() {
            let whole = block.whole;
            table.whole.push(whole);
            table.count.push(whole.count);
            table.square.push(whole.square);
            table.inner.push(whole.inner);
            let clips = block.at_candidates();
            let columns = table.candidates.iter_mut().chain([&mut table.watched]);
            for (column, clip) in columns.zip(clips.iter().chain([&block.watched])) {
                column.add(clip, whole.count, kept);
            }
        }
        table
    }

    pub fn blocks(&self) -> usize {
        self.whole.len()
    }

    pub fn steps(&self) -> f64 {
        self.count.iter().sum()
    }

    /// $\mu$ in one of its forms.
    pub fn mu(&self, at: &Column, form: Form) -> Option<Product> {
        match form {
            Form::Norms => Product::new(&[(&at.mu, 1.0), (&self.count, -1.0)]),
            Form::Direct => Product::new(&[(&at.inner, 1.0), (&self.inner, -1.0)]),
        }
    }

    /// $\mu^a/\nu$: CSC for $a = 1$, CCC for $a = 2$.
    pub fn criterion(&self, at: &Column, form: Form, power: f64) -> Option<Product> {
        let (mu, count) = match form {
            Form::Norms => (&at.mu, &self.count),
            Form::Direct => (&at.inner, &self.inner),
        };
        Product::new(&[(mu, power), (count, -power), (&self.square, 1.0), (&at.square, -1.0)])
    }

    /// Whether the inner products' sum is known well enough to divide by: four standard errors.
    pub fn direct(&self) -> bool {
        let with: f64 = self.whole.iter().map(|w| w.inners).sum();
        // A step without inner product would count in ν and not in μ.
        with == self.steps()
            && Product::new(&[(&self.inner, 1.0), (&self.count, -1.0)])
                .is_some_and(|mean| mean.error() < 0.25)
    }
}

impl Column {
    fn add(&mut self, clip: &Clip, count: f64, kept: f64) {
        self.above.push(clip.above);
        self.step.push(count - clip.above + clip.ratio);
        self.mu.push(count - clip.above + kept * clip.ratio);
        self.square.push(clip.square);
        self.inner.push(clip.inner);
        self.excess.push(clip.excess);
    }

    /// Norms above.
    pub fn exceedances(&self) -> f64 {
        self.above.iter().sum()
    }
}
