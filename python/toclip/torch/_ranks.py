"""The gradients of the ranks of DDP before they are averaged: independent ones at the same weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from ._norms import inner_product

__all__ = ["RankGradients"]


class RankGradients:
    """Keeps a copy of this rank's own gradient at every so many steps."""

    def __init__(self, model: Any, every: int) -> None:
        if not isinstance(model, DistributedDataParallel):
            kind = type(model).__name__
            raise ValueError(f"model must be wrapped in DistributedDataParallel, not a {kind}")
        self._group = model.process_group
        self._world = torch.distributed.get_world_size(self._group)
        if self._world < 2:
            raise ValueError("there is only 1 rank, whose gradient can be compared with no other")
        self._every, self._steps = every, 0
        self._own: dict[Tensor, Tensor] = {}
        model.register_comm_hook(self, _keep_and_average)

    def keep(self, bucket: Any) -> None:
        """Copies the gradients of a bucket, if this step is to be compared."""
        if self._steps % self._every == 0:
            pairs = zip(bucket.parameters(), bucket.gradients(), strict=True)
            self._own |= {p: g.detach().clone() for p, g in pairs}

    def compared(self, parameters: list[Tensor], scale: float) -> tuple[Tensor, Tensor] | None:
        """The norm of the other ranks' gradient, and its inner product with this rank's own.

        ``scale`` is that of a GradScaler, by which the own gradient was multiplied when it was kept.
        """
        own, self._own = self._own, {}
        self._steps += 1
        mine, others = [], []
        for p in parameters:
            if p in own and p.grad is not None:
                mine.append(own[p] / scale)
                # The gradient is the mean over ranks.
                others.append((self._world * p.grad - mine[-1]) / (self._world - 1))
        if not mine:
            return None
        return inner_product(others, others).sqrt(), inner_product(others, mine)  # type: ignore[arg-type]


# DDP does not accept annotations that are strings.
def _keep_and_average(state, bucket):  # type: ignore[no-untyped-def]
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    state.keep(bucket)
    return allreduce_hook(state._group, bucket)
