"""Writes glm.csv: a, b and m2 of clipped SGD on logistic regression.

    python glm.py            generate the missing rows (some minutes)
    python glm.py --check    recompute the rows by a second route

(u, v) is a centred Gaussian pair with covariance (Q, P; P, V), y is drawn given v, r = r(u, y), and

    a = E[dr/du; |r| <= c],   b = E[clip(r) d/dv ln P(y | v)],   m2 = E[clip(r)^2].

P(y = 1 | v) = rho + (1 - 2 rho) s(v) and r(u, y) = s(u) - y with s(x) = 1 / (1 + exp(-x)). Given u, v is normal: the
inner integral is a trapezoidal rule, whose error falls exponentially.  The outer one is Gauss-Legendre between all kinks.  The second route conditions on v: the trapezoidal
rule is then the outer one, over v, and the inner integral over u is split where r is clipped.
"""

import csv
import random
import sys
from functools import lru_cache
from multiprocessing import Pool

import mpmath
from mpmath import mpf

from factors import DATA

mpmath.mp.dps = 36
REACH = 13  # standard deviations: exp(-84) is 1e-37
COLUMNS = ["model", "flips", "q", "p", "v", "c", "a", "b", "m2"]


@lru_cache(None)
def gauss_legendre(n):
    nodes = []
    for i in range(n):
        x = mpmath.cos(mpmath.pi * (i + mpf(3) / 4) / (n + mpf(1) / 2))
        for _ in range(8):
            p0, p1 = mpf(1), x
            for k in range(2, n + 1):
                p0, p1 = p1, ((2 * k - 1) * x * p1 - (k - 1) * p0) / k
            slope = n * (x * p1 - p0) / (x * x - 1)
            x -= p1 / slope
        nodes.append((x, 2 / ((1 - x * x) * slope * slope)))
    return nodes


def integrate(f, edges, width, n=24):
    """The sum of f, a list of numbers, over panels no wider than width between the edges."""
    total = None
    for low, high in zip(edges, edges[1:]):
        count = int(mpmath.ceil((high - low) / width))
        for i in range(count):
            left = low + (high - low) * i / count
            half = (high - low) / count / 2
            for x, w in gauss_legendre(n):
                values = [half * w * y for y in f(left + half * (1 + x))]
                total = values if total is None else [s + y for s, y in zip(total, values)]
    return total


def normal(x, s):
    return mpmath.exp(-(x / s) ** 2 / 2) / (s * mpmath.sqrt(2 * mpmath.pi))


def sigmoid(x):
    return 1 / (1 + mpmath.exp(-x))


@lru_cache(4)
def trapezoid(s):
    """(weight, exp(-s z)) of the nodes for v = m + s z."""
    # The nearest pole is at pi/s: errors are exp(-2 pi^2/(s h)) and exp(-2 pi^2/h^2).
    h = min(mpf("0.24") / s, mpf("0.45"))
    count = int(mpmath.ceil(REACH / h))
    return [(h * normal(k * h, 1), mpmath.exp(-s * k * h)) for k in range(-count, count + 1)]


@lru_cache(4)
def slopes():
    """(x, h s'(x)); s' falls as exp(-|x|)."""
    h = mpf("0.23")
    count = int(84 / h)
    return [(k * h, h * sigmoid(k * h) * sigmoid(-k * h)) for k in range(-count, count + 1)]


def logistic_normal(m, s):
    """E s(m + s z) and E s'(m + s z)."""
    if s == 0:
        x = sigmoid(m)
        return x, x * (1 - x)
    zero = one = mpf(0)
    if s < 12:
        at_mean = mpmath.exp(-m)
        for w, e in trapezoid(s):
            x = 1 / (1 + at_mean * e)
            zero += w * x
            one += w * x * (1 - x)
        return zero, one
    # E s(v) is the integral of s'(x) P(v > x), E s'(v) that of s'(x) f_v(x).
    for x, slope in slopes():
        zero += slope * mpmath.ncdf((m - x) / s)
        one += slope * normal(x - m, s)
    return zero, one


def residual(u):
    """r(u, 0) and its derivative; r(u, 1) = -r(-u, 0)."""
    x = sigmoid(u)
    return x, x * (1 - x)


def kink(c):
    """u where r(u, 0) = c; infinite if there is no such u."""
    return mpmath.inf if c >= 1 else mpmath.log(c / (1 - c))


def clipped(u, c):
    """clip(r(u, 0)) and its derivative."""
    r, slope = residual(u)
    return (r, slope) if r <= c else (mpf(c), mpf(0))


def given(flips, u, c, prob, slope):
    """The three integrands where E F(v) = prob and E F'(v) = slope."""
    one = flips + (1 - 2 * flips) * prob
    r0, s0 = clipped(u, c)
    r1, s1 = clipped(-u, c)
    return [(1 - one) * s0 + one * s1, -(1 - 2 * flips) * slope * (r0 + r1), (1 - one) * r0**2 + one * r1**2]


def coefficients(flips, q, p, v, c):
    q, p, v, flips = (mpf(x) for x in (q, p, v, flips))
    if q == 0:
        return given(flips, mpf(0), c, *logistic_normal(mpf(0), mpmath.sqrt(v)))
    root, slope = mpmath.sqrt(q), p / q
    s2 = v - p * p / q
    s = mpmath.sqrt(s2) if s2 > mpf("1e-25") * v else mpf(0)
    t = kink(c)
    far = REACH * root
    edges = sorted({-far, mpf(0), far} | {e for e in (t, -t) if abs(e) < far})
    # s(u) has poles at pi, F(slope u) at pi/slope or further.
    width = min(root, mpf("1.5"))
    if slope != 0:
        width = min(width, mpmath.sqrt(2 + s * s) / abs(slope))

    def integrand(u):
        w = normal(u, root)
        return [w * x for x in given(flips, u, c, *logistic_normal(slope * u, s))]

    return integrate(integrand, edges, width)


def coefficients_given_v(flips, q, p, v, c):
    """The same, integrated over v first."""
    q, p, v, flips = (mpf(x) for x in (q, p, v, flips))
    root, slope = mpmath.sqrt(v), p / v
    s = mpmath.sqrt(q - p * p / v)
    t = kink(c)
    total = [mpf(0)] * 3
    h = min(mpf("0.23") / root, mpf("0.45"), mpf("0.4") * s / abs(slope) / root if slope else 1)
    count = int(REACH / h)
    for k in range(-count, count + 1):
        z = k * h
        prob = sigmoid(z * root)
        density = prob * (1 - prob)
        m = slope * z * root
        edges = sorted({m - REACH * s, m + REACH * s} | {e for e in (t, -t) if abs(e - m) < REACH * s})

        def integrand(u):
            return [normal(u - m, s) * x for x in given(flips, u, c, prob, density)]

        values = integrate(integrand, edges, min(s, mpf("1.5")))
        total = [x + h * normal(z, 1) * y for x, y in zip(total, values)]
    return total


def jobs():
    rng = random.Random(16)
    rows = []
    thresholds = [0.02, 0.1, 0.3, 0.4, 0.5, 0.7, 0.97, 1.5, "inf"]
    for i in range(36):
        q, v = 10 ** rng.uniform(-2, 1.3), 10 ** rng.uniform(-1, 1.6)
        p = rng.uniform(-0.3, 0.98) * (q * v) ** 0.5
        flips = (0.0, 0.0, 0.1, 0.3)[i % 4]
        rows.append(("logistic", flips, q, p, v, thresholds[i % len(thresholds)]))
    for c in (0.2, 0.5, 0.6, "inf"):
        rows.append(("logistic", 0.1, 0.0, 0.0, 9.0, c))  # the start at zero
        rows.append(("logistic", 0.0, 4.0, 6.0, 9.0, c))  # |correlation| = 1
        rows.append(("logistic", 0.1, 4.0, -6.0, 9.0, c))
        rows.append(("logistic", 0.1, 2.0, 0.0, 0.0, c))  # no teacher
        rows.append(("logistic", 0.05, 2.25, 150.0, 1e4, c))  # labels that hardly depend on chance
        rows.append(("logistic", 0.0, 1e-6, 1e-3, 4.0, c))
        rows.append(("logistic", 0.2, 400.0, 5.0, 2.0, c))
    rows.append(("logistic", 0.05, 3.0, 1.5e3, 1e6, 0.5))
    rows.append(("logistic", 0.5, 2.0, 1.0, 3.0, 0.3))
    return rows


def number(c):
    return mpmath.inf if c == "inf" else mpf(c)


def known():
    """The rows of the existing table, by their parameters."""
    try:
        with open(DATA / "glm.csv", newline="") as file:
            return {tuple(row[:6]): row for row in csv.reader(file)}
    except FileNotFoundError:
        return {}


KNOWN = known()


def compute(row):
    model, flips, q, p, v, c = row
    key = (model, repr(flips), repr(q), repr(p), repr(v), str(c))
    if key in KNOWN:
        return KNOWN[key]
    values = coefficients(flips, q, p, v, number(c))
    return [*key, *(mpmath.nstr(x, 32) for x in values)]


def main():
    if "--check" in sys.argv:
        worst = 0
        with open(DATA / "glm.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for row in random.Random(1).sample(rows, len(rows)):
            flips, q, p, v = (float(row[k]) for k in ("flips", "q", "p", "v"))
            if not (q > 0.01 and 0.05 < v < 10 and abs(p) < 0.9 * (q * v) ** 0.5 and abs(p) > 0):
                continue
            values = coefficients_given_v(flips, q, p, v, number(row["c"]))
            off = max(abs(x - mpf(row[k])) for x, k in zip(values, ("a", "b", "m2")))
            worst = max(worst, off)
            print(q, p, v, row["c"], mpmath.nstr(off, 3), flush=True)
        print("worst:", mpmath.nstr(worst, 3))
        return
    with Pool() as pool, open(DATA / "glm.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in pool.imap(compute, jobs()):
            writer.writerow(row)
            file.flush()


if __name__ == "__main__":
    main()
