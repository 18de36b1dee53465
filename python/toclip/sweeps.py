"""Sweeps: an experiment for many values of its keys, on this machine or on a cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from . import _toclip
from .problem import Progress, progress_function
from .results import Table, same

__all__ = ["Sweep", "SweepCell", "SweepResult", "map_on", "sweep"]

#: How long a group of cells should take: long enough that scheduling does not count.
GROUP_SECONDS = 0.5
#: Groups that are submitted and not finished, to begin with. They double when none finishes for a while.
OUTSTANDING = 256
#: The same before the first has finished, when it is not known how long cells take.
FIRST = 8
#: The same at most.
MOST = 4096
#: Cells in a group at most.
LARGEST_GROUP = 1000


@dataclass(frozen=True, eq=False, repr=False)
class SweepCell(Table):
    """The result of a cell: its number, its settings, the numbers that are kept, why it failed if it did,
    and its curves if they are kept."""

    cell: int
    settings: dict[str, Any]
    values: dict[str, float]
    error: str | None
    curves: list[dict[str, Any]]

    def columns(self) -> dict[str, np.ndarray]:
        """The number of the cell and the numbers that are kept."""
        return {"cell": np.array([self.cell]), **{k: np.array([v]) for k, v in self.values.items()}}

    def __repr__(self) -> str:
        pairs = [f"{key}={value!r}" for key, value in self.settings.items()]
        kept = [f"{name}={value:.6g}" for name, value in self.values.items()]
        failed = [f"error={self.error!r}"] if self.error else []
        return f"<toclip.SweepCell {self.cell}: {', '.join([*pairs, *kept, *failed])[:300]}>"


class Sweep(_toclip.Sweep):
    """A sweep file of ``toclip sweep``, or the same as a dictionary.

    >>> import toclip
    >>> sweep = toclip.Sweep({
    ...     "spectrum": {"kind": "isotropic", "dim": 100},
    ...     "start": {"kind": "uniform", "norm": 1.0},
    ...     "noise": {"family": "student_t", "df": 2.5, "scale": 0.5},
    ...     "time": 3.0,
    ...     "learning_rate": 0.5,
    ...     "vary": {"clip": [0.5, 1.0, "none"], "noise.df": [1.5, 3.0]},
    ... })
    >>> len(sweep), sweep.keys, sweep.columns
    (6, ['clip', 'noise.df'], ['ode_final_risk', 'ode_diverged_at'])
    >>> sweep.settings(5)
    {'clip': 'none', 'noise.df': 3.0}
    """

    def __new__(cls, spec: Mapping[str, Any] | str | os.PathLike[str]) -> Sweep:
        return super().__new__(cls, _with_tables(spec) if isinstance(spec, Mapping) else spec)

    def __len__(self) -> int:
        return self.cells

    def __repr__(self) -> str:
        return f"<toclip.Sweep {self.name!r}: {len(self)} cells over {', '.join(self.keys)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _from_toml, (self.toml, os.fspath(self.folder))

    def run(
        self,
        executor: Any = None,
        *,
        group: int | None = None,
        progress: bool | Progress = False,
    ) -> SweepResult:
        """Runs all cells; see :func:`toclip.sweep`."""
        return SweepResult(self, list(self.as_completed(executor, group=group, progress=progress)))

    def as_completed(
        self,
        executor: Any = None,
        *,
        group: int | None = None,
        progress: bool | Progress = False,
    ) -> Iterator[SweepCell]:
        """The cells in the order in which they finish; see :func:`toclip.sweep`."""
        if group is not None:
            if isinstance(group, bool) or not isinstance(group, (int, np.integer)) or group < 1:
                raise ValueError(f"group must be an integer, at least 1, not {group!r}")
            group = int(group)
        self.check()
        tell = progress_function(progress, "cells")
        rows = self._on_all_cores() if executor is None else self._submitted(_submitter(executor), group)
        columns = self.columns
        for done, (cell, values, error, curves) in enumerate(rows, 1):
            if tell is not None:
                tell(done, len(self))
            named = dict(zip(columns, values, strict=True))
            yield SweepCell(cell, self.settings(cell), named, error, curves)

    def _on_all_cores(self) -> Iterator[Any]:
        """Blocks of cells on the threads of this process."""
        size = 64
        start = 0
        while start < len(self):
            begin = time.perf_counter()
            cells = list(range(start, min(start + size, len(self))))
            yield from self.run_cells(cells, parallel=True)
            start += len(cells)
            # Long enough to keep all cores busy, short enough to show progress.
            seconds = max(time.perf_counter() - begin, 1e-9)
            size = int(np.clip(len(cells) * 4 * GROUP_SECONDS / seconds, 16, 100_000))

    def _submitted(self, submit: Any, group: int | None) -> Iterator[Any]:
        """Groups of cells on an executor, larger ones when they turn out short."""
        size = group or 1
        overhead = np.inf

        def calls() -> Iterator[tuple[Any, ...]]:
            start = 0
            while start < len(self):
                stop = min(start + size, len(self))
                yield self.toml, os.fspath(self.folder), start, stop
                start = stop

        # The first groups show how long cells take, unless the size is given.
        done = _as_completed(submit, _run_group, calls(), FIRST if group is None else OUTSTANDING)
        for _, (*_, start, stop), (rows, seconds), turnaround in done:
            if [row[0] for row in rows] != list(range(start, stop)):
                raise RuntimeError(f"the executor returned other cells than {start} to {stop - 1}")
            if group is None:
                overhead = min(overhead, max(turnaround - seconds, 0.0))
                # An executor that starts a process for every call gets longer groups.
                aim = max(GROUP_SECONDS, 10 * overhead)
                size = int(np.clip(len(rows) * aim / max(seconds, 1e-9), 1, LARGEST_GROUP))
            yield from rows


class SweepResult(Table):
    """The table of a sweep: a row for each cell, in order, with the keys that vary and the numbers that are kept.

    The columns are those of the Parquet file of ``toclip sweep``. ``curves`` has the curves, if they
    are kept.
    """

    def __init__(self, sweep: Sweep, cells: list[SweepCell]) -> None:
        cells = sorted(cells, key=lambda cell: cell.cell)
        numbers = [cell.cell for cell in cells]
        keys = sweep.key_columns(numbers)
        self.name = sweep.name
        self._columns: dict[str, np.ndarray] = {"cell": np.array(numbers, dtype=np.int64)}
        for key, column in keys.items():
            is_text = isinstance(column, list)
            self._columns[key] = np.array(column, dtype=object) if is_text else column
        for name in sweep.columns:
            self._columns[name] = np.array([cell.values[name] for cell in cells], dtype=float)
        self._columns["error"] = np.array([cell.error or "" for cell in cells], dtype=object)
        self.keys = sweep.keys
        self._curves = [(cell.cell, curve) for cell in cells for curve in cell.curves]
        self._value = "loss" if sweep.model else "risk"

    def columns(self) -> dict[str, np.ndarray]:
        """The columns by name."""
        return dict(self._columns)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __len__(self) -> int:
        return len(self._columns["cell"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SweepResult):
            return NotImplemented
        return same(self._columns, other._columns) and same(self._curves, other._curves)

    __hash__ = None

    def __repr__(self) -> str:
        failed = int(np.count_nonzero(self["error"] != ""))
        more = f", {failed} failed" if failed else ""
        return f"<toclip.SweepResult {self.name!r}: {len(self)} cells over {', '.join(self.keys)}{more}>"

    @property
    def curves(self) -> dict[str, np.ndarray]:
        """The points of all curves as columns: cell, method, time, risk or loss, and the band."""

        def joined(name: str) -> np.ndarray:
            parts = [
                curve[name] if len(curve[name]) else np.full(len(curve["time"]), np.nan)
                for _, curve in self._curves
            ]
            return np.concatenate(parts) if parts else np.array([])

        lengths = [len(curve["time"]) for _, curve in self._curves]
        cells = np.array([cell for cell, _ in self._curves], dtype=np.int64)
        methods = np.array([curve["method"] for _, curve in self._curves], dtype=object)
        return {
            "cell": np.repeat(cells, lengths),
            "method": np.repeat(methods, lengths),
            "time": joined("time"),
            self._value: joined("value"),
            "low": joined("low"),
            "high": joined("high"),
        }

    def plot(
        self, axes: Any = None, *, x: str | None = None, y: str | None = None, value: str | None = None, **style: Any
    ) -> Any:
        """A heat map over two keys that vary, or a line over one; needs matplotlib.

        Where several cells share a place, the smallest value is drawn.
        """
        from .plot import sweep as draw

        return draw(self, axes, x, y, value, **style)


def sweep(
    spec: Mapping[str, Any] | str | os.PathLike[str],
    executor: Any = None,
    *,
    group: int | None = None,
    progress: bool | Progress = False,
) -> SweepResult:
    """Runs an experiment for many values of its keys.

    ``spec`` is the path of a TOML file for ``toclip sweep``, or the same as a dictionary: an experiment
    with ``vary`` and, where needed, ``together``, ``exclude`` and ``keep``. Raises ``ValueError`` before
    running anything if a cell is invalid; a cell that fails later has its reason in the column ``error``.

    Without an ``executor`` the cells run on all cores of this machine. Otherwise it is anything with
    ``submit`` whose futures have ``done`` and ``result``: an executor of ``concurrent.futures``, the client of
    Dask, executorlib, submitit or Parsl; or the module ``ray``. toclip has to be installed on the
    workers. Cells are submitted in groups that take about half a second, or of ``group`` cells: at first 8
    groups (256 if ``group`` is given), and 256 once one has finished. While none finishes, twice as many
    after half a second, again after another second, then two, and so on up to 4096, so that all workers
    are busy. The table is the same, bit for bit, whatever runs it.

    >>> import toclip
    >>> table = toclip.sweep({
    ...     "spectrum": {"kind": "isotropic", "dim": 100},
    ...     "start": {"kind": "uniform", "norm": 1.0},
    ...     "noise": {"family": "student_t", "df": 1.5, "scale": 0.5},
    ...     "time": 3.0,
    ...     "learning_rate": 0.5,
    ...     "vary": {"clip": {"log": [0.1, 10.0], "count": 3}},
    ... })
    >>> float(table["clip"][table["ode_final_risk"].argmin()])
    1.0
    """
    return Sweep(spec).run(executor, group=group, progress=progress)


def map_on(executor: Any, function: Any, calls: list[tuple[Any, ...]]) -> list[Any]:
    """The function of each tuple of arguments, in order; on this thread without an executor."""
    if executor is None:
        return [function(*args) for args in calls]
    done = _as_completed(_submitter(executor), function, iter(calls))
    return [found for _, _, found, _ in sorted(done, key=lambda call: call[0])]


def _as_completed(
    submit: Any, function: Any, calls: Iterator[tuple[Any, ...]], allowed: int = FIRST
) -> Iterator[tuple[int, tuple[Any, ...], Any, float]]:
    """Number, arguments, result and seconds of each call, as they finish.

    Uses only ``submit``, ``done`` and ``result``, which every kind of executor has. At first ``allowed``
    calls are submitted.
    """
    waiting: dict[int, Any] = {}
    begun: dict[int, tuple[tuple[Any, ...], float]] = {}
    submitted = 0
    pause = 0.001
    patience, since = GROUP_SECONDS, time.perf_counter()
    more = True
    try:
        while more or waiting:
            while more and len(waiting) < allowed:
                args = next(calls, None)
                if args is None:
                    more = False
                    break
                begun[submitted] = args, time.perf_counter()
                waiting[submitted] = submit(function, *args)
                submitted += 1
            finished = [key for key, future in waiting.items() if future.done()]
            for key in finished:
                args, begin = begun.pop(key)
                yield key, args, waiting.pop(key).result(), time.perf_counter() - begin
                allowed = max(allowed, OUTSTANDING)
            now = time.perf_counter()
            if finished:
                pause, patience, since = 0.001, GROUP_SECONDS, now
                continue
            if now - since > patience:
                # There may be more workers than submitted calls.
                allowed, patience, since = min(2 * allowed, MOST), 2 * patience, now
            pause = min(2 * pause, 0.05)
            time.sleep(pause)
    finally:
        for future in waiting.values():
            getattr(future, "cancel", lambda: None)()


def _with_tables(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Keys with dots as nested tables, as TOML reads them."""
    spec = dict(spec)
    for section in ("vary", "together", "exclude"):
        value = spec.get(section)
        if isinstance(value, Mapping):
            spec[section] = _nested(section, value)
        elif isinstance(value, (list, tuple)):
            spec[section] = [_nested(section, v) if isinstance(v, Mapping) else v for v in value]
    return spec


def _nested(section: str, table: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in table.items():
        *path, last = str(key).split(".")
        inner = found
        for part in path:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                raise ValueError(f"{section}: `{key}` is inside a key that varies itself")
        if last in inner:
            raise ValueError(f"{section}: `{key}` is given twice, or varies with keys inside it")
        # A copy, because other keys with dots may go into it.
        inner[last] = _nested(section, value) if isinstance(value, Mapping) else value
    return found


def _from_toml(text: str, folder: str) -> Sweep:
    return _toclip.Sweep.__new__(Sweep, text, folder)


@lru_cache(maxsize=4)
def _known(text: str, folder: str) -> Any:
    """The sweep in a worker, read once."""
    return _toclip.Sweep(text, folder)


def _run_group(text: str, folder: str, start: int, stop: int) -> tuple[list[Any], float]:
    """Runs some cells in a worker: their rows and the seconds they took."""
    sweep = _known(text, folder)
    begin = time.perf_counter()
    rows = sweep.run_cells(list(range(start, stop)), parallel=False)
    return rows, time.perf_counter() - begin


def _submitter(executor: Any) -> Any:
    """The function that submits: that of an executor, or one that uses Ray."""
    if hasattr(executor, "remote") and hasattr(executor, "wait"):
        return _RaySubmit(executor)
    if not hasattr(executor, "submit"):
        raise ValueError(
            "executor must have a method submit, as those of concurrent.futures, or be the module ray, "
            f"not {type(executor).__name__}"
        )
    return executor.submit


class _RaySubmit:
    """Ray behind the interface of an executor."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._functions: dict[Any, Any] = {}

    def __call__(self, function: Any, *args: Any) -> Any:
        if function not in self._functions:
            # A worker that dies is replaced, and its cells give the same bits again.
            self._functions[function] = self._ray.remote(max_retries=10)(function)
        return _RayFuture(self._ray, self._functions[function].remote(*args))


class _RayFuture:
    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray, self._reference = ray, reference

    def done(self) -> bool:
        return bool(self._ray.wait([self._reference], timeout=0)[0])

    def result(self) -> Any:
        return self._ray.get(self._reference)

    def cancel(self) -> None:
        self._ray.cancel(self._reference)
