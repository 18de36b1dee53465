"""Whole numbers and thresholds as users give them."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any


def at_least(least: int, value: Any, name: str, why: str) -> int:
    """``value`` as a whole number of ``least`` or more."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} = {value!r} is not allowed: it must be a whole number") from None
    if number < least:
        raise ValueError(f"{name} = {number} is not allowed: {why}")
    return number


def positive_numbers(values: Any, name: str) -> list[float]:
    """One or more positive numbers."""
    if isinstance(values, str) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise ValueError(f"{name} is {values!r}; give a list of positive numbers, such as [0.1, 1.0]")
    found = []
    for value in values:
        try:
            found.append(float(value))
        except (TypeError, ValueError):
            raise ValueError(f"{name} has {value!r} in it; each must be a positive number") from None
    if not found:
        raise ValueError(f"{name} is empty; give at least one positive number")
    for number in found:
        if not number > 0.0:
            raise ValueError(f"{name} has {number} in it; each must be positive")
    return found
