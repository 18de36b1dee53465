"""The second route for rule_factors.csv, used by `rules.py --check`: no density of X is integrated.

    none, gaussian, rademacher, gaussian_mixture   given the component X is normal: skip in closed form,
                                                   tanh and root by tanh-sinh quadrature (mpmath)
    uniform      given z: E[psi'(X) | z] = (psi(y + a) - psi(y - a)) / 2a, and psi^2 has an antiderivative
    laplace      given W ~ Exp(1) X is N(0, 2r + sigma^2 W): trapezoidal rule in log W
    student_t    given V X is N(0, 2r + scale^2 / V): trapezoidal rule in log V

    normalise    P(|X| <= h)/h for a tiny h, from `definitions.py`
    optimal      `fisher.py`

For a centred normal skip and root are closed forms (erfc, Tricomi's U); tanh is a second integral.
"""

import csv
import json
import random
import time

import gmpy2
import mpmath
from gmpy2 import mpfr

import definitions as d
import fisher
from definitions import ONE, ZERO, from_mp, gauss_legendre, set_bits, show, sqrt2pi

DIGITS = 34


def to_mp(x):
    n, q = mpfr(x).as_integer_ratio()
    return mpmath.mpf(int(n)) / int(q)


# --- given the component -------------------------------------------------------------


def skip_given_normal(m, S, c):
    """At 1600 bits: m2 and mu are differences."""
    mu, m2 = d.gaussian_kernel(m, S, c)
    if S == 0:
        return mu, m2 - c * c * (1 - mu)
    jump = sum(gmpy2.exp(-(((c + sign * m) / S) ** 2) / 2) for sign in (1, -1)) / (S * sqrt2pi())
    return mu - c * jump, m2 - c * c * (1 - mu)


def smooth_given_normal(rule, m, S, c):
    with mpmath.workdps(DIGITS + 10):
        m, S, c = to_mp(m), to_mp(S), to_mp(c)

        def slope(x):
            return mpmath.sech(x / c) ** 2 if rule == "tanh" else (1 + (x / c) ** 2) ** mpmath.mpf(-1.5)

        def square(x):
            return (c * mpmath.tanh(x / c)) ** 2 if rule == "tanh" else x**2 / (1 + (x / c) ** 2)

        if S == 0:
            return from_mp(slope(m)), from_mp(square(m))
        lo, hi = m - 14 * S, m + 14 * S
        breaks = {lo, hi, *(m + S * k for k in (-7, -3, 0, 3, 7))}
        reach = c / 2
        while reach < max(abs(lo), abs(hi)):
            breaks |= {reach, -reach}
            reach *= 4
        breaks = sorted(b for b in breaks | {mpmath.mpf(0)} if lo <= b <= hi)
        norm = 1 / (S * mpmath.sqrt(2 * mpmath.pi))

        def against_bell(g):
            return mpmath.quad(lambda x: g(x) * norm * mpmath.exp(-(((x - m) / S) ** 2) / 2), breaks)

        return from_mp(against_bell(slope)), from_mp(against_bell(square))


def by_component(rule, family, p, r, c):
    mu = m2 = ZERO
    for w, m, std in d.components(family, p):
        if w == 0:
            continue
        S = gmpy2.sqrt(2 * mpfr(r) + std * std)
        k0, k2 = skip_given_normal(abs(m), S, c) if rule == "skip" else smooth_given_normal(rule, m, S, c)
        mu += w * k0
        m2 += w * k2
    return mu, m2


# --- uniform: given z ----------------------------------------------------------------


def uniform_given_z(rule, a, s, c):
    def psi(x):
        if rule == "skip":
            return x if abs(x) <= c else ZERO
        return c * gmpy2.tanh(x / c) if rule == "tanh" else x / gmpy2.sqrt(1 + (x / c) ** 2)

    def area(x):
        """The antiderivative of psi^2."""
        if rule == "skip":
            return min(max(x, -c), c) ** 3 / 3
        return c * c * (x - (c * gmpy2.tanh(x / c) if rule == "tanh" else c * gmpy2.atan(x / c)))

    def given(y):
        return (psi(y + a) - psi(y - a)) / (2 * a), (area(y + a) - area(y - a)) / (2 * a)

    if s == 0:
        return given(ZERO)
    edges = {ZERO, *(s * k for k in range(1, 20))}
    reach = c / 2
    while rule != "skip" and reach < 40 * s + 2 * a:
        edges |= {a + reach, abs(a - reach)}
        reach *= mpfr("1.8")
    edges = sorted(e for e in edges | {abs(c - a), c + a, a} if e <= 19 * s)
    total = [ZERO, ZERO]
    for lo, hi in zip(edges, edges[1:]):
        half, mid = (hi - lo) / 2, (hi + lo) / 2
        for t, w in gauss_legendre(40, gmpy2.get_context().precision):
            y = mid + half * t
            weight = half * w * gmpy2.exp(-((y / s) ** 2) / 2) * 2 / (s * sqrt2pi())
            total = [u + weight * g for u, g in zip(total, given(y))]
    return total


# --- laplace, student_t: given the scale ---------------------------------------------


def centred(rule, S, c):
    """(E psi', E psi^2 / c^2) of N(0, S^2)."""
    a = c / S
    if rule == "skip":
        inside, deficit = d.centred_kernel(S * S, c)
        mu = inside - 2 * a * gmpy2.exp(-a * a / 2) / sqrt2pi()
        if a < 1e-3:  # E[z^2; |z| <= a] as a series
            terms = ((-1) ** k * a ** (2 * k + 3) / (2**k * gmpy2.fac(k) * (2 * k + 3)) for k in range(12))
            mu = 2 / sqrt2pi() * sum(terms)
        return mu, mu / (a * a)
    if rule == "root":
        with mpmath.workdps(DIGITS + 8):
            # (1 + x^2/c^2)^(-3/2) and 1/(1 + x^2/c^2) against the normal density
            b = to_mp(a)
            q = b * b / 2
            mu = b / mpmath.sqrt(2) * mpmath.hyperu(mpmath.mpf(1) / 2, 0, q)
            m2 = 1 - b * mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(q) * mpmath.erfc(mpmath.sqrt(q))
            return from_mp(mu), from_mp(m2)
    edges = [ZERO]
    reach = min(a, ONE)
    while reach < 13 and reach < 50 * a:
        edges.append(reach)
        reach = min(2 * reach, reach + 2)
    mu = ZERO
    for lo, hi in zip(edges, edges[1:]):
        half, mid = (hi - lo) / 2, (hi + lo) / 2
        for t, w in gauss_legendre(28, gmpy2.get_context().precision):
            z = mid + half * t
            e = gmpy2.exp(-2 * z / a)
            mu += half * w * gmpy2.exp(-z * z / 2) * 4 * e / (1 + e) ** 2
    mu *= 2 / sqrt2pi()
    return mu, 1 - mu


def by_scale(rule, family, p, r, c):
    """h sum over u = log V of the density of u times the factors of N(0, S(V)^2)."""
    df = mpfr(p["df"]) if family == "student_t" else mpfr(2)
    unit = mpfr(p["scale"] if family == "student_t" else p["sigma"])
    h = mpfr(d.log_v_rule(float(df), 28))
    norm = gmpy2.exp(d.log_gamma_norm(df)) * h
    mu = m2 = ZERO
    for sign in (1, -1):
        k = 0 if sign == 1 else 1
        while True:
            u = (sign * k + mpfr("0.25")) * h
            V = gmpy2.exp(u)
            weight = norm * gmpy2.exp(df / 2 * (u + 1 - V))
            S2 = 2 * mpfr(r) + unit * unit * (1 / V if family == "student_t" else V)
            k0, k2 = centred(rule, gmpy2.sqrt(S2), c)
            mu += weight * k0
            m2 += weight * k2
            if abs(u) > 2 and weight * abs(k0) < mpfr("1e-28") * abs(mu) and weight * abs(k2) < mpfr("1e-28") * m2:
                break
            k += 1
    return mu, m2 * c * c


# --- all rules -----------------------------------------------------------------------


def second_route(rule, family, p, r, c):
    if rule == "optimal":
        set_bits(fisher.BITS)
        return ONE, 1 / fisher.fisher(family, p, r) if family != "none" else 2 * mpfr(r)
    set_bits(d.BITS)
    c = mpfr(c)
    if rule == "normalise":
        scale = [x for v in p.values() for x in (v if isinstance(v, list) else [v]) if x] + [r]
        h = mpfr(min(abs(x) for x in scale if x)) * mpfr("1e-22")
        return c * d.mu_m2(family, p, r, h)[0] / h, c * c
    if d.components(family, p) is not None:
        return by_component(rule, family, p, r, c)
    set_bits(400)
    if family == "uniform":
        return uniform_given_z(rule, mpfr(p["half_width"]), gmpy2.sqrt(2 * mpfr(r)), c)
    set_bits(240)
    return by_scale(rule, family, p, r, c)


def check(path, count):
    """Says which rows differ by more than half a unit of the 17th digit; 0 when none does."""
    rows = list(enumerate(csv.DictReader(open(path)), start=2))
    rows = random.Random(1).sample(rows, min(count, len(rows)))
    worst, bad = {}, 0
    for line, row in sorted(rows):
        began = time.time()
        rule = row["rule"]
        pair = second_route(rule, row["family"], json.loads(row["params"]), float(row["r"]), float(row["c"]))
        for name, value in zip(("mu", "m2"), pair):
            given = mpfr(row[name])
            error = float(abs(given - value) / abs(value)) if value != 0 else float(abs(given))
            worst[rule] = max(worst.get(rule, 0.0), error)
            if not error < 5.1e-17:
                bad += 1
                print(f"line {line}: {name} {row[name]}, second route {show(value)}", dict(row), flush=True)
        if time.time() - began > 20:
            print(f"slow: {time.time() - began:.0f} s", dict(row), flush=True)
    print(f"{len(rows)} rows, {bad} values differ; worst relative difference by rule:", worst)
    return 1 if bad else 0
