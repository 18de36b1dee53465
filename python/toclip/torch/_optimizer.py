"""What kind of optimizer it is, and its learning rate."""

from __future__ import annotations

import math
from typing import Any

import torch

# What is in the names of classes that divide by a running scale of the gradient, or normalise it.
_NORMALISING = (
    "adam", "rmsprop", "adagrad", "adadelta", "adafactor", "lamb", "lars", "lion", "muon", "novograd",
    "rprop", "shampoo", "soap", "sophia", "prodigy", "came",
)
_NAMES = {"sgd": "sgd", "adam": "adam", "adamw": "adam"}


def kind_of(optimizer: Any) -> str | None:
    """``"sgd"``; ``"adam"`` for all that divide by a running scale of the gradient; ``None`` if unknown."""
    if optimizer is None:
        return None
    if isinstance(optimizer, str):
        if optimizer.lower() not in _NAMES:
            raise ValueError(
                f"unknown optimizer {optimizer!r}; expected sgd, or adam for every optimizer that divides "
                "by a running scale of the gradient"
            )
        return _NAMES[optimizer.lower()]
    inner = inner_of(optimizer)
    if isinstance(inner, torch.optim.SGD):
        return "sgd"
    for each in type(inner).__mro__:
        if any(part in each.__name__.lower() for part in _NORMALISING):
            return "adam"
    return None


def inner_of(optimizer: Any) -> Any:
    """The optimizer itself, where accelerate has wrapped it."""
    return getattr(optimizer, "optimizer", optimizer)


def rate_of(optimizer: Any) -> float:
    """The learning rate of the first group; NaN if there is none."""
    groups = getattr(optimizer, "param_groups", None)
    rate = groups[0].get("lr") if groups else None
    # A tensor may be on a device, and reading it would synchronise with it.
    if rate is None or isinstance(rate, torch.Tensor) and rate.device.type != "cpu":
        return math.nan
    return float(rate)
