"""Writes reduction_factors_wide.csv: random parameters over twenty orders of magnitude.

    python factors.py                 generate (about a minute)
    python factors.py --check FILE    recompute every row of FILE, say what disagrees
"""

import argparse
import csv
import json
import math
import random
import sys
import time
from pathlib import Path

from gmpy2 import mpfr

from definitions import factors, show

DATA = Path(__file__).resolve().parents[2] / "crates" / "toclip" / "tests" / "data"
SEED = 20240611
COLUMNS = ["family", "params", "r", "c", "mu", "m2", "nu"]


def check(path, tolerance):
    """Relative error of the file against the definitions, row by row."""
    worst, bad, n = 0.0, 0, 0
    for line, row in enumerate(csv.DictReader(open(path)), start=2):
        n += 1
        got = factors(row["family"], json.loads(row["params"]), float(row["r"]), float(row["c"]))
        for name, value in zip(("mu", "m2", "nu"), got):
            given = row[name]
            if (value is None) != (given == ""):
                print(f"line {line}: {name} is {given!r}, here {show(value)!r}")
                bad += 1
                continue
            if value is None:
                continue
            given = mpfr(given)
            if given == value:
                continue
            error = float(abs(given - value) / max(abs(value), mpfr("1e-330")))
            worst = max(worst, error)
            if not error <= tolerance and abs(value) > mpfr("1e-300"):
                print(f"line {line}: {name} {row[name]} here {show(value)} ({error:.2e})", row)
                bad += 1
    print(f"{path}: {n} rows, worst relative difference {worst:.2e}, {bad} beyond {tolerance:g}")
    return bad == 0


# --- random rows ---------------------------------------------------------------------


def log_uniform(rng, lo, hi):
    return 10 ** rng.uniform(math.log10(lo), math.log10(hi))


def wide(rng):
    return log_uniform(rng, 1e-10, 1e10)


def moderate(rng):
    return log_uniform(rng, 1e-3, 1e3)


def near(rng, x):
    """x itself, its neighbours, or a little off it on either side."""
    kind = rng.randrange(5)
    if kind == 0:
        return x
    if kind == 1:
        return math.nextafter(x, math.inf)
    if kind == 2:
        return math.nextafter(x, 0.0)
    off = log_uniform(rng, 1e-15, 0.3)
    return x * (1 + off) if kind == 3 else x * (1 - off)


def probability(rng):
    kind = rng.randrange(6)
    if kind == 0:
        return 1.0
    if kind == 1:
        return log_uniform(rng, 1e-12, 1e-2)
    if kind == 2:
        return 1 - log_uniform(rng, 1e-12, 1e-2)
    return rng.uniform(0.01, 0.99)


DF_SPECIAL = [1.0, 2.0, 2.0000001, 3.0, 1e9, math.nextafter(2.0, 3.0), 0.5]


def degrees(rng):
    return rng.choice(DF_SPECIAL) if rng.random() < 0.25 else log_uniform(rng, 0.05, 1e6)


def mixture(rng, unit, spread):
    """1 to 6 components around `unit`, atoms and zero means among them."""
    n = rng.randint(1, 6)
    total = log_uniform(rng, 1e-3, 1e3)
    weights = [total * log_uniform(rng, 1e-6, 1) for _ in range(n)]
    means = [
        0.0 if rng.random() < 0.25 else rng.choice((-1, 1)) * unit * log_uniform(rng, 1 / spread, spread)
        for _ in range(n)
    ]
    stds = [0.0 if rng.random() < 0.2 else unit * log_uniform(rng, 1 / spread, spread) for _ in range(n)]
    if rng.random() < 0.2:  # symmetric pair: equal distances, another code path
        weights, means, stds = weights + [weights[0]], means + [-means[0]], stds + [stds[0]]
    if all(m == 0 for m in means) and all(s == 0 for s in stds):
        stds[0] = unit
    return {"weights": weights, "means": means, "stds": stds}


def make(rng, family, unit, spread=30.0):
    """Parameters of `family` at the scale `unit`, and a length at which it has a corner."""
    if family == "none":
        return {}, unit
    if family in ("gaussian", "laplace"):
        return {"sigma": unit}, unit
    if family == "rademacher":
        return {"lambda": unit, "p": probability(rng)}, unit
    if family == "uniform":
        return {"half_width": unit}, unit
    if family == "student_t":
        return {"df": degrees(rng), "scale": unit}, unit
    p = mixture(rng, unit, spread)
    corners = [abs(m) for m in p["means"] if m != 0] or [unit]
    return p, rng.choice(corners)


def deep_tail(rng, family):
    """mu between 1e-5 and 1e-290: all mass at distance x standard deviations from [-c, c]."""
    lam = wide(rng) if rng.random() < 0.3 else moderate(rng)
    c = lam * (1 - log_uniform(rng, 1e-4, 0.9))
    s = (lam - c) / rng.uniform(4, 36.2)
    if rng.random() < 0.3:  # c far below s: the density at 0 is what counts
        s = lam / rng.uniform(4, 36.2)
        c = s * log_uniform(rng, 1e-12, 1)
    if family == "rademacher":
        return {"lambda": lam, "p": 1.0}, s * s / 2, c
    n = rng.randint(1, 4)
    means = [rng.choice((-1, 1)) * lam] + [
        rng.choice((-1, 1)) * lam * log_uniform(rng, 1, 1e3) for _ in range(n - 1)
    ]
    share = [rng.random() ** 0.5 for _ in range(n)]
    if rng.random() < 0.3:
        share = [1.0] * n  # r = 0: all of the width is the mixture's own
    r = 0.0 if share[0] == 1.0 else s * s * (1 - share[0] ** 2) / 2
    p = {"weights": [rng.uniform(0.1, 3) for _ in range(n)], "means": means, "stds": [s * x for x in share]}
    return p, r, c


def jobs():
    """(family, params, r, c) in a fixed order; rounds of all kinds, so any prefix is useful."""
    rng = random.Random(SEED)
    families = ["gaussian", "rademacher", "uniform", "laplace", "student_t", "gaussian_mixture", "none"]
    per_round = {"student_t": 2, "gaussian_mixture": 2, "none": 0}
    for turn in range(50):
        for family in families:
            for _ in range(3 * per_round.get(family, 1) or (turn % 3 == 0)):  # moderate ratios
                unit = moderate(rng) if family != "none" else log_uniform(rng, 1e-10, 1e10)
                p, _ = make(rng, family, unit)
                s = unit * moderate(rng)
                yield family, p, s * s / 2, unit * moderate(rng)
            for _ in range(per_round.get(family, 1) or (turn % 3 == 1)):  # every ratio
                p, _ = make(rng, family, wide(rng), 1e10)
                s = wide(rng)
                yield family, p, s * s, wide(rng)
            if family != "none" or turn % 3 == 2:  # at the corner, little smoothing
                p, corner = make(rng, family, moderate(rng), 10.0)
                s = corner * log_uniform(rng, 1e-10, 0.3)
                yield family, p, s * s / 2, near(rng, corner)
            if turn % 4 == 0:  # c close to the corner within a few widths of the smoothing
                p, corner = make(rng, family, moderate(rng), 10.0)
                s = corner * log_uniform(rng, 1e-12, 0.1)
                yield family, p, s * s / 2, corner + s * rng.uniform(-3, 3)
            if turn % 3 == 0:  # no gradient signal: X = -eps
                p, corner = make(rng, family, moderate(rng))
                c = near(rng, corner) if rng.random() < 0.5 else corner * moderate(rng)
                yield family, p, 0.0, c
            if turn % 5 == 4:  # r = 0 at every ratio
                p, _ = make(rng, family, wide(rng), 1e10)
                yield family, p, 0.0, wide(rng)
            if turn % 8 == 0:
                p, _ = make(rng, family, wide(rng), 1e3)
                yield family, p, rng.choice([0.0, wide(rng) ** 2]), math.inf
            if family in ("rademacher", "gaussian_mixture"):
                yield family, *deep_tail(rng, family)


def generate(path, limit):
    seen, n, start = set(), 0, time.time()
    with open(path, "w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for family, p, r, c in jobs():
            text = json.dumps(p)
            if (family, text, r, c) in seen:
                continue
            seen.add((family, text, r, c))
            began = time.time()
            values = factors(family, p, r, c)
            writer.writerow([family, text, repr(r), repr(c), *(show(v) for v in values)])
            out.flush()
            n += 1
            if time.time() - began > 5:
                print(f"slow: {time.time() - began:.1f} s", family, text, r, c, file=sys.stderr)
            if limit and n >= limit:
                break
    print(f"{path}: {n} rows in {time.time() - start:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", metavar="FILE", help="recompute the rows of FILE instead of generating")
    parser.add_argument("--tolerance", type=float, default=1e-15)
    parser.add_argument("--limit", type=int, help="stop after this many rows")
    parser.add_argument("--out", type=Path, default=DATA / "reduction_factors_wide.csv")
    args = parser.parse_args()
    if args.check:
        sys.exit(0 if check(args.check, args.tolerance) else 1)
    generate(args.out, args.limit)
