"""Numbers from users, refused by name where they are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from numpy.typing import ArrayLike

from ._toclip import as_array

__all__ = ["floats"]


def floats(name: str, values: ArrayLike | Iterable[float]) -> list[float]:
    """A list of numbers from a list, an array or an iterator of them."""
    given: Any = list(values) if isinstance(values, Iterator) else values
    numbers: list[float] = as_array(name, given).ravel().tolist()
    return numbers
