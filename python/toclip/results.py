"""Results: named arrays that convert to data frames."""

from __future__ import annotations

import html
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from ._toclip import INFINITE_VARIANCE

def same(one: Any, other: Any) -> bool:
    """Whether two values are equal; NaN equals NaN, and arrays are compared as a whole."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        one, other = np.asarray(one), np.asarray(other)
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f"))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[k], other[k]) for k in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    both_nan = isinstance(one, float) and isinstance(other, float) and one != one and other != other
    return both_nan or bool(one == other)


def _shown(value: Any) -> str:
    return html.escape(value) if isinstance(value, str) else f"{value:.6g}"


class Table:
    """Named columns of equal length."""

    # The function of toclip.plot.
    _drawn_by = "table"

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        names = [f.name for f in fields(self)]  # type: ignore[arg-type]
        return all(same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def columns(self) -> dict[str, np.ndarray]:
        """The columns, each a flat array."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {
            name: np.atleast_1d(value).ravel()
            for name, value in values.items()
            if isinstance(value, (float, np.ndarray))
        }

    def to_dict(self) -> dict[str, list[float]]:
        """The columns as lists."""
        return {name: column.tolist() for name, column in self.columns().items()}

    def __repr__(self) -> str:
        columns = self.columns()
        count = len(next(iter(columns.values()), ()))
        names, more = list(columns), ", …" if len(columns) > 8 else ""
        if count == 1:
            shown = ", ".join(f"{name}={columns[name][0]:.6g}" for name in names[:8])
            return f"{type(self).__name__}({shown}{more})"
        listed = ", ".join(names[:8]) + more
        return f"<toclip.{type(self).__name__}: {count} rows of {listed}>"

    def _repr_html_(self) -> str:
        """The table for notebooks; of a long one the first and last rows."""
        columns = self.columns()
        count = len(next(iter(columns.values()), ()))
        rows = [*range(count)] if count <= 20 else [*range(10), None, *range(count - 10, count)]
        cells = [["…" if k is None else _shown(column[k]) for column in columns.values()] for k in rows]
        head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
        body = "".join("<tr>" + "".join(f"<td>{x}</td>" for x in row) + "</tr>" for row in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def plot(self, axes: Any = None, **style: Any) -> Any:
        """Draws the result on matplotlib axes, which it returns; needs matplotlib.

        The risk or the loss over time, with the band of the runs; CCC with its interval at each
        threshold; else every column over the first that varies.
        """
        from . import plot

        return getattr(plot, self._drawn_by)(self, axes, **style)

    def to_pandas(self) -> Any:
        """A pandas data frame; needs pandas."""
        import pandas

        return pandas.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """A polars data frame; needs polars."""
        import polars

        return polars.DataFrame(self.columns())


_ENDS = ((0, "low"), (1, "high"))
Numbers = Any  # a float for one point, an array of the broadcast shape for many


@dataclass(frozen=True, eq=False, repr=False)
class Factors(Table):
    """The reduction factors at risks ``r`` and thresholds ``c``.

    ``mu`` is the share of the descent that is kept, ``m2`` the mean square of the clipped residual.
    ``nu`` (the share of the variance that is kept), ``csc`` = mu/nu and ``ccc`` = mu²/nu raise a
    ``ValueError`` if the noise has infinite variance.
    """

    r: Numbers
    c: Numbers
    mu: Numbers
    m2: Numbers
    _variance: tuple[Numbers, Numbers, Numbers] | None = field(repr=False, compare=False)

    def _with_variance(self, k: int) -> Numbers:
        if self._variance is None:
            raise ValueError(INFINITE_VARIANCE)
        return self._variance[k]

    @property
    def nu(self) -> Numbers:
        """The share of the variance that is kept."""
        return self._with_variance(0)

    @property
    def csc(self) -> Numbers:
        """mu/nu: the factor by which clipping raises the largest stable learning rate."""
        return self._with_variance(1)

    @property
    def ccc(self) -> Numbers:
        """mu²/nu: above one, clipping with the rate eta/mu beats unclipped SGD with the rate eta."""
        return self._with_variance(2)

    def columns(self) -> dict[str, np.ndarray]:
        """The columns; without nu, csc and ccc if the noise has infinite variance."""
        found = super().columns()
        if self._variance is not None:
            rest = zip(("nu", "csc", "ccc"), self._variance, strict=True)
            found.update({name: np.atleast_1d(values).ravel() for name, values in rest})
        return found


@dataclass(frozen=True, eq=False, repr=False)
class BestThreshold(Table):
    """The threshold ``c`` with the largest CCC at risks ``r``; infinite if clipping never helps.

    ``efficiency`` is mu²/m2, which is finite for noise of infinite variance too.
    """

    r: Numbers
    c: Numbers
    mu: Numbers
    m2: Numbers
    ccc: Numbers
    efficiency: Numbers


@dataclass(frozen=True, eq=False, repr=False)
class StateFactors(Table):
    """``mu`` and ``m2`` of a problem at its start, for each eigenvalue or for each group.

    A rule that keeps the direction of the gradient has the same ``mu`` for all, and an ``m2`` in
    proportion to the eigenvalue. Clipping by value and per group do not; for these ``effective`` is
    the pair that stands for mu and m2 in the drift of the risk. ``group`` is counted from 0;
    ``eigenvalue`` is ``None`` with groups, ``group`` without them.
    """

    multiplicity: np.ndarray
    mu: np.ndarray
    m2: np.ndarray
    effective: tuple[float, float]
    eigenvalue: np.ndarray | None = None
    group: np.ndarray | None = None

    def columns(self) -> dict[str, np.ndarray]:
        """The columns, one row per eigenvalue or group; without ``effective``."""
        found = super().columns()
        first = "group" if self.eigenvalue is None else "eigenvalue"
        return {first: found.pop(first)} | found


@dataclass(frozen=True, eq=False, repr=False)
class FisherLimit(Table):
    """The limit that no function of the residual can exceed.

    ``information`` is the Fisher information of the residual, ``limit`` the largest CCC of any
    function of it, ``reached`` the share of the limit that the best clipping reaches.
    """

    r: Numbers
    information: Numbers
    limit: Numbers
    reached: Numbers


@dataclass(frozen=True, eq=False, repr=False)
class KappaBounds(Table):
    """The ranges of mu/min(1, y) and of nu/min(1, y²) over ranges of risks and thresholds."""

    mu: tuple[float, float]
    nu: tuple[float, float]

    @property
    def lower(self) -> float:
        """The lower constant for both: CCC is at least lower²/upper."""
        return min(self.mu[0], self.nu[0])

    @property
    def upper(self) -> float:
        """The upper constant for both: CCC is at most upper²/lower."""
        return max(self.mu[1], self.nu[1])

    def columns(self) -> dict[str, np.ndarray]:
        """One row: both ends of each range, and the constants."""
        ends = {f"{name}_{end}": getattr(self, name)[k] for name in ("mu", "nu") for k, end in _ENDS}
        values = ends | {"lower": self.lower, "upper": self.upper}
        return {name: np.array([value]) for name, value in values.items()}


@dataclass(frozen=True, eq=False, repr=False)
class Tuned(Table):
    """The best ``kappa`` of c = kappa·sqrt(2R + σ²), and the final ``risk`` with it.

    ``kappa`` is infinite if it is best not to clip; ``clip`` is the argument for a problem.
    """

    kappa: float
    risk: float
    compensation: str = "exact"

    @property
    def clip(self) -> dict[str, Any] | str:
        """The threshold as :class:`toclip.Problem` takes it."""
        if self.kappa == float("inf"):
            return "none"
        return {"kind": "proportional", "kappa": self.kappa, "compensation": self.compensation}


@dataclass(frozen=True, eq=False, repr=False)
class TunedPrivate(Table):
    """The best constant ``learning_rate`` and threshold ``c`` of private SGD, and the final ``risk``."""

    learning_rate: float
    c: float
    risk: float


@dataclass(frozen=True, eq=False, repr=False)
class Rate(Table):
    """How the gap between SGD and its ODE falls with the dimension.

    ``gap`` is the largest distance between the two risks, averaged over the ``runs``, with its
    standard error ``gap_error``, at each ``dim``. ``log gap = intercept + slope·log dim`` is fitted to
    it; ``low`` to ``high`` is the confidence interval of the slope. ``chi_square`` per degree of
    freedom is much above one if the points do not lie on a line within their errors; it is ``None``
    for two points.
    """

    dim: np.ndarray
    gap: np.ndarray
    gap_error: np.ndarray
    runs: np.ndarray
    diverged: np.ndarray
    slope: float
    intercept: float
    standard_error: float
    low: float
    high: float
    confidence: float
    chi_square: float | None

    def columns(self) -> dict[str, np.ndarray]:
        """The columns, one row per dimension."""
        names = ("dim", "gap", "gap_error", "runs", "diverged")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False, repr=False)
class Path(Table):
    """Risk and distance over time, and why the path ended.

    ``stop["reason"]`` is ``finished``, ``target_reached``, ``diverged``, ``infinite_variance`` or,
    for a :class:`toclip.Stream`, ``data_ended``; all but the first have the time ``stop["t"]``.
    ``flow``, from the integral equation only, is the risk of gradient flow.
    """

    _drawn_by = "path"
    t: np.ndarray
    risk: np.ndarray
    distance: np.ndarray
    mu: np.ndarray | None = None
    m2: np.ndarray | None = None
    eta: np.ndarray | None = None
    c: np.ndarray | None = None
    flow: np.ndarray | None = None
    stop: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


def _of_runs(band: Any, quantities: tuple[str, ...]) -> dict[str, np.ndarray]:
    """The statistics of each quantity as columns, such as ``risk_median``."""
    found = {"t": band.t, "alive": band.alive}
    for name in quantities:
        found |= {f"{name}_{key}": values for key, values in (getattr(band, name) or {}).items()}
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Band(Table):
    """Statistics of many runs at each time: ``risk["median"]``, ``risk["low"]``, …

    A run that has diverged is left out from then on: ``alive`` is the number of runs behind each
    number, ``diverged`` has the index and time of each diverged run.
    """

    _drawn_by = "band"
    t: np.ndarray
    risk: dict[str, np.ndarray]
    distance: dict[str, np.ndarray]
    alive: np.ndarray
    runs: int
    probabilities: list[float]
    diverged: dict[int, float]

    def columns(self) -> dict[str, np.ndarray]:
        """The columns, as ``risk_median`` and so on."""
        return _of_runs(self, ("risk", "distance"))


@dataclass(frozen=True, eq=False, repr=False)
class GlmPath(Table):
    """A classifier over time, by the ODE.

    ``loss`` is the cross-entropy over labels as drawn, ``error_rate`` that against labels before flips,
    ``angle`` the angle to the teacher in radians, ``calibration`` the slope of a logistic fit of the
    labels on the logits; NaN where a model has none. ``q`` and ``p`` are E u² and E uv of the logits,
    ``v`` is E v². ``stop`` is that of :class:`Path`.
    """

    _drawn_by = "glm_path"
    t: np.ndarray
    loss: np.ndarray
    error_rate: np.ndarray
    angle: np.ndarray
    calibration: np.ndarray
    q: np.ndarray
    p: np.ndarray
    v: float
    stop: dict[str, Any] = field(default_factory=dict)

    def columns(self) -> dict[str, np.ndarray]:
        """The columns over time."""
        found = super().columns()
        del found["v"]
        return found


@dataclass(frozen=True, eq=False, repr=False)
class GlmBand(Table):
    """Statistics of many runs of a classifier at each time: ``loss["median"]``, ``loss["low"]``, …

    The quantities are those of :class:`GlmPath`; ``error_rate`` and ``calibration`` are ``None`` where a
    model has none. ``alive``, ``runs`` and ``diverged`` are those of :class:`Band`.
    """

    _drawn_by = "glm_band"
    t: np.ndarray
    loss: dict[str, np.ndarray]
    angle: dict[str, np.ndarray]
    q: dict[str, np.ndarray]
    p: dict[str, np.ndarray]
    error_rate: dict[str, np.ndarray] | None
    calibration: dict[str, np.ndarray] | None
    alive: np.ndarray
    runs: int
    probabilities: list[float]
    diverged: dict[int, float]

    def columns(self) -> dict[str, np.ndarray]:
        """The columns, as ``loss_median`` and so on."""
        return _of_runs(self, ("loss", "error_rate", "angle", "calibration", "q", "p"))


@dataclass(frozen=True, eq=False, repr=False)
class GlmState(Table):
    """A generalised linear model at one state and threshold; see :func:`toclip.glm.at`."""

    c: float
    a: float
    b: float
    m2: float
    loss: float
    error_rate: float
    angle: float
    calibration: float
    ccc: float


@dataclass(frozen=True, eq=False, repr=False)
class GlmThreshold(Table):
    """The threshold with the largest CCC of a generalised linear model."""

    c: float
    ccc: float


@dataclass(frozen=True, eq=False, repr=False)
class BestClip(Table):
    """The threshold and learning rate that end with the lowest loss."""

    learning_rate: float
    c: float
    loss: float


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Table):
    """What clipping does at each of a monitor's candidate thresholds, lowest first.

    In :meth:`columns`, each of ``mu``, ``nu``, ``csc``, ``ccc``, … comes with its interval, such as
    ``mu_low`` and ``mu_high``.
    """

    _drawn_by = "estimates"
    rows: list[dict[str, Any]]

    def columns(self) -> dict[str, np.ndarray]:
        """The columns; those from inner products begin with ``direct_``."""
        rows = [flat(row) for row in self.rows]
        return {name: np.array([row[name] for row in rows]) for name in (rows[0] if rows else {})}

    def __getitem__(self, name: str) -> np.ndarray:
        return self.columns()[name]

    def __len__(self) -> int:
        return len(self.rows)


def flat(row: dict[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers of a nested dictionary; those of an interval as ``x``, ``x_low`` and ``x_high``."""
    found: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, dict) and "value" in value:
            found[prefix + name] = value["value"]
            found[f"{prefix}{name}_low"], found[f"{prefix}{name}_high"] = value["low"], value["high"]
        elif isinstance(value, dict):
            found.update(flat(value, f"{prefix}{name}_"))
        elif value is not None:
            found[prefix + name] = value
    return found
