"""The global norm of gradients, and clipping to it, without synchronising with the device."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

Parameters = nn.Module | Tensor | Iterable[Tensor]


def listed(parameters: Parameters) -> list[Tensor]:
    """The parameters as a list; anything else is a ``ValueError``."""
    if isinstance(parameters, nn.Module):
        return list(parameters.parameters())
    if isinstance(parameters, Tensor):
        return [parameters]
    if isinstance(parameters, torch.optim.Optimizer):
        raise ValueError("parameters is an optimizer; expected the model or model.parameters()")
    try:
        found = list(parameters)
    except TypeError:
        raise ValueError(
            f"parameters is {parameters!r:.60}; expected the model or model.parameters()"
        ) from None
    for one in found:
        if not isinstance(one, Tensor):
            raise ValueError(
                f"parameters has a {type(one).__name__} in it; expected the model or model.parameters()"
            )
    return found


def _sharded(p: Tensor) -> bool:
    return getattr(p, "_is_flat_param", False) or getattr(p, "_fsdp_flattened", False)


def _with_gradients(parameters: Parameters) -> list[Tensor]:
    # A list has been checked already; checking it again would slow down every step.
    found = parameters if type(parameters) is list else listed(parameters)
    if not found:
        raise ValueError(
            "parameters is empty; call model.parameters() again for each step (a generator can be used only "
            "once)"
        )
    alone = not (torch.distributed.is_available() and torch.distributed.is_initialized())
    if not alone and any(_sharded(p) for p in found):
        raise ValueError(
            "these parameters are FSDP shards, whose norm is not that of the gradient; pass the FSDP "
            "module itself"
        )
    if all(p.grad is None for p in found):
        raise ValueError(
            "no parameter has a gradient; call this after loss.backward() and before "
            "optimizer.zero_grad()"
        )
    return found


def gradients_of(parameters: Parameters) -> list[Tensor]:
    """The gradients of the parameters that have one."""
    return [p.grad for p in listed(parameters) if p.grad is not None]


def _whole(norm: Tensor) -> Tensor:
    # The norm of sharded parameters (FSDP2) is a DTensor whose parts have to be summed.
    return norm.full_tensor() if hasattr(norm, "full_tensor") else norm


def _own(parameters: Parameters) -> Any:
    """The clipping method of FSDP1, which sums over the shards."""
    if not isinstance(parameters, nn.Module):
        return None
    return getattr(parameters, "clip_grad_norm_", None)


def total_norm(parameters: Parameters, foreach: bool | None = None) -> Tensor:
    """The norm of all gradients as one vector, over all shards."""
    own = _own(parameters)
    if own is not None:
        return _whole(own(math.inf))
    grads = [p.grad for p in _with_gradients(parameters) if p.grad is not None]
    parts = list(_by_mesh(grads).values())
    norms = [_norm_of(part, foreach) for part in parts]
    if len(norms) == 1:
        return norms[0]
    return torch.linalg.vector_norm(torch.stack([norm.to(norms[0].device) for norm in norms]))


def _norm_of(grads: list[Tensor], foreach: bool | None) -> Tensor:
    if hasattr(nn.utils, "get_total_norm"):
        return _whole(nn.utils.get_total_norm(grads, foreach=foreach))
    # Before PyTorch 2.6. Clipping at infinity would turn gradients that overflow into NaN.
    norms = [_whole(torch.linalg.vector_norm(g)).to(grads[0].device) for g in grads]
    return torch.linalg.vector_norm(torch.stack(norms))


def _by_mesh(grads: list[Tensor]) -> dict[Any, list[Tensor]]:
    """The gradients of each device mesh; PyTorch does not combine several in one operation."""
    found: dict[Any, list[Tensor]] = {}
    for grad in grads:
        found.setdefault(getattr(grad, "device_mesh", None), []).append(grad)
    return found


def inner_product(one: list[Tensor | None], other: list[Tensor | None]) -> Tensor:
    """The inner product of two gradients; a part that is None is zero."""
    parts = [
        _whole((a.float() * b.float()).sum() if a.dtype != torch.float64 else (a * b).sum())
        for a, b in zip(one, other, strict=True)
        if a is not None and b is not None
    ]
    if not parts:
        raise ValueError("the two gradients have no parameter in common, so they cannot be compared")
    return torch.stack([part.to(parts[0].device) for part in parts]).sum()


def scale_by(grads: list[Tensor], factor: float) -> None:
    """Multiplies the gradients by a number."""
    for part in _by_mesh(grads).values():
        torch._foreach_mul_(part, factor)


def divide_by(grads: list[Tensor], scale: float) -> None:
    """Divides the gradients by a number, as fused optimizers do."""
    for part in _by_mesh(grads).values():
        torch._foreach_div_(part, scale)


def unscale(scaler: Any, optimizer: Any) -> None:
    """Unscales the gradients, unless that has been done."""
    if optimizer is None:
        raise ValueError("scaler needs optimizer, whose gradients it unscales")
    if not hasattr(scaler, "unscale_"):
        raise ValueError(f"scaler must be a torch.amp.GradScaler, not {scaler!r:.60}")
    try:
        scaler.unscale_(optimizer)
    except RuntimeError as error:
        if "already been called" not in str(error):
            raise


def clip_to(parameters: Parameters, limit: float, foreach: bool | None = None) -> Tensor:
    """Clips in place and returns the norm before clipping."""
    own = _own(parameters)
    if own is not None:
        return _whole(own(limit))
    if math.isinf(limit):
        return total_norm(parameters, foreach)
    found = _with_gradients(parameters)
    grads = [p.grad for p in found if p.grad is not None]
    if len(_by_mesh(grads)) == 1:
        return _whole(nn.utils.clip_grad_norm_(found, limit, foreach=foreach))
    norm = total_norm(found, foreach)
    # As clip_grad_norm_ does it, without synchronising.
    factor = (limit / (norm + 1e-6)).clamp(max=1.0)
    for grad in grads:
        grad.mul_(factor.to(grad.device))
    return norm
