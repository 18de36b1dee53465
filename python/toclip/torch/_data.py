"""Reads and checks the batches of a loader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor


def batches(loader: Iterable[Any], device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs (inputs, targets) on the device of the model; anything else is a ``ValueError``."""
    if not isinstance(loader, Iterable) and not hasattr(loader, "__getitem__"):
        raise ValueError(
            f"the loader is {loader!r:.60}; expected a DataLoader or a list of batches "
            "(inputs, targets)"
        )
    for index, batch in enumerate(loader):
        inputs, targets = (_tensor(part, index) for part in _pair(batch, index))
        if inputs.dim() == 0 or targets.dim() == 0:
            raise ValueError(
                f"batch {index} of the loader is a single sample; wrap the data set in a DataLoader, which "
                "returns batches"
            )
        if len(inputs) == 0:
            raise ValueError(f"batch {index} of the loader is empty")
        if len(inputs) != len(targets):
            raise ValueError(
                f"batch {index} of the loader has {len(inputs)} inputs but {len(targets)} targets"
            )
        yield inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)


def _pair(batch: Any, index: int) -> Any:
    if isinstance(batch, (tuple, list)):
        if len(batch) == 2:
            return batch
        what = f"has {len(batch)} part{'' if len(batch) == 1 else 's'}"
    elif isinstance(batch, Tensor):
        what = "is one tensor"
    elif isinstance(batch, dict):
        what = f"is a dictionary ({', '.join(map(str, list(batch)[:5]))})"
    else:
        what = f"is {batch!r:.60}"
    raise ValueError(
        f"batch {index} of the loader {what}; each batch must be a pair (inputs, targets): "
        "[(inputs, targets) for ... in loader] makes them"
    )


def _tensor(part: Any, index: int) -> Tensor:
    try:
        return torch.as_tensor(part)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"batch {index} of the loader has {part!r:.60} in it, which is not a tensor; each batch must "
            "be a pair of tensors (inputs, targets)"
        ) from None
