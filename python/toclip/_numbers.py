"""Numbers from users, refused by name where they are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from numpy.typing import ArrayLike

from ._toclip import as_array

__all__ = ["floats"]


def floats(
    name: str, values: ArrayLike | Iterable[float], instead: str = "give one list of numbers"
) -> list[float]:
    """A list of numbers from a list, a row, a column or an iterator of them."""
    given: Any = list(values) if isinstance(values, Iterator) else values
    array = as_array(name, given)
    if array.size > max(array.shape, default=1):
        raise ValueError(f"{name} has the shape {array.shape}: {instead}")
    numbers: list[float] = array.ravel().tolist()
    return numbers
