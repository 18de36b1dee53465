"""Checks a table of factors by a second route, which shares nothing with the first.

    python crosscheck.py [FILE] [--rows N] [--seed S]

Finite mixtures: the density of X itself is integrated, no error function.
Uniform, Laplace, Student-t: condition on eps (the first route conditions on z or on the
chi-square variable) and integrate the density of eps against the Gaussian kernel.
"""

import argparse
import csv
import json
import random
import sys

import gmpy2
import mpmath
from gmpy2 import mpfr

import definitions as d
from definitions import ONE, ZERO, from_mp, gauss_legendre, set_bits, show, sqrt2pi
from factors import DATA

REACH = 60  # standard deviations: exp(-1800)


def panels(edges, pair):
    """Gauss-Legendre between neighbouring edges of two integrands that share the nodes."""
    rule = gauss_legendre(d.NODES, gmpy2.get_context().precision)
    first = second = ZERO
    edges = sorted(edges)
    for lo, hi in zip(edges, edges[1:]):
        half, mid = (hi - lo) / 2, (hi + lo) / 2
        for x, w in rule:
            u, v = pair(mid + half * x)
            first += half * w * u
            second += half * w * v
    return first, second


def component(m, S, c):
    """(mu, m2) of N(m, S^2), by the integral of its density inside and outside [-c, c]."""
    if S == 0:
        return (ONE, m * m) if abs(m) <= c else (ZERO, c * c)

    def clipped(x):
        f = gmpy2.exp(-(((x - m) / S) ** 2) / 2) / (S * sqrt2pi())
        return f, f * min(x * x, c * c)

    lo, hi = m - REACH * S, m + REACH * S
    grid = [m + S * k / 2 for k in range(-2 * REACH, 2 * REACH + 1)]
    edges = sorted({e for e in [-c, c, *grid] if lo <= e <= hi})
    mu, inside = panels([e for e in edges if -c <= e <= c], clipped)
    _, below = panels([e for e in edges if e <= -c], clipped)
    _, above = panels([e for e in edges if e >= c], clipped)
    return mu, below + inside + above


def density(family, p):
    """Density of eps on [0, inf) and the lengths at which panels must break."""
    if family == "uniform":
        a = mpfr(p["half_width"])
        return (lambda e: 1 / (2 * a) if e <= a else ZERO), [a], a
    if family == "laplace":
        b = mpfr(p["sigma"]) / gmpy2.sqrt(mpfr(2))
        edges = [b * k for k in (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256)]
        return (lambda e: gmpy2.exp(-e / b) / (2 * b)), edges, b * 256
    df, scale = mpfr(p["df"]), mpfr(p["scale"])
    with mpmath.workprec(gmpy2.get_context().precision + 64):
        n, q = df.as_integer_ratio()
        v = mpmath.mpf(int(n)) / int(q)
        log_norm = mpmath.loggamma((v + 1) / 2) - mpmath.loggamma(v / 2) - mpmath.log(v * mpmath.pi) / 2
        norm = from_mp(mpmath.exp(log_norm)) / scale

    def f(e):
        t = e / scale
        return norm * gmpy2.exp(-(df + 1) / 2 * gmpy2.log1p(t * t / df))

    # Where the density bends: at sqrt(df) for few degrees of freedom, at 1 for many.
    root = scale * gmpy2.sqrt(df)
    edges = [root * mpfr(2) ** k for k in range(-2, 300)]
    edges += [scale * k / 2 for k in range(1, 61)] if df > 20 else []
    # Beyond this the density is below exp(-300) of its peak.
    top = root * gmpy2.sqrt(gmpy2.exp(600 / (df + 1)) - 1)
    return f, edges, top


def given_eps(family, p, s, c):
    """(mu, m2): 2 int_0^inf f(e) (P(e), c^2 - G(e)) de; the second is subtracted from c^2."""
    f, breaks, top = density(family, p)
    end = min(c + 22 * s, top)
    edges = {ZERO, end}
    breaks = breaks + [c, *(c + k * s for k in range(-22, 22)), *(k * s for k in range(1, 23))]
    edges.update(e for e in breaks if 0 < e < end)

    def both(e):
        g0, g2 = d.gaussian_kernel(e, s, c)
        w = f(e)
        return w * g0, w * (c * c - g2)

    mu, deficit = panels(edges, both)
    return 2 * mu, c * c - 2 * deficit


def second_route(family, p, r, c):
    r, c = mpfr(r), mpfr(c)
    s = gmpy2.sqrt(2 * r)
    parts = d.components(family, p)
    if parts is None:
        return given_eps(family, p, s, c)
    mu = m2 = ZERO
    for w, m, std in parts:
        k0, k2 = component(m, gmpy2.sqrt(s * s + std * std), c)
        mu += w * k0
        m2 += w * k2
    return mu, m2


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", nargs="?", default=DATA / "reduction_factors_wide.csv")
    parser.add_argument("--rows", type=int, default=350)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    set_bits(800)
    rows = [(i, r) for i, r in enumerate(csv.DictReader(open(args.file)), start=2) if r["c"] != "inf"]
    rows = random.Random(args.seed).sample(rows, min(args.rows, len(rows)))
    worst, bad = {}, 0
    for line, row in rows:
        mu, m2 = second_route(row["family"], json.loads(row["params"]), float(row["r"]), float(row["c"]))
        for name, value in (("mu", mu), ("m2", m2)):
            given = mpfr(row[name])
            error = float(abs(given - value) / abs(value)) if value != 0 else float(given)
            worst[row["family"]] = max(worst.get(row["family"], 0.0), error)
            if not error < 5.1e-17 and abs(value) > mpfr("1e-320"):
                bad += 1
                print(f"line {line}: {name} {row[name]}, second route {show(value)}", row)
    print(f"{len(rows)} rows, {bad} disagree; worst relative difference by family:", worst)
    sys.exit(1 if bad else 0)
