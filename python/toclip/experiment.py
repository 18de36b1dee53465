"""Experiments from dictionaries and files, as the command ``toclip run`` reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from . import _toclip
from .problem import Progress, teller
from .results import Band, Path

__all__ = ["experiment"]


def experiment(
    what: Mapping[str, Any] | str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: bool | Progress = False,
) -> dict[str, Any]:
    """Runs an experiment: for each method its curve, a :class:`toclip.Path` or :class:`toclip.Band`.

    Where the experiment asks for ``criteria``, their curves are under that name: the abscissae as
    ``c`` or ``R``, and for each criterion a dictionary of curves by the labels of the noises.

    ``what`` is a TOML file as ``toclip run`` takes it, or the same as a dictionary, with the same
    defaults, the same refusals and the same numbers to the last bit; ``toclip schema`` has all keys.
    In a dictionary arrays may stand for lists, and a :class:`toclip.Noise`, :class:`toclip.Spectrum` or
    :class:`toclip.Schedule` for its own dictionary; files that it names are looked for in the present
    folder. ``progress`` is as for :meth:`toclip.Problem.simulate`, over all runs of all methods.

    >>> import toclip
    >>> curves = toclip.experiment({
    ...     "time": 3.0,
    ...     "methods": ["ode", "unclipped"],
    ...     "spectrum": {"kind": "isotropic", "dim": 100},
    ...     "start": {"kind": "uniform", "norm": 1.0},
    ...     "noise": toclip.noise.student_t(df=2.5, sigma=1.0),
    ...     "learning_rate": 0.5,
    ...     "clip": {"kind": "max_ccc"},
    ... })
    >>> bool(curves["ode"].risk[-1] < curves["unclipped"].risk[-1])
    True
    """
    found = _toclip.experiment(what, threads=threads, progress=teller(progress))
    criteria = {"criteria": found.pop("criteria")} if "criteria" in found else {}
    curves = {
        method: Band(**curve) if "alive" in curve else Path(**curve)
        for method, curve in found.items()
    }
    return curves | criteria
