"""Classification and other generalised linear models: clipping when the loss is not squared.

A model is a name or a dictionary, as in experiment files: ``"logistic"``, ``{"kind": "logistic",
"flips": 0.1}``, ``{"kind": "huber", "delta": 1.0}``. A state is the
covariance of two logits, that of the model and that of the teacher: ``q`` = E u², ``p`` = E uv and
``v`` = E v².

>>> import toclip
>>> noisy = {"kind": "logistic", "flips": 0.2}
>>> kappa = toclip.glm.fixed_point(noisy, v=9.0, c=0.4)     # SGD converges to κ θ*, not to θ*
>>> kappa > toclip.glm.fixed_point(noisy, v=9.0)
True
>>> best = toclip.glm.best_threshold(noisy, q=4.0, p=5.4, v=9.0)
>>> bool(best.c < 0.6 and best.ccc > 1.0)                   # flipped labels: clip
True

Curves over time come from :func:`toclip.experiment` with the keys ``model`` and ``teacher``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _toclip
from ._toclip import Noise, Spectrum
from .problem import as_spectrum, as_start
from .results import BestClip, GlmState, GlmThreshold

__all__ = ["at", "best_clip", "best_rate", "best_threshold", "fixed_point"]

Model = str | Mapping[str, Any]


def at(
    model: Model,
    q: float,
    p: float,
    v: float,
    c: float | str | None = None,
    *,
    noise: Noise | None = None,
) -> GlmState:
    """The effect of clipping at ``c`` on the gradient at a state, and the quality of the model there.

    With the clipped residual ψ: ``a`` = E ∂ψ/∂u, the pull towards zero; ``b`` = E ∂ψ/∂v, the pull
    towards the teacher, negative; ``m2`` = E ψ², the noise. ``loss`` is the cross-entropy over labels as
    drawn, ``error_rate`` counts against labels before flips, ``angle`` is that to the teacher,
    ``calibration`` the slope of a logistic fit of the labels on the logits. ``ccc`` above 1: clipping
    leaves less noise at equal speed. A number that does not exist is NaN. ``noise`` is that of the targets
    of Huber regression.
    """
    return GlmState(c=_toclip.as_threshold("c", c), **_toclip.glm_at(model, q, p, v, c, noise))


def best_threshold(
    model: Model, q: float, p: float, v: float, *, noise: Noise | None = None
) -> GlmThreshold:
    """The threshold with the largest CCC at a state; infinite where not clipping is best."""
    return GlmThreshold(*_toclip.glm_best_threshold(model, q, p, v, noise))


def fixed_point(
    model: Model, v: float, c: float | str | None = None, *, noise: Noise | None = None
) -> float:
    """κ of the point κθ* to which SGD with a small learning rate converges.

    It is 1 without clipping and flips. Flipped labels make it smaller, clipping makes it larger.
    """
    return _toclip.glm_fixed_point(model, v, c, noise)


def best_clip(
    spectrum: Spectrum,
    teacher: Any,
    model: Model,
    time: float,
    *,
    shape: str = "constant",
    noise: Noise | None = None,
) -> BestClip:
    """The constant threshold, and the learning rate with it, that end with the lowest loss.

    ``teacher`` is θ* in the grammar of ``start``: its norm, or a dictionary. ``shape`` is
    ``"constant"`` or ``"cosine"``, how the learning rate falls until ``time``.

    >>> import toclip
    >>> found = toclip.glm.best_clip(toclip.isotropic(500), 3.0, "logistic", 5.0, shape="cosine")
    >>> found.c                                             # clean labels: do not clip
    inf
    """
    parts = as_spectrum(spectrum), as_start(teacher, "teacher")
    return BestClip(*_toclip.glm_best_clip(*parts, model, time, None, shape, noise))


def best_rate(
    spectrum: Spectrum,
    teacher: Any,
    model: Model,
    time: float,
    c: float | str | None = None,
    *,
    shape: str = "constant",
    noise: Noise | None = None,
) -> BestClip:
    """The learning rate that ends with the lowest loss at the threshold ``c``; otherwise as :func:`best_clip`.

    >>> import toclip
    >>> problem = toclip.isotropic(500), 3.0, {"kind": "logistic", "flips": 0.1}, 10.0
    >>> small, none = toclip.glm.best_rate(*problem, 0.1), toclip.glm.best_rate(*problem)
    >>> bool(small.loss > none.loss and small.learning_rate > none.learning_rate)
    True
    """
    parts = as_spectrum(spectrum), as_start(teacher, "teacher")
    threshold = _toclip.as_threshold("c", c)
    return BestClip(*_toclip.glm_best_clip(*parts, model, time, threshold, shape, noise))
