"""Losses as means over a batch."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor


def squares(outputs: Tensor, labels: Tensor) -> Tensor:
    """The squared distance to the one-hot label, a mean over samples and outputs.

    The paper's base rate of 0.05 diverges within twenty steps on half the *sum* over the ten
    outputs, which is five times as large; so this is the one its rates are meant for.
    """
    wanted = F.one_hot(labels, outputs.shape[1]).to(outputs.dtype)
    return F.mse_loss(outputs, wanted)


LOSSES = {"mse": squares, "cross_entropy": F.cross_entropy}
