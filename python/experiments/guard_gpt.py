"""Many small GPTs on bytes, trained side by side: every parameter has the run as its first dimension.

The runs of a group share the initial weights and the batches, and differ in rule, learning rate and
whether batches are corrupt. They are independent: NaN in one does not reach another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

BYTES = 256


@dataclass(frozen=True)
class Shape:
    """The size of the model and of its batches."""

    layers: int = 4
    width: int = 256
    heads: int = 4
    context: int = 192
    batch: int = 32


class SideBySide:
    """``runs`` copies of one GPT with the weights of ``seed``."""

    def __init__(self, shape: Shape, runs: int, seed: int, device: torch.device):
        self.shape, self.runs = shape, runs
        random = torch.Generator().manual_seed(seed)
        d, deep = shape.width, (2 * shape.layers) ** -0.5

        def normal(*size: int, scale: float = 0.02) -> Tensor:
            return self._copied(scale * torch.randn(*size, generator=random), device)

        def constant(value: float, size: int) -> Tensor:
            return self._copied(torch.full((size,), value), device)

        self.weights = {"bytes": normal(BYTES, d), "positions": normal(shape.context, d)}
        for i in range(shape.layers):
            self.weights |= {
                f"{i}.norm1": constant(1.0, d), f"{i}.shift1": constant(0.0, d),
                f"{i}.qkv": normal(d, 3 * d), f"{i}.qkv_bias": constant(0.0, 3 * d),
                f"{i}.out": normal(d, d, scale=0.02 * deep), f"{i}.out_bias": constant(0.0, d),
                f"{i}.norm2": constant(1.0, d), f"{i}.shift2": constant(0.0, d),
                f"{i}.up": normal(d, 4 * d), f"{i}.up_bias": constant(0.0, 4 * d),
                f"{i}.down": normal(4 * d, d, scale=0.02 * deep), f"{i}.down_bias": constant(0.0, d),
            }
        self.weights |= {"norm": constant(1.0, d), "shift": constant(0.0, d), "head": normal(d, BYTES)}

    def _copied(self, one: Tensor, device: torch.device) -> Tensor:
        return one.to(device).expand(self.runs, *one.shape).clone().requires_grad_(True)

    def losses(self, x: Tensor, y: Tensor) -> Tensor:
        """The mean loss of each run on its batch; ``x`` and ``y`` are runs × batch × context."""
        w, (runs, b, t) = self.weights, x.shape
        d, heads = self.shape.width, self.shape.heads
        place = (BYTES * torch.arange(runs, device=x.device))[:, None, None]
        h = F.embedding(x + place, w["bytes"].reshape(-1, d)) + w["positions"][:, None, :t]
        h = h.reshape(runs, b * t, d)

        def norm(h: Tensor, scale: str, shift: str) -> Tensor:
            return F.layer_norm(h, (d,)) * w[scale][:, None] + w[shift][:, None]

        def linear(h: Tensor, name: str) -> Tensor:
            return torch.baddbmm(w[f"{name}_bias"][:, None], h, w[name])

        for i in range(self.shape.layers):
            q, k, v = (
                part.reshape(runs * b, t, heads, d // heads).transpose(1, 2)
                for part in linear(norm(h, f"{i}.norm1", f"{i}.shift1"), f"{i}.qkv").split(d, -1)
            )
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            h = h + linear(a.transpose(1, 2).reshape(runs, b * t, d), f"{i}.out")
            up = F.gelu(linear(norm(h, f"{i}.norm2", f"{i}.shift2"), f"{i}.up"))
            h = h + linear(up, f"{i}.down")
        logits = torch.bmm(norm(h, "norm", "shift"), w["head"])
        each = F.cross_entropy(logits.reshape(-1, BYTES), y.reshape(-1), reduction="none")
        return each.reshape(runs, -1).mean(1)

    def norms(self) -> Tensor:
        """The gradient norm of each run."""
        squares = [w.grad.flatten(1).square().sum(1) for w in self.weights.values()]
        return torch.stack(squares).sum(0).sqrt()


class Optimizer:
    """SGD with momentum 0.9, or AdamW (0.9, 0.95) with decay 0.1 of matrices, for every run by itself.

    A step with factor 0 leaves weights, moments and step counts of that run as they are.
    """

    def __init__(self, kind: str, model: SideBySide):
        self.kind, self.weights = kind, list(model.weights.values())
        self.momentum = [torch.zeros_like(w) for w in self.weights]
        self.squares = [torch.zeros_like(w) for w in self.weights] if kind == "adamw" else []
        self.steps = torch.zeros(model.runs, device=self.weights[0].device)

    @torch.no_grad()
    def step(self, factors: Tensor, rates: Tensor) -> None:
        kept = factors > 0.0
        self.steps += kept
        for k, w in enumerate(self.weights):
            over = (-1, *[1] * (w.dim() - 1))
            keep, rate = kept.view(over), rates.view(over)
            g = torch.where(keep, w.grad * factors.view(over), 0.0)
            m = self.momentum[k]
            if self.kind == "sgd":
                m.copy_(torch.where(keep, 0.9 * m + g, m))
                w -= torch.where(keep, rate * m, 0.0)
            else:
                v, n = self.squares[k], self.steps.clamp(min=1.0).view(over)
                m.copy_(torch.where(keep, 0.9 * m + 0.1 * g, m))
                v.copy_(torch.where(keep, 0.95 * v + 0.05 * g.square(), v))
                update = (m / (1 - 0.9**n)) / ((v / (1 - 0.95**n)).sqrt() + 1e-8)
                if w.dim() == 3:
                    update += 0.1 * w
                w -= torch.where(keep, rate * update, 0.0)
            w.grad = None


def schedule(step: int, steps: int, warmup: int) -> float:
    """Linear warm-up, then a cosine down to a tenth."""
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / max(1, steps - warmup)
    return 0.1 + 0.45 * (1.0 + math.cos(math.pi * done))


class Text:
    """Batches of bytes; those of a seed are the same for every run."""

    def __init__(self, train: bytes, valid: bytes, shape: Shape, device: torch.device):
        self.shape, self.device = shape, device
        self.train = torch.frombuffer(bytearray(train), dtype=torch.uint8).to(device).long()
        self.valid = torch.frombuffer(bytearray(valid), dtype=torch.uint8).to(device).long()

    def _cut(self, text: Tensor, starts: Tensor) -> Tensor:
        at = starts.to(self.device)[:, None] + torch.arange(self.shape.context + 1, device=self.device)
        return text[at]

    def batch(self, random: torch.Generator) -> Tensor:
        last = len(self.train) - self.shape.context - 1
        return self._cut(self.train, torch.randint(0, last, (self.shape.batch,), generator=random))

    def noise(self, random: torch.Generator) -> Tensor:
        """Random bytes instead of a batch."""
        size = (self.shape.batch, self.shape.context + 1)
        return torch.randint(0, BYTES, size, generator=random).to(self.device)

    def validation(self, batches: int) -> list[Tensor]:
        last = len(self.valid) - self.shape.context - 1
        starts = torch.linspace(0, last, batches * self.shape.batch).long()
        return [self._cut(self.valid, part) for part in starts.split(self.shape.batch)]
