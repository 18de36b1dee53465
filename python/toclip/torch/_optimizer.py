"""The kind of an optimizer, and its learning rate."""

from __future__ import annotations

import math
from typing import Any

import torch

# Parts of the names of classes that divide by a running scale of the gradient, or normalise it.
_NORMALISING = (
    "adam", "rmsprop", "adagrad", "adadelta", "adafactor", "lamb", "lars", "lion", "muon", "novograd",
    "rprop", "shampoo", "soap", "sophia", "prodigy", "galore",
)


def kind_of(optimizer: Any) -> str | None:
    """``"sgd"``; ``"adam"`` for all that divide by a running scale of the gradient; ``None`` if unknown."""
    if optimizer is None:
        return None
    if isinstance(optimizer, str):
        name = optimizer.lower()
        if any(part in name for part in _NORMALISING):
            return "adam"
        if "sgd" in name or "nesterov" in name:
            return "sgd"
        raise ValueError(
            f"unknown optimizer {optimizer!r}; expected sgd, or adam for every optimizer in which the scale of "
            "the gradient cancels (Adam, AdamW, Lion, Muon, Adafactor, …)"
        )
    inner = inner_of(optimizer)
    if not hasattr(inner, "param_groups"):
        raise ValueError(
            f"optimizer must be a torch.optim.Optimizer, \"sgd\" or \"adam\", not {type(optimizer).__name__}"
        )
    if isinstance(inner, torch.optim.SGD):
        return "sgd"
    for each in type(inner).__mro__:
        if any(part in each.__name__.lower() for part in _NORMALISING):
            return "adam"
    return None


def inner_of(optimizer: Any) -> Any:
    """The optimizer itself, where accelerate or DeepSpeed has wrapped it."""
    while getattr(optimizer, "optimizer", None) is not None:
        optimizer = optimizer.optimizer
    return optimizer


def rate_of(optimizer: Any) -> float:
    """The learning rate of the first group; NaN if it is unknown."""
    groups = getattr(optimizer, "param_groups", None)
    rate = groups[0].get("lr") if groups else None
    # A tensor may be on a device, and reading it would synchronise with it.
    if rate is None or isinstance(rate, torch.Tensor) and rate.device.type != "cpu":
        return math.nan
    return float(rate)
