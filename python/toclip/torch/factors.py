r"""Reduction factors of a network at fixed weights, by three estimators.

With :math:`g` the gradient of a mini-batch, :math:`G = \|g\|` and a threshold :math:`\tau`,

* ``fraction``: :math:`P(G \le \tau)`, the estimate of the paper, valid for single samples;
* ``batch``: :math:`P(G \le \tau) + (1 - 1/N)\, E[\tau/G; G > \tau]`, with :math:`N = B C` residual
  components in a batch of :math:`B` samples and :math:`C` outputs. It assumes that the norm of a
  batch gradient is independent of its direction;
* ``direct``: :math:`\langle E\,\mathrm{clip}\,g, E g\rangle / \|E g\|^2`, which makes no assumption.

The direct form divides two inner products of *means*, and the mean of finitely many gradients has
a squared norm that is too large by its own variance. So means are kept over several blocks of
batches, and only products of different blocks, which are independent, are used.

The batches are read twice: first for the mean gradient of each block, then for the product of every
gradient with these means. A product is one number, which the clipped gradient only scales, so thresholds
cost no memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Mapping, Sequence, overload

import numpy as np
import torch
from torch import Tensor, nn

from ..results import Table
from ._check import at_least, threshold_list
from ._data import batches
from ._params import Loss, device_of, frozen, gradient, trainable, unwrapped

ESTIMATORS = ("fraction", "batch", "direct")


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Table):
    """A value and its standard error."""

    value: float
    stderr: float

    def interval(self, z: float = 1.96) -> tuple[float, float]:
        """``value`` ± ``z`` standard errors."""
        return self.value - z * self.stderr, self.value + z * self.stderr


@dataclass(frozen=True, eq=False, repr=False)
class Row(Table):
    """The factors at one threshold; ``mu``, ``csc`` and ``ccc`` have one entry per estimator."""

    threshold: float
    clip_fraction: Estimate
    nu: Estimate
    mu: dict[str, Estimate]
    csc: dict[str, Estimate]
    ccc: dict[str, Estimate]

    def columns(self) -> dict[str, np.ndarray]:
        """One row: each estimate with its standard error."""
        found = {"threshold": self.threshold}
        for name in ("clip_fraction", "nu"):
            one: Estimate = getattr(self, name)
            found |= {name: one.value, f"{name}_stderr": one.stderr}
        for name in ("mu", "csc", "ccc"):
            for estimator, estimate in getattr(self, name).items():
                found[f"{name}_{estimator}"] = estimate.value
                found[f"{name}_{estimator}_stderr"] = estimate.stderr
        return {name: np.array([value]) for name, value in found.items()}


@dataclass(frozen=True, eq=False, repr=False)
class ReductionFactors(Table):
    """The result of :func:`reduction_factors`; as a table it has one row per threshold."""

    rows: list[Row]
    norms: list[float]
    loss: float
    gradient_norm: float
    batch_size: int
    outputs: int
    mode: str
    group: str = "all"

    def columns(self) -> dict[str, np.ndarray]:
        """The columns of :meth:`records`, without the group."""
        records = self.records()
        names = [name for name in (records[0] if records else {}) if name != "group"]
        return {name: np.array([record[name] for record in records]) for name in names}

    def records(self) -> list[dict[str, Any]]:
        """One flat dictionary per threshold, as for ``pandas.DataFrame``."""
        out = []
        for row in self.rows:
            record: dict[str, Any] = {"group": self.group}
            record |= {name: column[0].item() for name, column in row.columns().items()}
            out.append(record)
        return out


@overload
def reduction_factors(
    model: nn.Module,
    loss: Loss | None,
    loader: Iterable[Any],
    thresholds: Sequence[float],
    *,
    outputs: int | None = None,
    groups: None = None,
    blocks: int = 8,
    mode: str = "train",
) -> ReductionFactors: ...


@overload
def reduction_factors(
    model: nn.Module,
    loss: Loss | None,
    loader: Iterable[Any],
    thresholds: Sequence[float],
    *,
    outputs: int | None = None,
    groups: Mapping[str, Callable[[str], bool]],
    blocks: int = 8,
    mode: str = "train",
) -> dict[str, ReductionFactors]: ...


def reduction_factors(
    model: nn.Module,
    loss: Loss | None,
    loader: Iterable[Any],
    thresholds: Sequence[float],
    *,
    outputs: int | None = None,
    groups: Mapping[str, Callable[[str], bool]] | None = None,
    blocks: int = 8,
    mode: str = "train",
) -> ReductionFactors | dict[str, ReductionFactors]:
    """μ (three estimators), ν, CSC and CCC of a model's mini-batch gradients at its present weights.

    ``loader`` returns pairs (inputs, targets), each one mini-batch as in training, or dictionaries with
    ``labels``, as of Hugging Face. ``loss(outputs, targets)`` is the mean over the batch, where the
    outputs are the logits if the model returns several things; ``None`` is the loss that the model
    itself returns. ``outputs`` is C, the number of outputs of a sample; by
    default that of the model's outputs. ``groups`` defines sets of parameters by a test on their name;
    the result is then a dictionary with one entry per group, each clipped separately. ``mode`` is
    "train" or "eval" and part of the result, because batch norm differs between the two. Weights,
    gradients and running statistics do not change. A threshold of ``"none"`` or ``inf`` means no
    clipping.

    The loader is read twice and must return the same batches; a shuffling ``DataLoader`` does, because
    the state of PyTorch's random numbers is restored in between. A loader that can be read only once, such as a
    generator, is kept in memory.

    >>> import torch
    >>> from toclip.torch import reduction_factors
    >>> _ = torch.manual_seed(0)
    >>> x, y = torch.randn(64, 8, 5), torch.randn(64, 8, 1)
    >>> found = reduction_factors(torch.nn.Linear(5, 1), torch.nn.functional.mse_loss,
    ...                           list(zip(x, y)), thresholds=[1.0, 1e6])
    >>> found.rows[1].mu["fraction"].value, round(found.rows[1].mu["direct"].value, 6)
    (1.0, 1.0)
    """
    levels = threshold_list(thresholds, "thresholds")
    blocks = at_least(3, blocks, "blocks", "at least 3 are needed for a standard error")
    if outputs is not None:
        outputs = at_least(1, outputs, "outputs", "a sample has 1 or more outputs")
    model = unwrapped(model)
    members = _members(model, groups)
    device = device_of(model)
    if iter(loader) is loader if isinstance(loader, Iterable) else False:
        loader = list(loader)
    collectors: dict[str, _Collector] = {}
    batch_size = None
    total = 0.0
    with frozen(model, mode):
        rewind = _random_state(device, loader)
        for index, (inputs, targets) in enumerate(batches(loader, device)):
            value, flat, returned = gradient(model, loss, inputs, targets, index)
            if batch_size is None:
                batch_size = len(inputs)
                outputs = outputs or _outputs(returned, batch_size)
                for name, mask in members.items():
                    size = flat.numel() if mask is None else mask.numel()
                    collectors[name] = _Collector(levels, blocks, size, flat)
            elif len(inputs) != batch_size:
                # A short last batch has another distribution; skip it, as drop_last does.
                continue
            total += float(value)
            for name, mask in members.items():
                collectors[name].add(flat if mask is None else flat[mask])
        count = len(next(iter(collectors.values())).norms) if collectors else 0
        if batch_size is None or count < 2 * blocks:
            raise ValueError(
                f"the loader returned {count} full batches; at least {2 * blocks} are needed for "
                f"{blocks} blocks (a generator can be used only once)"
            )
        rewind()
        for index, (inputs, targets) in enumerate(batches(loader, device)):
            if len(inputs) == batch_size:
                _, flat, _ = gradient(model, loss, inputs, targets, index)
                for name, mask in members.items():
                    collectors[name].add_products(flat if mask is None else flat[mask], index)
    assert outputs is not None
    found = {
        name: c.result(total / count, batch_size, outputs, mode, name)
        for name, c in collectors.items()
    }
    return found if groups is not None else found["all"]


def _members(
    model: nn.Module, groups: Mapping[str, Callable[[str], bool]] | None
) -> dict[str, Tensor | None]:
    if groups is None:
        return {"all": None}
    if not isinstance(groups, Mapping) or not all(callable(test) for test in groups.values()):
        raise ValueError(
            'groups must be a dictionary of tests on a name, such as {"head": lambda name: '
            'name.startswith("head.")}'
        )
    if not groups:
        raise ValueError("groups is empty; expected at least one, or None for the whole model")
    parameters = trainable(model)
    offsets, at = {}, 0
    for name, p in parameters.items():
        offsets[name] = (at, at + p.numel())
        at += p.numel()
    members: dict[str, Tensor | None] = {}
    for group, test in groups.items():
        parts = [torch.arange(*offsets[n]) for n in parameters if test(n)]
        if not parts:
            raise ValueError(f'no parameter belongs to the group "{group}"')
        members[group] = torch.cat(parts).to(device_of(model))
    return members


def _outputs(returned: Any, batch_size: int) -> int:
    if not isinstance(returned, Tensor):
        raise ValueError(
            f"the model returned a {type(returned).__name__}, so the number of outputs per sample is "
            "unknown; set outputs"
        )
    return max(1, returned.numel() // batch_size)


def _random_state(device: torch.device, loader: Any) -> Callable[[], None]:
    """Remembers PyTorch's random numbers; the function that is returned goes back to them."""
    own = getattr(loader, "generator", None)
    own = own if isinstance(own, torch.Generator) else None
    kept = None if own is None else own.get_state()
    host = torch.get_rng_state()
    on_device = torch.cuda.get_rng_state(device) if device.type == "cuda" else None

    def rewind() -> None:
        torch.set_rng_state(host)
        if on_device is not None:
            torch.cuda.set_rng_state(on_device, device)
        if own is not None and kept is not None:
            own.set_state(kept)

    return rewind


class _Collector:
    """Mean gradients of blocks of batches, and products of clipped gradients with them."""

    def __init__(self, levels: list[float], blocks: int, size: int, like: Tensor):
        self.levels, self.blocks = levels, blocks
        self.norms: list[float] = []
        self.second = 0
        # Sums are exact enough in double precision, where that is cheap.
        dtype = torch.float64 if size < 10_000_000 and like.device.type != "mps" else like.dtype
        try:
            self.means = torch.zeros((blocks, size), dtype=dtype, device=like.device)
        except RuntimeError as error:
            need = blocks * size * torch.zeros((), dtype=dtype).element_size() / 2**30
            raise ValueError(
                f"{blocks} blocks of {size} parameters need {need:.1f} GiB on {like.device}; use fewer "
                "blocks, or one group at a time"
            ) from error
        # products[k, a, b]: clipped gradients at level k of block a with the mean of block b, summed.
        self.products = torch.zeros((len(levels), blocks, blocks), dtype=torch.float64)

    def _norm(self, g: Tensor) -> float:
        return float(torch.linalg.vector_norm(g.double() if g.numel() < 10_000 else g))

    def add(self, g: Tensor) -> None:
        """The first pass."""
        self.means[len(self.norms) % self.blocks] += g
        self.norms.append(self._norm(g))

    def add_products(self, g: Tensor, index: int) -> None:
        """The second pass, over the same batches."""
        if self.second == 0:
            self.means /= self._counts().to(self.means)[:, None]
        norm, block = self._norm(g), self.second % self.blocks
        known = self.norms[self.second] if self.second < len(self.norms) else math.nan
        # The order of sums on a GPU may differ from one pass to the other.
        if not math.isclose(norm, known, rel_tol=1e-2, abs_tol=1e-12):
            raise ValueError(
                f"batch {index} of the loader has another gradient when the loader is read again; its "
                "batches must be the same both times: pass list(loader), or switch off random "
                "augmentation"
            )
        self.second += 1
        inner = (self.means @ g.to(self.means.dtype)).double().cpu()
        for k, level in enumerate(self.levels):
            self.products[k, block] += (min(1.0, level / norm) if norm > 0.0 else 1.0) * inner

    def _counts(self) -> Tensor:
        whole = [len(self.norms[b :: self.blocks]) for b in range(self.blocks)]
        return torch.tensor(whole, dtype=torch.float64)

    def result(
        self, loss: float, batch_size: int, outputs: int, mode: str, group: str
    ) -> ReductionFactors:
        norms = torch.tensor(self.norms, dtype=torch.float64)
        if not bool((norms > 0.0).any()):
            where = "" if group == "all" else f' in the group "{group}"'
            raise ValueError(f"every gradient{where} is zero, so clipping has nothing to reduce")
        plain = (self.means @ self.means.T).double().cpu()
        clipped = self.products / self._counts()[None, :, None]
        rows = [
            _row(level, norms, plain, clipped[k], self.blocks, batch_size * outputs)
            for k, level in enumerate(self.levels)
        ]
        signal = _off_diagonal(plain, range(self.blocks))
        return ReductionFactors(
            rows, self.norms, loss, math.sqrt(max(signal, 0.0)), batch_size, outputs, mode, group
        )


def _off_diagonal(gram: Tensor, keep: Iterable[int]) -> float:
    """The mean product of two different blocks, without bias from the variance within a block."""
    index = torch.tensor(list(keep))
    part = gram[index][:, index]
    k = len(index)
    return float((part.sum() - part.diagonal().sum()) / (k * (k - 1)))


def _ratio(a: float, b: float) -> float:
    return a / b if b != 0.0 else math.nan


def _row(
    level: float, norms: Tensor, plain: Tensor, clipped: Tensor, blocks: int, components: int
) -> Row:
    def everything(left_out: int | None) -> dict[str, float]:
        keep = [b for b in range(blocks) if b != left_out]
        g = torch.cat([norms[b::blocks] for b in keep])
        over = g > level
        fraction = float((~over).double().mean())
        shrunk = torch.where(over, level / g.clamp_min(1e-300), torch.zeros_like(g)).mean()
        signal = _off_diagonal(plain, keep)
        mu = {
            "fraction": fraction,
            "batch": fraction + (1.0 - 1.0 / components) * float(shrunk),
            "direct": _ratio(_off_diagonal(clipped, keep), signal),
        }
        energy = float((g * g).mean())
        nu = _ratio(float(torch.minimum(g, torch.full_like(g, level)).square().mean()), energy)
        out = {"clip_fraction": 1.0 - fraction, "nu": nu}
        for name, value in mu.items():
            out |= {
                f"mu/{name}": value,
                f"csc/{name}": _ratio(value, nu),
                f"ccc/{name}": _ratio(value**2, nu),
            }
        return out

    whole = everything(None)
    parts = [everything(b) for b in range(blocks)]

    def estimate(key: str) -> Estimate:
        # The jackknife over blocks, for ratios of means and of products of means.
        values = torch.tensor([p[key] for p in parts], dtype=torch.float64)
        spread = (blocks - 1) / blocks * float(((values - values.mean()) ** 2).sum())
        return Estimate(whole[key], math.sqrt(spread))

    by = {
        q: {name: estimate(f"{q}/{name}") for name in ESTIMATORS} for q in ("mu", "csc", "ccc")
    }
    return Row(level, estimate("clip_fraction"), estimate("nu"), by["mu"], by["csc"], by["ccc"])
