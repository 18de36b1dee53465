r"""The intrinsic dimension of a network, :math:`d = \mathrm{Tr}\, G / \|G\|`.

:math:`G = E\, J^\top H J` is the Gauss–Newton matrix: :math:`J` the Jacobian of the outputs with
respect to the parameters, :math:`H` the Hessian of the loss with respect to the outputs. For a
linear model with squared loss it is the covariance :math:`K` of the features, and this is the
:math:`d` of the theory. :math:`G` is never formed: a product :math:`G v` takes one forward-mode and
one reverse-mode pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Iterable

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jvp, vjp

from ._params import Loss, batches, device_of, frozen, trainable


@dataclass(frozen=True)
class IntrinsicDimension:
    """Tr G/‖G‖ with the parts it is made of, and how well each is known."""

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
    mode: str


class GaussNewton:
    """The linear operator v ↦ G v on flat vectors, over a fixed set of batches."""

    def __init__(self, model: nn.Module, loss: Loss, data: list[tuple[Tensor, Tensor]]):
        self.model, self.loss, self.data = model, loss, data
        self.parameters = {name: p.detach() for name, p in trainable(model).items()}
        self.buffers = {name: b.detach().clone() for name, b in model.named_buffers()}
        self.frozen = {
            name: p.detach() for name, p in model.named_parameters() if not p.requires_grad
        }
        self.size = sum(p.numel() for p in self.parameters.values())
        self.samples = sum(len(x) for x, _ in data)
        first = next(iter(self.parameters.values()))
        self.dtype, self.device = first.dtype, first.device

    def __matmul__(self, v: Tensor) -> Tensor:
        tangent = self._unflatten(v)
        total = torch.zeros_like(v)
        for inputs, targets in self.data:
            # Forward mode gives J v, the loss alone H (J v), reverse mode the rest.
            def outputs(parameters):
                # Batch norm in train mode writes to its buffers: it writes to copies.
                state = {name: b.clone() for name, b in self.buffers.items()}
                return functional_call(
                    self.model, {**parameters, **self.frozen, **state}, (inputs,)
                )

            z, jv = jvp(outputs, (self.parameters,), (tangent,))
            # H is symmetric, so its product needs reverse mode only, which every loss has.
            _, curve = vjp(grad(lambda z: self.loss(z, targets)), z.detach())
            (hjv,) = curve(jv)
            _, pull = vjp(outputs, self.parameters)
            (out,) = pull(hjv)
            flat = torch.cat([out[name].reshape(-1) for name in self.parameters])
            # The loss is a mean over its batch; the batches may differ in size.
            total += flat * (len(inputs) / self.samples)
        return total

    def _unflatten(self, v: Tensor) -> dict[str, Tensor]:
        parts = torch.split(v, [p.numel() for p in self.parameters.values()])
        return {
            name: part.reshape(p.shape)
            for part, (name, p) in zip(parts, self.parameters.items())
        }


def intrinsic_dimension(
    model: nn.Module,
    loss: Loss,
    loader: Iterable,
    *,
    probes: int = 32,
    iterations: int = 100,
    tolerance: float = 1e-3,
    mode: str = "eval",
    seed: int = 0,
) -> IntrinsicDimension:
    """d = Tr G/‖G‖ of the Gauss–Newton matrix of ``loss`` over all batches of ``loader``.

    The trace is Hutchinson's, with ``probes`` random signs and its standard error; the norm is by
    Lanczos, until value and residual have both converged to ``tolerance`` (relative), or
    ``iterations`` products. The data is read once and kept, and the probes are seeded: the same call
    gives the same numbers. ``mode`` is "eval" (batch norm uses its running statistics, so samples
    do not see each other) or "train".

    >>> import torch
    >>> from toclip.torch import intrinsic_dimension
    >>> x = torch.eye(4).repeat(8, 1) * 2.0        # K = E x x^T = identity, so d = 4
    >>> half_square = lambda z, y: 0.5 * (z - y).square().sum(1).mean()
    >>> found = intrinsic_dimension(torch.nn.Linear(4, 1, bias=False), half_square, [(x, x[:, :1])])
    >>> round(found.dimension, 3)
    4.0
    """
    if probes < 2:
        raise ValueError(f"probes is {probes}; at least 2 are needed for a standard error")
    if iterations < 2:
        raise ValueError(f"iterations is {iterations}; at least 2 are needed")
    data = list(batches(loader, device_of(model)))
    if not data:
        raise ValueError("the loader is empty; give at least one batch (inputs, targets)")
    with frozen(model, mode):
        operator = GaussNewton(model, loss, data)
        trace, trace_stderr = hutchinson_trace(operator, probes, seed)
        norm, residual, used, converged = lanczos_norm(operator, iterations, tolerance, seed)
    if not (math.isfinite(trace) and math.isfinite(norm)):
        raise ValueError("the Gauss-Newton matrix has entries that are not finite")
    if norm <= 0.0:
        raise ValueError("the Gauss-Newton matrix is zero here, so its dimension is not defined")
    return IntrinsicDimension(
        trace / norm, trace_stderr / norm, trace, trace_stderr, norm, residual, used, converged,
        probes, operator.samples, mode,
    )


def hutchinson_trace(operator: GaussNewton, probes: int, seed: int) -> tuple[float, float]:
    """Tr G and its standard error, from products with random signs."""
    generator = torch.Generator().manual_seed(seed)
    values = []
    for _ in range(probes):
        signs = torch.randint(0, 2, (operator.size,), generator=generator)
        v = (2 * signs - 1).to(operator.device, operator.dtype)
        values.append(float(torch.dot(v, operator @ v)))
    found = torch.tensor(values, dtype=torch.float64)
    return float(found.mean()), float(found.std()) / math.sqrt(probes)


def lanczos_norm(
    operator: GaussNewton, iterations: int, tolerance: float, seed: int
) -> tuple[float, float, int, bool]:
    """‖G‖ by Lanczos: (value, relative residual, products used, converged)."""
    generator = torch.Generator().manual_seed(seed + 1)
    q = torch.randn(operator.size, generator=generator).to(operator.device, operator.dtype)
    basis = [q / torch.linalg.vector_norm(q)]
    diagonal: list[float] = []
    beside: list[float] = []
    value, residual = 0.0, math.inf
    for step in range(1, min(iterations, operator.size) + 1):
        w = operator @ basis[-1]
        diagonal.append(float(torch.dot(w, basis[-1])))
        # Twice, because in single precision one pass leaves the basis visibly skew.
        for _ in range(2):
            for q in basis:
                w = w - torch.dot(w, q) * q
        beta = float(torch.linalg.vector_norm(w))
        small = torch.diag(torch.tensor(diagonal, dtype=torch.float64))
        if beside:
            off = torch.tensor(beside, dtype=torch.float64)
            small += torch.diag(off, 1) + torch.diag(off, -1)
        ritz, vectors = torch.linalg.eigh(small)
        before, value = value, float(ritz[-1])
        if value <= 0.0:
            return 0.0, 0.0, step, True
        # For the Ritz vector the residual is the next off-diagonal times its last entry.
        residual = beta * abs(float(vectors[-1, -1])) / value
        settled = abs(value - before) <= tolerance * value and residual <= tolerance
        if settled or beta <= 1e-7 * value:
            return value, residual, step, True
        beside.append(beta)
        basis.append(w / beta)
    return value, residual, len(diagonal), False
