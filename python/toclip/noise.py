"""Distributions of the noise in the targets, one function per family.

Each returns a :class:`toclip.Noise`, which has a ``mean``, a ``variance`` and a ``second_moment``.
``sample(size, seed)`` draws from it, ``to_dict()`` turns it into a dictionary, and
``batched(size, outputs=1, per_sample=False)`` is the same noise in batches. ``with_rule("skip")``
is the same with another rule than clipping: skip, normalise, tanh, root, optimal or by_value.

>>> import toclip
>>> noise = toclip.noise.laplace(sigma=2.0)
>>> round(noise.variance, 12)
4.0
>>> toclip.Noise(noise.to_dict()) == noise
True
>>> print(noise.batched(32))
Laplace (σ = 2), batches of 32
>>> print(noise.with_rule("skip"))
Laplace (σ = 2), rule skip
"""

from __future__ import annotations

from collections.abc import Iterable

from ._numbers import floats
from ._toclip import Noise, as_number

__all__ = [
    "empirical",
    "gaussian",
    "gaussian_mixture",
    "laplace",
    "none",
    "rademacher",
    "student_t",
    "uniform",
]


def _noise(family: str, **parameters: float | None) -> Noise:
    given = {name: value for name, value in parameters.items() if value is not None}
    return Noise({"family": family, **{k: as_number(k, value) for k, value in given.items()}})


def none() -> Noise:
    """No noise."""
    return Noise({"family": "none"})


def gaussian(sigma: float) -> Noise:
    """N(0, sigma²), for which clipping never helps.

    >>> import toclip
    >>> float(toclip.best_threshold(toclip.noise.gaussian(1.0), 0.1).c)
    inf
    """
    return _noise("gaussian", sigma=sigma)


def rademacher(p: float, *, lam: float | None = None, sigma: float | None = None) -> Noise:
    """±lam with probability p/2 each, else 0; given by ``lam`` or by the standard deviation ``sigma``.

    >>> import toclip
    >>> toclip.noise.rademacher(0.25, lam=2.0).variance
    1.0
    """
    rate = None if lam is None else as_number("lam", lam)
    return _noise("rademacher", **{"lambda": rate}, sigma=sigma, p=p)


def uniform(*, half_width: float | None = None, sigma: float | None = None) -> Noise:
    """Uniform on [-half_width, half_width]."""
    return _noise("uniform", half_width=half_width, sigma=sigma)


def laplace(*, rate: float | None = None, sigma: float | None = None) -> Noise:
    """Density rate/2 · exp(-rate |x|)."""
    return _noise("laplace", rate=rate, sigma=sigma)


def student_t(df: float, *, scale: float | None = None, sigma: float | None = None) -> Noise:
    """scale · t with df degrees of freedom; Cauchy noise for df = 1.

    >>> import toclip
    >>> toclip.noise.student_t(df=1.0, scale=0.5).variance
    inf
    """
    return _noise("student_t", df=df, scale=scale, sigma=sigma)


def gaussian_mixture(
    weights: Iterable[float], means: Iterable[float], stds: Iterable[float]
) -> Noise:
    """A mixture of normal distributions."""
    parts = {"weights": weights, "means": means, "stds": stds}
    return Noise({"family": "gaussian_mixture", **{k: floats(k, v) for k, v in parts.items()}})


def empirical(values: Iterable[float]) -> Noise:
    """Residuals from data, all equally likely.

    >>> import toclip
    >>> toclip.noise.empirical([-1.0, 0.0, 4.0]).mean
    1.0
    """
    return Noise({"family": "empirical", "values": floats("values", values)})
