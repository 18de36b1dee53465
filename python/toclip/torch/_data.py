"""Reads and checks the batches of a loader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LABELS = ("labels", "label")


@dataclass(frozen=True)
class Named:
    """The inputs of a batch by the names of the model's arguments, as Hugging Face has them."""

    parts: dict[str, Tensor]
    labels: str

    def __len__(self) -> int:
        return len(next(iter(self.parts.values())))


Inputs = Tensor | Named


def apply(model: Callable[..., Any], inputs: Inputs) -> Any:
    """The outputs of the model: the logits, where it returns them among others."""
    if isinstance(inputs, Tensor):
        return model(inputs)
    found = model(**inputs.parts)
    logits = found.get("logits") if isinstance(found, Mapping) else getattr(found, "logits", None)
    return found if logits is None else logits


def described(inputs: Inputs) -> str:
    """The shape and type of inputs, for errors."""
    if isinstance(inputs, Tensor):
        return f"inputs of shape {tuple(inputs.shape)} and type {inputs.dtype}"
    return ", ".join(f"{name} of shape {tuple(x.shape)}" for name, x in inputs.parts.items())


def batches(loader: Iterable[Any], device: torch.device) -> Iterator[tuple[Inputs, Tensor]]:
    """Pairs (inputs, targets) on the device of the model; anything else is a ``ValueError``.

    A dictionary with labels, as of Hugging Face, is such a pair.
    """
    if not isinstance(loader, Iterable) and not hasattr(loader, "__getitem__"):
        raise ValueError(
            f"the loader is {loader!r:.60}; expected a DataLoader or a list of batches "
            "(inputs, targets)"
        )
    for index, batch in enumerate(loader):
        labels = next((name for name in LABELS if isinstance(batch, Mapping) and name in batch), None)
        if labels is not None and len(batch) > 1:
            yield _named(batch, labels, index, device)
            continue
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


def _named(
    batch: Mapping[str, Any], labels: str, index: int, device: torch.device
) -> tuple[Named, Tensor]:
    parts = {str(name): _tensor(part, index).to(device, non_blocking=True) for name, part in batch.items()}
    lengths = {name: len(part) if part.dim() else 0 for name, part in parts.items()}
    if len(set(lengths.values())) > 1 or 0 in lengths.values():
        listed = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise ValueError(
            f"batch {index} of the loader has parts of different lengths ({listed}), or empty ones; expected "
            "the same number of samples in each"
        )
    targets = parts.pop(labels)
    return Named(parts, labels), targets


def _pair(batch: Any, index: int) -> Any:
    if isinstance(batch, (tuple, list)):
        if len(batch) == 2:
            return batch
        what = f"has {len(batch)} part{'' if len(batch) == 1 else 's'}"
    elif isinstance(batch, Tensor):
        what = "is one tensor"
    elif isinstance(batch, Mapping):
        what = f"is a dictionary ({', '.join(map(str, list(batch)[:5]))})"
    else:
        what = f"is {batch!r:.60}"
    raise ValueError(
        f"batch {index} of the loader {what}; each batch must be a pair (inputs, targets): "
        "[(inputs, targets) for ... in loader] makes them (or a dictionary with labels)"
    )


def _tensor(part: Any, index: int) -> Tensor:
    try:
        return torch.as_tensor(part)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"batch {index} of the loader has {part!r:.60} in it, which is not a tensor; each batch must "
            "be a pair of tensors (inputs, targets)"
        ) from None
