"""Writes by_value.csv: the factors of one coordinate when every coordinate is clipped at c.

    python by_value.py                generate (some minutes)
    python by_value.py --check [N]    recompute N random rows by a second route (some minutes for 30)

A coordinate of eigenvalue lambda is sqrt(lambda) U with U = X z' and z' an independent standard normal.
With u = c / sqrt(lambda):

    mu = P(|U| <= u) - u (f_U(u) + f_U(-u)),   m2 = E min(U^2, u^2)   (m2_j = lambda_j m2)

Given X = x, U is N(0, x^2): with w = u/|x| the factors are E[z'^2; |z'| <= w] and x^2 E min(z'^2, w^2), smooth in
x away from 0 and flat at 0, so the logarithm of f_U at 0 never appears.  They are integrated against the density of X.
The second route conditions on z' instead: mu_skip and m2_clip of X at the threshold u/|z'|; for Laplace and
Student-t noise on the scale S of X, as z z' has the density K0(|x|)/pi.
"""

import argparse
import csv
import json
import math
import random
import sys
import time
from pathlib import Path

import gmpy2
from gmpy2 import mpfr

import definitions as d
import rules_check
from definitions import ZERO, centred_kernel, gauss_legendre, set_bits, show, sqrt2pi
from factors import DATA, log_uniform
from residual import Residual
from rules import FAMILIES, residuals

SEED = 20250716
COLUMNS = ["family", "params", "r", "u", "mu", "m2"]


def given_x(x, u):
    """(mu, 1 - m2/u^2) of U given X = x."""
    if x == 0:
        return mpfr(1), mpfr(1)
    w = u / abs(x)
    inside, deficit = centred_kernel(x * x, u)
    if w < 0.02:  # E[z^2; |z| <= w] as a series
        total, term, k = ZERO, w**3, 0
        while abs(term) > mpfr("1e-60") * w**3:
            total += term / (2 * k + 3)
            k += 1
            term *= -w * w / (2 * k)
        return 2 * total / sqrt2pi(), deficit
    return inside - 2 * w * gmpy2.exp(-w * w / 2) / sqrt2pi(), deficit


def by_value(X, p, u):
    u = mpfr(u)
    mu = deficit = ZERO
    for weight, m in X.atoms:
        k0, k2 = given_x(m, u)
        mu += weight * k0
        deficit += weight * k2
    if X.family == "uniform" and X.s == 0:
        edges = X.edges(u / 32, mpfr(p["half_width"]))
    elif X.heavy is not None:
        # The deficit falls like u/x and P(|X| > x) like x^-df.
        reach = X.scale * gmpy2.sqrt(X.heavy + 1)
        digits = 36 + abs(float(gmpy2.log10(X.scale / u)))
        top = (u * reach**X.heavy * mpfr(10) ** digits) ** (1 / (1 + X.heavy))
        edges = X.edges(u / 32, mpfr(2) ** math.ceil(gmpy2.log2(top)))
    elif X.top > 0:
        edges = X.edges(u / 32)
    else:
        return mu, u * u * (1 - deficit)
    slope, rest = X.integrate(edges, lambda x, f0, f1: (f0 * (v := given_x(x, u))[0], f0 * v[1]))
    return mu + slope, u * u * (1 - deficit - rest)


# --- the second route ----------------------------------------------------------------


def skip_and_clip(family, p, r, c):
    """mu of skip and m2 of clip, by conditioning inside X."""
    if family == "uniform":
        return rules_check.second_route("skip", family, p, r, c)[0], d.mu_m2(family, p, r, c)[1]
    mu = m2 = ZERO
    for w, m, std in d.components(family, p):
        S = gmpy2.sqrt(2 * mpfr(r) + std * std)
        mu += w * rules_check.skip_given_normal(abs(m), S, c)[0]
        m2 += w * d.gaussian_kernel(abs(m), S, c)[1]
    return mu, m2


def product_of_normals(w):
    """(mu, m2/w^2) of z z' at w, by the ascending series of K0 integrated term by term."""
    if w > 70:
        return mpfr(1), 1 / (w * w)
    zeroth = second = at_w = ZERO  # int_0^w K0, int_0^w x^2 K0, K0(w)
    term, psi, log, k = mpfr(1), -gmpy2.const_euler(), gmpy2.log(w / 2), 0
    while k < w or term > mpfr("1e-70"):
        at_w += term * (psi - log)
        for q in (1, 3):
            n = 2 * k + q
            part = term * w**q * ((psi - log) / n + mpfr(1) / (n * n))
            zeroth, second = (zeroth + part, second) if q == 1 else (zeroth, second + part)
        k += 1
        term *= w * w / (4 * k * k)
        psi += mpfr(1) / k
    scale = 2 / gmpy2.const_pi()
    return scale * (zeroth - w * at_w), 1 - scale * zeroth + scale * second / (w * w)


def given_scale(family, p, r, u):
    df = mpfr(p["df"]) if family == "student_t" else mpfr(2)
    unit = mpfr(p["scale"] if family == "student_t" else p["sigma"])
    h = mpfr(d.log_v_rule(float(df), 20))
    norm = gmpy2.exp(d.log_gamma_norm(df)) * h
    mu = m2 = ZERO
    for sign in (1, -1):
        k = 0 if sign == 1 else 1
        while True:
            V = gmpy2.exp((sign * k + mpfr("0.25")) * h)
            weight = norm * gmpy2.exp(df / 2 * (gmpy2.log(V) + 1 - V))
            S2 = 2 * mpfr(r) + unit * unit * (1 / V if family == "student_t" else V)
            k0, k2 = product_of_normals(u / gmpy2.sqrt(S2))
            mu += weight * k0
            m2 += weight * k2
            small = weight * k0 < mpfr("1e-20") * mu and weight * k2 < mpfr("1e-20") * m2
            if small and (sign == -1 or V > 3):
                break
            k += 1
    return mu, m2 * u * u


def given_z(family, p, r, u):
    """Finite mixtures and uniform noise."""
    parts = d.components(family, p)
    s = gmpy2.sqrt(2 * mpfr(r))
    bends = []
    if parts is not None:
        bends = [(abs(m), gmpy2.sqrt(s * s + t * t)) for _, m, t in parts]
    elif family == "uniform":
        bends = [(mpfr(p["half_width"]), s)]
    lengths = {abs(m + k * S) for m, S in bends for k in range(-9, 10)}
    least = u / (1000 * max(s, *lengths))
    edges = {ZERO, *(mpfr(k) for k in range(1, 11)), *(u / x for x in lengths if x > 0)}
    z = mpfr(10)
    while z > least:
        edges.add(z)
        z /= 2
    edges = sorted(e for e in edges if e <= 10)
    mu = m2 = ZERO
    for lo, hi in zip(edges, edges[1:]):
        half, mid = (hi - lo) / 2, (hi + lo) / 2
        for t, w in gauss_legendre(24, 200):
            z = mid + half * t
            k0, k2 = skip_and_clip(family, p, r, u / z)
            weight = half * w * 2 * gmpy2.exp(-z * z / 2) / sqrt2pi()
            mu += weight * k0
            m2 += weight * z * z * k2
    return mu, m2


def check(path, count):
    """Random rows with r > 0, at most two with uniform noise (slow), against the second route to 1e-15."""
    rows = [row for row in csv.DictReader(open(path)) if float(row["r"]) > 0]
    random.Random(2).shuffle(rows)
    uniform = [row for row in rows if row["family"] == "uniform"][2:]
    rows = [row for row in rows if row not in uniform][:count]
    worst, bad = {}, 0
    for row in rows:
        set_bits(320)
        d.BITS = 320  # the integrand is smooth: 1600 bits are not needed here
        began = time.time()
        family = row["family"]
        route = given_scale if family in ("laplace", "student_t") else given_z
        pair = route(family, json.loads(row["params"]), float(row["r"]), mpfr(float(row["u"])))
        for name, value in zip(("mu", "m2"), pair):
            error = float(abs(mpfr(row[name]) - value) / abs(value))
            worst[family] = max(worst.get(family, 0.0), error)
            if not error < 1e-15:
                bad += 1
                print(f"{name} {row[name]}, second route {show(value)}", dict(row), flush=True)
        if time.time() - began > 30:
            print(f"slow: {time.time() - began:.0f} s", dict(row), flush=True)
    print(f"{len(rows)} rows, {bad} values differ; worst relative difference by family:", worst)
    return 1 if bad else 0


# --- the rows ------------------------------------------------------------------------


def jobs():
    rng = random.Random(SEED)
    for family in FAMILIES:
        for turn in range(6):
            p, r, corner, _ = residuals(rng, family, turn)
            scale = math.hypot(math.sqrt(2 * r), corner)
            yield family, p, r, [scale * log_uniform(rng, lo, hi) for lo, hi in ((1e-3, 0.1), (0.1, 3), (3, 100))]


def generate(path):
    start, n = time.time(), 0
    with open(path, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for family, p, r, thresholds in jobs():
            began = time.time()
            X = Residual(family, p, r)
            for u in thresholds:
                writer.writerow([family, json.dumps(p), repr(r), repr(u), *(show(v) for v in by_value(X, p, u))])
                n += 1
            if time.time() - began > 10:
                print(f"slow: {time.time() - began:.0f} s", family, p, r, file=sys.stderr)
    print(f"{path}: {n} rows in {time.time() - start:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", type=int, nargs="?", const=30, metavar="N")
    parser.add_argument("--out", type=Path, default=DATA / "by_value.csv")
    args = parser.parse_args()
    if args.check:
        sys.exit(check(args.out, args.check))
    generate(args.out)
