"""Parameters of a model as one flat vector, and gradients of its loss on it."""

from __future__ import annotations

import contextlib
from typing import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn

Loss = Callable[[Tensor, Tensor], Tensor]


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that take gradients, by name."""
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise ValueError(
            "the model has no parameter with requires_grad=True, so it has no gradient to measure"
        )
    return found


def device_of(model: nn.Module) -> torch.device:
    """Where the model lives; all its trainable parameters must be on one device."""
    devices = {p.device for p in trainable(model).values()}
    if len(devices) > 1:
        names = ", ".join(sorted(str(d) for d in devices))
        raise ValueError(f"the model's parameters are on several devices ({names}); move it to one")
    return devices.pop()


def flatten(tensors: Iterable[Tensor | None], like: Iterable[Tensor]) -> Tensor:
    """One vector; a parameter that the loss does not reach has the gradient zero."""
    parts = [
        (torch.zeros_like(p) if t is None else t).reshape(-1) for t, p in zip(tensors, like)
    ]
    return torch.cat(parts)


def batches(loader: Iterable, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    """(inputs, targets) on the model's device; anything else is refused with a sentence."""
    for index, batch in enumerate(loader):
        if not (isinstance(batch, (tuple, list)) and len(batch) == 2):
            raise ValueError(
                f"batch {index} of the loader is a {type(batch).__name__}; each batch must be a "
                "pair (inputs, targets)"
            )
        inputs, targets = (torch.as_tensor(part) for part in batch)
        if len(inputs) == 0:
            raise ValueError(f"batch {index} of the loader is empty")
        if len(inputs) != len(targets):
            raise ValueError(
                f"batch {index} of the loader has {len(inputs)} inputs but {len(targets)} targets"
            )
        yield inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)


@contextlib.contextmanager
def frozen(model: nn.Module, mode: str) -> Iterator[None]:
    """The model in ``mode`` ("train" or "eval"), left as it was found.

    In train mode a batch norm would move its running statistics; they are put back, because a
    measurement must not change what it measures.
    """
    if mode not in ("train", "eval"):
        raise ValueError(f'mode is "{mode}"; it must be "train" or "eval"')
    modes = {module: module.training for module in model.modules()}
    saved = {name: b.detach().clone() for name, b in model.named_buffers()}
    model.train(mode == "train")
    try:
        yield
    finally:
        for module, was in modes.items():
            module.training = was
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                buffer.copy_(saved[name])


def gradient(model: nn.Module, loss: Loss, inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of one batch and its gradient as one vector; ``.grad`` is left alone."""
    parameters = list(trainable(model).values())
    outputs = model(inputs)
    value = loss(outputs, targets)
    if value.dim() != 0:
        raise ValueError(
            f"the loss returned a tensor of shape {tuple(value.shape)}; it must be one number "
            "(the mean over the batch)"
        )
    if not value.requires_grad:
        raise ValueError("the loss does not depend on the model's parameters")
    grads = torch.autograd.grad(value, parameters, allow_unused=True)
    return value.detach(), flatten(grads, parameters)
