"""Writes glm.csv: a, b and m2 of clipped SGD on logistic, probit and Poisson regression.

    python glm.py            generate the missing rows (some minutes)
    python glm.py --check    recompute the binary rows by a second route

(u, v) is a centred Gaussian pair with covariance (Q, P; P, V), y is drawn given v, r = r(u, y), and

    a = E[dr/du; |r| <= c],   b = E[clip(r) d/dv ln P(y | v)],   m2 = E[clip(r)^2].

| model | P(y = 1 | v) or P(y | v) | r(u, 0), r(u, 1) or r(u, y) |
|---|---|---|
| logistic | rho + (1 - 2 rho) / (1 + exp(-v)) | s(u), s(u) - 1 |
| probit | rho + (1 - 2 rho) Phi(v) | phi(u)/Phi(-u), -phi(u)/Phi(u) |
| poisson | Poisson of mean exp(v) | exp(u) - y |

Given u, v is normal: the inner integral is exact for probit, and for logistic a trapezoidal rule, whose error falls
exponentially.  The outer one is Gauss-Legendre between all kinks.  The second route conditions on v: the trapezoidal
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


def label_given_u(model, m, s):
    """E F(v) and E F'(v) for v = m + s z."""
    if model == "logistic":
        return logistic_normal(m, s)
    t = mpmath.sqrt(1 + s * s)
    return mpmath.ncdf(m / t), normal(m, t)


def residual(model, u):
    """r(u, 0) and its derivative; r(u, 1) = -r(-u, 0)."""
    if model == "logistic":
        x = sigmoid(u)
        return x, x * (1 - x)
    h = normal(u, 1) / mpmath.ncdf(-u)
    return h, h * (h - u)


def kink(model, c):
    """u where r(u, 0) = c; infinite if there is no such u."""
    if c == mpmath.inf or (model == "logistic" and c >= 1):
        return mpmath.inf
    if model == "logistic":
        return mpmath.log(c / (1 - c))
    low, high = mpf(-30), mpf(c) + 1
    for _ in range(160):
        middle = (low + high) / 2
        low, high = (middle, high) if residual(model, middle)[0] < c else (low, middle)
    return (low + high) / 2


def clipped(model, u, c):
    """clip(r(u, 0)) and its derivative."""
    r, slope = residual(model, u)
    return (r, slope) if r <= c else (mpf(c), mpf(0))


def given(model, flips, u, c, prob, slope):
    """The three integrands where E F(v) = prob and E F'(v) = slope."""
    one = flips + (1 - 2 * flips) * prob
    r0, s0 = clipped(model, u, c)
    r1, s1 = clipped(model, -u, c)
    return [(1 - one) * s0 + one * s1, -(1 - 2 * flips) * slope * (r0 + r1), (1 - one) * r0**2 + one * r1**2]


def binary(model, flips, q, p, v, c):
    q, p, v, flips = (mpf(x) for x in (q, p, v, flips))
    if q == 0:
        return given(model, flips, mpf(0), c, *label_given_u(model, mpf(0), mpmath.sqrt(v)))
    root, slope = mpmath.sqrt(q), p / q
    s2 = v - p * p / q
    s = mpmath.sqrt(s2) if s2 > mpf("1e-25") * v else mpf(0)
    t = kink(model, c)
    far = REACH * root
    edges = sorted({-far, mpf(0), far} | {e for e in (t, -t) if abs(e) < far})
    # s(u) has poles at pi, F(slope u) at pi/slope or further.
    width = min(root, mpf("1.5"))
    if slope != 0:
        width = min(width, mpmath.sqrt(2 + s * s) / abs(slope))

    def integrand(u):
        w = normal(u, root)
        return [w * x for x in given(model, flips, u, c, *label_given_u(model, slope * u, s))]

    return integrate(integrand, edges, width)


def binary_given_v(model, flips, q, p, v, c):
    """The same, integrated over v first."""
    q, p, v, flips = (mpf(x) for x in (q, p, v, flips))
    root, slope = mpmath.sqrt(v), p / v
    s = mpmath.sqrt(q - p * p / v)
    t = kink(model, c)
    total = [mpf(0)] * 3
    h = min(mpf("0.23") / root, mpf("0.45"), mpf("0.4") * s / abs(slope) / root if slope else 1)
    count = int(REACH / h)
    for k in range(-count, count + 1):
        z = k * h
        if model == "logistic":
            prob = sigmoid(z * root)
            density = prob * (1 - prob)
        else:
            prob, density = mpmath.ncdf(z * root), normal(z * root, 1)
        m = slope * z * root
        edges = sorted({m - REACH * s, m + REACH * s} | {e for e in (t, -t) if abs(e - m) < REACH * s})

        def integrand(u):
            return [normal(u - m, s) * x for x in given(model, flips, u, c, prob, density)]

        values = integrate(integrand, edges, min(s, mpf("1.5")))
        total = [x + h * normal(z, 1) * y for x, y in zip(total, values)]
    return total


def poisson(q, p, v, c):
    q, p, v = mpf(q), mpf(p), mpf(v)
    exp = mpmath.exp
    if c == mpmath.inf:
        cross = exp((q + v) / 2 + p)
        return [exp(q / 2), -exp(v / 2), exp(2 * q) - 2 * cross + exp(2 * v) + exp(v / 2)]
    root, slope = mpmath.sqrt(q), (p / q if q else mpf(0))
    s2 = v - (p * p / q if q else 0)
    s = mpmath.sqrt(s2) if s2 > mpf("1e-25") * v else mpf(0)
    factorials = [mpf(1)]
    nodes = [(mpf(0), mpf(1))]
    if s > 0:
        # P(y | v) is bounded up to a distance of pi/2: the error is exp(-pi^2/(s h)) or less.
        h = mpf("0.25")
        nodes = [(k * h, h * normal(k * h, 1)) for k in range(int(-REACH / h), int(REACH / h) + 1)]

    def probability(y, u):
        """P(y | u) and E[(y - e^v) P(y | v) | u]."""
        zero = one = mpf(0)
        while len(factorials) <= y:
            factorials.append(factorials[-1] * len(factorials))
        for z, w in nodes:
            log_mean = slope * u + s * z
            mean = exp(log_mean)
            if mean > y + 3000:
                continue
            x = w * exp(y * log_mean - mean) / factorials[y]
            zero += x
            one += (y - mean) * x
        return zero, one

    def integrand(y, u):
        prob, score = probability(y, u)
        r = exp(u) - y
        inside = abs(r) <= c
        r = r if inside else mpmath.sign(r) * c
        return [(exp(u) if inside else mpf(0)) * prob, score * r, prob * r * r]

    total = [mpf(0)] * 3
    y = 0
    while True:
        if q == 0:
            values = integrand(y, mpf(0))
        else:
            ends = [mpmath.log(x) for x in (y - mpf(c), y + mpf(c)) if x > 0]
            edges = sorted({-REACH * root, REACH * root} | {e for e in ends if abs(e) < REACH * root})

            def weighted(u):
                return [normal(u, root) * x for x in integrand(y, u)]

            values = integrate(weighted, edges, root, 20)
        total = [x + z for x, z in zip(total, values)]
        if y > 6 and max(abs(x) for x in values) < mpf("1e-24"):
            return total
        y += 1


def jobs():
    rng = random.Random(16)
    rows = []
    cs = {"logistic": [0.02, 0.1, 0.3, 0.4, 0.5, 0.7, 0.97, 1.5, "inf"], "probit": [0.02, 0.3, 0.798, 1.5, 4.0, "inf"]}
    for model, thresholds in cs.items():
        for i in range(36):
            q, v = 10 ** rng.uniform(-2, 1.3), 10 ** rng.uniform(-1, 1.6)
            p = rng.uniform(-0.3, 0.98) * (q * v) ** 0.5
            flips = (0.0, 0.0, 0.1, 0.3)[i % 4]
            rows.append((model, flips, q, p, v, thresholds[i % len(thresholds)]))
        for c in (0.2, 0.5, 0.6, "inf"):
            rows.append((model, 0.1, 0.0, 0.0, 9.0, c))  # the start at zero
            rows.append((model, 0.0, 4.0, 6.0, 9.0, c))  # |correlation| = 1
            rows.append((model, 0.1, 4.0, -6.0, 9.0, c))
            rows.append((model, 0.1, 2.0, 0.0, 0.0, c))  # no teacher
            rows.append((model, 0.05, 2.25, 150.0, 1e4, c))  # labels that hardly depend on chance
            rows.append((model, 0.0, 1e-6, 1e-3, 4.0, c))
            rows.append((model, 0.2, 400.0, 5.0, 2.0, c))
        rows.append((model, 0.05, 3.0, 1.5e3, 1e6, 0.5))
        rows.append((model, 0.5, 2.0, 1.0, 3.0, 0.3))
    for q, p, v, c in [
        (0.0, 0.0, 0.4, 0.7), (0.25, 0.25, 0.25, 0.6), (0.3, 0.0, 0.0, 0.9), (0.3, 0.2, 0.5, "inf"), (1.5, 1.0, 1.0, "inf"),
    ]:
        rows.append(("poisson", 0.0, q, p, v, c))
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
    values = poisson(q, p, v, number(c)) if model == "poisson" else binary(model, flips, q, p, v, number(c))
    return [*key, *(mpmath.nstr(x, 32) for x in values)]


def main():
    if "--check" in sys.argv:
        worst = 0
        with open(DATA / "glm.csv", newline="") as file:
            rows = [r for r in csv.DictReader(file) if r["model"] != "poisson"]
        for row in random.Random(1).sample(rows, len(rows)):
            flips, q, p, v = (float(row[k]) for k in ("flips", "q", "p", "v"))
            if not (q > 0.01 and 0.05 < v < 10 and abs(p) < 0.9 * (q * v) ** 0.5 and abs(p) > 0):
                continue
            values = binary_given_v(row["model"], flips, q, p, v, number(row["c"]))
            off = max(abs(x - mpf(row[k])) for x, k in zip(values, ("a", "b", "m2")))
            worst = max(worst, off)
            print(row["model"], q, p, v, row["c"], mpmath.nstr(off, 3), flush=True)
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
