"""The global norm of gradients, and clipping to it, without waiting for the device."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn

Parameters = nn.Module | Tensor | Iterable[Tensor]


def _listed(parameters: Parameters) -> list[Tensor]:
    found: list[Tensor]
    if isinstance(parameters, nn.Module):
        found = list(parameters.parameters())
    elif isinstance(parameters, Tensor):
        found = [parameters]
    else:
        found = list(parameters)
    if not found:
        raise ValueError(
            "there are no parameters: give model.parameters() (a generator can be used only once)"
        )
    if any(getattr(p, "_is_flat_param", False) for p in found):
        raise ValueError(
            "these parameters are shards of FSDP, whose norm is not that of the gradient: give the "
            "FSDP module itself"
        )
    return found


def gradients_of(parameters: Parameters) -> list[Tensor]:
    """The gradients there are."""
    if isinstance(parameters, nn.Module):
        parameters = parameters.parameters()
    elif isinstance(parameters, Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def _check(parameters: list[Tensor]) -> None:
    if all(p.grad is None for p in parameters):
        raise ValueError(
            "no parameter has a gradient: call this after loss.backward() and before "
            "optimizer.zero_grad()"
        )


def _whole(norm: Tensor) -> Tensor:
    # Of sharded parameters (FSDP2) the norm is a DTensor whose parts have to be added up.
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm


def total_norm(parameters: Parameters) -> Tensor:
    """The norm of all gradients as one vector; over all shards where they are sharded."""
    own: Any = getattr(parameters, "clip_grad_norm_", None)
    if isinstance(parameters, nn.Module) and own is not None:  # FSDP, first version
        return _whole(own(math.inf))
    listed = _listed(parameters)
    _check(listed)
    grads = [p.grad for p in listed if p.grad is not None]
    if hasattr(nn.utils, "get_total_norm"):
        return _whole(nn.utils.get_total_norm(grads))
    return nn.utils.clip_grad_norm_(listed, math.inf)


def clip_to(parameters: Parameters, limit: float) -> Tensor:
    """Clips in place and gives the norm before."""
    own: Any = getattr(parameters, "clip_grad_norm_", None)
    if isinstance(parameters, nn.Module) and own is not None:  # FSDP, first version
        return _whole(own(limit))
    if math.isinf(limit):
        return total_norm(parameters)
    listed = _listed(parameters)
    _check(listed)
    return _whole(nn.utils.clip_grad_norm_(listed, limit))
