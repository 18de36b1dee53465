"""Batch factors by another road: Gil-Pelaez inversion of the characteristic function of S.

The library integrates the Laplace transform along a bent path through a saddle point. Here the
characteristic function E exp(itX^2) is integrated over the distribution of the noise with a fine rule, and
gives the distribution of S on the real line:

    P(S <= u)      = 1/2 - (1/pi) int Im(exp(-itu) chi(t)) / t dt
    E min(S, a)    = a/2 + (1/pi) int Im(chi(t) (1 - exp(-ita)) / (i t^2)) dt
    E[S^-1/2; S>a] = (1/sqrt(pi)) int G(z) z^-1/2 dz - (1/pi) int Re(chi(t) g(t)) dt

with g(t) = int_0^a x^-1/2 exp(-itx) dx, a Fresnel integral.

For two samples the definition itself is integrated in polar coordinates, with the density of X by
numerical convolution. Run: python3 scripts/reference/batch.py > crates/toclip/tests/data/batch_factors_wide.csv
"""

import json
import sys

import mpmath
import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy import special

NODES, WEIGHTS = leggauss(16)


def panels(edges):
    """Composite Gauss-Legendre nodes and weights on consecutive edges."""
    edges = np.asarray(edges)
    half = 0.5 * np.diff(edges)[:, None]
    middle = 0.5 * (edges[1:] + edges[:-1])[:, None]
    return (middle + half * NODES).ravel(), (half * WEIGHTS).ravel()


def parts(family, p, r):
    """The residual as normals: weights, means, variances."""
    s2 = 2.0 * r
    if family == "student_t":
        # Precision w = exp(u), w ~ Gamma(df/2, rate df/2); a fine trapezoidal rule.
        a = 0.5 * p["df"]
        u = np.arange(-36.0 / a, 8.0, 0.2)
        u = u[a * (u - np.exp(u)) > -40.0]
        w = np.exp(a * (u - np.exp(u) + 1.0))
        return w / w.sum(), np.zeros_like(u), s2 + p["scale"] ** 2 * np.exp(-u)
    if family == "laplace":
        # Variance sigma^2 times a standard exponential.
        x, w = panels(np.concatenate([[0.0], np.geomspace(1e-9, 42.0, 14)]))
        w = w * np.exp(-x)
        return w / w.sum(), np.zeros_like(x), s2 + p["sigma"] ** 2 * x
    if family == "uniform":
        x, w = panels(np.linspace(0.0, p["half_width"], 12))
        return w / w.sum(), x, np.full_like(x, s2)
    if family == "gaussian_mixture":
        w = np.array(p["weights"]) / sum(p["weights"])
        return w, np.array(p["means"]), s2 + np.array(p["stds"]) ** 2
    raise ValueError(family)


def transform(noise, z):
    """E exp(-z X^2) for an array of z."""
    w, m, v = noise
    out = np.empty(len(z), dtype=complex)
    for i in range(0, len(z), 512):
        zz = z[i : i + 512, None]
        x = 1.0 + 2.0 * zz * v
        out[i : i + 512] = (w * np.exp(-zz * m * m / x) / np.sqrt(x)).sum(axis=1)
    return out


def by_characteristic(noise, n, c):
    a = c * c * n
    # Where chi^n has decayed, by doubling.
    top = 1.0 / a
    while abs(transform(noise, np.array([-1j * top]))[0]) ** n > 1e-15:
        top *= 1.2
        if top * a > 1e7:
            return None
    low = 1e-14 / a
    # Fine enough for exp(-ita) and for chi^n, whose scale is a tenth of where it ends at least.
    step = min(2.0 / a, top / 60.0)
    knee = min(step, top)
    count = max(int((top - knee) / step) + 1, 2)
    if count > 3000:
        return None
    edges = np.concatenate([np.geomspace(low * 1e-6, knee, 50), np.linspace(knee, top, count)[1:]])
    t, w = panels(edges)
    chi = np.exp(n * np.log(transform(noise, -1j * t)))

    inside = 0.5 - (w * (np.exp(-1j * t * a) * chi).imag / t).sum() / np.pi
    # (1 - exp(-iq))/(i t^2) = a q/t * (...): written so that small t do not cancel.
    q = t * a
    kernel = (2.0 * np.sin(0.5 * q) ** 2 + 1j * np.sin(q)) / (1j * t * t)
    square = 0.5 * a + (w * (chi * kernel).imag).sum() / np.pi
    sine, cosine = special.fresnel(np.sqrt(2.0 * q / np.pi))
    g = 2.0 * np.sqrt(a) * np.sqrt(np.pi / (2.0 * q)) * (cosine - 1j * sine)
    lower = (w * (chi * g).real).sum() / np.pi
    z, wz = panels(np.geomspace(1e-30 / a, 1e12 / a, 100))
    whole = (wz * np.exp(n * np.log(transform(noise, z.astype(complex)).real)) / np.sqrt(z)).sum()
    whole = whole / np.sqrt(np.pi) + 2.0 * np.sqrt(1e-30 / a / np.pi)
    mu = inside + (1.0 - 1.0 / n) * np.sqrt(a) * (whole - lower)
    return mu, square / (n * n)


def by_polar(noise, c):
    """n = 2: int_0^inf rho d rho int d phi f(rho cos phi) f(rho sin phi) h(rho^2)."""
    w, m, v = noise
    s = np.sqrt(v)

    def density(x):
        x = np.abs(np.asarray(x))[..., None]
        bell = np.exp(-0.5 * ((x - m) / s) ** 2) + np.exp(-0.5 * ((x + m) / s) ** 2)
        return (w * bell / s).sum(axis=-1) / (2.0 * np.sqrt(2.0 * np.pi))

    # Symmetric in both coordinates and under their exchange: an eighth of the circle. For large
    # radii the density is concentrated near the axis, so the angle is graded.
    x, wx = panels(np.concatenate([[0.0], np.geomspace(1e-6, np.pi / 4.0, 16)]))

    def ring(rho):
        return 8.0 * rho * (wx * density(rho * np.cos(x)) * density(rho * np.sin(x))).sum()

    radius = c * np.sqrt(2.0)
    inner, wi = panels(np.concatenate([[0.0], np.linspace(0.2, 1.0, 5)]) * radius)
    rings = np.array([ring(q) for q in inner])
    inside = (wi * rings).sum()
    short = (wi * rings * inner**2).sum()
    outer, wo = panels(radius * np.concatenate([np.linspace(1.0, 8.0, 8), np.geomspace(8.0, 1e7, 30)[1:]]))
    tail = (wo * np.array([ring(q) for q in outer]) / outer).sum()
    mu = inside + 0.5 * radius * tail
    return mu, (short + radius**2 * (1.0 - inside)) / 4.0


def main():
    cases = [
        ("student_t", {"df": 1.0, "scale": 0.5}),
        ("student_t", {"df": 2.2, "scale": 0.5}),
        ("student_t", {"df": 6.0, "scale": 1.0}),
        ("laplace", {"sigma": 0.8}),
        ("uniform", {"half_width": 1.2}),
        ("gaussian_mixture", {"weights": [0.7, 0.2, 0.1], "means": [-0.3, 0.2, 3.0], "stds": [0.4, 0.1, 0.5]}),
    ]
    print("family,params,batch,r,c,mu,m2,nu")
    for family, params in cases:
        for r in [0.02, 3.0]:
            noise = parts(family, params, r)
            second = (noise[0] * (noise[1] ** 2 + noise[2])).sum()
            if params.get("df", 0.0) > 2.0:
                # The rule over scales ends where the transform no longer sees it.
                second = 2.0 * r + params["scale"] ** 2 * params["df"] / (params["df"] - 2.0)
            for batch in [2, 16, 128]:
                for c in [0.05, 0.6, 2.0]:
                    # The corner of chi at zero costs this route its digits where the mean is infinite.
                    if batch > 2 and params.get("df", 3.0) <= 2.0:
                        continue
                    found = by_polar(noise, c) if batch == 2 else by_characteristic(noise, batch, c)
                    if found is None:
                        print("no", family, r, batch, c, file=sys.stderr)
                        continue
                    mu, m2 = found
                    heavy = family == "student_t" and params["df"] <= 2.0
                    nu = "" if heavy else repr(float(m2 * batch / second))
                    text = json.dumps(params).replace('"', '""')
                    print(f'{family},"{text}",{batch},{r},{c},{float(mu)!r},{float(m2)!r},{nu}')

    for batch in [1000, 10000, 100000]:
        for r, c in [(0.18, 0.3), (0.18, 0.995), (0.18, 1.0), (0.18, 1.01), (3.0, 2.4), (3.0, 9.0)]:
            found = ",".join(mpmath.nstr(x, 17) for x in gaussian(batch, r, c))
            print(f'gaussian,"{{""sigma"": 0.8}}",{batch},{r},{c},{found}')


def gaussian(n, r, c):
    """S is a scaled chi^2: incomplete gamma functions with 40 digits."""
    mpmath.mp.dps = 40
    half, v = mpmath.mpf(1) / 2, 2 * mpmath.mpf(r) + mpmath.mpf(0.8) ** 2
    k, a = half * n, mpmath.mpf(c) ** 2 * n
    y = a / (2 * v)
    inside = mpmath.gammainc(k, 0, y, regularized=True)
    outside = mpmath.gammainc(k - half, y, mpmath.inf, regularized=True)
    outside *= mpmath.gamma(k - half) / mpmath.gamma(k) / mpmath.sqrt(2 * v)
    mu = inside + (1 - mpmath.mpf(1) / n) * mpmath.sqrt(a) * outside
    square = v * n * mpmath.gammainc(k + 1, 0, y, regularized=True) + a * (1 - inside)
    return mu, square / n**2, square / (n * v)


if __name__ == "__main__":
    main()
