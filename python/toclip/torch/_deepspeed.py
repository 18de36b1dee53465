"""The guard in an engine of DeepSpeed, which computes the norm, clips and steps by itself."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from ._replace import replaced

# The method of each kind of ZeRO optimizer that computes the norm, and one that is there if an infinite norm
# makes it leave out the step, which older versions do not do.
_NORMS = {
    "DeepSpeedZeroOptimizer": ("scaled_global_norm", "_release_preflattened_grad_buffers"),
    "DeepSpeedZeroOptimizer_Stage3": ("_get_norm_groups", "_loss_scale_update_and_overflow_cleanup"),
}


def is_engine(given: Any) -> bool:
    """Whether this is an engine of DeepSpeed, as ``deepspeed.initialize`` returns it."""
    return all(hasattr(given, name) for name in ("get_global_grad_norm", "module", "optimizer", "backward"))


def plain_optimizer(engine: Any) -> torch.optim.Optimizer | None:
    """The optimizer of an engine without ZeRO, which a guard can be attached to as to any other."""
    inner = engine.optimizer
    if type(inner).__name__ in _NORMS or not isinstance(inner, torch.optim.Optimizer):
        return None
    if type(inner).__module__.startswith("deepspeed.runtime"):
        return None
    if engine.gradient_clipping() > 0.0:
        raise ValueError(
            "gradient_clipping is set, so DeepSpeed would clip before the guard sees the gradient; use "
            f"Guard(max_norm={engine.gradient_clipping():g}) instead"
        )
    return inner


def attach(guard: Any, engine: Any) -> Callable[[], None]:
    """Guards the steps of an engine with ZeRO; returns what undoes it.

    A step that is to be skipped is left out as DeepSpeed leaves out one that overflows: neither weights nor
    the state of the optimizer change. The loss scale stays as it is unless the gradient is not finite.
    """
    zero = engine.optimizer
    name, needed = _NORMS.get(type(zero).__name__, ("", ""))
    if not name:
        raise ValueError(
            f"a guard does not support the optimizer {type(zero).__name__} of DeepSpeed; expected ZeRO stage 1, 2 "
            "or 3, or stage 0 in single precision"
        )
    if not (hasattr(zero, name) and hasattr(zero, needed)) or not getattr(zero, "compute_grad_norm", True):
        raise ValueError(
            "this DeepSpeed does not leave out steps by their norm; a guard needs version 0.19.8 or later, and "
            "compute_grad_norm"
        )
    clip_grad, max_norm = zero.clip_grad, guard.rule.max_norm
    if clip_grad > 0.0:
        guard.rule.max_norm = min(max_norm, float(clip_grad))
    norms, step, update_scale = getattr(zero, name), zero.step, zero._update_scale
    skipped = False

    def guarded_norm(*args: Any, **kwargs: Any) -> Any:
        nonlocal skipped
        found = norms(*args, **kwargs)
        length = _length(found) / float(zero.loss_scale)
        limit = guard.rule.clip_above
        made = guard._observed(length)
        # DeepSpeed clips at clip_grad, where 0 is no clipping.
        zero.clip_grad = limit if made.clipped else 0.0
        skipped = made.skipped
        if not skipped:
            return found
        zero.overflow = True
        infinite = torch.full((), math.inf, device=_first(found).device)
        return [infinite] if isinstance(found, list) else infinite

    def scale_after(overflow: bool = False) -> None:
        update_scale(overflow and not (skipped and guard.last.norm < math.inf))

    @functools.wraps(step)
    def guarded_step(*args: Any, **kwargs: Any) -> Any:
        nonlocal skipped
        skipped, calls = False, guard._calls
        result = step(*args, **kwargs)
        if guard._calls == calls:  # an overflow that DeepSpeed found before it computed the norm
            guard._observed(math.inf)
        return result

    methods = {name: guarded_norm, "_update_scale": scale_after, "step": guarded_step}
    restore = replaced(zero, **methods)

    def detach() -> None:
        restore()
        zero.clip_grad, guard.rule.max_norm = clip_grad, max_norm

    return detach


def _first(found: Any) -> torch.Tensor:
    one = found[0] if isinstance(found, list) else found
    return one if isinstance(one, torch.Tensor) else torch.tensor(float(one))


def _length(found: Any) -> float:
    """The norm, from that of each group; DeepSpeed writes -1 for one that is not finite."""
    parts = found if isinstance(found, list) else [found]
    values = [float(part) for part in parts]
    if not all(0.0 <= value < math.inf for value in values):
        return math.inf
    return math.hypot(*values)
