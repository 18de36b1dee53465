"""Parameters of a model as one flat vector, and gradients of its loss."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable

import torch
from torch import Tensor, nn

from ._data import Inputs, Named, apply, described

Loss = Callable[[Tensor, Tensor], Tensor]


def unwrapped(model: Any) -> nn.Module:
    """The model without wrappers."""
    if not isinstance(model, nn.Module):
        raise ValueError(f"the model is {model!r:.60}; it must be a torch.nn.Module")
    model = getattr(model, "_orig_mod", model)  # torch.compile
    if isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        raise ValueError(
            f"the model is wrapped in {type(model).__name__}; pass model.module (each rank then "
            "measures its own batches)"
        )
    if any(hasattr(p, "full_tensor") or hasattr(p, "_fsdp_flattened") for p in model.parameters()):
        raise ValueError("the model is sharded; measure a complete copy on one device")
    return model


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters that take gradients, by name."""
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise ValueError(
            "the model has no parameter with requires_grad=True, so it has no gradient to measure"
        )
    for name, p in found.items():
        if isinstance(p, nn.parameter.UninitializedParameter):
            raise ValueError(f"the parameter {name} has no shape yet; run the model on a batch first")
        if not p.is_floating_point():
            raise ValueError(f"the parameter {name} is {p.dtype}; parameters must be real numbers")
    return found


def device_of(model: nn.Module) -> torch.device:
    """The device of the model; all trainable parameters must be on the same one."""
    devices = {p.device for p in trainable(model).values()}
    if len(devices) > 1:
        names = ", ".join(sorted(str(d) for d in devices))
        raise ValueError(f"the parameters of the model are on several devices ({names}); move them to one")
    device = devices.pop()
    if device.type == "meta":
        raise ValueError("the model is on the device meta and has no weights; load them first")
    return device


def flatten(tensors: Iterable[Tensor | None], like: Iterable[Tensor]) -> Tensor:
    """One vector; the gradient is zero for a parameter that does not affect the loss."""
    parts = [
        (torch.zeros_like(p) if t is None else whole(t)).reshape(-1) for t, p in zip(tensors, like)
    ]
    return torch.cat(parts)


def whole(t: Tensor) -> Tensor:
    """The dense tensor; the gradient of an embedding may be sparse."""
    return t if t.layout == torch.strided else t.to_dense()


@contextlib.contextmanager
def frozen(model: nn.Module, mode: str, dropout: bool = True) -> Iterator[None]:
    """The model in ``mode`` ("train" or "eval"); restored afterwards.

    In train mode batch norm changes its running statistics; they are restored too. Without
    ``dropout``, only the normalisation layers are in train mode.
    """
    if mode not in ("train", "eval"):
        raise ValueError(f'mode is {mode!r}; it must be "train" or "eval"')
    modes = {module: module.training for module in model.modules()}
    saved = {name: b.detach().clone() for name, b in model.named_buffers()}
    model.train(mode == "train" and dropout)
    if mode == "train" and not dropout:
        for module in model.modules():
            if isinstance(module, nn.modules.batchnorm._NormBase):
                module.train()
    try:
        yield
    finally:
        for module, was in modes.items():
            module.training = was
        with torch.no_grad():
            for name, buffer in model.named_buffers():
                if name in saved:
                    buffer.copy_(saved[name])


def normalised_by(model: nn.Module) -> str:
    """Where batch norm takes mean and variance from.

    "none" without batch norm; "batch" for the current mini-batch; "running" for running averages
    from training, or "initial" if there was no training yet and they are zero and one.
    """
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return "none"
    if any(m.training or m.running_mean is None for m in norms):
        return "batch"
    seen = [m.num_batches_tracked for m in norms]
    return "initial" if all(n is not None and int(n) == 0 for n in seen) else "running"


def outputs_of(forward: Callable[..., Any], inputs: Inputs, index: int) -> Any:
    """The outputs of the model for a batch."""
    try:
        return apply(forward, inputs)
    except torch.cuda.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"batch {index} of the loader: the model does not accept {described(inputs)}: {error}"
        ) from error


def loss_of(loss: Loss, outputs: Any, targets: Tensor, index: int) -> Tensor:
    """The loss of a batch, checked to be one number."""
    if not callable(loss) or isinstance(loss, type):
        raise ValueError(
            f"the loss is {loss!r:.60}; it must be a function of (outputs, targets), such as "
            "torch.nn.functional.cross_entropy or torch.nn.CrossEntropyLoss()"
        )
    try:
        value = loss(outputs, targets)
    except torch.cuda.OutOfMemoryError:
        raise
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError) as error:
        what = f"a {type(outputs).__name__}"
        if isinstance(outputs, Tensor):
            what = f"outputs of shape {tuple(outputs.shape)} and type {outputs.dtype}"
        raise ValueError(
            f"batch {index} of the loader: the loss does not accept {what} with targets of shape "
            f"{tuple(targets.shape)} and type {targets.dtype}: {error}"
        ) from error
    if not isinstance(value, Tensor):
        raise ValueError(
            f"the loss returned {value!r:.60}; it must be a tensor with one number, not detached "
            "from the model"
        )
    if value.dim() != 0:
        raise ValueError(
            f"the loss returned a tensor of shape {tuple(value.shape)}; it must be one number "
            "(the mean over the batch)"
        )
    if not math.isfinite(float(value.detach())):
        raise ValueError(
            f"batch {index} of the loader: the loss is {float(value.detach())}, which is not finite"
        )
    return value


def _own_loss(model: nn.Module, inputs: Inputs, targets: Tensor, index: int) -> tuple[Any, Tensor]:
    """The outputs of a model that computes its loss from the labels, and that loss."""
    if not isinstance(inputs, Named):
        raise ValueError("loss = None needs batches that are dictionaries with labels, as of Hugging Face")
    whole_batch = Named({**inputs.parts, inputs.labels: targets}, inputs.labels)
    found: Any = None

    def forward(**parts: Tensor) -> Any:
        nonlocal found
        found = model(**parts)
        return found

    outputs = outputs_of(forward, whole_batch, index)
    value = found.get("loss") if isinstance(found, Mapping) else getattr(found, "loss", None)
    return outputs, loss_of(lambda z, y: value, outputs, targets, index)  # type: ignore[arg-type, return-value]


def gradient(
    model: nn.Module, loss: Loss | None, inputs: Inputs, targets: Tensor, index: int
) -> tuple[Tensor, Tensor, Any]:
    """The loss of one batch, its gradient as one vector, and the outputs; ``.grad`` does not change.

    Without ``loss`` it is that of the model itself.
    """
    parameters = list(trainable(model).values())
    with torch.inference_mode(False), torch.enable_grad():
        if loss is None:
            outputs, value = _own_loss(model, inputs, targets, index)
        else:
            outputs = outputs_of(model, inputs, index)
            value = loss_of(loss, outputs, targets, index)
        if not value.requires_grad:
            raise ValueError("the loss does not depend on the model's parameters")
        grads = torch.autograd.grad(value, parameters, allow_unused=True)
    if all(g is None for g in grads):
        raise ValueError("the loss does not depend on the model's parameters")
    flat = flatten(grads, parameters)
    # Half precision is enough for a gradient, but not for the sum of many.
    if flat.dtype not in (torch.float32, torch.float64):
        flat = flat.float()
    if not bool(torch.isfinite(flat).all()):
        raise ValueError(f"batch {index} of the loader has a gradient that is not finite")
    return value.detach(), flat, outputs
