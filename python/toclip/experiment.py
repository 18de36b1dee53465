"""Experiments from dictionaries and TOML files, as ``toclip run`` reads them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from . import _toclip
from .problem import Progress, progress_function
from .results import Band, GlmBand, GlmPath, Path

__all__ = ["experiment"]

# The class of each kind of curve.
_KINDS: dict[str, Any] = {"path": Path, "band": Band, "glm_path": GlmPath, "glm_band": GlmBand}


def experiment(
    what: Mapping[str, Any] | str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: bool | Progress = False,
) -> dict[str, Any]:
    """Runs an experiment and returns the curve of each method, a :class:`toclip.Path` or
    :class:`toclip.Band`.

    With the key ``model`` it is a classification, and curves are a :class:`toclip.GlmPath` or
    :class:`toclip.GlmBand`. If the experiment has ``criteria``, their curves are under that name: the
    horizontal axis as ``c`` or ``R``, and for each criterion a dictionary of curves by the label of the
    noise.

    ``what`` is the path of a TOML file for ``toclip run``, or the same experiment as a dictionary.
    Defaults, error messages and results are identical to those of the command; ``toclip schema``
    lists all keys. A dictionary may contain arrays instead of lists, and a :class:`toclip.Noise`,
    :class:`toclip.Spectrum` or :class:`toclip.Schedule` instead of its dictionary. Files named in a
    dictionary are relative to the current directory. ``progress`` is that of
    :meth:`toclip.Problem.simulate`, over all runs of all methods.

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
    is_model, curves, criteria = _toclip.experiment(what, threads, progress_function(progress))
    path, band = (GlmPath, GlmBand) if is_model else (Path, Band)
    result: dict[str, Any] = {} if criteria is None else {"criteria": criteria}
    for method, is_ensemble, curve in curves:
        result[method] = (band if is_ensemble else path)(**curve)
    return result
