"""Types of command-line arguments, checked before any work is done."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any


def checked(kind: Callable[[str], Any], good: Callable[[Any], bool], expected: str) -> Callable[[str], Any]:
    """Reads and checks an argument; ``expected`` describes the allowed values in the error."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not good(value):
            raise argparse.ArgumentTypeError(f"{text}; expected {expected}")
        return value

    return read


def six_digits(text: str) -> float:
    """The number with the six digits that are stored, so that stored runs are found again."""
    return float(f"{float(text):.6g}")


def at_least(least: int) -> Callable[[str], Any]:
    return checked(int, lambda n: n >= least, f"an integer of at least {least}")


COUNT = at_least(1)
POSITIVE = checked(six_digits, lambda x: 0.0 < x < math.inf, "a number above 0")
SHARE = checked(six_digits, lambda x: 0.0 <= x <= 1.0, "a share from 0 to 1")
# Momentum.
BELOW_ONE = checked(float, lambda x: 0.0 <= x < 1.0, "a number from 0 to below 1")
