"""Writes batch_rules.csv: the factors of the radial rules for batches of B samples.

    python batch_rules.py            generate (some minutes)
    python batch_rules.py --check    other routes: direct integrals, Gil-Pelaez and polar coordinates

With s^2 = (1/B) sum X_i^2 and phi(s) the factor on the mean gradient,

    mu = E[phi(s)] + E[s phi'(s)] / B,   m2 = E[phi(s)^2 s^2] / B      (m2 as in batch_factors.csv)

    skip       phi = 1{s <= c}           mu = P(s <= c) - (c/B) f_s(c)
    normalise  phi = c/s                 mu = c (1 - 1/B) E[1/s], m2 = c^2/B
    tanh       phi = c tanh(s/c)/s
    root       phi = 1/sqrt(1 + s^2/c^2)

All of them from the Laplace transform G(z) = E exp(-z X^2) of one sample, with S = B s^2, a = B c^2, y = S/a:

    E[S^-1/2]                = (1/sqrt(pi)) int z^-1/2 G(z)^B dz
    (1 + y)^-q               = (1/Gamma(q)) int z^(q-1) e^-z e^(-zy) dz
    tanh(sqrt(y))/sqrt(y)    = int theta(z) e^(-zy) dz,    theta = 2 sum_{k>=1} exp(-((k-1/2) pi)^2 z)
    sech(sqrt(y))^2          = int kappa(z) e^(-zy) dz,    kappa = -theta - 2 z theta'

by the trapezoidal rule in log z; P(S <= a), its density and E[S; S <= a] of the skip rule by the Bromwich integral on
a hyperbola.  The integrals are repeated on other nodes until they agree to 1e-19.
"""

import argparse
import csv
import json
import math
import sys
import time
from functools import lru_cache
from pathlib import Path

import gmpy2
from gmpy2 import mpc, mpfr

import definitions as d
from definitions import ONE, ZERO, gauss_legendre, set_bits, show
from factors import DATA
from residual import normal_parts

BITS = 224
COLUMNS = ["rule", "family", "params", "batch", "r", "c", "mu", "m2"]
AGREE = mpfr("1e-19")


# --- the residual as normals ---------------------------------------------------------


def log_gamma_nodes(df, h):
    """(weight, V) of the trapezoidal rule in log V, V ~ Gamma(df/2, rate df/2), down to weights of 1e-34."""
    norm = gmpy2.exp(d.log_gamma_norm(df)) * h
    nodes = []
    for sign in (1, -1):
        k = 0 if sign == 1 else 1
        while True:
            V = gmpy2.exp(sign * k * h)
            weight = norm * gmpy2.exp(df / 2 * (sign * k * h + 1 - V))
            nodes.append((weight, V))
            if k * h > 1 and weight < mpfr("1e-34"):
                break
            k += 1
    return nodes


def normals(family, p, r, step):
    """X^2 as that of a mixture of normals: (weight, mean^2, variance)."""
    s2 = 2 * mpfr(r)
    if family == "student_t":
        unit = mpfr(p["scale"]) ** 2
        return [(w, ZERO, s2 + unit / V) for w, V in log_gamma_nodes(mpfr(p["df"]), step)]
    if family == "laplace":
        unit = mpfr(p["sigma"]) ** 2
        return [(w, ZERO, s2 + unit * V) for w, V in log_gamma_nodes(mpfr(2), step)]
    if family == "uniform":
        # Panels of half a standard deviation of the Gaussian part, or narrower.
        a = mpfr(p["half_width"])
        count = max(4, math.ceil(2 * float(a / gmpy2.sqrt(s2))))
        rule = gauss_legendre(24, gmpy2.get_context().precision)
        return [(w / (2 * count), (a * (2 * i + 1 + t) / (2 * count)) ** 2, s2) for i in range(count) for t, w in rule]
    return [(w, m * m, s2 + t * t) for w, m, t in normal_parts(family, p)]


def transform(parts, z):
    """E exp(-z X^2) for real or complex z."""
    total = ZERO
    for w, m2, v in parts:
        x = 1 + 2 * z * v
        total += w / gmpy2.sqrt(x) * (gmpy2.exp(-z * m2 / x) if m2 else 1)
    return total


# --- tanh, root, normalise: real integrals -------------------------------------------


@lru_cache(maxsize=None)
def theta_kappa(z):
    """theta and kappa above; below z = 0.4 from the other series, which the modular identity gives."""
    pi = gmpy2.const_pi()
    theta = kappa = ZERO
    if z < 0.4:
        theta = ONE
        n = 0
        while True:
            n += 1
            e = 2 * (-1) ** n * gmpy2.exp(-n * n / z)
            theta += e
            kappa -= 2 * n * n / z * e
            if abs(e) * (1 + n * n / z) < mpfr("1e-70") * max(abs(kappa), mpfr("1e-1000")):
                break
        scale = 1 / gmpy2.sqrt(pi * z)
        return theta * scale, kappa * scale
    k = 0
    while True:
        k += 1
        b = (k - mpfr("0.5")) * pi
        e = 2 * gmpy2.exp(-b * b * z)
        theta += e
        kappa += (2 * b * b * z - 1) * e
        if (2 * b * b * z + 1) * e < mpfr("1e-70") * theta:
            return theta, kappa


class Transform:
    """log G on the grid z = exp(k h), which every batch size and threshold shares."""

    def __init__(self, family, p, r):
        set_bits(BITS)
        self.h = mpfr("0.08")
        self.parts = normals(family, p, r, mpfr("0.1"))
        self.logs = {}
        self.skip_parts = None
        self.source = family, p, r

    def log(self, k):
        if k not in self.logs:
            z = gmpy2.exp(k * self.h)
            self.logs[k] = z, gmpy2.log(transform(self.parts, z))
        return self.logs[k]

    def integrals(self, a, batch, terms):
        """int terms(z, G(z/a)^B) dz twice: from the even and from the odd k."""
        start = round(float(gmpy2.log(1 / a) / self.h))
        sums = [None, None]
        for sign in (1, -1):
            k = start if sign == 1 else start - 1
            while True:
                y, log = self.log(k)
                z = y * a
                values = [z * t for t in terms(z, batch * log)]
                old = sums[k % 2] or [ZERO] * len(values)
                sums[k % 2] = [o + v for o, v in zip(old, values)]
                tiny = all(abs(v) <= mpfr("1e-26") * o for v, o in zip(values, sums[k % 2]))
                if tiny and abs(k - start) > 60:
                    break
                k += sign
        return [[2 * self.h * x for x in part] for part in sums]


def smooth_terms(rule):
    """Integrands whose integrals are E[phi], E[(s phi)'] and E[psi(s)^2]/c^2, with (s phi)' = phi + s phi'."""
    if rule == "tanh":

        def tanh(z, log):
            theta, kappa = theta_kappa(z)
            g = gmpy2.exp(log)
            return theta * g, kappa * g, -kappa * gmpy2.expm1(log)

        return tanh

    def root(z, log):
        e, rt = gmpy2.exp(-z), gmpy2.sqrt(z)
        g = gmpy2.exp(log) * e / gmpy2.sqrt(gmpy2.const_pi())
        return g / rt, 2 * rt * g, -e * gmpy2.expm1(log)

    return root


def factors(X, rule, batch, c):
    c = mpfr(c)
    n = mpfr(batch)
    a = n * c * c
    if rule == "skip":
        return skip(X, batch, a)
    if rule == "normalise":
        unit = gmpy2.exp(round(float(gmpy2.log(a) / X.h)) * X.h)
        found = X.integrals(unit, batch, lambda z, log: (gmpy2.exp(log) / gmpy2.sqrt(z),))
        inverse = [whole / gmpy2.sqrt(gmpy2.const_pi() * unit) for (whole,) in found]  # E[S^-1/2]
        pairs = [(c * (1 - 1 / n) * gmpy2.sqrt(n) * x, c * c / n) for x in inverse]
    else:
        found = X.integrals(a, batch, smooth_terms(rule))
        pairs = [((1 - 1 / n) * factor + slope / n, c * c * square / n) for factor, slope, square in found]
    if any(abs(x - y) > AGREE * abs(x) for x, y in zip(*pairs)):
        raise ArithmeticError(f"{X.source} {rule} batch {batch} c {c}: {pairs}")
    return tuple((x + y) / 2 for x, y in zip(*pairs))


# --- skip: the Bromwich integral -----------------------------------------------------


def bromwich(parts, batch, a, count):
    """P(S <= a), a f_S(a), E[(a - S)+]/a on the hyperbola z = m (1 + sin(i t - alpha))."""
    alpha = mpfr("1.1721")
    h, m = mpfr("1.0818") / count, mpfr("4.4921") * count / a
    sums = [ZERO] * 3
    for k in range(2 * count):
        t = (k + mpfr("0.5")) * h
        arg = mpc(-alpha, t)
        z = m * (1 + gmpy2.sin(arg))
        slope = m * mpc(0, 1) * gmpy2.cos(arg)
        if z.real * a < -180:
            break
        value = transform(parts, z) ** batch * gmpy2.exp(z * a) * slope
        for i, q in enumerate((1 / z, a, 1 / (z * z * a))):
            sums[i] += (value * q).imag
    return [h / gmpy2.const_pi() * x for x in sums]


def skip(X, batch, a):
    set_bits(2 * BITS)
    if X.skip_parts is None:
        # The hyperbola comes within 23 degrees of the negative axis, where each normal has its branch point.
        X.skip_parts = normals(*X.source, mpfr("0.04"))
    before, count = None, 24
    while True:
        inside, density, below = bromwich(X.skip_parts, batch, a, count)
        mu, m2 = inside - 2 * density / batch, (inside - below) * a / mpfr(batch) ** 2
        if before is not None and all(abs(x - y) < AGREE * abs(x) for x, y in zip((mu, m2), before)):
            set_bits(BITS)
            return mu, m2
        before, count = (mu, m2), count * 4 // 3
        if count > 800:
            raise ArithmeticError(f"{X.source} batch {batch}: skip does not converge")


# --- the rows ------------------------------------------------------------------------

CASES = [
    ("gaussian", {"sigma": 0.8}, 0.18),
    ("gaussian", {"sigma": 3.0}, 0.01),
    ("rademacher", {"lambda": 1.5, "p": 0.2}, 0.1),
    ("rademacher", {"lambda": 0.8, "p": 0.9}, 0.02),
    ("student_t", {"df": 1.0, "scale": 0.5}, 0.02),
    ("student_t", {"df": 2.5, "scale": 0.5}, 0.3),
    ("student_t", {"df": 6.0, "scale": 1.0}, 3.0),
    ("laplace", {"sigma": 0.8}, 0.02),
    ("laplace", {"sigma": 2.0}, 0.5),
    ("uniform", {"half_width": 1.2}, 0.02),
    ("uniform", {"half_width": 0.5}, 1.0),
    ("gaussian_mixture", {"weights": [0.7, 0.2, 0.1], "means": [-0.3, 0.2, 3.0], "stds": [0.4, 0.1, 0.5]}, 0.02),
    ("gaussian_mixture", {"weights": [0.9, 0.1], "means": [0.0, 0.0], "stds": [0.5, 5.0]}, 0.2),
]
BATCHES = [2, 3, 8, 32, 256]
# Thresholds in units of the scale below, by rule and batch size in turn.
UNITS = {
    "skip": [(0.05, 1.2), (0.4, 2.5), (0.7, 1.3), (0.8, 1.1), (0.9, 1.03)],
    "normalise": [(1.0,), (0.3,), (2.0,), (0.7,), (1.3,)],
    "tanh": [(0.02, 3.0), (0.8,), (0.3, 6.0), (1.5,), (0.1, 1.0)],
    "root": [(0.05, 1.0), (2.5,), (0.2, 0.7), (4.0,), (0.6, 20.0)],
}


def typical(family, p, r):
    """The root mean square of X; for heavy tails of its middle."""
    if family == "student_t":
        spread = p["scale"] ** 2 * (p["df"] / (p["df"] - 2) if p["df"] > 4 else 2)
    else:
        spread = float(d.second_moment(family, p))
    return math.sqrt(2 * r + spread)


def jobs():
    for family, p, r in CASES:
        rows = []
        for rule, by_batch in UNITS.items():
            for batch, units in zip(BATCHES, by_batch):
                rows += [(rule, batch, float(f"{u * typical(family, p, r):.4g}")) for u in units]
        yield family, p, r, rows


def generate(path):
    start, rows = time.time(), []
    for family, p, r, asked in jobs():
        began = time.time()
        X = Transform(family, p, r)
        for rule, batch, c in asked:
            mu, m2 = factors(X, rule, batch, c)
            rows.append([rule, family, json.dumps(p), batch, repr(r), repr(c), show(mu), show(m2)])
        print(f"{time.time() - began:.0f} s", family, p, r, flush=True)
    order = list(UNITS)
    rows.sort(key=lambda row: order.index(row[0]))
    with open(path, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    print(f"{path}: {len(rows)} rows in {time.time() - start:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--out", type=Path, default=DATA / "batch_rules.csv")
    args = parser.parse_args()
    if args.check:
        import batch_rules_check

        sys.exit(batch_rules_check.check(args.out))
    generate(args.out)
