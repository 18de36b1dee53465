"""SGD on your own data matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _toclip
from . import noise as noises
from ._toclip import Noise, Schedule, Spectrum, as_array
from .criteria import as_noise
from .problem import Problem, Progress, progress_function
from .results import Band, Path

__all__ = ["Stream"]

# Eigenvalues of a covariance down to minus this share of the largest are rounding errors.
ROUNDING = 1e-9


class Stream:
    """Clipped SGD on the rows of a data matrix, each used once.

    ``features``, ``targets``
        the data: a matrix with a row for each target.
    ``learning_rate``, ``clip``
        as for :class:`toclip.Problem`.
    ``start``
        θ₀; by default zero.
    ``optimum``
        θ*; by default from least squares.
    ``covariance``
        K of the risk ½(θ - θ*)ᵀK(θ - θ*); by default XᵀX/n.
    ``noise``
        the noise that rules such as ``"max_ccc"`` assume; by default the residuals at θ*.
    ``rule``, ``groups``
        as for :class:`toclip.Problem`, in the coordinates of the data.
    ``in_order``
        takes the rows in their order, instead of a random order drawn from seed and index.

    ``problem()`` is the theory of the same run.

    >>> import numpy as np, toclip
    >>> rng = np.random.default_rng(1)
    >>> x = rng.standard_normal((4000, 50)) * np.linspace(1, 0.3, 50)
    >>> y = x @ np.ones(50) + rng.standard_t(3, 4000)
    >>> stream = toclip.Stream(x, y, learning_rate=0.3, clip=2.0)
    >>> times = [0.0, 20.0, 40.0]
    >>> sgd, theory = stream.simulate(times, runs=20), stream.problem().predict(times)
    >>> bool(np.allclose(sgd.risk["median"], theory.risk, rtol=0.3))
    True
    """

    def __init__(
        self,
        features: ArrayLike,
        targets: ArrayLike,
        *,
        learning_rate: float | Schedule | dict[str, Any] | str,
        clip: float | Schedule | dict[str, Any] | str | None = "none",
        start: ArrayLike | None = None,
        optimum: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
        noise: Noise | dict[str, Any] | None = None,
        rule: str | None = None,
        groups: Sequence[dict[str, Any]] | None = None,
        in_order: bool = False,
    ) -> None:
        x, y = as_array("features", features), as_array("targets", targets)
        if x.ndim != 2 or y.ndim != 1 or len(x) != len(y) or x.size == 0:
            raise ValueError(
                f"features and targets have the shapes {x.shape} and {y.shape}; expected a matrix, and a "
                "list with one target per row"
            )
        for name, values in (("features", x), ("targets", y)):
            if not np.isfinite(values).all():
                raise ValueError(f"{name} contain numbers that are not finite; remove those rows")
        rows, width = x.shape
        self.start = _vector("start", start, width, lambda: np.zeros(width))
        self.optimum = _vector("optimum", optimum, width, lambda: np.linalg.lstsq(x, y)[0])
        k = x.T @ x / rows if covariance is None else as_array("covariance", covariance)
        if k.shape != (width, width) or not np.isfinite(k).all():
            raise ValueError(
                f"covariance must be a finite matrix of shape {(width, width)}, not {k.shape}"
            )
        values, self._basis = np.linalg.eigh((k + k.T) / 2)
        if values[0] < -ROUNDING * max(values[-1], 0.0):
            raise ValueError(f"covariance has a negative eigenvalue, {values[0]:g}")
        self.spectrum: Spectrum = Spectrum(
            {"kind": "eigenvalues", "values": np.maximum(values, 0.0).tolist()}
        )
        self.noise: Noise = (
            noises.empirical(y - x @ self.optimum) if noise is None else as_noise(noise)
        )
        if self.noise.batch_size != 1 or self.noise.outputs != 1:
            raise ValueError("a stream uses one row per step; expected the noise of one sample, not of a batch")
        self._policy: dict[str, Any] = {"learning_rate": learning_rate, "clip": clip}
        self._rule, self._groups = rule or self.noise.rule, groups
        self._inner = _toclip.Stream(
            *(x.ravel(), y, self.start, self.optimum, k.ravel(), self.spectrum, self.noise),
            *(learning_rate, clip, in_order),
            rule=rule,
            groups=groups,
        )

    @property
    def dim(self) -> float:
        """The intrinsic dimension of the covariance: steps per unit of time."""
        return self.spectrum.intrinsic_dim

    @property
    def end(self) -> float:
        """The time at which the data end: the number of rows divided by ``dim``."""
        return self._inner.end

    def problem(self) -> Problem:
        """The theory of the same run, for Gaussian features.

        Raises a ``ValueError`` for clipping by value or per group, which depend on the coordinates.
        """
        if self._groups is not None or self._rule == "by_value":
            raise ValueError(
                "clipping by value and per group have a theory only where the covariance is diagonal; "
                "use toclip.Problem for such data"
            )
        coordinates = self._basis.T @ (self.start - self.optimum)
        return Problem(self.spectrum, coordinates, self.noise, rule=self._rule, **self._policy)

    def simulate(
        self,
        times: ArrayLike,
        *,
        runs: int = 100,
        seed: int = 1,
        confidence: float = 0.8,
        threads: int | None = None,
        progress: bool | Progress = False,
    ) -> Band:
        """Statistics over many passes, each in its own random order; times after ``end`` are left out."""
        found = self._inner.simulate(
            times,
            runs=runs,
            seed=seed,
            confidence=confidence,
            threads=threads,
            progress=progress_function(progress),
        )
        return Band(**found)

    def run(self, times: ArrayLike, *, seed: int = 1, index: int = 0) -> Path:
        """Pass number ``index`` with this seed; times after ``end`` are left out."""
        return Path(**self._inner.run(times, seed=seed, index=index))


def _vector(name: str, given: ArrayLike | None, width: int, default: Any) -> np.ndarray:
    if given is None:
        made: np.ndarray = default()
        return made
    values = as_array(name, given)
    if values.shape != (width,) or not np.isfinite(values).all():
        raise ValueError(f"{name} must be {width} finite numbers, not {given!r}")
    return values
