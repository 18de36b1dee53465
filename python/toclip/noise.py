"""The laws of the noise in the targets, one function each.

Every one gives a :class:`toclip.Noise`, which knows its ``mean``, ``variance`` and
``second_moment``, draws with ``sample(size, seed)``, turns into a dictionary with ``to_dict()``, and
comes in batches with ``batched(size, outputs=1, per_sample=False)``.

>>> import toclip
>>> noise = toclip.noise.laplace(sigma=2.0)
>>> round(noise.variance, 12)
4.0
>>> toclip.Noise(noise.to_dict()) == noise
True
>>> print(noise.batched(32))
Laplace (σ = 2), batches of 32
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


def _made(family: str, **parameters: float | None) -> Noise:
    given = {name: value for name, value in parameters.items() if value is not None}
    return Noise({"family": family, **{k: as_number(k, value) for k, value in given.items()}})


def none() -> Noise:
    """No noise at all."""
    return Noise({"family": "none"})


def gaussian(sigma: float) -> Noise:
    """N(0, sigma²): the one family under which clipping never helps.

    >>> import toclip
    >>> float(toclip.best_threshold(toclip.noise.gaussian(1.0), 0.1).c)
    inf
    """
    return _made("gaussian", sigma=sigma)


def rademacher(p: float, *, lam: float | None = None, sigma: float | None = None) -> Noise:
    """±lam with probability p/2 each, else 0; ``lam`` itself or from the standard deviation.

    >>> import toclip
    >>> toclip.noise.rademacher(0.25, lam=2.0).variance
    1.0
    """
    rate = None if lam is None else as_number("lam", lam)
    return _made("rademacher", **{"lambda": rate}, sigma=sigma, p=p)


def uniform(*, half_width: float | None = None, sigma: float | None = None) -> Noise:
    """Uniform on [-half_width, half_width]."""
    return _made("uniform", half_width=half_width, sigma=sigma)


def laplace(*, rate: float | None = None, sigma: float | None = None) -> Noise:
    """Density rate/2 · exp(-rate |x|)."""
    return _made("laplace", rate=rate, sigma=sigma)


def student_t(df: float, *, scale: float | None = None, sigma: float | None = None) -> Noise:
    """scale · t with df degrees of freedom; Cauchy noise for df = 1.

    >>> import toclip
    >>> toclip.noise.student_t(df=1.0, scale=0.5).variance
    inf
    """
    return _made("student_t", df=df, scale=scale, sigma=sigma)


def gaussian_mixture(
    weights: Iterable[float], means: Iterable[float], stds: Iterable[float]
) -> Noise:
    """A mixture of normal laws."""
    parts = {"weights": weights, "means": means, "stds": stds}
    return Noise({"family": "gaussian_mixture", **{k: floats(k, v) for k, v in parts.items()}})


def empirical(values: Iterable[float]) -> Noise:
    """Residuals from data, each as likely as the others.

    >>> import toclip
    >>> toclip.noise.empirical([-1.0, 0.0, 4.0]).mean
    1.0
    """
    return Noise({"family": "empirical", "values": floats("values", values)})
