"""Writes privacy.csv: delta(epsilon) of the Gaussian mechanism with sensitivity 1 and noise of deviation s.

    python privacy.py

    delta = Phi(1/(2s) - epsilon s) - e^epsilon Phi(-1/(2s) - epsilon s)

(Balle and Wang 2018), 60 digits.  Every row is checked against the definition it solves: with the privacy loss
L ~ N(1/(2s^2), 1/s^2), delta = E[(1 - e^(epsilon - L))+], by tanh-sinh quadrature.
"""

import csv

import mpmath
from mpmath import mpf

from factors import DATA

mpmath.mp.dps = 60


def delta(s, epsilon):
    rt2 = mpmath.sqrt(2)
    first = mpmath.erfc((epsilon * s - 1 / (2 * s)) / rt2) / 2
    second = mpmath.erfc((epsilon * s + 1 / (2 * s)) / rt2) / 2
    return first - mpmath.exp(epsilon) * second


def by_definition(s, epsilon):
    """The integral over L > epsilon; the integrand falls at least like a normal density beyond it."""
    mean, width = 1 / (2 * s * s), 1 / s
    # Far in the tail the mass sits within width/x of epsilon, x its distance in standard deviations.
    x = max((epsilon - mean) / width, mpf(1))
    edges = {epsilon, *(epsilon + k * width / x for k in (1, 4, 16, 64, 128))}
    edges |= {mean + k * width for k in range(-3, 20, 2)}
    edges = sorted(e for e in edges if e >= epsilon)
    # `quad` stops at an absolute error, so the integrand is scaled to order one at its largest.
    peak = (max(epsilon - mean, 0) / width) ** 2 / 2

    def integrand(loss):
        return -mpmath.expm1(epsilon - loss) * mpmath.exp(peak - ((loss - mean) / width) ** 2 / 2)

    scale = width / x / (1 + x / width)
    return mpmath.quad(lambda loss: integrand(loss) / scale, edges) * scale * mpmath.exp(-peak) / (
        width * mpmath.sqrt(2 * mpmath.pi))


def jobs():
    """(s, epsilon) as doubles; the largest epsilon of each s takes delta down to 1e-20, 1e-100 and 1e-300."""
    grid = {
        0.2: (0.0, 1.0, 10.0, 25.0, 50.0),
        0.3: (0.0, 0.5, 5.0, 20.0, 50.0),
        0.5: (0.0, 0.1, 1.0, 3.0, 8.0, 20.0, 50.0),
        0.7: (0.0, 0.01, 1.0, 4.0, 12.0, 50.0),
        1.0: (0.0, 1e-6, 0.1, 1.0, 2.5, 8.0, 20.0, 36.0),
        1.1: (0.5, 3.0),
        1.5: (0.0, 0.3, 1.0, 5.0, 24.0),
        2.0: (0.0, 0.1, 1.0, 2.0, 8.0, 18.0),
        3.3: (0.0, 0.5, 1.5, 6.0),
        5.0: (0.0, 0.01, 0.2, 1.0, 4.0, 7.0),
        10.0: (0.0, 0.1, 0.5, 1.5, 3.6),
        20.0: (0.0, 0.001, 0.1, 0.4, 1.2, 1.8),
    }
    for s, many in grid.items():
        for epsilon in many:
            yield s, epsilon


if __name__ == "__main__":
    rows, worst = [], 0
    for s, epsilon in jobs():
        value = delta(mpf(s), mpf(epsilon))
        worst = max(worst, abs(by_definition(mpf(s), mpf(epsilon)) / value - 1))
        rows.append([repr(s), repr(epsilon), mpmath.nstr(value, 17, min_fixed=0, max_fixed=0, strip_zeros=False)])
    if worst > mpf("1e-30"):
        raise ArithmeticError(f"formula and definition differ by {mpmath.nstr(worst, 3)}")
    with open(DATA / "privacy.csv", "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["noise_multiplier", "epsilon", "delta"])
        writer.writerows(rows)
    print(f"{len(rows)} rows, formula against definition {mpmath.nstr(worst, 3)}")
