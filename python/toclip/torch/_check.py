"""Checks of integers and thresholds."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from .._toclip import as_threshold


def at_least(least: int, value: Any, name: str, why: str) -> int:
    """``value`` as an integer of at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer, not {value!r}") from None
    if number < least:
        raise ValueError(f"{name} = {number} is not allowed; {why}")
    return number


def threshold(value: Any, name: str) -> float:
    """A positive number; ``None``, ``"none"`` and ``"inf"`` are infinite: no clipping."""
    number = as_threshold(name, value)
    if not number > 0.0:
        raise ValueError(f"{name} = {number} is not allowed; a threshold must be positive")
    return number


def threshold_list(values: Any, name: str) -> list[float]:
    """One or more thresholds."""
    if isinstance(values, str) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise ValueError(f"{name} must be a list of positive numbers, such as [0.1, 1.0], not {values!r}")
    found = [threshold(value, name) for value in values]
    if not found:
        raise ValueError(f"{name} is empty; expected at least one positive number")
    return found
