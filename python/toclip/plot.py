"""Plots of the results, with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from .results import Band, Estimates, GlmBand, GlmPath, Path, Table

__all__ = ["band", "estimates", "glm_band", "glm_path", "path", "sweep", "table"]


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def _time(axes: Any, quantity: str = "risk R", scale: str = "log") -> Any:
    axes.set_yscale(scale)
    axes.set_xlabel("time t = steps / d")
    axes.set_ylabel(quantity)
    return axes


def path(found: Path, axes: Any = None, **style: Any) -> Any:
    """The risk over time."""
    axes = _axes(axes)
    axes.plot(found.t, found.risk, **style)
    return _time(axes)


def _band(x: Any, middle: Any, low: Any, high: Any, axes: Any, style: dict[str, Any]) -> Any:
    axes = _axes(axes)
    (line,) = axes.plot(x, middle, **style)
    axes.fill_between(x, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
    return axes


def _of_runs(t: np.ndarray, of: dict[str, np.ndarray], axes: Any, style: dict[str, Any]) -> Any:
    return _band(t, of["median"], of["low"], of["high"], axes, style)


def band(found: Band, axes: Any = None, **style: Any) -> Any:
    """The median risk over time, and the band of the runs."""
    return _time(_of_runs(found.t, found.risk, axes, style))


def glm_path(found: GlmPath, axes: Any = None, **style: Any) -> Any:
    """The loss over time."""
    axes = _axes(axes)
    axes.plot(found.t, found.loss, **style)
    return _time(axes, "cross-entropy (nats)", "linear")


def glm_band(found: GlmBand, axes: Any = None, **style: Any) -> Any:
    """The median loss over time, and the band of the runs."""
    return _time(_of_runs(found.t, found.loss, axes, style), "cross-entropy (nats)", "linear")


def estimates(found: Estimates, axes: Any = None, **style: Any) -> Any:
    """CCC with its interval at the thresholds of a monitor."""
    columns = found.columns()
    x, ccc, low, high = (columns[name] for name in ("threshold", "ccc", "ccc_low", "ccc_high"))
    axes = _band(x, ccc, low, high, axes, style)
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("threshold")
    axes.set_ylabel("CCC: gain over no clipping")
    return axes


def sweep(
    found: Any, axes: Any, x: str | None, y: str | None, value: str | None, **style: Any
) -> Any:
    """A heat map over two keys that vary, or a line over one."""
    columns = found.columns()
    varying = [key for key in found.keys if len(np.unique(columns[key])) > 1]
    for name in (x, y, value):
        if name is not None and name not in columns:
            raise ValueError(f"unknown column {name!r}; expected one of: {', '.join(columns)}")
    x = x or next((key for key in varying if key != y), found.keys[0])
    y = y or next((key for key in varying if key != x), None)
    value = value or list(columns)[1 + len(found.keys)]
    axes = _axes(axes)
    (xs, at_x), numbers = np.unique(columns[x], return_inverse=True), columns[value]
    if y is None:
        smallest = np.full(len(xs), np.nan)
        np.fmin.at(smallest, at_x, numbers)
        axes.plot(xs, smallest, **style)
        axes.set_ylabel(value)
    else:
        ys, at_y = np.unique(columns[y], return_inverse=True)
        grid = np.full((len(ys), len(xs)), np.nan)
        np.fmin.at(grid, (at_y, at_x), numbers)
        grid[~np.isfinite(grid)] = np.nan
        places = [np.arange(len(v)) if _as_names(v) else v for v in (xs, ys)]
        mesh = axes.pcolormesh(*places, grid, **{"shading": "nearest", **style})
        axes.figure.colorbar(mesh, ax=axes, label=value)
        axes.set_ylabel(y)
        _scale(axes.set_yscale, axes.set_yticks, ys)
    axes.set_xlabel(x)
    _scale(axes.set_xscale, axes.set_xticks, xs)
    axes.set_title(found.name)
    return axes


def _as_names(values: np.ndarray) -> bool:
    return values.dtype.kind not in "if" or not np.all(np.isfinite(values))


def _scale(set_scale: Any, set_ticks: Any, values: np.ndarray) -> None:
    """Names for values that are not numbers, a log scale for wide ranges."""
    if _as_names(values):
        set_ticks(np.arange(len(values)), [str(value) for value in values])
    elif values.min() > 0 and values.max() > 20 * values.min():
        set_scale("log")


def table(found: Table, axes: Any = None, **style: Any) -> Any:
    """Every column over the first that varies; points if there is one row only."""
    axes = _axes(axes)
    columns = found.columns()
    names = list(columns)
    if not names:
        return axes
    x = next((name for name in names if len(np.unique(columns[name])) > 1), names[0])
    for name in names:
        if name != x and len(columns[name]):
            marker = {} if len(columns[name]) > 1 else {"marker": "o"}
            axes.plot(columns[x], columns[name], label=name, **{**marker, **style})
    axes.set_xlabel(x)
    axes.legend()
    return axes
