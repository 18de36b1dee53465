//! The coordinates that C-SGD clips together.

use crate::factors::step::Step;
use crate::problem::Problem;
use crate::rule::Rule;
use crate::sim::step::SgdState;
use std::ops::Range;

/// A group of coordinates, or all of them.
#[derive(Debug, Clone)]
pub(super) struct SgdPart {
    /// Its blocks of sixteen coordinates, of all blocks.
    pub blocks: Range<usize>,
    /// Its coordinates at the start of a run.
    pub start: SgdState,
    /// $c_g/c$; `None` where there are no groups.
    ratio: Option<f64>,
    /// $d_g$.
    dim: f64,
}

impl SgdPart {
    /// All coordinates, group after group; each group begins with a new block.
    pub fn all(problem: &Problem) -> Vec<Self> {
        let (modes, step) = (problem.modes(), problem.step());
        let labels = match step.rule() {
            Rule::PerGroup(_) => modes.groups(),
            _ => None,
        };
        let count = labels.map_or(1, |labels| labels.sizes.len());
        let dims = modes.group_dims();
        let mut parts: Vec<Self> = Vec::with_capacity(count);
        for group in 0..count {
            let own = modes.modes().iter().enumerate().filter(|(i, mode)| {
                mode.lambda > 0.0 && labels.is_none_or(|labels| labels.of_mode[*i] == group)
            });
            let start = SgdState::new(own.flat_map(|(_, mode)| {
                // θ² = 2 energy/count each.
                let w = (mode.lambda * (2.0 * mode.energy / mode.count)).sqrt();
                std::iter::repeat_n((mode.lambda, w), mode.count as usize)
            }));
            let (ratio, dim) = match step.rule() {
                Rule::PerGroup(groups) => (Some(groups.groups()[group].ratio), dims[group]),
                _ => (None, modes.dim()),
            };
            let from = parts.last().map_or(0, |part| part.blocks.end);
            parts.push(SgdPart {
                blocks: from..from + start.len(),
                start: if *step.rule() == Rule::ByValue { start.clamped() } else { start },
                ratio,
                dim,
            });
        }
        parts
    }

    /// $\sqrt{d\thinspace n}$: the unit of the threshold where $n$ samples are clipped together.
    pub fn unit(&self, n: f64) -> f64 {
        (self.dim * n).sqrt()
    }

    /// $\varphi x$, where the rule turns a gradient $x g$ with $\Vert g\Vert =$ `norm` in this part
    /// into $\varphi x g$, at threshold $c\cdot$`unit`.
    #[inline]
    pub fn reshape(&self, step: &Step<'_>, x: f64, norm: f64, c: f64, unit: f64, risk: f64) -> f64 {
        match self.ratio {
            Some(ratio) => Rule::Clip.reshape(x, norm, c * ratio, unit),
            None => step.reshape(x, norm, c, unit, risk),
        }
    }
}
