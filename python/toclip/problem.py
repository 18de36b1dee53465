"""Predicts and simulates the risk of clipped SGD."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from numpy.typing import ArrayLike

from . import _toclip
from ._toclip import Noise, Schedule, Spectrum, as_array
from .criteria import as_noise
from .results import Band, Path, StateFactors, Tuned, TunedPrivate, same

__all__ = ["Problem", "Progress", "as_spectrum", "as_start", "progress_function"]

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
        a threshold, a schedule of thresholds, ``"none"`` or ``inf`` for no clipping, ``"max_ccc"``, or
        a dictionary of kind ``proportional`` or ``online``.
    ``margin``
        keeps the learning rate below a share of the largest stable one: a number such as 0.9 for a
        bound that holds on every path, or ``{"kind": "predicted", "margin": 0.9, "time": 10.0}`` for
        the limit along the predicted path. With the latter, ``learning_rate`` may be infinite; half
        of the limit is then the greedy rate, for any spectrum.
    ``rule``
        the rule for gradients above the threshold: ``"clip"`` (the default), ``"skip"``,
        ``"normalise"``, ``"tanh"``, ``"root"``, ``"optimal"`` or ``"by_value"``. By default that of
        the noise (``noise.with_rule("skip")``).
    ``groups``
        groups of coordinates that are clipped one by one, in the order of the eigenvalues:
        ``[{"size": 100}, {"size": 400, "ratio": 0.5}]``.
    ``momentum``
        beta as PyTorch's ``SGD(momentum=...)`` has it, or a dictionary such as
        ``{"kind": "average", "delta": 2.0}``.
    ``privacy``
        the noise of private SGD, ``{"noise_multiplier": 1.0}``; see :mod:`toclip.privacy`. Batches
        must be clipped per sample: ``noise.batched(32, per_sample=True)``.

    The last four are those of experiment files, with the same error messages. Time is the number of
    steps divided by the intrinsic dimension ``dim``. The step size is ``learning_rate/dim``, and the
    gradient is clipped at ``clip·sqrt(dim)``; the mean gradient of a batch of ``size`` samples is
    clipped at ``clip·sqrt(dim·outputs/size)``, because it is shorter by that factor. Learning rates,
    thresholds and distances are in your units, for a spectrum of any norm.

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
        rule: str | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
        momentum: float | dict[str, Any] | None = None,
        privacy: dict[str, Any] | None = None,
    ) -> None:
        parts = as_spectrum(spectrum), as_start(start), as_noise(noise)
        step: dict[str, Any] = {"rule": rule, "groups": groups}
        step |= {"momentum": momentum, "privacy": privacy}
        self._inner = _toclip.Problem(*parts, learning_rate, clip, margin, **step)
        # For pickles; a copy, because the caller may change the dictionaries later.
        self._arguments = copy.deepcopy(((*parts, learning_rate, clip, margin), step))

    def __getstate__(self) -> tuple[Any, ...]:
        return self._arguments

    def __setstate__(self, arguments: tuple[Any, ...]) -> None:
        self._arguments = arguments
        positional, named = arguments
        self._inner = _toclip.Problem(*positional, **named)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        return same(self._arguments, other._arguments)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        (spectrum, _, noise, *_), step = self._arguments
        given = [f"{name}={value!r}" for name, value in step.items() if value is not None]
        words = ", ".join([f"{spectrum.ambient_dim} dimensions", f"{noise} noise", *given])
        return f"<toclip.Problem: {words[:300]}>"

    @property
    def dim(self) -> float:
        """The intrinsic dimension: steps per unit of time."""
        return self._inner.dim

    @property
    def risk(self) -> float:
        """The risk at the start."""
        return self._inner.risk

    @property
    def distance(self) -> float:
        """‖θ₀ - θ*‖² at the start."""
        return self._inner.distance

    def stability_limits(self, c: float | str | None = "none") -> dict[str, float]:
        """The learning rates above which ``risk`` and ``distance`` grow at the start, at threshold ``c``.

        >>> import toclip
        >>> problem = toclip.Problem(
        ...     toclip.isotropic(100), 1.0, toclip.noise.none(), learning_rate=0.5)
        >>> problem.stability_limits()
        {'risk': 2.0, 'distance': 2.0}

        Both are 0 where skipping moves away from the solution (mu below 0). With momentum they are
        ``stable``, above which the risk grows without bound, and ``oscillating``, above which the
        fastest modes oscillate:

        >>> problem = toclip.Problem(
        ...     toclip.isotropic(1000), 1.0, toclip.noise.none(), learning_rate=0.1, momentum=0.9)
        >>> round(problem.stability_limits()["stable"], 12)
        0.2
        """
        return self._inner.stability_limits(c)

    def factors(self, c: float | str | None = "none") -> StateFactors:
        """mu and m2 at the start and at threshold ``c``, for each eigenvalue or each group.

        >>> import toclip
        >>> problem = toclip.Problem(
        ...     toclip.power_law(100, 0.5), 1.0, toclip.noise.laplace(sigma=1.0),
        ...     learning_rate=0.5, rule="by_value")
        >>> found = problem.factors(0.4)
        >>> bool(found.mu[0] < found.effective[0] < found.mu[-1])   # small eigenvalues are hardly clipped
        True
        """
        found = self._inner.factors(c)
        grouped = self._arguments[1]["groups"] is not None
        return StateFactors(**{"group" if grouped else "eigenvalue": found.pop("at")}, **found)

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

        With a ``target`` the path ends when the risk reaches it. ``compress``, such as 1e-10,
        replaces a spectrum of very many eigenvalues by few nodes, to that accuracy.
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

        ``method`` is ``"sgd"`` (the iteration, coordinate by coordinate), ``"collapsed"`` (the same
        distribution, with equal eigenvalues simulated as one) or ``"hsgd"`` (the diffusion).
        ``covariates``, for ``"sgd"`` only, is another distribution of the features, such as
        ``{"kind": "rademacher"}``. ``progress`` is called with the number of finished runs and of all
        runs; ``True`` shows a progress bar. Ctrl-C stops the simulation. The numbers depend on the
        seed, not on the number of threads.

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
            progress=progress_function(progress),
        )
        return Band(**found)

    def run(
        self, times: ArrayLike, *, seed: int = 1, index: int = 0, method: str = "sgd"
    ) -> Path:
        """Run number ``index`` of the ensemble with this seed."""
        return Path(**self._inner.run(times, seed=seed, index=index, method=method))

    def tune_kappa(
        self, time: float, *, compensation: str = "exact", compress: float | None = None
    ) -> Tuned:
        """The kappa of c = kappa·sqrt(2R + σ²) with the smallest risk at ``time``.

        The ``clip`` of the problem is ignored. ``compensation`` is ``"exact"`` (the learning rate is
        divided by mu, so that only the clipping differs), ``"printed"`` or ``"none"``; ``compress`` is
        that of :meth:`predict`.

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

    def tune_private(self, time: float) -> TunedPrivate:
        """The constant learning rate and threshold of private SGD with the smallest risk at ``time``.

        Those of the problem are ignored. With ``learning_rate="greedy", clip="max_ccc"`` a private
        problem follows the schedule of fastest descent instead, which ends lower still.

        >>> import toclip
        >>> parts = toclip.isotropic(1000), 1.0, toclip.noise.gaussian(0.5).batched(16, per_sample=True)
        >>> privacy = {"noise_multiplier": toclip.privacy.noise_multiplier(4.0, 1e-5)}
        >>> best = toclip.Problem(*parts, learning_rate=1.0, clip=1.0, privacy=privacy).tune_private(5.0)
        >>> same = toclip.Problem(
        ...     *parts, learning_rate=best.learning_rate, clip=best.c, privacy=privacy)
        >>> bool(abs(same.predict([5.0]).risk[0] / best.risk - 1) < 1e-5)
        True
        """
        return TunedPrivate(**self._inner.tune_private(time))


def as_spectrum(spectrum: Spectrum | dict[str, Any]) -> Spectrum:
    """A spectrum, or its dictionary, as a spectrum."""
    return spectrum if isinstance(spectrum, Spectrum) else Spectrum(spectrum)


def as_start(start: float | ArrayLike | dict[str, Any], name: str = "start") -> dict[str, Any]:
    """A start, or whatever else has its grammar, as a dictionary."""
    if isinstance(start, dict):
        return start
    values = as_array(name, start)
    if values.ndim > 1:
        raise ValueError(
            f"{name} must be a norm, a list of coordinates or a dictionary, not an array of shape {values.shape}"
        )
    if values.ndim == 0:
        return {"kind": "uniform", "norm": float(values)}
    return {"kind": "coordinates", "values": values.tolist()}


def progress_function(progress: bool | Progress | None, pieces: str = "runs") -> Progress | None:
    """The function to call with finished runs and all runs; a progress bar for ``True``."""
    if progress is True:
        return partial(_bar, pieces=pieces)
    return None if progress is None or progress is False else progress


def _bar(done: int, all_runs: int, pieces: str = "runs") -> None:
    filled = 30 * done // all_runs
    end = "\n" if done == all_runs else ""
    sys.stderr.write(f"\r[{'#' * filled:<30}] {done}/{all_runs} {pieces}{end}")
    sys.stderr.flush()
