"""What the risk will do."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from . import _toclip
from ._toclip import Noise, Schedule, Spectrum, as_array
from .criteria import as_noise
from .results import Band, Path, Tuned

__all__ = ["Problem", "Progress", "as_spectrum", "as_start", "teller"]

Progress = Callable[[int, int], None]


class Problem:
    """Clipped SGD on a linear model with Gaussian features.

    ``spectrum``
        a :class:`toclip.Spectrum`, or its dictionary.
    ``start``
        the norm of θ₀ - θ*, spread evenly over the eigendirections; or its coordinates; or a
        dictionary such as ``{"kind": "power_law", "norm": 1.0, "exponent": 0.5}``.
    ``noise``
        a :class:`toclip.Noise` (``noise.batched(32)`` for batches), or its dictionary.
    ``learning_rate``
        a number, a :class:`toclip.Schedule` or its dictionary, or ``"greedy"``.
    ``clip``
        a threshold, a schedule of thresholds, ``"none"``, ``"max_ccc"``, or a dictionary with the
        kind ``proportional`` or ``online``.

    ``margin``
        keeps the learning rate below a share of the largest stable one: a number such as 0.9 for a
        bound that holds whatever happens, or ``{"kind": "predicted", "margin": 0.9, "time": 10.0}`` for
        the limit along the predicted path, below which ``learning_rate`` may be infinite; half of it
        is the greedy rate of any spectrum.

    Time is steps over the intrinsic dimension ``dim``; a step is ``learning_rate/dim`` long and the
    gradient is clipped at ``clip·sqrt(dim)``; that of a batch, a mean over ``size`` samples, at
    ``clip·sqrt(dim·outputs/size)``, because means are as much shorter. Learning rates, thresholds and distances are in your
    units, whatever the norm of the spectrum.

    >>> import toclip
    >>> problem = toclip.Problem(
    ...     toclip.power_law(500, 0.2), 1.0, toclip.noise.student_t(1.0, scale=0.5),
    ...     learning_rate=0.6, clip=0.4)
    >>> path = problem.predict(toclip.linear_times(15.0, 61))
    >>> round(float(path.risk[-1]), 4)                  # figure 1b of the paper
    0.0698
    """

    def __init__(
        self,
        spectrum: Spectrum | dict[str, Any],
        start: float | ArrayLike | dict[str, Any],
        noise: Noise | dict[str, Any],
        *,
        learning_rate: float | Schedule | dict[str, Any] | str,
        clip: float | Schedule | dict[str, Any] | str | None = "none",
        margin: float | dict[str, Any] | None = None,
    ) -> None:
        parts = as_spectrum(spectrum), as_start(start), as_noise(noise)
        self._inner = _toclip.Problem(*parts, learning_rate, clip, margin)
        # For pickles. A copy, because dictionaries may be changed later.
        self._given = copy.deepcopy((*parts, learning_rate, clip, margin))

    def __getstate__(self) -> tuple[Any, ...]:
        return self._given

    def __setstate__(self, given: tuple[Any, ...]) -> None:
        self._given, self._inner = given, _toclip.Problem(*given)

    @property
    def dim(self) -> float:
        """The intrinsic dimension: steps in a unit of time."""
        return self._inner.dim

    @property
    def risk(self) -> float:
        """The risk at the start."""
        return self._inner.risk

    @property
    def distance(self) -> float:
        """‖θ₀ - θ*‖² at the start."""
        return self._inner.distance

    def stability_limits(self, c: float = float("inf")) -> dict[str, float]:
        """The learning rates above which ``risk`` and ``distance`` grow at the start.

        >>> import toclip
        >>> problem = toclip.Problem(
        ...     toclip.isotropic(100), 1.0, toclip.noise.none(), learning_rate=0.5)
        >>> problem.stability_limits()
        {'risk': 2.0, 'distance': 2.0}
        """
        return self._inner.stability_limits(c)

    def predict(
        self,
        times: ArrayLike,
        *,
        method: str = "ode",
        rtol: float = 1e-8,
        target: float | None = None,
        compress: float | None = None,
    ) -> Path:
        """Risk and distance at increasing times, by the ODE or (``"volterra"``) the integral equation.

        With a ``target`` the path ends when the risk falls to it. With ``compress``, such as 1e-10,
        a spectrum of very many eigenvalues is replaced by few that stand for it to that accuracy.
        """
        found = self._inner.predict(
            times, method=method, rtol=rtol, target=target, compress=compress
        )
        return Path(**found)

    def simulate(
        self,
        times: ArrayLike,
        *,
        runs: int = 100,
        seed: int = 1,
        method: str = "sgd",
        covariates: dict[str, Any] | None = None,
        confidence: float = 0.8,
        threads: int | None = None,
        progress: bool | Progress = False,
    ) -> Band:
        """Statistics over many runs.

        ``method`` is ``"sgd"`` (the iteration, every coordinate), ``"collapsed"`` (the same in law,
        equal eigenvalues as one) or ``"hsgd"`` (the diffusion). ``covariates``, of ``"sgd"`` only, is
        another law of the features, such as ``{"kind": "rademacher"}``. ``progress`` is called with the runs
        done and all runs; ``True`` draws a bar. Ctrl-C ends it. The numbers depend on the seed only,
        not on the threads.

        >>> import toclip
        >>> problem = toclip.Problem(
        ...     toclip.isotropic(100), 1.0, toclip.noise.gaussian(0.5), learning_rate=0.7, clip=0.9)
        >>> band = problem.simulate([0.0, 1.0, 2.0], runs=50, method="collapsed")
        >>> bool((band.risk["low"] <= band.risk["high"]).all())
        True
        """
        found = self._inner.simulate(
            times,
            runs=runs,
            seed=seed,
            method=method,
            covariates=covariates,
            confidence=confidence,
            threads=threads,
            progress=teller(progress),
        )
        return Band(**found)

    def run(
        self, times: ArrayLike, *, seed: int = 1, index: int = 0, method: str = "sgd"
    ) -> Path:
        """Run number ``index`` of the ensemble with this seed, alone."""
        return Path(**self._inner.run(times, seed=seed, index=index, method=method))

    def tune_kappa(
        self, time: float, *, compensation: str = "exact", compress: float | None = None
    ) -> Tuned:
        """The kappa of c = kappa·sqrt(2R + σ²) with the smallest risk at ``time``.

        The problem's own ``clip`` is put aside. ``compensation`` is ``"exact"`` (the learning rate over
        mu, so that only clipping is compared), ``"printed"`` or ``"none"``; ``compress`` is as for
        :meth:`predict`.

        >>> import toclip
        >>> parts = toclip.power_law(500, 1 / 6), 1.0, toclip.noise.rademacher(0.2, sigma=0.8)
        >>> tuned = toclip.Problem(*parts, learning_rate=0.4).tune_kappa(15.0, compress=1e-6)
        >>> best = toclip.Problem(*parts, learning_rate=0.4, clip=tuned.clip)
        >>> risk = best.predict([15.0]).risk[0]      # figure 4b of the paper
        >>> bool(risk < 0.0115), bool(abs(risk / tuned.risk - 1) < 1e-5)
        (True, True)
        """
        found = self._inner.tune_kappa(time, compensation=compensation, compress=compress)
        return Tuned(**found, compensation=compensation)


def as_spectrum(spectrum: Spectrum | dict[str, Any]) -> Spectrum:
    """A spectrum, or its dictionary, as a spectrum."""
    return spectrum if isinstance(spectrum, Spectrum) else Spectrum(spectrum)


def as_start(start: float | ArrayLike | dict[str, Any]) -> dict[str, Any]:
    """The start as the dictionary that says the same."""
    if isinstance(start, dict):
        return start
    values = as_array("start", start)
    if values.ndim > 1:
        raise ValueError(
            f"start must be a norm, a list of coordinates or a dictionary, not of shape {values.shape}"
        )
    if values.ndim == 0:
        return {"kind": "uniform", "norm": float(values)}
    return {"kind": "coordinates", "values": values.tolist()}


def teller(progress: bool | Progress | None) -> Progress | None:
    """Whom to tell of runs: nobody, a bar, or whoever is given."""
    if progress is True:
        return _bar
    return None if progress is None or progress is False else progress


def _bar(done: int, all_runs: int) -> None:
    filled = 30 * done // all_runs
    end = "\n" if done == all_runs else ""
    sys.stderr.write(f"\r[{'#' * filled:<30}] {done}/{all_runs} runs{end}")
    sys.stderr.flush()
