"""Writes rule_factors.csv: mu = E[psi'(X)] and m2 = E[psi(X)^2] of the rules other than clipping.

    python rules.py                generate (some minutes)
    python rules.py --check [N]    recompute N random rows by a second route (some minutes for 150)

    skip       psi = x 1{|x| <= c}          mu = P(|X| <= c) - c (f(c) + f(-c)), the jumps counted
    normalise  psi = c sign(x)              mu = 2 c f(0), m2 = c^2
    tanh       psi = c tanh(x/c)
    root       psi = x / sqrt(1 + x^2/c^2)
    optimal    psi = -f'/(f I)              mu = 1, m2 = 1/I, I = int f'^2/f; c is written as inf

The density of X is integrated (`residual.py`).  For skip mu = -int_{-c}^{c} x f'(x) dx, so that
nothing cancels where mu and m2 are of order c^3.  The second route is in `rules_check.py`.
"""

import argparse
import csv
import json
import math
import random
import sys
import time
from functools import lru_cache
from pathlib import Path

import gmpy2
from gmpy2 import mpfr

from definitions import ONE, ZERO, gauss_legendre, show
from factors import DATA, log_uniform, near
from residual import Residual

SEED = 20250715
COLUMNS = ["rule", "family", "params", "r", "c", "mu", "m2"]
RULES = ["skip", "normalise", "tanh", "root", "optimal"]
FAMILIES = ["none", "gaussian", "rademacher", "uniform", "laplace", "student_t", "gaussian_mixture"]
SMALLEST = mpfr("1e-100")  # rows with smaller values are left out


def shape(rule, c):
    """x -> (psi'(x), psi(x)^2, c^2 - psi(x)^2) of the smooth rules."""
    if rule == "tanh":

        def tanh(x):
            # exp(-2x/c) keeps c^2 - psi^2 = c^2 psi' free of cancellation
            e = gmpy2.exp(-2 * abs(x) / c)
            slope = 4 * e / (1 + e) ** 2
            return slope, (c * (1 - e) / (1 + e)) ** 2, c * c * slope

        return tanh

    def root(x):
        k = 1 / (1 + (x / c) ** 2)
        return k * gmpy2.sqrt(k), x * x * k, c * c * k

    return root


def heavy_top(X, rule, c):
    """Where the integrals of psi' and c^2 - psi^2 against a power tail may stop: 1e-36 of the whole."""
    digits = 36 + abs(float(gmpy2.log10(X.scale / c)))
    reach = X.scale * gmpy2.sqrt(X.heavy + 1)  # P(|X| > x) < (reach/x)^df
    top = (c * c * reach**X.heavy * mpfr(10) ** digits) ** (1 / (2 + X.heavy))
    if rule == "tanh":
        top = min(top, 1.2 * digits * c)  # exp(-2 x/c)
    return mpfr(2) ** math.ceil(gmpy2.log2(top))


def smooth(X, rule, c):
    values = shape(rule, c)
    mu = m2 = ZERO
    for w, m in X.atoms:
        slope, square, _ = values(m)
        mu += w * slope
        m2 += w * square
    if X.heavy is not None:
        edges = X.edges(c, heavy_top(X, rule, c))
        slope, deficit = X.integrate(edges, lambda x, f0, f1: (f0 * (v := values(x))[0], f0 * v[2]))
        return slope, c * c - deficit
    if X.top > 0:
        slope, square = X.integrate(X.edges(c), lambda x, f0, f1: (f0 * (v := values(x))[0], f0 * v[1]))
        mu += slope
        m2 += square
    return mu, m2


def skip(X, c):
    mu = m2 = ZERO
    for w, m in X.atoms:
        if abs(m) <= c:
            mu += w
            m2 += w * m * m
    if X.heavy is not None or X.top > 0:
        edges = [e for e in X.edges(min(c, X.scale) / 4, c) if e <= c]
        slope, square = X.integrate(edges, lambda x, f0, f1: (-x * f1, x * x * f0))
        mu += slope
        m2 += square
    return mu, m2


@lru_cache(maxsize=None)
def last_coefficients(n, bits):
    """Rows of (2k+1)/2 w_i P_k(t_i) for the last three k below n: Legendre coefficients of a panel."""
    rows = [[], [], []]
    for t, w in gauss_legendre(n, bits):
        p = [ONE, t]
        for k in range(2, n):
            p.append(((2 * k - 1) * t * p[-1] - (k - 1) * p[-2]) / k)
        for j in range(3):
            rows[j].append((2 * (n - 3 + j) + 1) * w * p[n - 3 + j] / 2)
    return rows


def adaptive(X, lo, hi, tolerance, depth=0):
    """int f'^2/f over one panel, halved until its series of Legendre polynomials has ended.

    Gauss-Legendre with n nodes is exact to degree 2n - 1: its error is about the square of the
    last coefficient below n.
    """
    nodes = X.panel(lo, hi)
    values = [f1 * f1 / f0 if f0 > 0 else ZERO for _, _, f0, f1 in nodes]
    peak = max(values)
    rows = last_coefficients(len(nodes), gmpy2.get_context().precision)
    last = max(abs(sum(a * v for a, v in zip(row, values))) for row in rows)
    if peak == 0 or last * last / peak * (hi - lo) < tolerance:
        return sum((w * v for (_, w, _, _), v in zip(nodes, values)), ZERO)
    if depth > 30:
        raise ArithmeticError("panels do not converge")
    mid = (lo + hi) / 2
    return adaptive(X, lo, mid, tolerance, depth + 1) + adaptive(X, mid, hi, tolerance, depth + 1)


def fisher(X):
    """I(X) of a density without atoms."""
    if X.heavy is not None:
        top = X.scale * gmpy2.sqrt((X.heavy + 1) * (mpfr(10) ** (70 / (2 + X.heavy)) - 1))
        top = mpfr(2) ** math.ceil(gmpy2.log2(top))
    else:
        top = X.top
    smallest = min([X.scale] + [S for _, S in X.bends]) / 4
    edges = X.edges(smallest, top)
    sides = list(zip(edges, edges[1:]))
    if not X.even:
        sides += [(-hi, -lo) for lo, hi in sides]
    rough = sum((w * f1 * f1 / f0 for lo, hi in sides for _, w, f0, f1 in X.panel(lo, hi) if f0 > 0), ZERO)
    total = sum((adaptive(X, lo, hi, rough * mpfr("1e-33")) for lo, hi in sides), ZERO)
    return 2 * total if X.even else total


def uniform_without_smoothing(rule, a, c):
    """r = 0: P(|eps| <= c) and the jumps of the density are exact; c is not a."""
    if rule == "skip":
        return (ZERO, c**3 / (3 * a)) if c < a else (ONE, a * a / 3)
    if rule == "tanh":
        t = c * gmpy2.tanh(a / c)
        return t / a, c * c * (a - t) / a
    return 1 / gmpy2.sqrt(1 + (a / c) ** 2), c * c * (1 - c / a * gmpy2.atan(a / c))


def rule_factors(X, p, rule, c):
    """(mu, m2) of one rule for the residual X."""
    if rule == "optimal":
        return ONE, 1 / fisher(X)
    c = mpfr(c)
    if rule == "normalise":
        return 2 * c * X.f(ZERO)[0], c * c
    if X.family == "uniform" and X.s == 0:
        return uniform_without_smoothing(rule, mpfr(p["half_width"]), c)
    return skip(X, c) if rule == "skip" else smooth(X, rule, c)


# --- the rows ------------------------------------------------------------------------


def parameters(rng, family):
    """Parameters at a random scale, and the lengths at which the density has corners."""
    unit = round(log_uniform(rng, 0.05, 20), 3)
    if family == "none":
        return {}, None
    if family in ("gaussian", "laplace"):
        return {"sigma": unit}, unit
    if family == "rademacher":
        return {"lambda": unit, "p": rng.choice([1.0, 0.9, 0.5, 0.2, 0.05, 0.001])}, unit
    if family == "uniform":
        return {"half_width": unit}, unit
    if family == "student_t":
        return {"df": rng.choice([0.7, 1.0, 2.0, 2.2, 2.5, 3.0, 4.5, 8.0, 30.0]), "scale": unit}, unit
    n = rng.randint(2, 4)
    weights = [round(rng.uniform(0.05, 2), 2) for _ in range(n)]
    means = [
        0.0 if rng.random() < 0.25 else round(rng.choice((-1, 1)) * unit * rng.uniform(0.2, 6), 3) for _ in range(n)
    ]
    stds = [0.0 if rng.random() < 0.2 else round(unit * log_uniform(rng, 0.05, 2), 4) for _ in range(n)]
    means[-1] = means[-1] or 3 * unit
    return {"weights": weights, "means": means, "stds": stds}, abs(means[-1])


def has_density(family, p):
    """At r = 0: a density that is continuous (uniform: apart from its two ends)."""
    return family in ("gaussian", "laplace", "student_t", "uniform") or (
        family == "gaussian_mixture" and min(p["stds"]) > 0)


def residuals(rng, family, turn):
    """One choice of (params, r, corner, kind)."""
    p, corner = parameters(rng, family)
    kind = ("moderate", "moderate", "corner", "wide", "zero")[turn % 5]
    if corner is None:  # no noise: only r sets a scale
        r = 0.0 if kind == "zero" and turn < 5 else log_uniform(rng, 1e-6, 1e2)
        return p, r, math.sqrt(2 * r) or 1.0, "zero" if r == 0 else "moderate"
    if kind == "zero":
        return p, 0.0, corner, kind
    if kind == "corner":
        s = corner * log_uniform(rng, 3e-3, 0.2)
        return p, max(s * s / 2, 1e-6), corner, kind
    if kind == "wide":
        return p, log_uniform(rng, 1e-6, 1e2), corner, kind
    s = corner * log_uniform(rng, 0.1, 5)
    return p, min(s * s / 2, 100.0), corner, kind


def thresholds(rng, rule, r, corner, kind, turn):
    """Two to three thresholds for one residual; only `rule` = skip goes below 1e-3 scales."""
    scale = math.hypot(math.sqrt(2 * r), corner)
    found = [scale * log_uniform(rng, 0.1, 5), scale * log_uniform(rng, 1e-3, 1e2)]
    if kind == "corner":
        s = math.sqrt(2 * r)
        found = [corner + s * rng.uniform(-3, 3), near(rng, corner), corner * rng.uniform(1.01, 1.3)]
    elif kind == "zero" and rule == "skip":
        found = [c for c in (corner * 0.7, corner * 1.6, scale * log_uniform(rng, 1e-3, 1e2))]
    if turn % 5 == 3:
        found.append(scale * (log_uniform(rng, 1e-6, 1e-3) if rule == "skip" else log_uniform(rng, 1e-3, 0.02)))
    return found


def jobs():
    """((family, params, r), [(rule, c), ...]) in a fixed order."""
    rng = random.Random(SEED)
    for family in FAMILIES:
        for turn in range(12):
            p, r, corner, kind = residuals(rng, family, turn)
            density = r > 0 or has_density(family, p)
            asked = []
            for rule in ("skip", "tanh", "root"):
                asked += [(rule, c) for c in thresholds(rng, rule, r, corner, kind, turn)[: 3 if rule == "skip" else 2]]
            if density:
                asked += [("normalise", c) for c in thresholds(rng, "normalise", r, corner, kind, 0)[:2]]
                if r > 0 or family != "uniform":
                    asked.append(("optimal", math.inf))
            yield family, p, r, asked
        # I(X) does not depend on c, so it needs more residuals than the other rules.
        for turn in range(12):
            p, r, _, _ = residuals(rng, family, turn % 4 + 5)
            yield family, p, r, [("optimal", math.inf)]


def generate(path):
    start, n, dropped = time.time(), 0, 0
    table = {rule: [] for rule in RULES}
    for family, p, r, asked in jobs():
        began = time.time()
        X = Residual(family, p, r)
        for rule, c in asked:
            mu, m2 = rule_factors(X, p, rule, c)
            if min(abs(mu) if mu != 0 else ONE, m2 if m2 != 0 else ONE) < SMALLEST:
                dropped += 1
                continue
            table[rule].append([rule, family, json.dumps(p), repr(r), repr(c), show(mu), show(m2)])
            n += 1
        if time.time() - began > 10:
            print(f"slow: {time.time() - began:.1f} s", family, p, r, file=sys.stderr)
    with open(path, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for rule in RULES:
            writer.writerows(table[rule])
    print(f"{path}: {n} rows in {time.time() - start:.0f} s, {dropped} left out as too small")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", type=int, nargs="?", const=150, metavar="N")
    parser.add_argument("--out", type=Path, default=DATA / "rule_factors.csv")
    args = parser.parse_args()
    if args.check:
        import rules_check

        sys.exit(rules_check.check(args.out, args.check))
    generate(args.out)
