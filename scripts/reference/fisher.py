"""Writes fisher.csv: I(X) = int f'^2 / f for the density f of X = sqrt(2r) z - eps.

    python fisher.py

f and f' are evaluated at high precision: finite mixtures as sums of Gaussians, uniform and
Laplace noise through erfc, Student-t as a mixture over the chi-square variable (trapezoidal
rule in log V).  The integral over x is adaptive Gauss-Legendre; each row also checks that
int f = 1 on the same panels, and that a second, coarser set of panels gives the same.
"""

import csv
import json
import math
import time

import gmpy2
from gmpy2 import mpfr

import definitions as d
from definitions import ZERO, gauss_legendre, set_bits, show, sqrt2pi
from factors import DATA

BITS = 240
DIGITS = 21


def density(family, p, r):
    """x -> (f(x), f'(x)) for r > 0, and a scale of x."""
    s2 = 2 * mpfr(r)
    s = gmpy2.sqrt(s2)
    if family == "rademacher":
        lam, q = mpfr(p["lambda"]), mpfr(p["p"])
        parts = [(1 - q, ZERO, s2), (q / 2, lam, s2), (q / 2, -lam, s2)]
    elif family in ("gaussian", "gaussian_mixture"):
        # X = sqrt(2r) z - eps: the sign of the means does not change I.
        parts = [(w, m, s2 + t * t) for w, m, t in d.components(family, p)]
    elif family == "uniform":
        a = mpfr(p["half_width"])
        rt2 = gmpy2.sqrt(mpfr(2))

        def f(x):
            x = abs(x)
            u, v = (x + a) / s, (x - a) / s
            if v > 0:
                mass = (d.erfc(v / rt2) - d.erfc(u / rt2)) / 2
            else:
                mass = 1 - (d.erfc(-v / rt2) + d.erfc(u / rt2)) / 2
            slope = (gmpy2.exp(-u * u / 2) - gmpy2.exp(-v * v / 2)) / (s * sqrt2pi())
            return mass / (2 * a), slope / (2 * a)

        return f
    elif family == "laplace":
        b = mpfr(p["sigma"]) / gmpy2.sqrt(mpfr(2))
        rt2 = gmpy2.sqrt(mpfr(2))
        shift = gmpy2.exp(s2 / (2 * b * b)) / (4 * b)

        def erfc_any(x):
            return d.erfc(x) if x >= 0 else 2 - d.erfc(-x)

        def f(x):
            # f = (A + B)/(4b) e^(s^2/2b^2): the parts from eps below and above x.
            A = shift * gmpy2.exp(-x / b) * erfc_any((s / b - x / s) / rt2)
            B = shift * gmpy2.exp(x / b) * erfc_any((s / b + x / s) / rt2)
            # The Gaussian terms of the two derivatives cancel exactly.
            return A + B, (B - A) / b

        return f
    elif family == "student_t":
        df, scale = mpfr(p["df"]), mpfr(p["scale"])
        h = d.log_v_rule(float(df), DIGITS + 5)
        nodes = []
        norm = gmpy2.exp(d.log_gamma_norm(df))
        for sign in (1, -1):
            k = 0 if sign == 1 else 1
            while True:
                u = sign * k * mpfr(h)
                V = gmpy2.exp(u)
                weight = gmpy2.exp(df / 2 * (u + 1 - V))
                S2 = s2 + scale * scale / V
                nodes.append((weight * norm * mpfr(h), S2))
                # To the left the density brings another factor sqrt(V)/scale.
                rest = weight * gmpy2.sqrt(V) if sign == -1 else weight
                if abs(u) > 1 and rest < mpfr("1e-36"):
                    break
                k += 1
        table = [(w / (gmpy2.sqrt(S2) * sqrt2pi()), -1 / (2 * S2), -1 / S2) for w, S2 in nodes]

        def f(x):
            f0 = f1 = ZERO
            xx = x * x
            for w, half, whole in table:
                t = w * gmpy2.exp(half * xx)
                f0 += t
                f1 += t * whole
            return f0, f1 * x

        return f
    else:
        raise ValueError(family)

    def mixture(x):
        f0 = f1 = ZERO
        for w, m, S2 in parts:
            g = w * gmpy2.exp(-((x - m) ** 2) / (2 * S2)) / (gmpy2.sqrt(S2) * sqrt2pi())
            f0 += g
            f1 -= g * (x - m) / S2
        return f0, f1

    return mixture


def panel(f, lo, hi, n):
    half, mid = (hi - lo) / 2, (hi + lo) / 2
    info = mass = ZERO
    for x, w in gauss_legendre(n, gmpy2.get_context().precision):
        f0, f1 = f(mid + half * x)
        if f0 > 0:
            info += w * f1 * f1 / f0
            mass += w * f0
    return half * info, half * mass


def adaptive(f, lo, hi, n, info_tol, mass_tol, depth=0):
    """Halve until one panel and its two halves agree."""
    whole = panel(f, lo, hi, n)
    mid = (lo + hi) / 2
    left, right = panel(f, lo, mid, n), panel(f, mid, hi, n)
    both = left[0] + right[0], left[1] + right[1]
    if depth > 40:
        raise ArithmeticError("panels do not converge")
    if abs(both[0] - whole[0]) < info_tol and abs(both[1] - whole[1]) < mass_tol:
        return both
    a = adaptive(f, lo, mid, n, info_tol, mass_tol, depth + 1)
    b = adaptive(f, mid, hi, n, info_tol, mass_tol, depth + 1)
    return a[0] + b[0], a[1] + b[1]


def tail_mass(df, x):
    """What may be missing beyond x scales: P(|t| > x) < 10 (df + 1)^(df/2) x^(-df), or rounding."""
    return 10 * mpfr(df + 1) ** (df / 2) * mpfr(x) ** (-df) + mpfr("1e-18")


def fisher(family, p, r, grid=2.0, n=24):
    r = float(r)
    if r == 0:
        if family == "gaussian":
            return 1 / mpfr(p["sigma"]) ** 2
        if family == "laplace":
            return 2 / mpfr(p["sigma"]) ** 2
        if family == "student_t":
            df = mpfr(p["df"])
            return (df + 1) / ((df + 3) * mpfr(p["scale"]) ** 2)
        raise ValueError(f"infinite at r = 0: {family}")
    set_bits(BITS)
    f = density(family, p, r)
    s = math.sqrt(2 * r)
    lengths, centres = [s], [0.0]
    if family == "rademacher":
        centres += [p["lambda"], -p["lambda"]]
    elif family == "uniform":
        centres += [p["half_width"], -p["half_width"]]
    elif family == "laplace":
        lengths = [s, p["sigma"]]
    elif family == "gaussian":
        lengths = [math.hypot(s, p["sigma"])]
    elif family == "student_t":
        lengths = [math.hypot(s, p["scale"])]
    elif family == "gaussian_mixture":
        lengths = [math.hypot(s, t) for t in p["stds"]]
        centres += p["means"]
    edges = set()
    if family == "student_t":
        # Power tail: geometric panels, to where x^(-df-2) is below the tolerance.
        top = lengths[0] * 10 ** min(22.0 / (p["df"] + 2) + 1, 13)
        x = lengths[0]
        while x < top:
            edges.add(x)
            x *= grid
        edges |= {0.0, top}
    else:
        steps = [k * grid / 2 for k in range(0, int(28 / grid) + 1)]  # 14 std: 1e-43
        far = [28.0, 56.0, 84.0] if family == "laplace" else []
        edges |= {m + sign * length * k for m in centres for length in lengths for sign in (1, -1)
                  for k in steps + far}
    even = family != "gaussian_mixture"
    edges = sorted(mpfr(e) for e in edges if e >= 0 or not even)
    guess = 1 / mpfr(min(lengths)) ** 2
    tol = mpfr(10) ** (-DIGITS)
    # The smallest length alone may overstate I by orders: refine the scale as we go.
    rough = sum((panel(f, a, b, n)[0] for a, b in zip(edges, edges[1:])), ZERO)
    guess = min(guess, rough)
    info = mass = ZERO
    for a, b in zip(edges, edges[1:]):
        i, m = adaptive(f, a, b, n, tol * guess, tol)
        info += i
        mass += m
    if even:
        info, mass = 2 * info, 2 * mass
    missing = abs(1 - mass)
    limit = mpfr("1e-18") if family != "student_t" else tail_mass(p["df"], top / lengths[0])
    if missing > limit:
        raise ArithmeticError(f"mass {mass} of {family} {p} r {r}")
    return info


def jobs():
    ratios = [1e-4, 1e-2, 0.3, 1.0, 20.0, 1e3]
    for sigma, r in ((0.5, 0.0), (0.5, 0.18), (7.0, 1e-3), (0.01, 3.0)):
        yield "gaussian", {"sigma": sigma}, r
    for q, lam, which in ((0.2, 1.5, ratios), (1.0, 0.8, ratios[1:5]), (0.01, 10.0, ratios[:3])):
        for k in which:
            yield "rademacher", {"lambda": lam, "p": q}, k * lam * lam
    for a, which in ((1.3, ratios), (0.02, ratios[1:3])):
        for k in which:
            yield "uniform", {"half_width": a}, k * a * a
    yield "laplace", {"sigma": 0.8}, 0.0
    for k in ratios:
        yield "laplace", {"sigma": 0.8}, k * 0.64
    yield "student_t", {"df": 1.0, "scale": 0.5}, 0.0
    yield "student_t", {"df": 4.5, "scale": 3.0}, 0.0
    for df, scale, which in ((1.0, 0.5, ratios), (2.1, 1.0, ratios[1:4:2]), (0.3, 2.0, ratios[1:3]),
                             (5.0, 9.0, ratios[:4:2]), (60.0, 0.1, ratios[1:3])):
        for k in which:
            yield "student_t", {"df": df, "scale": scale}, k * scale * scale
    two = {"weights": [0.7, 0.3], "means": [0.5, 2.0], "stds": [0.5, 0.8]}
    bump = {"weights": [2.0, 1.0, 0.1], "means": [-0.6, 0.1, 30.0], "stds": [0.2, 0.0, 0.3]}
    outlier = {"weights": [0.95, 0.05], "means": [0.0, 0.0], "stds": [0.5, 9.0]}
    for p in (two, bump, outlier):
        for r in (0.001, 0.05, 2.0):
            yield "gaussian_mixture", p, r


if __name__ == "__main__":
    with open(DATA / "fisher.csv", "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["family", "params", "r", "fisher"])
        for family, p, r in jobs():
            start = time.time()
            value = fisher(family, p, r)
            if r > 0:
                other = fisher(family, p, r, grid=1.5 if family != "student_t" else 3.0, n=20)
                if not abs(other - value) < mpfr("1e-17") * value:
                    raise ArithmeticError(f"{family} {p} r {r}: {show(value)} against {show(other)}")
            writer.writerow([family, json.dumps(p), repr(r), show(value)])
            out.flush()
            print(f"{time.time() - start:6.1f} s", family, p, r, show(value), flush=True)
