"""Numbers on the command line: what cannot be meets a sentence, before any work is done."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any


def checked(kind: Callable[[str], Any], good: Callable[[Any], bool], words: str) -> Callable[[str], Any]:
    """A value of an argument, or the sentence that it is not what ``words`` say."""

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not good(value):
            raise argparse.ArgumentTypeError(f"{text} is not {words}")
        return value

    return read


def six_digits(text: str) -> float:
    """As it will be kept, so that it is found again."""
    return float(f"{float(text):.6g}")


def at_least(least: int) -> Callable[[str], Any]:
    return checked(int, lambda n: n >= least, f"a whole number of {least} or more")


COUNT = at_least(1)
POSITIVE = checked(six_digits, lambda x: 0.0 < x < math.inf, "a number above 0")
SHARE = checked(six_digits, lambda x: 0.0 <= x <= 1.0, "a share from 0 to 1")
# A share that is not all: momentum.
BELOW_ONE = checked(float, lambda x: 0.0 <= x < 1.0, "a number from 0 to below 1")
