"""Writes best_threshold.csv: the global maximiser over c > 0 of CCC = mu^2 / nu.

    python best_threshold.py

kind   interior   the maximum is reached at c_best, ccc_best > 1
       infinity   CCC < 1 for every finite c, the supremum 1 is its limit (c_best = inf)
       zero       the supremum is the limit c -> 0 (c_best = 0); possible at r = 0 only, as
                  CCC = 4 f(0)^2 E[X^2] (1 + 4/3 f(0) c + ...) rises where f is smooth at 0

A dense grid in log c, denser around every |mean|, finds all local maxima; the best few are
refined by golden section at high precision.  A row whose outcome would hang on less than
1e-7 (two equal maxima, or a maximum that near to 1) is refused, as no method could be blamed.
"""

import csv
import json
import math
import time

import gmpy2
from gmpy2 import mpfr

import definitions as d
from definitions import show
from factors import DATA

CLEAR = 1e-7
d.BITS = 400  # ratios are moderate here, and the grid is long


def ccc(family, p, r, c):
    mu, _, nu = d.factors(family, p, r, c)
    return mu * mu / nu


def grid(family, p, r):
    """Thresholds to look at, ascending; where 1 - CCC is left out it is below 1e-40."""
    s = math.sqrt(2 * r)
    parts = d.components(family, p)
    if parts is not None:
        widths = [math.hypot(s, float(t)) for _, _, t in parts]
        centres = [abs(float(m)) for _, m, _ in parts]
        lo, hi = 1e-3 * min(widths), max(m + 14 * w for m, w in zip(centres, widths))
        points = {m + w * k / 8 for m in centres for w in widths for k in range(-80, 81)}
        n = 600
    else:
        size = p.get("sigma") or p.get("half_width") or p.get("scale")
        small = min(x for x in (s, size) if x > 0)
        lo = 1e-3 * small
        hi = size + 14 * s if family == "uniform" else (40 if family == "laplace" else 1e3) * math.hypot(s, size)
        points, n = set(), 140
    points |= {lo * (hi / lo) ** (k / n) for k in range(n + 1)}
    return sorted(x for x in points if lo <= x <= hi)


def golden(f, a, b):
    """Maximum of f on [a, b] in log c, to about 1e-11 in c."""
    ratio = (gmpy2.sqrt(mpfr(5)) - 1) / 2
    a, b = gmpy2.log(mpfr(a)), gmpy2.log(mpfr(b))
    x, y = b - ratio * (b - a), a + ratio * (b - a)
    fx, fy = f(gmpy2.exp(x)), f(gmpy2.exp(y))
    while b - a > mpfr("1e-11"):
        if fx > fy:
            b, y, fy = y, x, fx
            x = b - ratio * (b - a)
            fx = f(gmpy2.exp(x))
        else:
            a, x, fx = x, y, fy
            y = a + ratio * (b - a)
            fy = f(gmpy2.exp(y))
    c = gmpy2.exp((a + b) / 2)
    return f(c), c


def local_maxima(family, p, r):
    """Refined (ccc, c), best first; grid maxima that cannot compete are left out."""
    points = grid(family, p, r)
    values = [ccc(family, p, r, c) for c in points]
    peaks = [
        (values[i], points[i - 1], points[i + 1])
        for i in range(1, len(points) - 1)
        if values[i] > values[i - 1] and values[i] >= values[i + 1]
    ]
    peaks.sort(key=lambda q: q[0], reverse=True)
    refined = [golden(lambda c: ccc(family, p, r, c), a, b) for _, a, b in peaks[:3]]
    refined.sort(key=lambda q: q[0], reverse=True)
    return refined, len(peaks), max(values)


def best(family, p, r):
    """(c_best, ccc_best, kind, number of local maxima)."""
    if r == 0 and family == "laplace":
        # CCC falls from its limit 4 f(0)^2 sigma^2 = 2 on: check that on the grid.
        values = [ccc(family, p, r, c) for c in grid(family, p, r)]
        assert all(x > y for x, y in zip([mpfr(2), *values], values) if y > 1)
        return mpfr(0), mpfr(2), "zero", 0
    refined, count, seen = local_maxima(family, p, r)
    if len(refined) > 1 and abs(refined[0][0] / refined[1][0] - 1) < CLEAR:
        raise ArithmeticError("two maxima of the same height")
    top = refined[0][0] if refined else seen
    if abs(top - 1) < CLEAR and refined:
        raise ArithmeticError(f"a maximum of {show(top)}")
    if top > 1:
        assert refined and top >= seen
        return refined[0][1], top, "interior", count
    return mpfr("inf"), mpfr(1), "infinity", count


def jobs():
    for sigma, r in ((0.5, 0.18), (3.0, 0.0), (0.01, 10.0)):
        yield "gaussian", {"sigma": sigma}, r
    yield "none", {}, 0.7
    for a, r in ((1.0, 1e-6), (1.0, 0.003), (2.0, 1.0)):
        yield "uniform", {"half_width": a}, r
    for r in (0.0, 1e-8, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0):
        yield "laplace", {"sigma": 1.0}, r
    for sigma, r in ((3.0, 0.0), (40.0, 1e-3), (0.05, 4e-4), (0.8, 0.18)):
        yield "laplace", {"sigma": sigma}, r
    for r in (1e-8, 1e-5, 1e-3, 0.01, 0.05, 0.15, 0.4, 1.0, 5.0):
        yield "rademacher", {"lambda": 1.0, "p": 0.2}, r
    for q, lam, r in ((0.05, 3.577708763999664, 0.05), (0.7, 1.0, 0.01), (0.7, 1.0, 0.2), (0.95, 2.0, 1e-4),
                      (0.95, 2.0, 0.1), (1.0, 1.0, 1e-3), (1.0, 1.0, 0.3), (0.001, 20.0, 2.0), (0.001, 20.0, 50.0)):
        yield "rademacher", {"lambda": lam, "p": q}, r
    for df, scale, r in ((2.1, 1.0, 0.01), (2.1, 1.0, 1.0), (2.1, 0.3, 20.0), (2.2, 0.5, 0.0), (2.5, 1.0, 0.1),
                         (3.0, 1.0, 0.0), (3.0, 1.0, 0.5), (3.0, 5.0, 1e-4), (4.0, 1.0, 1.0), (5.0, 0.01, 1e-4),
                         (8.0, 1.0, 0.0), (10.0, 1.0, 0.3), (20.0, 2.0, 0.1), (50.0, 1.0, 0.0), (50.0, 1.0, 0.2)):
        yield "student_t", {"df": df, "scale": scale}, r

    def mix(weights, means, stds):
        return {"weights": weights, "means": means, "stds": stds}

    # Three narrow bumps far apart, a rare one farthest: a maximum beyond each.
    bumps = mix([0.7, 0.29, 0.01], [0.0, 3.0, 200.0], [0.05, 0.05, 1.0])
    for r in (1e-6, 1e-3, 0.05, 1.0, 30.0):
        yield "gaussian_mixture", bumps, r
    # The nearest bump holds little: the middle or the last maximum wins.
    for r in (1e-3, 0.02):
        yield "gaussian_mixture", mix([0.1, 0.895, 0.005], [0.0, 3.0, 100.0], [0.3, 0.3, 1.0]), r
    for near, mid in ((0.02, 0.15), (0.02, 0.1)):
        p = mix([near, mid, 0.99 - near - mid, 0.01], [0.0, 1.0, 10.0, 1000.0], [0.2, 0.1, 0.5, 1.0])
        yield "gaussian_mixture", p, 1e-4
    # Other orders of the same.
    yield "gaussian_mixture", mix([0.05, 0.94, 0.01], [0.0, 3.0, 200.0], [0.05, 0.05, 1.0]), 1e-4
    yield "gaussian_mixture", mix([0.05, 0.94, 0.01], [0.0, 3.0, 40.0], [0.05, 0.05, 1.0]), 0.5
    yield "gaussian_mixture", mix([0.1, 0.2, 0.7], [0.1, -1.0, 10.0], [0.01, 0.01, 0.01]), 1e-5
    yield "gaussian_mixture", mix([0.02, 0.02, 0.95, 0.01], [0.0, 1.0, -10.0, 1000.0], [0.0, 0.0, 0.1, 0.0]), 1e-4
    yield "gaussian_mixture", mix([30.0, 30.0, 1e-4], [-1.0, 1.0, 5000.0], [0.1, 0.1, 10.0]), 1e-3
    # Scale mixtures and other shapes.
    yield "gaussian_mixture", mix([0.95, 0.05], [0.0, 0.0], [0.5, 9.0]), 0.05
    yield "gaussian_mixture", mix([0.9, 0.09, 0.01], [0.0, 0.0, 0.0], [0.01, 1.0, 100.0]), 1e-6
    yield "gaussian_mixture", mix([0.5, 0.3, 0.2], [-0.6, 0.1, 1.35], [0.2, 0.4, 0.3]), 0.01
    yield "gaussian_mixture", mix([1.0], [3.0], [0.5]), 0.02
    yield "gaussian_mixture", mix([2.0], [0.0], [0.5]), 0.3
    yield "gaussian_mixture", mix([0.25, 0.25, 0.5], [-5.0, 5.0, 0.0], [0.8, 0.8, 100.0]), 0.1


if __name__ == "__main__":
    with open(DATA / "best_threshold.csv", "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["family", "params", "r", "c_best", "ccc_best", "kind"])
        for family, p, r in jobs():
            start = time.time()
            d.set_bits(d.BITS)
            try:
                c, value, kind, count = best(family, p, r)
            except ArithmeticError as e:
                print("refused:", family, p, r, e, flush=True)
                continue
            writer.writerow([family, json.dumps(p), repr(r), show(c, 11), show(value), kind])
            out.flush()
            print(f"{time.time() - start:6.1f} s", family, p, r, show(c, 11), show(value), kind,
                  f"({count} local maxima)", flush=True)
