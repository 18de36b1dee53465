"""Experiments from dictionaries and files, with the keys of the command ``toclip run``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Any

from ._toclip import Noise, Spectrum, linear_times, log_times, read_toml
from .problem import Problem
from .results import Band, Path

__all__ = ["experiment"]

METHODS = ("ode", "unclipped", "volterra", "hsgd", "sgd")
KEYS = {
    *("name", "time", "tolerance", "methods", "spectrum", "start", "noise", "batch"),
    *("covariates", "learning_rate", "clip", "points", "ensemble"),
}
# As the command does: the deterministic methods get a compressed spectrum above so many modes, and
# C-SGD its collapsed form where a block stands for so many coordinates.
COMPRESS_ABOVE, COMPRESS_SHARE, BLOCK_COST = 2000, 0.01, 20


def experiment(
    what: dict[str, Any] | str | os.PathLike[str],
    *,
    progress: bool | Callable[[int, int], None] = False,
) -> dict[str, Path | Band]:
    """Runs an experiment: for each method its curve.

    ``what`` is a TOML file as ``toclip run`` takes it, or the same as a dictionary. Spectra and
    residuals in files are for the command; here, read them with NumPy.

    >>> import toclip
    >>> curves = toclip.experiment({
    ...     "time": 3.0,
    ...     "methods": ["ode", "unclipped"],
    ...     "spectrum": {"kind": "isotropic", "dim": 100},
    ...     "start": {"kind": "uniform", "norm": 1.0},
    ...     "noise": {"family": "student_t", "df": 2.5, "sigma": 1.0},
    ...     "learning_rate": 0.5,
    ...     "clip": "max_ccc",
    ... })
    >>> bool(curves["ode"].risk[-1] < curves["unclipped"].risk[-1])
    True
    """
    if not isinstance(what, dict):
        file = FilePath(what)
        try:
            what = read_toml(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
    given: dict[str, Any] = dict(what)
    unknown = sorted(set(given) - KEYS)
    if unknown:
        known = "`, `".join(sorted(KEYS))
        raise ValueError(f"unknown field `{unknown[0]}`, expected one of `{known}`")
    for key in ("time", "spectrum", "start", "noise", "learning_rate"):
        if key not in given:
            raise ValueError(f"missing field `{key}`")
    methods = given.get("methods", ["ode"])
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"unknown method `{method}`, expected one of `{'`, `'.join(METHODS)}`")

    spectrum = Spectrum(given["spectrum"])
    rate, clip = given["learning_rate"], given.get("clip", "none")
    parts = (spectrum, given["start"], _batched(given["noise"], given.get("batch", 1)))
    problem = Problem(*parts, learning_rate=rate, clip=clip)
    unclipped = Problem(*parts, learning_rate=rate)
    times = _times(float(given["time"]), given.get("points", 201))
    rtol = given.get("tolerance", 1e-8)
    compress = max(COMPRESS_SHARE * rtol, 1e-12) if len(spectrum.values) > COMPRESS_ABOVE else None
    ensemble = {"runs": 100, "seed": 1, "confidence": 0.8, **given.get("ensemble", {})}
    covariates = given.get("covariates")
    few = len(spectrum.values) * BLOCK_COST <= spectrum.ambient_dim

    curves: dict[str, Path | Band] = {}
    for method in methods:
        if method in ("sgd", "hsgd"):
            gaussian = covariates in (None, {"kind": "gaussian"})
            form = "collapsed" if method == "sgd" and few and gaussian else method
            law = covariates if form == "sgd" else None
            curves[method] = problem.simulate(
                times, method=form, covariates=law, progress=progress, **ensemble
            )
        else:
            solver = "volterra" if method == "volterra" else "ode"
            of = unclipped if method == "unclipped" else problem
            curves[method] = of.predict(times, method=solver, rtol=rtol, compress=compress)
    return curves


def _batched(noise: dict[str, Any], batch: int | dict[str, Any]) -> Noise:
    given = {"size": batch} if isinstance(batch, int) else dict(batch)
    size, rule = given.pop("size", 1), given.pop("rule", "mean")
    if given:
        raise ValueError(f"unknown field `{next(iter(given))}` in batch: size or rule")
    if rule not in ("mean", "per_sample"):
        raise ValueError(f'rule "{rule}" is not known: "mean" or "per_sample"')
    return Noise(noise).batched(size, per_sample=rule == "per_sample")


def _times(end: float, points: int | dict[str, Any]) -> Any:
    given = {"count": points} if isinstance(points, int) else dict(points)
    spacing = given.pop("spacing", "linear")
    count, first = given.pop("count", 201), given.pop("first", 1e-3 * end)
    if given:
        raise ValueError(f"unknown field `{next(iter(given))}` in points: count, spacing or first")
    if spacing not in ("linear", "log"):
        raise ValueError(f'spacing "{spacing}" is not known: "linear" or "log"')
    return linear_times(end, count) if spacing == "linear" else log_times(first, end, count)
