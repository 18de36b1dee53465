"""Does clipping help classification when features have heavy tails? By simulation; no theory is used.

Features are x = s z with z standard normal in d dimensions and s² = (df - 2)/χ²_df: a multivariate
Student-t with the covariance of the Gaussian case (``inf``). Logistic regression on a teacher of norm 3,
one pass of 10 d samples from zero. Rate and threshold are chosen on a grid by one ensemble, and judged by
another with fresh seeds, the same samples for every rule. The loss is over features with the same tails.

Expected before it was run: the gradient is r s z with |r| < 1, so its norm has the tail of s, and a
threshold bounds the steps of the few samples with a large s. Those are also the samples whose logits are
large and whose residuals are small unless their label is wrong. So clipping should gain more than the 1%
of Gaussian features, more for df = 3 than for 5, and more with flipped labels, where a sample with a
large s has a residual near 1; a few percent, and less at a cosine rate than at a constant one.

    python python/experiments/heavy_features.py            # 10 to 20 minutes on two cores
    python python/experiments/heavy_features.py --quick    # one row, a minute

Simulated exactly and cheaply: in isotropic features θ matters only through P = ⟨θ, θ*⟩ and Q = ‖θ‖², and
a step needs three random numbers: z along the teacher, z along the rest of θ, and the length of the remainder.
"""

from __future__ import annotations

import argparse

import numpy as np

DIM, NORM, TIME = 1000, 3.0, 10.0
THRESHOLDS = np.array([0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.4, 2.0, 3.0, np.inf])
RATES = 0.22 * 2.0 ** (np.arange(14) / 3.0)
TUNING_RUNS, RUNS = 60, 1000


def scales(rng: np.random.Generator, df: float, runs: int) -> np.ndarray:
    """s of one sample for every run."""
    return np.ones(runs) if np.isinf(df) else np.sqrt((df - 2) / rng.chisquare(df, runs))


def simulate(df, flips, cosine, rates, clips, runs, seed):
    """Q and P at the end, for every pair of rate and threshold (in rows) and every run."""
    rng = np.random.default_rng(seed)
    eta, c = np.asarray(rates)[:, None], np.asarray(clips)[:, None]
    q, p = np.zeros((len(rates), runs)), np.zeros((len(rates), runs))
    steps = round(TIME * DIM)
    for k in range(steps):
        s, z1, z2 = scales(rng, df, runs), rng.standard_normal(runs), rng.standard_normal(runs)
        length = z1**2 + z2**2 + rng.chisquare(DIM - 2, runs)
        chance = flips + (1 - 2 * flips) * sigmoid(NORM * s * z1)
        y = rng.random(runs) < chance
        across = np.sqrt(np.maximum(q - (p / NORM) ** 2, 0.0))
        u = s * (p / NORM * z1 + across * z2)
        r = sigmoid(u) - y
        kept = np.minimum(1.0, c * np.sqrt(DIM) / (np.abs(r) * s * np.sqrt(length) + 1e-300))
        fall = 0.5 * (1 + np.cos(np.pi * k / steps)) if cosine else 1.0
        step = eta * fall / DIM * kept * r
        q += step * (step * s**2 * length - 2 * u)
        p -= step * s * NORM * z1
    return q, p


def sigmoid(x):
    return 0.5 * (1 + np.tanh(0.5 * x))


def normal_nodes():
    """Nodes and weights of a standard normal variable, close to zero too, where steep functions change."""
    x, w = np.polynomial.legendre.leggauss(8)
    edges = np.concatenate([[0.0], np.geomspace(1e-6, 9.0, 60)])
    half = np.diff(edges)[:, None] / 2
    at = (edges[:-1, None] + half * (1 + x)).ravel()
    weights = (half * w).ravel() * np.exp(-0.5 * at**2) / np.sqrt(2 * np.pi)
    return np.concatenate([-at, at]), np.concatenate([weights, weights])


def scale_nodes(df):
    """Nodes and weights of s, by ln s² = ln(df - 2) - ln χ²."""
    if np.isinf(df):
        return np.ones(1), np.ones(1)
    log = np.linspace(np.log(df) - 20, np.log(df) + 4, 200)
    weight = np.exp(0.5 * df * log - 0.5 * np.exp(log))
    return np.sqrt((df - 2) / np.exp(log)), weight / weight.sum()


def loss_function(df, flips):
    """E[ln(1 + e^u) - yu] as a function of Q and P."""
    g, weights = normal_nodes()
    s, shares = scale_nodes(df)
    logits = np.outer(s, g)
    lengths = 60 * np.linspace(0.0, 1.0, 1000) ** 1.5
    softplus = [shares @ (np.logaddexp(0.0, length * logits) @ weights) for length in lengths]
    slopes = sigmoid(NORM * logits) * sigmoid(-NORM * logits)
    slope = shares @ (s**2 * (slopes @ weights))

    def loss(q, p):
        return np.interp(np.sqrt(q), lengths, softplus) - (1 - 2 * flips) * p * slope

    return loss


def tuned(df, flips, cosine, seed):
    """The best pair without and with a threshold."""
    pairs = [(rate * max(1.0, 0.5 / c), c) for c in THRESHOLDS for rate in RATES]
    rates, clips = np.array(pairs).T
    found = loss_function(df, flips)(*simulate(df, flips, cosine, rates, clips, TUNING_RUNS, seed))
    mean = found.mean(1)
    best = {}
    for name, among in [("unclipped", np.isinf(clips)), ("clipped", ~np.isinf(clips))]:
        at = np.flatnonzero(among)[np.argmin(mean[among])]
        place = at % len(RATES)
        if place in (0, len(RATES) - 1):
            raise SystemExit(f"df {df}: the best rate {rates[at]} is at the end of the grid")
        best[name] = (rates[at], clips[at])
    return best


def row(df, flips, cosine, seed):
    best = tuned(df, flips, cosine, seed)
    rates, clips = np.array([best["unclipped"], best["clipped"]]).T
    loss = loss_function(df, flips)(*simulate(df, flips, cosine, rates, clips, RUNS, seed + 1))
    error = loss.std(1, ddof=1) / np.sqrt(RUNS)
    gap = loss[1] - loss[0]
    gain, sure = -100 * gap.mean() / loss[0].mean(), 100 * gap.std(ddof=1) / np.sqrt(RUNS) / loss[0].mean()
    shape = "cosine" if cosine else "constant"
    tail = "Gaussian" if np.isinf(df) else f"df = {df:g}"
    return (
        f"| {tail} | {flips:g} | {shape} | {loss[0].mean():.4f} ± {error[0]:.4f} (η = {rates[0]:.2f}) "
        f"| {clips[1]:g} | {loss[1].mean():.4f} ± {error[1]:.4f} (η = {rates[1]:.2f}) | {gain + 0.0:.2f}% ± {sure:.2f}% |"
    )


def main():
    parser = argparse.ArgumentParser(description="Clipped logistic regression on heavy-tailed features.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one row only")
    args = parser.parse_args()
    print("| features | flips | rate | unclipped | best c | loss | gain |\n|---|---|---|---|---|---|---|")
    for df in [3.0] if args.quick else [np.inf, 5.0, 3.0]:
        for flips in [0.1] if args.quick else [0.0, 0.1]:
            for cosine in [False] if args.quick else [False, True]:
                print(row(df, flips, cosine, args.seed), flush=True)


if __name__ == "__main__":
    main()
