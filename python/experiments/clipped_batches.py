"""Batches whose mean is clipped: an ODE whose coefficients are Monte Carlo means over batches, against C-SGD.

With s² the mean of r² over the B samples and φ(s) = min(1, c/s) the factor of the mean gradient, Stein's lemma gives

    a  = E[φ(s) r'(u₁)] + E[φ'(s) r₁² r'(u₁)/s]/B
    b  = E[φ(s) r₁ ∂ ln P(y₁|v₁)/∂v₁]
    m2 = E[φ(s)² s²]/B

    python python/experiments/clipped_batches.py    # a minute
"""

import numpy as np

import toclip

SIZE, ETA, TIME, STEPS, DRAWS, DIM, RUNS = 8, 4.0, 4.0, 100, 50_000, 1000, 100
SETTINGS = [(3.0, 0.1, 0.45), (3.0, 0.1, 0.3), (6.0, 0.0, 0.2)]  # the norm of the teacher, flips, c


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def coefficients(q: float, p: float, v: float, flips: float, c: float, rng: np.random.Generator) -> tuple[float, ...]:
    """a, b and m2 of a batch, by its definition."""
    teacher = np.sqrt(v) * rng.standard_normal((DRAWS, SIZE))
    left = np.sqrt(max(q - p * p / v, 0.0))
    u = p / v * teacher + left * rng.standard_normal((DRAWS, SIZE))
    clean = sigmoid(teacher)
    one = flips + (1 - 2 * flips) * clean
    y = rng.random((DRAWS, SIZE)) < one
    r, slope = sigmoid(u) - y, sigmoid(u) * sigmoid(-u)
    score = (1 - 2 * flips) * clean * (1 - clean) * np.where(y, 1 / one, -1 / (1 - one))
    s = np.sqrt((r**2).mean(axis=1, keepdims=True))
    factor, factor_slope = np.minimum(1, c / s), np.where(s > c, -c / s**2, 0.0)
    a = (factor * slope).mean() + (factor_slope * r**2 * slope / s).mean() / SIZE
    return a, (factor * r * score).mean(), (factor**2 * s**2).mean() / SIZE


def solve(norm: float, flips: float, c: float) -> tuple[float, float]:
    """Q and P at the end, by Heun's method on isotropic data."""
    rng, v = np.random.default_rng(1), norm**2
    state, h = np.zeros(2), TIME / STEPS

    def rate(x: np.ndarray) -> np.ndarray:
        q, p = x
        a, b, m2 = coefficients(q, p, v, flips, c, rng)
        return np.array([-2 * ETA * (a * q + b * p) + ETA**2 * m2, -ETA * (a * p + b * v)])

    for _ in range(STEPS):
        first = rate(state)
        state = state + h / 2 * (first + rate(state + h * first))
    return state[0], state[1]


def simulate(norm: float, flips: float, c: float) -> list[tuple[float, float]]:
    """Q and P of C-SGD at the end, each with its standard error."""
    curves = toclip.experiment(
        {
            "model": {"kind": "logistic", "flips": flips},
            "teacher": {"kind": "uniform", "norm": norm},
            "spectrum": {"kind": "isotropic", "dim": DIM},
            "batch": SIZE,
            "time": TIME,
            "points": 2,
            "learning_rate": ETA,
            "clip": c,
            "methods": ["sgd"],
            "ensemble": {"runs": RUNS, "seed": 1},
        }
    )["sgd"]
    return [(x["mean"][-1], x["standard_error"][-1]) for x in (curves.q, curves.p)]


def main() -> None:
    print("| norm | flips | c | Q, ODE | C-SGD | P, ODE | C-SGD |\n|---|---|---|---|---|---|---|")
    for norm, flips, c in SETTINGS:
        pairs = zip(solve(norm, flips, c), simulate(norm, flips, c), strict=True)
        cells = [f"{ode:.3f} | {mean:.3f} ± {error:.3f}" for ode, (mean, error) in pairs]
        print(f"| {norm:g} | {flips:g} | {c:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
