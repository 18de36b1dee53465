"""Guarded steps of fused optimizers, which can leave out a step on the device, so that the host does not wait."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ..guard import GuardRule

_NAMES = ("grad_scale", "found_inf")


def can_leave_out(optimizer: Any, parameters: Any) -> bool:
    """Whether the optimizer takes ``grad_scale`` and ``found_inf`` as tensors, as for a GradScaler."""
    return (
        type(parameters) is list
        and getattr(optimizer, "_step_supports_amp_scaling", False)
        and all(group.get("fused") for group in optimizer.param_groups)
        and not any(hasattr(p, "device_mesh") or p.device.type not in ("cuda", "cpu") for p in parameters)
    )


def has_state(optimizer: Any) -> bool:
    """Whether every parameter with a gradient has its moments.

    A step that is left out before there are moments would leave them undefined. Without momentum there
    are none.
    """
    for group in optimizer.param_groups:
        if group.get("momentum", True):
            for p in group["params"]:
                if p.grad is not None:
                    state = optimizer.state.get(p)
                    if not state or state.get("momentum_buffer", state) is None:
                        return False
    return True


@contextlib.contextmanager
def decided_on_device(optimizer: Any, norm: Tensor, rule: GuardRule) -> Iterator[None]:
    """Lets the optimizer clip, or leave out, its next step as the rule would.

    It divides gradients by max(1, norm/limit), and does nothing if the norm is not finite or is to be
    skipped: weights, moments, step counts and weight decay then stay as they are.
    """
    given = {name: getattr(optimizer, name) for name in _NAMES if hasattr(optimizer, name)}
    # In double precision, so that the device decides exactly as the rule will on the host.
    length = norm.double()
    scale = (length / rule.clip_above).clamp(min=1.0).float()
    # NaN and infinity are above every bound.
    left_out = (length <= min(rule.skip_above, sys.float_info.max)).logical_not().float()
    # Those of a GradScaler; without a scale if the gradients are unscaled already.
    if given.get("grad_scale") is not None:
        scale = scale * given["grad_scale"].to(scale.device)
    if given.get("found_inf") is not None:
        left_out = torch.maximum(left_out, given["found_inf"].to(left_out.device))
    optimizer.grad_scale, optimizer.found_inf = scale, left_out
    try:
        yield
    finally:
        for name in _NAMES:
            if name in given:
                setattr(optimizer, name, given[name])
            else:
                delattr(optimizer, name)


class Sent:
    """A number that is being copied from the device to the host."""

    def __init__(self, value: Tensor) -> None:
        self._arrived: Any = None
        self._number = value
        if value.is_cuda:
            self._number = torch.empty((), dtype=value.dtype, pin_memory=True)
            with torch.cuda.device(value.device):
                self._number.copy_(value, non_blocking=True)
                event: Any = torch.cuda.Event
                self._arrived = event()
                self._arrived.record()

    def received(self) -> float:
        """The number; waits until it has arrived."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return float(self._number)
