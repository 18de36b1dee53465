//! Where the print is wrong, each checked against the definitions or by simulation.

use crate::report::Correction;

/// (place, printed, right). r is the risk, λ the Laplace rate or the Rademacher size, q = p.
const ALL: [[&str; 3]; 13] = [
    [
        "ν for Gaussian noise",
        "2r·F(·) with η inside",
        "[(2r+σ²)·F(c/√(2r+σ²)) + c²·erfc(c/√(4r+2σ²))] / (2r+σ²)",
    ],
    [
        "μ for Rademacher-like noise, first line",
        "|z − λ| ≤ c/√(2r)",
        "λ/√(2r) in place of λ; the second line is right",
    ],
    [
        "ν for Rademacher-like noise, exponential term",
        "qλ/√(πr)·[e^(−(c+λ)²/2r) − e^(−(c−λ)²/2r)]",
        "2qλ√(r/π)·[e^(−(c+λ)²/4r) − e^(−(c−λ)²/4r)]",
    ],
    [
        "ν for Rademacher-like noise, last line",
        "erfc(·/√(2r)), and the (1−q) term inside the bracket with qc²/2",
        "erfc(·/√(4r)); (1−q)·c²·erfc(c/√(4r)) stands alone",
    ],
    [
        "μ for uniform noise",
        "two factors c²",
        "without them; as printed the probability can be negative",
    ],
    ["ν for uniform noise", "√(2σ²/π)", "√(4r/π)"],
    [
        "μ and T for Laplace noise",
        "r² throughout; 2·erf; (4 + 2λ²r² + 8)",
        "2r for r²; erf; (8 + 2λ²·2r)",
    ],
    [
        "Stability limit of the distance, η*_D",
        "(R/P)·μ/ν",
        "2(R/P)·μ/ν; the printed value is the rate of fastest descent of D. η*_R is right",
    ],
    [
        "ODE for Q_z",
        "noise term without (R + σ²/2); D_t = −(1/2πi)∮Q_z",
        "noise term times (R + σ²/2); D_t is twice that integral",
    ],
    ["Integral equation", "gradient flow taken at Γ_T", "gradient flow taken at Γ_t"],
    [
        "Corollary on ν",
        "bounds ν²",
        "bounds ν. Its proof does not give the bound at large c; uniform and Rademacher-like noise \
         are outside its theorem (their characteristic functions are not integrable), and for \
         Rademacher-like noise μ/min(1, ·) is in fact unbounded",
    ],
    ["Text on Student-t noise", "“as df increases, so do CSC and CCC”", "as df decreases"],
    [
        "Heuristic “essentially identical” to max-CCC",
        "with the rate η·max(1, 1/κ)",
        "with exact compensation η/μ, which is what the authors ran. On figure 4b R(15) is 0.01075 \
         for max-CCC, 0.01136 for κ = 0.3 with η/μ, 0.01833 for κ = 0.3 as printed (0.0173 at its \
         best κ ≈ 0.4)",
    ],
];

pub fn corrections() -> Vec<Correction> {
    let correction = |[place, printed, right]: &[&str; 3]| Correction {
        place: (*place).into(),
        printed: (*printed).into(),
        right: (*right).into(),
    };
    ALL.iter().map(correction).collect()
}

/// What the report is about.
pub const INTRO: [&str; 3] = [
    "Clipping a gradient bounds how far one bad sample can move the weights, at the cost of slower \
     descent. The paper “To Clip or not to Clip” derives, for least squares with many parameters, \
     equations for the loss under clipping and from them a criterion for when clipping helps. This page \
     recomputes the figures of the paper and checks its claims against the numbers.",
    "Notation: μ is the share of the descent that clipping keeps, ν the share of the variance. CSC = \
     μ/ν > 1 means that larger learning rates are stable, CCC = μ²/ν > 1 that clipping beats every \
     unclipped schedule at its own rate. R is the risk, c the threshold, η the learning rate, t = k/d the \
     time after k steps in intrinsic dimension d.",
    "The authors' numerical methods: π is taken as 3.14 and 3.1415 in places (errors up to 5e-5 at the \
     settings of the figures); the ODEs are solved by Euler steps (errors up to 1.4e-2 on max-CCC at a \
     step of 0.05); Simpson grids lose 4% at R = 0.01 and 98% at R = 0.001 under Cauchy noise; the \
     formula for uniform noise overflows for cM/r > 709 (126 of 10,000 points of figure 3); the one for \
     Laplace noise is 1.6% off at r/σ² = 15 and useless beyond 30; the unclipped ODE divides by the \
     ambient dimension.",
];
