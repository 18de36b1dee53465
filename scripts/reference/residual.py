"""The density of X = sqrt(2r) z - eps and its derivative at high precision, and quadrature against it.

    gaussian, rademacher, gaussian_mixture, none   sums of Gaussian densities
    uniform, laplace                               closed forms with erfc
    student_t                                      a sum over the chi-square variable V in
                                                   X | V ~ N(0, 2r + scale^2 / V)

At r = 0 X is -eps: Gaussian, Laplace and Student-t noise have their own density; components
without width are kept apart as atoms.  Every rule is odd in X, so the sign of eps is irrelevant.
"""

import math
from functools import lru_cache

import gmpy2
import mpmath
from gmpy2 import mpfr

import definitions as d
from definitions import ONE, ZERO, from_mp, gauss_legendre, set_bits, sqrt2pi

BITS = 192
NODES = 32
REACH = 26  # half-widths of the fine panels in standard deviations: exp(-338)
DIGITS = 36  # of the sum over V


@lru_cache(maxsize=None)
def trapezoid(bits):
    """h and the pairs ((nh)^2, 2 exp(-(nh)^2)) for `erfc`; the error is exp(-(pi/h)^2)."""
    h = gmpy2.const_pi() / gmpy2.sqrt(mpfr(0.7 * bits + 10))
    pairs = []
    while not pairs or pairs[-1][1] > mpfr(2) ** (-bits - 10):
        x = (len(pairs) + 1) * h
        pairs.append((x * x, 2 * gmpy2.exp(-x * x)))
    return h, pairs


def erfc(x):
    """erfc of x >= 0, for 1 < x by the trapezoidal rule for (x/pi) e^(-x^2) int e^(-t^2)/(t^2 + x^2) dt,

    with the residue of its pole at t = ix: much faster than MPFR, and relatively exact.
    """
    if x < 1 or x >= 10000:
        return d.erfc(x)
    h, pairs = trapezoid(gmpy2.get_context().precision)
    xx = x * x
    total = 1 / xx
    for tt, e in pairs:
        total += e / (tt + xx)
    value = h * x / gmpy2.const_pi() * gmpy2.exp(-xx) * total
    return value - 2 / gmpy2.expm1(2 * gmpy2.const_pi() * x / h) if x * h < 4 else value


def erfc_any(x):
    return erfc(x) if x >= 0 else 2 - erfc(-x)


def normal_parts(family, p):
    """eps as a finite mixture of normals: (weight, mean, std), with both signs of rademacher."""
    if family == "rademacher":
        q, lam = mpfr(p["p"]), mpfr(p["lambda"])
        parts = [(1 - q, ZERO, ZERO), (q / 2, lam, ZERO), (q / 2, -lam, ZERO)]
        return [part for part in parts if part[0] > 0]
    return d.components(family, p)


def mixture_density(parts):
    table = [(w / (S * sqrt2pi()), m, -1 / (2 * S * S)) for w, m, S in parts]

    def f(x):
        f0 = f1 = ZERO
        for w, m, k in table:
            t = x - m
            g = w * gmpy2.exp(k * t * t)
            f0 += g
            f1 += 2 * k * t * g
        return f0, f1

    return f


def uniform_density(a, s):
    scale = s * gmpy2.sqrt(mpfr(2))

    def f(x):
        # P(x - a < sqrt(2r) z < x + a) / 2a, from the side where nothing cancels
        u, v = (abs(x) + a) / scale, (abs(x) - a) / scale
        mass = (erfc(v) - erfc(u)) / 2 if v > 0 else 1 - (erfc(-v) + erfc(u)) / 2
        slope = (gmpy2.exp(-u * u) - gmpy2.exp(-v * v)) / (s * sqrt2pi())
        return mass / (2 * a), (slope if x >= 0 else -slope) / (2 * a)

    return f


def laplace_density(b, s):
    if s == 0:

        def corner(x):
            f0 = gmpy2.exp(-abs(x) / b) / (2 * b)
            return f0, -f0 / b if x >= 0 else f0 / b

        return corner
    rt2 = gmpy2.sqrt(mpfr(2))
    shift = gmpy2.exp((s / b) ** 2 / 2) / (4 * b)

    def f(x):
        left = shift * gmpy2.exp(-x / b) * erfc_any((s / b - x / s) / rt2)
        right = shift * gmpy2.exp(x / b) * erfc_any((s / b + x / s) / rt2)
        return left + right, (right - left) / b

    return f


def student_scales(df, digits):
    """(weight, V) of the trapezoidal rule in log V; the weights sum to one."""
    h = mpfr(d.log_v_rule(float(df), digits))
    norm = gmpy2.exp(d.log_gamma_norm(df)) * h
    tiny = mpfr(10) ** (-digits - 4)
    nodes = []
    for sign in (1, -1):
        k = 0 if sign == 1 else 1
        while True:
            V = gmpy2.exp(sign * k * h)
            weight = norm * gmpy2.exp(df / 2 * (sign * k * h + 1 - V))
            nodes.append((weight, V))
            # The density of X given V brings another sqrt(V) on the left.
            if abs(k * h) > 1 and weight * min(ONE, gmpy2.sqrt(V)) < tiny:
                break
            k += 1
    return nodes


def student_density(df, scale, s, digits=DIGITS):
    if s == 0:
        with mpmath.workprec(gmpy2.get_context().precision + 64):
            n, q = df.as_integer_ratio()
            v = mpmath.mpf(int(n)) / int(q)
            norm = mpmath.exp(mpmath.loggamma((v + 1) / 2) - mpmath.loggamma(v / 2)) / mpmath.sqrt(v * mpmath.pi)
            norm = from_mp(norm) / scale

        def closed(x):
            t = x / scale
            f0 = norm * gmpy2.exp(-(df + 1) / 2 * gmpy2.log1p(t * t / df))
            return f0, -f0 * (df + 1) * t / ((df + t * t) * scale)

        return closed
    nodes = [(w, s * s + scale * scale / V) for w, V in student_scales(df, digits)]
    table = [(w / (gmpy2.sqrt(S2) * sqrt2pi()), -1 / (2 * S2)) for w, S2 in nodes]

    def over(terms, x):
        f0 = f1 = ZERO
        xx = x * x
        for w, k in terms:
            g = w * gmpy2.exp(k * xx)
            f0 += g
            f1 += k * g
        return f0, 2 * x * f1

    def on_panel(lo, hi):
        """The density between lo and hi, without the terms that are nothing there."""
        least = over(table, hi)[0] * mpfr(10) ** (-digits - 2)
        terms = [(w, k) for w, k in table if w * gmpy2.exp(k * lo * lo) > least]
        return lambda x: over(terms, x)

    def f(x):
        return over(table, x)

    f.on_panel = on_panel
    return f


class Residual:
    """X for one family, its parameters and r, at the working precision set by `BITS`."""

    def __init__(self, family, p, r):
        set_bits(BITS)
        self.family = family
        self.s = s = gmpy2.sqrt(2 * mpfr(r))
        self.atoms = []  # (weight, position)
        self.even = True
        self.heavy = None  # degrees of freedom of a power tail
        self.cache = {}
        parts = normal_parts(family, p)
        if parts is not None:
            parts = [(w, m, gmpy2.sqrt(s * s + t * t)) for w, m, t in parts]
            self.atoms = [(w, m) for w, m, S in parts if S == 0]
            parts = [part for part in parts if part[2] > 0]
            self.even = family != "gaussian_mixture"
            self.f = mixture_density(parts)
            self.bends = [(m, S) for _, m, S in parts]
            self.scale = max((abs(m) + S for _, m, S in parts), default=ONE)
            self.top = max((abs(m) + 1.4 * REACH * S for _, m, S in parts), default=ZERO)
        elif family == "uniform":
            a = mpfr(p["half_width"])
            if s == 0:
                self.f = lambda x: (1 / (2 * a) if abs(x) <= a else ZERO, ZERO)
            else:
                self.f = uniform_density(a, s)
            self.bends = [(a, s), (-a, s)]
            self.scale = a + s
            self.top = a + 1.4 * REACH * s
        elif family == "laplace":
            b = mpfr(p["sigma"]) / gmpy2.sqrt(mpfr(2))
            self.f = laplace_density(b, s)
            self.bends = [(ZERO, s)] if s > 0 else []
            self.scale = b + s
            # exp(-x/b + s^2/2b^2) once the Gaussian is below it
            self.top = max(1.4 * REACH * s, 2 * s * s / b) + 150 * b
        else:
            df, scale = mpfr(p["df"]), mpfr(p["scale"])
            self.f = student_density(df, scale, s)
            self.heavy = df
            self.scale = gmpy2.sqrt(s * s + scale * scale)
            self.bends = [(ZERO, self.scale), (ZERO, max(s, scale / 4))]
            # For many degrees of freedom the density is a bell out to sqrt(df) scales.
            self.top = None

    def edges(self, smallest, top=None):
        """Panel edges on [0, top]: every power of two above `smallest`, and fine ones at each bend.

        A panel [x, 2x] keeps the poles of a rule at +-ic three half-widths away, whatever c is.
        """
        top = self.top if top is None else top
        found = {ZERO, +top}
        x = mpfr(2) ** (math.floor(gmpy2.log2(mpfr(smallest))))
        while x < top:
            found.add(x)
            x *= 2
        for m, S in self.bends:
            for k in range(-REACH, REACH + 1, 2):
                found.add(abs(m + k * S))
        return sorted(e for e in found if 0 <= e <= top)

    def panel(self, lo, hi):
        """Nodes of one panel with the density there: (x, weight, f, f')."""
        found = self.cache.get((lo, hi))
        if found is None:
            half, mid = (hi - lo) / 2, (hi + lo) / 2
            rule = gauss_legendre(NODES, gmpy2.get_context().precision)
            f = self.f.on_panel(lo, hi) if hasattr(self.f, "on_panel") else self.f
            found = [(mid + half * t, half * w, *f(mid + half * t)) for t, w in rule]
            self.cache[lo, hi] = found
        return found

    def integrate(self, edges, values):
        """The integrals over the edges and their mirror image of values(x, f(x), f'(x))."""
        total = None
        for lo, hi in zip(edges, edges[1:]):
            sides = ((lo, hi),) if self.even else ((lo, hi), (-hi, -lo))
            for a, b in sides:
                for x, w, f0, f1 in self.panel(a, b):
                    terms = values(x, f0, f1)
                    total = [w * t for t in terms] if total is None else [u + w * t for u, t in zip(total, terms)]
        return [2 * t if self.even else t for t in total]
