"""Other routes for batch_rules.csv, used by `batch_rules.py --check`.

    gaussian, rademacher   the density of s itself: (mixtures of) chi-squares, integrated panel by panel (1e-16)
    others, skip           Gil-Pelaez inversion on the real line in double precision (1e-9)
    others, batch of two   polar coordinates with the density of X in double precision (1e-9)
    others                 E[phi] and E[(s phi)'] by convolution: the density of S on a grid from an FFT (1e-7)
"""

import csv
import json
import math

import gmpy2
import mpmath
import numpy as np
from gmpy2 import mpfr

import batch
from definitions import ONE, ZERO, gauss_legendre, set_bits, show

BITS = 224


# --- Gaussian and Rademacher-like noise ----------------------------------------------


class ChiSquares:
    """s with S = 2 v y: y has the density y^(k-1) e^-y / Gamma(k) sum_j a_j y^j, k = B/2."""

    def __init__(self, family, p, r, batch):
        set_bits(BITS)
        self.n = n = batch
        k = mpfr(n) / 2
        with mpmath.workprec(BITS + 32):
            norm = mpmath.gamma(mpmath.mpf(n) / 2)
        sign, man, exp, _ = norm._mpf_
        self.norm = mpfr(int(man)) * mpfr(2) ** exp
        if family == "gaussian":
            self.v = 2 * mpfr(r) + mpfr(p["sigma"]) ** 2
            weights = [ONE]
            self.centre = k
            self.spread = gmpy2.sqrt(k)
        else:
            # B samples, K of them with lambda: a Poisson number j of extra pairs of degrees of freedom.
            self.v = 2 * mpfr(r)
            q, rate = mpfr(p["p"]), mpfr(p["lambda"]) ** 2 / (2 * self.v)
            mean = n * q * rate
            self.centre = k + mean
            self.spread = gmpy2.sqrt(k + 2 * mean + n * q * (1 - q) * rate * rate)
            last = int(mean + 16 * self.spread + 60)
            weights = [ZERO] * (last + 1)
            for count in range(n + 1):
                binomial = gmpy2.bincoef(n, count) * q**count * (1 - q) ** (n - count)
                if binomial < mpfr("1e-45"):
                    continue
                term = binomial * gmpy2.exp(-count * rate)
                for j in range(last + 1):
                    weights[j] += term
                    term = term * count * rate / (j + 1)
        self.coefficients = []
        rising = ONE
        for j, w in enumerate(weights):
            self.coefficients.append(w / rising)
            rising *= k + j

    def density(self, s):
        """f_s(s): ds brings n s / v."""
        y = self.n * s * s / (2 * self.v)
        total = ZERO
        for a in reversed(self.coefficients):
            total = total * y + a
        half = mpfr(self.n) / 2
        return self.n * s / self.v * gmpy2.exp((half - 1) * gmpy2.log(y) - y) / self.norm * total

    def edges(self, top=None):
        """Panels of one standard deviation or less within 16 of the centre, dyadic below."""
        unit = gmpy2.sqrt(2 * self.v / self.n)
        ends = [unit * gmpy2.sqrt(self.centre + k * self.spread / 2) for k in range(-32, 33)
                if self.centre + k * self.spread / 2 > 0]
        if self.n < 9:
            ends += [unit * gmpy2.sqrt(self.centre + mpfr(k)) for k in range(1, 120, 4)]
        ends += [ends[0] / mpfr(2) ** k for k in range(1, 8)] if self.n < 9 else []
        ends += [ZERO] if self.n < 9 else []
        ends = sorted(ends)
        if top is None:
            return ends
        inside = [e for e in ends if e < top] or [ZERO]
        return inside + [top]

    def mean(self, values, top=None):
        total = None
        ends = self.edges(top)
        for lo, hi in zip(ends, ends[1:]):
            half, mid = (hi - lo) / 2, (hi + lo) / 2
            for t, w in gauss_legendre(32, BITS):
                s = mid + half * t
                weight = half * w * self.density(s)
                terms = [weight * v for v in values(s)]
                total = terms if total is None else [x + y for x, y in zip(total, terms)]
        return total


def by_density(S, rule, c):
    c, n = mpfr(c), mpfr(S.n)
    if rule == "skip":
        inside, square = S.mean(lambda s: (ONE, s * s), c)
        return inside - c / n * S.density(c), square / n
    if rule == "normalise":
        (inverse,) = S.mean(lambda s: (1 / s,))
        return c * (1 - 1 / n) * inverse, c * c / n

    def values(s):
        if rule == "tanh":
            t = gmpy2.tanh(s / c)
            factor, slope, square = c * t / s, 1 - t * t, (c * t) ** 2
        else:
            k = 1 / (1 + (s / c) ** 2)
            factor, slope, square = gmpy2.sqrt(k), k * gmpy2.sqrt(k), s * s * k
        return (1 - 1 / n) * factor + slope / n, square / n

    return S.mean(values)


# --- the other families, double precision --------------------------------------------


def radial(rule, c):
    """s -> phi, s phi' and (s phi)^2 as arrays; skip is left to the edges of the integral."""
    if rule == "normalise":
        return lambda s: (c / s, -c / s, c * c + 0 * s)
    if rule == "tanh":

        def tanh(s):
            t = np.tanh(s / c)
            return c * t / s, 1 - t * t - c * t / s, (c * t) ** 2

        return tanh
    return lambda s: ((k := 1 / np.sqrt(1 + (s / c) ** 2)), -((s / c) ** 2) * k**3, (s * k) ** 2)


def by_polar(parts, rule, c):
    """Two samples: s = rho/sqrt(2), an eighth of the circle as in batch.py."""
    w, m, v = parts
    sd = np.sqrt(v)

    def density(x):
        x = np.abs(np.asarray(x))[..., None]
        bell = np.exp(-0.5 * ((x - m) / sd) ** 2) + np.exp(-0.5 * ((x + m) / sd) ** 2)
        return (w * bell / sd).sum(axis=-1) / (2.0 * np.sqrt(2.0 * np.pi))

    x, wx = batch.panels(np.concatenate([[0.0], np.geomspace(1e-7, np.pi / 4.0, 24)]))

    def ring(rho):
        """The density of s."""
        return 8.0 * 2.0 * rho / np.sqrt(2.0) * (wx * density(rho * np.cos(x)) * density(rho * np.sin(x))).sum()

    def against(edges, values):
        s, ws = batch.panels(edges)
        rings = np.array([ring(np.sqrt(2.0) * q) / np.sqrt(2.0) for q in s])
        return [(ws * rings * value).sum() for value in values(s)]

    if rule == "skip":
        inside, square = against(np.linspace(0.0, c, 12), lambda s: (1.0 + 0 * s, s * s))
        return inside - 0.5 * c * ring(np.sqrt(2.0) * c) / np.sqrt(2.0), square / 2.0
    unit = math.sqrt(float(np.median(v)))
    unit = min(c, unit)
    edges = np.concatenate([[0.0], np.geomspace(1e-4, 1.0, 12) * unit, np.geomspace(1.0, 1e9, 90)[1:] * unit])
    shape = radial(rule, c)
    factor, slope, square = against(edges, shape)
    return factor + 0.5 * slope, square / 2.0


def by_characteristic(parts, n, c):
    """Skip: P(S <= a) and f_S(a) by Gil-Pelaez, E[S; S <= a] from E min(S, a) of batch.py."""
    a = c * c * n
    clip = batch.by_characteristic(parts, n, c)
    if clip is None:
        return None
    top = 1.0 / a
    while abs(batch.transform(parts, np.array([-1j * top]))[0]) ** n > 1e-15:
        top *= 1.2
    step = min(2.0 / a, top / 60.0)
    edges = np.concatenate([np.geomspace(1e-20 / a, step, 50), np.linspace(step, top, max(int(top / step), 2))[1:]])
    t, w = batch.panels(edges)
    chi = np.exp(n * np.log(batch.transform(parts, -1j * t))) * np.exp(-1j * t * a)
    inside = 0.5 - (w * chi.imag / t).sum() / np.pi
    density = (w * chi.real).sum() / np.pi
    square = clip[1] * n * n - a * (1.0 - inside)
    return inside - 2.0 * a / n * density, square / n**2


def check(path):
    worst, bad, count, cache = {}, 0, 0, {}
    for row in csv.DictReader(open(path)):
        family, p, rule = row["family"], json.loads(row["params"]), row["rule"]
        n, r, c = int(row["batch"]), float(row["r"]), float(row["c"])
        given = [float(row["mu"]), float(row["m2"])]
        if family in ("gaussian", "rademacher"):
            key = family, row["params"], n
            if key not in cache:
                cache[key] = ChiSquares(family, p, r, n)
            found, route, tolerance = by_density(cache[key], rule, c), "density", 5.1e-17
            given = [mpfr(row["mu"]), mpfr(row["m2"])]
            scale = [abs(x) for x in found]
        else:
            parts = batch.parts(family, p, r)
            if n == 2:
                found, route = by_polar(parts, rule, c), "polar"
            elif rule == "skip" and p.get("df", 3.0) > 2.0:
                found, route = by_characteristic(parts, n, c), "Gil-Pelaez"
            else:
                continue
            if found is None:
                continue
            tolerance = 1e-9
            # Both routes are good to an absolute error: mu of P(s <= c), m2 of c^2 P.
            scale = [1.0, c * c / n] if route == "Gil-Pelaez" else [abs(x) for x in found]
        count += 1
        errors = [float(abs(x - y) / z) for x, y, z in zip(given, found, scale)]
        worst[route, rule] = max(worst.get((route, rule), 0.0), *errors)
        if not max(errors) < tolerance:
            bad += 1
            shown = [show(x) if route == "density" else x for x in found]
            print(f"{route}: {shown}, {errors}", dict(row), flush=True)
    print(f"{count} rows, {bad} differ; worst difference by route and rule:")
    for key, value in sorted(worst.items()):
        print("   ", *key, f"{value:.1e}")
    return 1 if bad else 0
