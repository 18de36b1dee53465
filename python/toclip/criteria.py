"""How clipping changes descent and variance, and the best threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _toclip
from ._numbers import thresholds as as_thresholds
from ._toclip import Noise, as_array
from .results import BestThreshold, Factors, FisherLimit, KappaBounds

__all__ = ["as_noise", "best_threshold", "factors", "fisher_limit", "kappa_bounds", "verdict"]


def as_noise(noise: Noise | dict[str, Any]) -> Noise:
    """A noise, or a dictionary such as ``{"family": "laplace", "sigma": 0.5}``, as a noise."""
    return noise if isinstance(noise, Noise) else Noise(noise)


def _shaped(values: np.ndarray, shape: tuple[int, ...]) -> Any:
    return values.reshape(shape) if shape else float(values[0])


def _at_risks(function: Any, noise: Noise | dict[str, Any], r: ArrayLike) -> dict[str, Any]:
    """The risks and what the function finds at each of them."""
    risks = as_array("r", r)
    found = {"r": risks.ravel()} | function(as_noise(noise), risks.ravel())
    return {name: _shaped(values, risks.shape) for name, values in found.items()}


def factors(noise: Noise | dict[str, Any], r: ArrayLike, c: ArrayLike) -> Factors:
    """The reduction factors at risks ``r`` and thresholds ``c``, broadcast against each other.

    A threshold of ``"none"`` or ``inf`` means no clipping.

    >>> import numpy as np, toclip
    >>> noise = toclip.noise.laplace(sigma=1.0)
    >>> at = toclip.factors(noise, 0.5, 0.9)
    >>> round(at.mu, 7), round(at.ccc, 7)
    (0.5010494, 0.9465702)
    >>> toclip.factors(noise, [[0.1], [1.0]], np.linspace(0.5, 3, 6)).ccc.shape
    (2, 6)

    For the mean gradient of a batch of 32:

    >>> toclip.factors(toclip.noise.gaussian(0.8).batched(32), 0.18, 0.5).mu > 0.48
    True

    Steps above the threshold skipped, instead of clipped:

    >>> toclip.factors(noise.with_rule("skip"), 0.5, 0.9).mu < at.mu
    True
    """
    given = as_array("r", r), as_thresholds("c", c)
    try:
        risks, thresholds = np.broadcast_arrays(*given)
    except ValueError:
        shapes = f"{given[0].shape} and {given[1].shape}"
        raise ValueError(f"r and c have the shapes {shapes}, which cannot be broadcast") from None
    found = _toclip.factors(as_noise(noise), risks.ravel(), thresholds.ravel())
    shaped = {name: _shaped(values, risks.shape) for name, values in found.items()}
    variance = tuple(shaped.pop(name) for name in ("nu", "csc", "ccc") if name in shaped)
    r, c = (_shaped(given.ravel(), risks.shape) for given in (risks, thresholds))
    return Factors(r=r, c=c, **shaped, _variance=variance or None)


def best_threshold(noise: Noise | dict[str, Any], r: ArrayLike) -> BestThreshold:
    """The threshold with the largest CCC at risks ``r``; infinite if clipping never helps.

    >>> import toclip
    >>> noise = toclip.noise.rademacher(0.2, sigma=5.0)
    >>> best = toclip.best_threshold(noise, [0.1, 3.0])
    >>> bool((best.ccc > 2).all())
    True
    """
    return BestThreshold(**_at_risks(_toclip.best_threshold, noise, r))


def fisher_limit(noise: Noise | dict[str, Any], r: ArrayLike) -> FisherLimit:
    """The largest CCC of any function of the residual, and the share of it that clipping reaches.

    >>> import toclip
    >>> limit = toclip.fisher_limit(toclip.noise.laplace(sigma=1.0), 0.01)
    >>> 0.9 < limit.reached <= 1.0
    True
    """
    return FisherLimit(**_at_risks(_toclip.fisher_limit, noise, r))


def kappa_bounds(
    noise: Noise | dict[str, Any], risks: ArrayLike, thresholds: ArrayLike
) -> KappaBounds:
    """Bounds of mu/min(1, y) and nu/min(1, y²), y = c/sqrt(2R + σ²), over ranges of R and c.

    ``risks`` and ``thresholds`` are pairs: the smallest and the largest value.

    >>> import toclip
    >>> bounds = toclip.kappa_bounds(toclip.noise.gaussian(1.0), (0.0, 10.0), (1e-3, 1e3))
    >>> round(bounds.mu[0], 6)                       # P(|z| <= 1)
    0.682689
    """
    return KappaBounds(**_toclip.kappa_bounds(as_noise(noise), risks, thresholds))


def verdict(noise: Noise | dict[str, Any], r: float) -> dict[str, Any]:
    """Whether to clip at the risk ``r``, where, at which learning rate, and what it gains.

    ``choice`` has the key ``do``: ``"do_not_clip"``, or ``"clip"`` with ``threshold`` and ``rate``.
    ``gain`` is the share of the noise at equal descent that the best threshold removes; 1% or less is
    not worth it. ``evidence`` is what the verdict rests on, ``headline`` and ``reason`` are its words.

    >>> import toclip
    >>> toclip.verdict(toclip.noise.gaussian(1.0), 0.1)["headline"]
    'Do not clip.'
    >>> heavy = toclip.verdict(toclip.noise.student_t(2.5, sigma=1.0), 0.1)
    >>> heavy["choice"]["do"], heavy["choice"]["rate"], heavy["gain"] > 0.45
    ('clip', 'compensated', True)
    """
    return _toclip.verdict(as_noise(noise), as_array("r", r).ravel())
