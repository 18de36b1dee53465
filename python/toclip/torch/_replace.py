"""Replaces methods of an object, as long as a guard or a callback acts in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def replaced(owner: Any, **methods: Any) -> Callable[[], None]:
    """Replaces these methods of one object, not of its class; returns the function that undoes it."""
    before = {name: owner.__dict__.get(name) for name in methods}
    for name, method in methods.items():
        setattr(owner, name, method)

    def restore() -> None:
        for name, method in before.items():
            if method is None:
                owner.__dict__.pop(name, None)
            else:
                setattr(owner, name, method)

    return restore
