"""Losses as means over a batch."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def half_squares(outputs: Tensor, labels: Tensor) -> Tensor:
    """Half the squared distance to the one-hot label: P of the theory, with C = 10 outputs."""
    wanted = F.one_hot(labels, outputs.shape[1]).to(outputs.dtype)
    return 0.5 * (outputs - wanted).square().sum(1).mean()


LOSSES = {"mse": half_squares, "cross_entropy": F.cross_entropy}
