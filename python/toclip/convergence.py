"""How fast SGD approaches the theory as the dimension grows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _toclip
from ._toclip import Noise, Schedule, Spectrum
from .criteria import as_noise
from .problem import Progress, as_spectrum, as_start, progress_function
from .results import Rate

__all__ = ["convergence"]


def convergence(
    spectra: Iterable[Spectrum | dict[str, Any]],
    start: float | ArrayLike | dict[str, Any],
    noise: Noise | dict[str, Any],
    *,
    learning_rate: float | Schedule | dict[str, Any] | str,
    clip: float | Schedule | dict[str, Any] | str | None = "none",
    time: float = 2.0,
    runs: int = 100,
    seed: int = 1,
    confidence: float = 0.95,
    threads: int | None = None,
    progress: bool | Progress = False,
) -> Rate:
    """Measures the rate of the paper's Theorem 1 over spectra of growing dimension.

    For each spectrum, ``runs`` runs of SGD (collapsed, with exactly the same distribution) are
    compared with the ODE at every step up to ``time``, and the largest gap between the risks is
    averaged over the runs. By the theorem it falls as the square root of the dimension: a ``slope``
    of -1/2. The other arguments are those of
    :class:`toclip.Problem` and :meth:`toclip.Problem.simulate`.

    >>> import toclip
    >>> rate = toclip.convergence(
    ...     [toclip.isotropic(d) for d in (100, 1000)], 1.0, toclip.noise.gaussian(0.5),
    ...     learning_rate=0.7, clip=0.9, runs=50)
    >>> -0.7 < rate.slope < -0.3
    True
    """
    try:
        made = [as_spectrum(spectrum) for spectrum in spectra]
    except TypeError:
        raise ValueError(f"spectra must be a list of toclip.Spectrum, not {spectra!r}") from None
    found = _toclip.convergence(
        made,
        as_start(start),
        as_noise(noise),
        learning_rate=learning_rate,
        clip=clip,
        time=time,
        runs=runs,
        seed=seed,
        confidence=confidence,
        threads=threads,
        progress=progress_function(progress),
    )
    names = {"mean": "gap", "standard_error": "gap_error"}
    gaps = found.pop("gaps")
    columns: dict[str, Any] = {names.get(key, key): np.array([gap[key] for gap in gaps]) for key in gaps[0]}
    return Rate(**columns, **found)
