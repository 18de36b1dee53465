"""Least squares on data that outgrow memory or one machine: two passes over partitions.

The first pass sums :class:`Moments`, the second :class:`Residuals`. Both are small, add up, and travel
between processes, so any map-reduce works: Dask, Spark, an executor, or a loop over Parquet files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._toclip import Noise, Spectrum
from .noise import empirical
from .problem import Problem
from .results import Table, same
from .spectra import eigenvalues as spectrum_of

__all__ = ["LinearFit", "Moments", "Residuals", "fit"]

#: Two residuals in the same bin of a sketch differ by at most this share.
BIN = 0.002
#: Values that a distribution from a sketch has at most.
POINTS = 100_000
#: Below this share of ‖K‖ an eigenvalue is rounding.
SINGULAR = 1e-10

#: A partition: features and targets, a function that returns them, or a file with columns.
Partition = Any


class _Sum:
    """Adds up, by ``sum`` too, which starts from 0; and compares by value."""

    def __radd__(self, other: Any) -> Any:
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __eq__(self, other: object) -> bool:
        return same(vars(self), vars(other)) if type(self) is type(other) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class Moments(_Sum):
    """Count, means and covariances of features and target: all that least squares needs.

    Two of them add up to that of all samples, the same to rounding for any partition of the data.

    >>> import numpy as np, toclip
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(1000, 3))
    >>> y = x @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=1000)
    >>> whole = toclip.Moments(x[:300], y[:300]) + toclip.Moments(x[300:], y[300:])
    >>> whole.count, [round(float(t), 1) for t in whole.fit().theta]
    (1000, [1.0, -2.0, 0.5])
    """

    def __init__(self, features: Any, targets: Any) -> None:
        x, y = _samples(features, targets)
        z = np.column_stack([x, y])
        self.count = len(z)
        self.mean: np.ndarray = z.mean(axis=0)
        z -= self.mean
        self.comoments: np.ndarray = z.T @ z

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        if len(self.mean) != len(other.mean):
            a, b = len(self.mean) - 1, len(other.mean) - 1
            raise ValueError(f"moments of {a} and of {b} features cannot be added")
        total = Moments.__new__(Moments)
        total.count = self.count + other.count
        # The update of Chan, Golub and LeVeque (1979), which subtracts no large numbers.
        shift = other.mean - self.mean
        share = other.count / total.count
        total.mean = self.mean + share * shift
        total.comoments = (
            self.comoments + other.comoments + np.outer(shift, shift) * (self.count * share)
        )
        return total

    def __repr__(self) -> str:
        return f"<toclip.Moments: {self.count} samples of {len(self.mean) - 1} features>"

    @property
    def covariance(self) -> np.ndarray:
        """K, the covariance of the features."""
        return self.comoments[:-1, :-1] / self.count

    @property
    def cross(self) -> np.ndarray:
        """The covariance of features and target."""
        return self.comoments[:-1, -1] / self.count

    @property
    def target_variance(self) -> float:
        """The variance of the target."""
        return float(self.comoments[-1, -1] / self.count)

    def fit(self, ridge: float = 0.0) -> LinearFit:
        """θ* = (K + ridge·‖K‖)⁻¹ Cov(x, y), features and target centred."""
        if not ridge >= 0.0 or not np.isfinite(ridge):
            raise ValueError(f"ridge must be a number, at least 0, not {ridge!r}")
        if not np.all(np.isfinite(self.comoments)):
            raise ValueError("the covariance overflows; scale the features")
        values, vectors = np.linalg.eigh(self.covariance)
        values, vectors = values[::-1].clip(min=0.0), vectors[:, ::-1]
        if values[0] == 0.0:
            raise ValueError("every feature is constant; expected features that vary")
        if ridge == 0.0 and values[-1] <= SINGULAR * values[0]:
            raise ValueError(
                f"the covariance is singular: {np.sum(values <= SINGULAR * values[0])} of {len(values)} "
                "eigenvalues are 0 up to rounding; give a ridge such as 1e-6, or more samples"
            )
        # The sign of an eigenvector is arbitrary; its largest entry is made positive, so that partitions agree.
        largest = np.abs(vectors).argmax(axis=0)
        vectors = vectors * np.sign(vectors[largest, np.arange(len(values))])
        theta = vectors @ ((vectors.T @ self.cross) / (values + ridge * values[0]))
        residual = self.target_variance - 2 * theta @ self.cross + theta @ self.covariance @ theta
        return LinearFit(
            self.count, theta, self.mean[:-1], float(self.mean[-1]), values, vectors, float(max(residual, 0.0))
        )


@dataclass(frozen=True, eq=False, repr=False)
class LinearFit(Table):
    """A linear model, fitted: θ*, the means that were subtracted, the spectrum of K with its eigenvectors
    as columns (largest eigenvalue first), and the mean square of the residuals."""

    count: int
    theta: np.ndarray
    mean: np.ndarray
    target_mean: float
    eigenvalues: np.ndarray
    eigenvectors: np.ndarray
    residual_variance: float

    def columns(self) -> dict[str, np.ndarray]:
        """θ* and the mean of each feature, and the eigenvalues."""
        return {"theta": self.theta, "mean": self.mean, "eigenvalue": self.eigenvalues}

    def __repr__(self) -> str:
        return (
            f"<toclip.LinearFit: {self.count} samples, {len(self.theta)} features, intrinsic dimension "
            f"{self.intrinsic_dim:.4g}, residual variance {self.residual_variance:.4g}>"
        )

    @property
    def intrinsic_dim(self) -> float:
        """Tr K / ‖K‖: steps per unit of time."""
        return float(self.eigenvalues.sum() / self.eigenvalues[0])

    @property
    def spectrum(self) -> Spectrum:
        """The spectrum of K."""
        return spectrum_of(self.eigenvalues)

    def residuals(self, features: Any, targets: Any) -> Residuals:
        """The residuals of these samples."""
        x, y = _samples(features, targets)
        if x.shape[1] != len(self.theta):
            raise ValueError(f"features has {x.shape[1]} columns; expected {len(self.theta)}")
        return Residuals(y - self.target_mean - (x - self.mean) @ self.theta)

    def problem(
        self, residuals: Residuals | Noise, *, start: Any = None, learning_rate: Any, clip: Any = "none", **more: Any
    ) -> Problem:
        """Clipped SGD on these data, from ``start`` (zero unless given): a :class:`toclip.Problem`."""
        begin = np.zeros_like(self.theta) if start is None else np.asarray(start, dtype=float)
        if begin.shape != self.theta.shape:
            raise ValueError(f"start has shape {begin.shape}; expected {self.theta.shape}")
        noise = residuals.noise() if isinstance(residuals, Residuals) else residuals
        offset = self.eigenvectors.T @ (begin - self.theta)
        return Problem(self.spectrum, offset, noise, learning_rate=learning_rate, clip=clip, **more)


class Residuals(_Sum):
    """A sketch of residuals: how many fall into bins of 0.2% in size.

    Sketches add up. The result is the same, bit for bit, for any partition of the residuals.

    >>> import numpy as np, toclip
    >>> r = np.random.default_rng(1).standard_t(3, size=100_000)
    >>> sketch = toclip.Residuals(r[:5]) + toclip.Residuals(r[5:])
    >>> sketch == toclip.Residuals(r)
    True
    >>> bool(abs(sketch.quantile(0.9) / np.quantile(r, 0.9) - 1) < 0.002)
    True
    """

    def __init__(self, values: Any) -> None:
        values = np.asarray(values, dtype=float).ravel()
        if len(values) == 0:
            raise ValueError("residuals is empty; expected at least one")
        if not np.all(np.isfinite(values)):
            raise ValueError(f"residual {int(np.argmin(np.isfinite(values)))} is not a finite number")
        self.count = len(values)
        # A bin for each sign and size, in geometric steps; zero and sizes up to 1e-200 have their own.
        size = np.abs(values)
        place = np.where(size > 1e-200, np.ceil(np.log(np.maximum(size, 1e-200)) / np.log1p(BIN)), -(2.0**31))
        bins = np.sign(values) * (place + 2.0**32)
        bins[size <= 1e-200] = 0.0
        self._bins, self._counts = np.unique(bins, return_counts=True)

    def __add__(self, other: Residuals) -> Residuals:
        if not isinstance(other, Residuals):
            return NotImplemented
        total = Residuals.__new__(Residuals)
        total.count = self.count + other.count
        bins = np.concatenate([self._bins, other._bins])
        total._bins, where = np.unique(bins, return_inverse=True)
        total._counts = np.zeros(len(total._bins), dtype=self._counts.dtype)
        np.add.at(total._counts, where, np.concatenate([self._counts, other._counts]))
        return total

    def __repr__(self) -> str:
        return f"<toclip.Residuals: {self.count} in {len(self._bins)} bins, mean square {self.mean_square:.4g}>"

    @property
    def _values(self) -> np.ndarray:
        """The middle of each bin."""
        place = np.abs(self._bins) - 2.0**32
        middle = np.exp(np.where(self._bins == 0, 0.0, place - 0.5) * np.log1p(BIN))
        return np.where(self._bins == 0, 0.0, np.sign(self._bins) * middle)

    @property
    def mean_square(self) -> float:
        """The mean square, to 0.2%: what the noise adds to twice the risk."""
        return float(np.average(self._values**2, weights=self._counts))

    def quantile(self, probability: float) -> float:
        """The quantile of the residuals, to 0.1%."""
        if not 0.0 <= probability <= 1.0:
            raise ValueError(f"probability must be between 0 and 1, not {probability!r}")
        order = np.searchsorted(np.cumsum(self._counts), probability * self.count)
        return float(self._values[min(int(order), len(self._values) - 1)])

    def noise(self) -> Noise:
        """The distribution of the residuals: :func:`toclip.noise.empirical` of at most 100,000 values.

        Each is the root mean square of an equal share of the residuals, which preserves the variance for
        any tails.
        """
        values, counts = self._values, self._counts
        if self.count <= POINTS:
            return empirical(np.repeat(values, counts))
        ends = np.concatenate([[0.0], np.cumsum(counts)]) / self.count
        edges = np.linspace(0.0, 1.0, POINTS + 1)
        sums = [np.concatenate([[0.0], np.cumsum(counts * values**k)]) / self.count for k in (1, 2)]
        first, second = (np.diff(np.interp(edges, ends, s)) * POINTS for s in sums)
        return empirical(np.sign(first) * np.sqrt(second.clip(min=0.0)))


def fit(
    partitions: Iterable[Partition],
    *,
    target: str | int | None = None,
    executor: Any = None,
    ridge: float = 0.0,
) -> tuple[LinearFit, Residuals]:
    """Least squares over partitions, without any process holding all the data: the fit and its residuals.

    A partition is a pair of features and targets, a function without arguments that returns such a pair,
    or the path of a Parquet file. ``target`` is the column to predict, by default the last. ``executor`` is that of :func:`toclip.sweep`. There are two passes over the partitions.

    >>> import numpy as np, toclip
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=(3000, 20))
    >>> y = x @ np.ones(20) + rng.standard_t(3, size=3000)
    >>> found, residuals = toclip.fit([(x[k::4], y[k::4]) for k in range(4)])
    >>> problem = found.problem(residuals, learning_rate=0.3, clip="max_ccc")
    >>> path = problem.predict(toclip.linear_times(10.0, 101))
    >>> bool(path.risk[-1] < 0.3 * path.risk[0])
    True
    """
    from .sweeps import map_on

    if isinstance(partitions, (str, os.PathLike)):
        raise ValueError("partitions must be a list; for one file give a list of one path")
    parts = list(partitions)
    if not parts:
        raise ValueError("partitions is empty; expected at least one")
    names = _column_names(parts, target)
    moments = map_on(executor, _moments_of, [(part, names) for part in parts])
    found = _tree_sum(moments).fit(ridge)
    residuals = map_on(executor, _residuals_of, [(part, names, found) for part in parts])
    return found, _tree_sum(residuals)


def _tree_sum(items: Sequence[Any]) -> Any:
    """Adds neighbours first: the order does not depend on which finished first, and rounding stays small."""
    items = [item for item in items if item is not None]
    if not items:
        raise ValueError("every partition is empty; expected at least one sample")
    while len(items) > 1:
        items = [sum(items[k : k + 2]) for k in range(0, len(items), 2)]
    return items[0]


@dataclass(frozen=True)
class _Names:
    """The columns of Parquet files: those of the first file, in its order."""

    file: str
    features: list[str]
    target: str


def _column_names(parts: list[Partition], target: str | int | None) -> _Names | None:
    files = [os.fspath(part) for part in parts if isinstance(part, (str, os.PathLike))]
    if not files:
        return None
    names = _reader().read_schema(files[0]).names
    if isinstance(target, str):
        if target not in names:
            raise ValueError(f"{files[0]} has no column {target!r}; expected one of: {', '.join(names)}")
        chosen = target
    elif target is None or (isinstance(target, int) and -len(names) <= target < len(names)):
        chosen = names[-1 if target is None else target]
    else:
        raise ValueError(f"target must be the name or the number of a column, not {target!r}")
    features = [name for name in names if name != chosen]
    if not features:
        raise ValueError(f"{files[0]} has the target {chosen!r} and no features")
    return _Names(files[0], features, chosen)


def _reader() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("reading Parquet files needs pyarrow: pip install pyarrow") from error
    return parquet


def _moments_of(partition: Partition, names: _Names | None) -> Moments | None:
    """``None`` for a partition without samples, as filters leave them."""
    x, y = _load(partition, names)
    return Moments(x, y) if len(x) else None


def _residuals_of(partition: Partition, names: _Names | None, found: LinearFit) -> Residuals | None:
    x, y = _load(partition, names)
    return found.residuals(x, y) if len(x) else None


def _load(partition: Partition, names: _Names | None) -> tuple[Any, Any]:
    if names is not None and isinstance(partition, (str, os.PathLike)):
        return _parquet(os.fspath(partition), names)
    if isinstance(partition, Callable):  # type: ignore[arg-type]
        partition = partition()
    if not isinstance(partition, (tuple, list)) or len(partition) != 2:
        raise ValueError(
            "a partition must be a pair of features and targets, a function that returns one, or the path "
            f"of a Parquet file, not {type(partition).__name__}"
        )
    return partition[0], partition[1]


def _parquet(path: str, names: _Names) -> tuple[np.ndarray, np.ndarray]:
    table = _reader().read_table(path)
    wanted = [*names.features, names.target]
    if sorted(table.column_names) != sorted(wanted):
        raise ValueError(
            f"{path} has the columns {', '.join(table.column_names)}; expected those of {names.file}: "
            f"{', '.join(wanted)}"
        )
    columns = []
    for name in wanted:
        if missing := table.column(name).null_count:
            raise ValueError(f"{path}: the column {name!r} has no value in {missing} of {len(table)} rows")
        column = table.column(name).to_numpy()
        if column.dtype.kind not in "biuf":
            raise ValueError(f"{path}: the column {name!r} does not hold numbers")
        if not np.all(np.isfinite(column)):
            row = int(np.argmin(np.isfinite(column)))
            raise ValueError(f"{path}: the column {name!r} has a value in row {row} that is not a finite number")
        columns.append(column)
    return np.column_stack(columns[:-1]), columns[-1]


def _samples(features: Any, targets: Any) -> tuple[np.ndarray, np.ndarray]:
    for name, values in (("features", features), ("targets", targets)):
        if np.ma.isMaskedArray(values) or np.iscomplexobj(values):
            raise ValueError(f"{name} must be an array of real numbers without a mask")
    x, y = np.array(features, dtype=float), np.array(targets, dtype=float)
    if x.ndim != 2 or y.ndim != 1 or len(x) != len(y) or x.size == 0:
        raise ValueError(
            f"features has shape {x.shape} and targets {y.shape}; expected (samples, features) and (samples,)"
        )
    for name, values in (("features", x), ("targets", y)):
        if not np.all(np.isfinite(values)):
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise ValueError(f"{name}: sample {row} has a value that is not a finite number")
    return x, y
