"""Reduction factors of X = sqrt(2r) z - eps from their definitions, at high precision.

mu = P(|X| <= c) and m2 = E[min(X^2, c^2)].  Every family is handled by conditioning on
one of the two variables, after which the conditional probability and moment are exact:

    gaussian, rademacher, gaussian_mixture, none   on the component: X is N(m, S^2)
    uniform, laplace                               on z, by Gauss-Legendre over z
    student_t                                      on the chi-square mixing variable V,
                                                   by the trapezoidal rule in log V

The working precision is far above the printed digits, so cancellation does not matter.
"""

import math
from functools import lru_cache

import gmpy2
import mpmath
from gmpy2 import mpfr

BITS = 1600  # the Gaussian kernel loses at most 6 log10(1e25) digits or so
LINEAR_BITS = 640  # conditional moments over z lose at most 2 log10(1e25) digits
NODES = 64

_ctx = gmpy2.get_context()
_ctx.precision = BITS
_ctx.emax = gmpy2.get_emax_max()
_ctx.emin = gmpy2.get_emin_min()
# MPFR returns zero for a true underflow, as needed here.
_ctx.trap_underflow = False

ZERO, ONE = mpfr(0), mpfr(1)


def set_bits(bits):
    """Sets the working precision; constants are cached per precision."""
    gmpy2.get_context().precision = bits


def sqrt2pi():
    return gmpy2.sqrt(2 * gmpy2.const_pi())


def from_mp(x):
    """mpmath number to MPFR without going through a double."""
    sign, man, exp, _ = x._mpf_
    return (-1) ** sign * gmpy2.mul_2exp(mpfr(man), exp) if exp >= 0 else (
        (-1) ** sign * gmpy2.div_2exp(mpfr(man), -exp))


@lru_cache(maxsize=None)
def gauss_legendre(n, bits):
    """Nodes and weights on [-1, 1], by Newton from the usual cosine guess."""
    set_then = gmpy2.get_context().precision
    set_bits(bits + 32)
    nodes = []
    for i in range(n):
        x = mpfr(math.cos(math.pi * (i + 0.75) / (n + 0.5)))
        for _ in range(60):
            p0, p1 = ONE, x
            for k in range(2, n + 1):
                p0, p1 = p1, ((2 * k - 1) * x * p1 - (k - 1) * p0) / k
            dp = n * (x * p1 - p0) / (x * x - 1)
            dx = p1 / dp
            x -= dx
            if abs(dx) < mpfr(2) ** (-(bits // 2 + 16)):
                # The next Newton step is below the precision: derivative at the node.
                p0, p1 = ONE, x
                for k in range(2, n + 1):
                    p0, p1 = p1, ((2 * k - 1) * x * p1 - (k - 1) * p0) / k
                dp = n * (x * p1 - p0) / (x * x - 1)
                x -= p1 / dp
                break
        nodes.append((x, 2 / ((1 - x * x) * dp * dp)))
    set_bits(set_then)
    return nodes


def erf_series(x, extra_bits):
    """2x/sqrt(pi) exp(-x^2) sum_k (2x^2)^k / (2k+1)!!, positive terms."""
    before = gmpy2.get_context().precision
    set_bits(before + extra_bits)
    total = term = ONE
    k = 0
    while term > total * mpfr(2) ** (-before - extra_bits):
        k += 1
        term *= 2 * x * x / (2 * k + 1)
        total += term
    value = 2 * x * gmpy2.exp(-x * x) * total / gmpy2.sqrt(gmpy2.const_pi())
    set_bits(before)
    return value


def near_integer_square(x):
    """Some MPFR builds abort in erf where x^2 is an integer up to rounding."""
    return 0.5 < x < 200 and abs(x * x - gmpy2.rint(x * x)) < 1e-12


def erfc(x):
    """erfc, zero beyond exp(-1e8), where it can matter to nothing."""
    if x >= 10000:
        return ZERO
    if near_integer_square(x):
        bits = int(1.5 * float(x * x)) + 64
        before = gmpy2.get_context().precision
        set_bits(before + bits)
        value = 1 - erf_series(x, bits)
        set_bits(before)
        return +value
    return gmpy2.erfc(x)


def erf(x):
    """erf of x >= 0."""
    if x >= 10000:
        return ONE
    return erf_series(x, 64) if near_integer_square(x) else gmpy2.erf(x)


# --- the Gaussian kernel -------------------------------------------------------------


def gaussian_kernel(m, S, c):
    """(mu, m2) of N(m, S^2) clipped at c; S = 0 is an atom, "<=" at the boundary."""
    m = abs(m)
    if S == 0:
        return (ONE, m * m) if m <= c else (ZERO, c * c)
    a, b = (-c - m) / S, (c - m) / S
    rt2 = gmpy2.sqrt(mpfr(2))
    upper_a = erfc(-a / rt2) / 2  # P(X < -c)
    if b < 0:
        mu = erfc(-b / rt2) / 2 - upper_a
        outside = 1 - mu
    else:
        outside = erfc(b / rt2) / 2 + upper_a
        mu = 1 - outside
    phi_a, phi_b = (gmpy2.exp(-x * x / 2) / sqrt2pi() for x in (a, b))
    inside = (m * m + S * S) * mu + 2 * m * S * (phi_a - phi_b) + S * S * (a * phi_a - b * phi_b)
    return mu, inside + c * c * outside


# --- uniform and Laplace: condition on y = sqrt(2r) z ---------------------------------


def _uniform_given_y(y, a, c):
    lo, hi = max(-a, y - c), min(a, y + c)
    if hi <= lo:
        return ZERO, c * c
    inside = ((hi - y) ** 3 - (lo - y) ** 3) / 3
    return (hi - lo) / (2 * a), (inside + c * c * (2 * a - (hi - lo))) / (2 * a)


def _laplace_given_y(y, b, c):
    """y >= 0; density exp(-|x|/b)/(2b) integrated exactly over |x - y| <= c."""
    near, far = gmpy2.exp(-abs(c - y) / b), gmpy2.exp(-(c + y) / b)
    if y <= c:
        mu = 1 - (near + far) / 2
        m2 = y * y + 2 * b * b - b * (b + c) * (near + far)
    else:
        mu = (near - far) / 2
        m2 = c * c - (b * c * (near + far) - b * b * (near - far))
    return mu, m2


def _integrate_over_y(given_y, s, breaks):
    """2 * int_0^inf N(y; 0, s^2) given_y(y) dy, panels between the breaks and at k*s."""
    set_bits(LINEAR_BITS)
    edges = {ZERO, *(s * k for k in range(1, 23))}
    cut = 22 * s  # the rest weighs exp(-242), 1e-105
    edges.update(e for e in breaks if 0 < e < cut)
    edges = sorted(edges)
    mu = m2 = ZERO
    rule = gauss_legendre(NODES, gmpy2.get_context().precision)
    norm = 2 / (s * sqrt2pi())
    for lo, hi in zip(edges, edges[1:]):
        half, mid = (hi - lo) / 2, (hi + lo) / 2
        pm = p2 = ZERO
        for x, w in rule:
            y = mid + half * x
            weight = w * gmpy2.exp(-((y / s) ** 2) / 2)
            g0, g2 = given_y(y)
            pm += weight * g0
            p2 += weight * g2
        mu += half * pm
        m2 += half * p2
    mu, m2 = mu * norm, m2 * norm
    set_bits(BITS)
    return mu, m2


def uniform(a, s, c):
    if s == 0:
        return _uniform_given_y(ZERO, a, c)
    return _integrate_over_y(lambda y: _uniform_given_y(y, a, c), s, [abs(c - a), c + a])


def laplace(b, s, c):
    if s == 0:
        return _laplace_given_y(ZERO, b, c)
    breaks = [c]
    for k in (1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256):
        breaks += [b * k, c - b * k, c + b * k]
    return _integrate_over_y(lambda y: _laplace_given_y(y, b, c), s, breaks)


# --- Student-t: X | V is N(0, s^2 + scale^2 / V), V ~ Gamma(df/2, rate df/2) ----------


def centred_kernel(S2, c):
    """(P(|X| <= c), E[(c^2 - X^2)+] / c^2) of N(0, S2)."""
    w2 = c * c / S2
    w = gmpy2.sqrt(w2)
    mu = erf(w / gmpy2.sqrt(mpfr(2)))
    if w < 0.05:
        # 2 w phi(0) sum_k (-w^2/2)^k / k! * 2 / ((2k+1)(2k+3))
        total, term, k = ZERO, ONE, 0
        tiny = mpfr(2) ** (-gmpy2.get_context().precision)
        while abs(term) > tiny:
            total += term * 2 / ((2 * k + 1) * (2 * k + 3))
            k += 1
            term *= -w2 / (2 * k)
        return mu, 2 * w * total / sqrt2pi()
    return mu, (1 - 1 / w2) * mu + 2 * gmpy2.exp(-w2 / 2) / (w * sqrt2pi())


def log_v_rule(df, digits):
    """Step of the trapezoidal rule in u = log V for an error 10^-digits.

    On the strip |Im u| < d < pi/2 the weight exp(df/2 (u - e^u)) grows by at most
    cos(d)^(-df/2) and the kernels stay bounded, so the error is exp(-2 pi d/h) cos(d)^(-df/2).
    """
    goal = digits * math.log(10)
    return max(
        2 * math.pi * d / (goal - df / 2 * (math.log1p(-2 * math.sin(d / 2) ** 2)))
        for d in (math.pi / 2 * 10 ** (-k / 40) * 0.999 for k in range(400))
    )


def log_gamma_norm(df):
    """log of (df/2)^(df/2) e^(-df/2) / Gamma(df/2): the density of log V at 0."""
    h = df / 2
    with mpmath.workprec(gmpy2.get_context().precision + 64):
        x = mpmath.mpf(h.as_integer_ratio()[0]) / int(h.as_integer_ratio()[1])
        v = x * mpmath.log(x) - x - mpmath.loggamma(x)
        return from_mp(v)


def sum_over_log_v(df, h, offset, kernel, digits):
    """h * sum over u = offset + k h of the density of u = log V times kernel(V).

    kernel returns a tuple of positive functions that grow with V; the sum goes both ways
    from u = 0 until the rest cannot matter.
    """
    half = df / 2
    hh = mpfr(h)
    norm = gmpy2.exp(log_gamma_norm(df))
    tiny = mpfr(10) ** (-digits)
    total = None
    for sign in (1, -1):
        k = 0 if sign == 1 else 1
        while True:
            u = offset * hh + sign * k * hh
            V = gmpy2.exp(u)
            weight = gmpy2.exp(half * (u + 1 - V))
            terms = [weight * g for g in kernel(V)]
            if total is None:
                total = [ZERO] * len(terms)
            total = [t + x for t, x in zip(total, terms)]
            # Bound on the rest: a geometric series of ratio exp(-h df/2) at worst on the
            # left, much faster on the right once V is beyond the peak.
            room = 1 if sign == 1 else max(1.0, 4 / (float(df) * h))
            if (sign == -1 or V > 1 + 2 / half) and all(
                x * room * 10 < tiny * t for x, t in zip(terms, total)
            ):
                break
            k += 1
    return [t * hh * norm for t in total]


def student_t(df, scale, s, c):
    """(mu, m2); two half-shifted sums must agree, which is checked."""
    s2 = s * s
    digits = 32
    while True:
        set_bits(int((digits + 25) * 3.33) + 64)
        h = log_v_rule(float(df), digits)
        sc2, cc = scale * scale, +c

        def kernel(V):
            return centred_kernel(s2 + sc2 / V, cc)

        one = sum_over_log_v(df, h, mpfr(0), kernel, digits)
        two = sum_over_log_v(df, h, mpfr("0.5"), kernel, digits)
        mu, deficit = ((x + y) / 2 for x, y in zip(one, two))
        m2_rel = 1 - deficit
        error = max(abs(one[0] - two[0]) / mu, abs(one[1] - two[1]) / abs(m2_rel))
        lost = -gmpy2.log10(abs(m2_rel)) if m2_rel != 0 else mpfr(200)
        if error < mpfr("1e-24") and lost < digits - 24:
            result = mu, m2_rel * cc * cc
            set_bits(BITS)
            return result
        digits = int(max(digits + 15, min(float(lost), 200) + 32))
        if digits > 600:
            raise ArithmeticError(f"no convergence: df {df} scale {scale} s {s} c {c}")


# --- one row -------------------------------------------------------------------------


def second_moment(family, p):
    """E[eps^2], None when it is infinite."""
    q = {k: mpfr(v) if not isinstance(v, list) else [mpfr(x) for x in v] for k, v in p.items()}
    if family == "none":
        return ZERO
    if family in ("gaussian", "laplace"):
        return q["sigma"] ** 2
    if family == "rademacher":
        return q["p"] * q["lambda"] ** 2
    if family == "uniform":
        return q["half_width"] ** 2 / 3
    if family == "student_t":
        return q["scale"] ** 2 * q["df"] / (q["df"] - 2) if q["df"] > 2 else None
    if family == "gaussian_mixture":
        total = sum(q["weights"])
        return sum(w * (m * m + s * s) for w, m, s in zip(q["weights"], q["means"], q["stds"])) / total
    raise ValueError(family)


def components(family, p):
    """Families that are finite mixtures: a list of (weight, mean, std) of eps."""
    if family == "none":
        return [(ONE, ZERO, ZERO)]
    if family == "gaussian":
        return [(ONE, ZERO, mpfr(p["sigma"]))]
    if family == "rademacher":
        prob, lam = mpfr(p["p"]), mpfr(p["lambda"])
        return [(1 - prob, ZERO, ZERO), (prob, lam, ZERO)]  # |X| is the same for +-lambda
    if family == "gaussian_mixture":
        w = [mpfr(x) for x in p["weights"]]
        total = sum(w)
        return [(x / total, mpfr(m), mpfr(s)) for x, m, s in zip(w, p["means"], p["stds"])]
    return None


def mu_m2(family, p, r, c):
    """(mu, m2) for finite c; r and c may be doubles or MPFR numbers."""
    r, c = mpfr(r), mpfr(c)
    s = gmpy2.sqrt(2 * r)
    parts = components(family, p)
    if parts is not None:
        mu = m2 = ZERO
        for w, m, std in parts:
            if w == 0:
                continue
            k0, k2 = gaussian_kernel(m, gmpy2.sqrt(s * s + std * std), c)
            mu += w * k0
            m2 += w * k2
        return mu, m2
    if family == "uniform":
        return uniform(mpfr(p["half_width"]), s, c)
    if family == "laplace":
        return laplace(mpfr(p["sigma"]) / gmpy2.sqrt(mpfr(2)), s, c)
    if family == "student_t":
        return student_t(mpfr(p["df"]), mpfr(p["scale"]), s, c)
    raise ValueError(family)


def factors(family, p, r, c):
    """(mu, m2, nu), nu None when E[X^2] is infinite; m2 may be infinite at c = inf."""
    e2 = second_moment(family, p)
    ex2 = None if e2 is None else 2 * mpfr(r) + e2
    if c == math.inf:
        return ONE, (mpfr("inf") if ex2 is None else ex2), (None if ex2 is None else ONE)
    mu, m2 = mu_m2(family, p, r, c)
    if ex2 is None:
        return mu, m2, None
    return mu, m2, (ONE if ex2 == 0 else m2 / ex2)


def show(x, digits=17):
    """Correctly rounded decimal; nothing below the smallest double is kept."""
    if x is None:
        return ""
    if gmpy2.is_infinite(x):
        return "inf"
    if x == 0 or abs(x) < mpfr("1e-330"):
        return "0.0"
    return "{0:.{1}e}".format(x, digits - 1)
