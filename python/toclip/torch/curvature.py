r"""The intrinsic dimension of a network, :math:`d = \mathrm{Tr}\, G / \|G\|`.

:math:`G = E\, J^\top H J` is the Gauss–Newton matrix: :math:`J` the Jacobian of the outputs with
respect to the parameters, :math:`H` the Hessian of the loss with respect to the outputs. For a
linear model with squared loss it is the covariance :math:`K` of the features, and this is the
:math:`d` of the theory. :math:`G` is never formed: a product :math:`G v` takes one forward-mode and
one reverse-mode pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp, vjp

from ..results import Table
from ._attention import plain_attention, plain_recurrence
from ._check import at_least
from ._data import Inputs, apply, batches
from ._params import (
    Loss, device_of, frozen, loss_of, normalised_by, outputs_of, trainable, unwrapped, whole
)


@dataclass(frozen=True, eq=False, repr=False)
class IntrinsicDimension(Table):
    """Tr G/‖G‖, with trace, norm and their errors.

    ``batch_norm`` is where batch norm took mean and variance from: "none" without batch norm,
    "batch" (the current mini-batch of ``batch_size`` samples), "running" (running averages from
    training), or "initial" (running averages before any training: zero and one).
    """

    dimension: float
    dimension_stderr: float
    trace: float
    trace_stderr: float
    norm: float
    norm_residual: float
    iterations: int
    converged: bool
    probes: int
    samples: int
    batch_size: int
    mode: str
    batch_norm: str


class GaussNewton:
    """The linear operator v ↦ G v on flat vectors, over a fixed set of batches."""

    def __init__(self, model: nn.Module, loss: Loss, data: list[tuple[Inputs, Tensor]]):
        self.model, self.loss, self.data = unwrapped(model), loss, data
        if not data:
            raise ValueError(
                "the loader is empty; expected at least one batch (inputs, targets) (a generator can be "
                "used only once)"
            )
        self.parameters = {name: p.detach() for name, p in trainable(self.model).items()}
        for name, p in self.parameters.items():
            if p.dtype not in (torch.float32, torch.float64):
                raise ValueError(
                    f"the parameter {name} is {p.dtype}, which is not precise enough; measure "
                    "copy.deepcopy(model).float()"
                )
        self.buffers = {name: b.detach().clone() for name, b in self.model.named_buffers()}
        self.frozen = {
            name: p.detach() for name, p in self.model.named_parameters() if not p.requires_grad
        }
        self.size = sum(p.numel() for p in self.parameters.values())
        self.samples = sum(len(x) for x, _ in data)
        first = next(iter(self.parameters.values()))
        self.dtype, self.device = first.dtype, first.device

    def outputs(self, parameters: dict[str, Tensor], inputs: Inputs) -> Any:
        """The outputs of the model with these parameters; the model does not change."""
        # Batch norm in train mode writes to its buffers; here these are copies.
        state = {name: b.clone() for name, b in self.buffers.items()}
        everything = {**parameters, **self.frozen, **state}

        def call(*args: Any, **named: Any) -> Any:
            return functional_call(self.model, everything, args, named)

        with plain_recurrence(self.model):
            return apply(call, inputs)

    def _as_function(self, inputs: Inputs) -> Any:
        """The model at its own parameters."""
        return lambda *args, **named: self.outputs(self.parameters, inputs)

    def check(self) -> None:
        """Raises a ``ValueError`` if model and loss have no Gauss-Newton matrix."""
        for index, (inputs, targets) in enumerate(self.data):
            with torch.no_grad():
                z = outputs_of(self._as_function(inputs), inputs, index)
                if not isinstance(z, Tensor):
                    raise ValueError(
                        f"the model returned a {type(z).__name__}; it must return one tensor (wrap it in a "
                        "module that does)"
                    )
                loss_of(self.loss, z, targets, index)
                if index == 0:
                    again = self.outputs(self.parameters, inputs)
                    # The order of additions changes the last digits, dropout the first.
                    if float((again - z).abs().max()) > 1e-2 * float(z.abs().max()):
                        raise ValueError(
                            "the outputs of the model change from call to call (dropout?), so its Jacobian is "
                            "not defined"
                        )

    def __matmul__(self, v: Tensor) -> Tensor:
        tangent = self._unflatten(v)
        total = torch.zeros_like(v)
        for inputs, targets in self.data:
            try:
                with plain_attention():
                    out = self._product(tangent, inputs, targets)
            except torch.cuda.OutOfMemoryError:
                raise
            except RuntimeError as error:  # and NotImplementedError, which is one
                # The first line names the operation; the rest asks for a report to PyTorch.
                reason = (str(error).splitlines() or ["?"])[0]
                raise ValueError(
                    "the model or the loss has an operation without the required derivatives "
                    f"(forward mode through the model, twice backward through the loss): {reason}"
                ) from error
            flat = torch.cat([whole(out[name]).reshape(-1) for name in self.parameters])
            # The loss is a mean over its batch; the batches may differ in size.
            total += flat * (len(inputs) / self.samples)
        return total

    def _product(
        self, tangent: dict[str, Tensor], inputs: Inputs, targets: Tensor
    ) -> dict[str, Tensor]:
        def outputs(parameters: dict[str, Tensor]) -> Tensor:
            return self.outputs(parameters, inputs)

        def value(z: Tensor) -> Tensor:
            return self.loss(z, targets)

        # Forward mode gives J v, the loss alone H (J v), reverse mode the rest. H is symmetric, so
        # its product needs reverse mode only, which every loss has.
        z, jv = jvp(outputs, (self.parameters,), (tangent,))[:2]
        curve = vjp(grad(value), z.detach())[1]
        pull = vjp(outputs, self.parameters)[1]
        out: dict[str, Tensor] = pull(*curve(jv))[0]
        return out

    def _unflatten(self, v: Tensor) -> dict[str, Tensor]:
        parts = torch.split(v, [p.numel() for p in self.parameters.values()])
        return {
            name: part.reshape(p.shape).to(p.dtype)
            for part, (name, p) in zip(parts, self.parameters.items())
        }


def intrinsic_dimension(
    model: nn.Module,
    loss: Loss,
    loader: Iterable[Any],
    *,
    probes: int = 32,
    iterations: int = 100,
    tolerance: float = 1e-3,
    mode: str = "eval",
    seed: int = 0,
) -> IntrinsicDimension:
    """d = Tr G/‖G‖ of the Gauss–Newton matrix of ``loss`` over all batches of ``loader``.

    ``loader`` returns pairs (inputs, targets), or dictionaries with ``labels``, as of Hugging Face.
    ``loss(outputs, targets)`` is the mean over a batch. The norm is by Lanczos, until value and
    residual have both converged to ``tolerance`` (relative), or ``iterations`` products. The trace
    is Hutchinson's estimate with ``probes`` random sign vectors, and its standard error; the part of G
    that Lanczos found is subtracted from the probes and added exactly, which reduces their variance.
    The data is read once and kept, and the probes are seeded: the same call returns the same numbers.

    ``mode`` is that of batch norm, and part of the result: "eval" (running statistics, so that
    samples do not affect each other) or "train" (statistics of the batch, so the result depends on
    the size of the loader's batches). Dropout is off in both. Weights, gradients and
    running statistics do not change.

    >>> import torch
    >>> from toclip.torch import intrinsic_dimension
    >>> x = torch.eye(4).repeat(8, 1) * 2.0        # K = E x x^T = identity, so d = 4
    >>> half_square = lambda z, y: 0.5 * (z - y).square().sum(1).mean()
    >>> found = intrinsic_dimension(torch.nn.Linear(4, 1, bias=False), half_square, [(x, x[:, :1])])
    >>> round(found.dimension, 3)
    4.0
    """
    probes = at_least(2, probes, "probes", "at least 2 are needed for a standard error")
    iterations = at_least(2, iterations, "iterations", "at least 2 are needed")
    if not (isinstance(tolerance, (int, float)) and 0.0 < tolerance < 1.0):
        raise ValueError(f"tolerance = {tolerance!r} is not allowed: it must be between 0 and 1")
    seed = at_least(0, seed, "seed", "it must be 0 or more")
    model = unwrapped(model)
    data = list(batches(loader, device_of(model)))
    with torch.inference_mode(False), frozen(model, mode, dropout=False):
        operator = GaussNewton(model, loss, data)
        operator.check()
        batch_norm = normalised_by(model)
        found = lanczos(operator, iterations, tolerance, seed)
        if found.norm <= 0.0:
            raise ValueError("the Gauss-Newton matrix is zero, so its dimension is not defined")
        trace, trace_stderr = hutchinson_trace(operator, probes, seed, found)
    if not math.isfinite(trace):
        raise ValueError(NOT_FINITE)
    norm = found.norm
    return IntrinsicDimension(
        trace / norm, trace_stderr / norm, trace, trace_stderr, norm, found.residual,
        found.iterations, found.converged, probes, operator.samples,
        max(len(inputs) for inputs, _ in data), mode, batch_norm,
    )


NOT_FINITE = "the Gauss-Newton matrix has entries that are not finite"


@dataclass(frozen=True)
class Lanczos:
    """‖G‖, and the approximation G ≈ Q T Q^T with a small T."""

    norm: float
    residual: float
    iterations: int
    converged: bool
    basis: list[Tensor]
    small: Tensor

    def excess(self, v: Tensor) -> tuple[float, float]:
        """v^T A v and Tr A for A = Q (T - t) Q^T, t the least eigenvalue of T.

        A is the part of G above its bulk. Random signs are exact for a multiple of the identity,
        which the choice t = 0 would spoil.
        """
        above = self.small - torch.linalg.eigvalsh(self.small)[0] * torch.eye(len(self.small)).double()
        q = torch.tensor([float(torch.dot(v, b)) for b in self.basis], dtype=torch.float64)
        return float(q @ above @ q), float(above.trace())


def hutchinson_trace(
    operator: GaussNewton, probes: int, seed: int, known: Lanczos | None = None
) -> tuple[float, float]:
    """Tr G and its standard error, from products with random signs.

    The ``known`` part of G is subtracted from each product and added exactly. It does not depend on
    the probes, so the estimate stays unbiased.
    """
    generator = torch.Generator().manual_seed(seed)
    values = []
    for _ in range(probes):
        signs = torch.randint(0, 2, (operator.size,), generator=generator)
        v = (2 * signs - 1).to(operator.device, operator.dtype)
        part, whole = known.excess(v) if known is not None else (0.0, 0.0)
        values.append(float(torch.dot(v, operator @ v)) - part + whole)
    found = torch.tensor(values, dtype=torch.float64)
    return float(found.mean()), float(found.std()) / math.sqrt(probes)


def lanczos(operator: GaussNewton, iterations: int, tolerance: float, seed: int) -> Lanczos:
    """‖G‖ by Lanczos, until value and relative residual have converged."""
    # Another seed than the probes of the trace, which must not depend on this start.
    generator = torch.Generator().manual_seed(seed + 1)
    q = torch.randn(operator.size, generator=generator).to(operator.device, operator.dtype)
    basis = [q / torch.linalg.vector_norm(q)]
    diagonal: list[float] = []
    beside: list[float] = []
    value = 0.0
    while True:
        w = operator @ basis[-1]
        diagonal.append(float(torch.dot(w, basis[-1])))
        # Twice, because one pass in single precision leaves the basis far from orthogonal.
        for _ in range(2):
            for q in basis:
                w = w - torch.dot(w, q) * q
        beta = float(torch.linalg.vector_norm(w))
        if not math.isfinite(diagonal[-1] + beta):
            raise ValueError(NOT_FINITE)
        off = torch.tensor(beside, dtype=torch.float64)
        small = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
        small += torch.diag(off, 1) + torch.diag(off, -1) if beside else 0.0
        ritz, vectors = torch.linalg.eigh(small)
        before, value = value, float(ritz[-1])
        step = len(diagonal)
        if value <= 0.0:
            return Lanczos(0.0, 0.0, step, True, basis, small)
        # For the Ritz vector the residual is the next off-diagonal times its last entry.
        residual = beta * abs(float(vectors[-1, -1])) / value
        settled = abs(value - before) <= tolerance * value and residual <= tolerance
        settled = settled or beta <= 1e-7 * value
        if settled or step >= min(iterations, operator.size):
            return Lanczos(value, residual, step, settled, basis, small)
        beside.append(beta)
        basis.append(w / beta)
