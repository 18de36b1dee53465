"""Reads lists of numbers; an error names the argument."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._toclip import as_array, as_threshold

__all__ = ["floats", "thresholds"]


def floats(
    name: str, values: ArrayLike | Iterable[float], hint: str = "expected one list of numbers"
) -> list[float]:
    """A list of numbers from a list, a row, a column or an iterator."""
    given: Any = list(values) if isinstance(values, Iterator) else values
    array = as_array(name, given)
    if array.size > max(array.shape, default=1):
        raise ValueError(f"{name} has the shape {array.shape}; {hint}")
    numbers: list[float] = array.ravel().tolist()
    return numbers


def thresholds(name: str, values: Any) -> np.ndarray:
    """Thresholds as an array; ``None``, ``"none"`` and ``"inf"`` are infinite: no clipping."""
    if values is None or isinstance(values, str):
        return np.asarray(as_threshold(name, values))
    if isinstance(values, (list, tuple)):
        words = (v is None or isinstance(v, str) for v in values)
        values = [as_threshold(name, v) if word else v for v, word in zip(values, words, strict=True)]
    array = as_array(name, values)
    if np.isnan(array).any():
        as_threshold(name, math.nan)  # raises
    return array
