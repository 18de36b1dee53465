"""Pickles and copies of the classes that are written in Rust."""

from __future__ import annotations

import copyreg
from typing import Any

from . import _toclip
from ._toclip import Halves, Noise, Schedule, Spectrum, ThresholdRule
from .monitor import Monitor

__all__ = ["register"]


def register() -> None:
    """Tells pickle and copy how to make each class again."""
    for stateful in (Halves, Monitor, ThresholdRule, _toclip.Monitor):
        copyreg.pickle(stateful, _from_json)
    for described in (Schedule, Spectrum):
        copyreg.pickle(described, _from_dict)
    copyreg.pickle(Noise, _from_family)


def _from_json(it: Any) -> tuple[Any, ...]:
    return type(it).from_json, (it.to_json(),)


def _from_dict(it: Any) -> tuple[Any, ...]:
    return type(it), (it.to_dict(),)


def _from_family(it: Noise) -> tuple[Any, ...]:
    return _noise, (it.to_dict(), it.batch_size, it.outputs, it.per_sample, it.rule)


def _noise(
    family: dict[str, Any], size: int, outputs: int, per_sample: bool, rule: str = "clip"
) -> Noise:
    return Noise(family).batched(size, outputs=outputs, per_sample=per_sample).with_rule(rule)
