"""Trains many networks of one architecture in parallel, each with its own learning rate and rule.

Small batches leave a GPU idle between kernels, so each network computes its gradients on its own
stream and the whole step is replayed as one CUDA graph. The weights of all networks are the rows of
one matrix, and so are gradients and momenta, so that a step of SGD takes four kernels in total.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

Loss = Callable[[Tensor, Tensor], Tensor]

# Every tensor starts at a multiple of 256 bytes, as separate allocations do; vectorised kernels fail or
# are slow on other addresses.
ALIGNED = 64
# CUDA streams come from a pool of 32 and repeat after that.
MOST_STREAMS = 32
STREAMS: list[Any] = []


def streams(count: int) -> list[Any]:
    """The same CUDA streams for every group of networks, all different within a group."""
    while len(STREAMS) < min(count, MOST_STREAMS):
        STREAMS.append(torch.cuda.Stream())
    return STREAMS[:count]


def padded(parameter: Tensor) -> int:
    """The padded size of a parameter in a row; the padding stays zero."""
    return -(-parameter.numel() // ALIGNED) * ALIGNED


def laid_out(parameter: Tensor, row: Tensor) -> Tensor:
    """A piece of a row in the shape of the parameter, with channels last for filters."""
    if parameter.dim() != 4:
        return row.view_as(parameter)
    outputs, inputs, height, width = parameter.shape
    return row.view(outputs, height, width, inputs).permute(0, 3, 1, 2)


class SideBySide:
    """Network ``k`` gets the batches of stream ``stream[k]``; networks of a stream start equal."""

    def __init__(
        self,
        make: Callable[[], nn.Module],
        seeds: Sequence[int],
        stream: Sequence[int],
        batch: int,
        loss: Loss,
        device: torch.device,
        momentum: float = 0.9,
        graph: bool = True,
    ):
        self.stream, self.loss, self.device, self.momentum = list(stream), loss, device, momentum
        self.graph = graph and device.type == "cuda"
        self.models = []
        for s in self.stream:
            torch.manual_seed(seeds[s])
            self.models.append(make().to(device))
        count = len(self.models)
        size = sum(padded(p) for p in self.models[0].parameters())
        self.weights, self.gradients, self.momenta = (
            torch.zeros(count, size, device=device) for _ in range(3)
        )
        for model, weights, gradients in zip(self.models, self.weights, self.gradients):
            at = 0
            for p in model.parameters():
                piece = slice(at, at + p.numel())
                at += padded(p)
                weight = laid_out(p, weights[piece])
                weight.copy_(p.detach())
                p.data, p.grad = weight, laid_out(p, gradients[piece])
        self.images = [torch.zeros(batch, 3, 32, 32, device=device) for _ in seeds]
        self.labels = [torch.zeros(batch, dtype=torch.long, device=device) for _ in seeds]
        self.losses = torch.zeros(count, device=device)
        self.norms = torch.zeros(count, device=device)
        self._replay: Callable[[], None] | None = None

    def autocast(self) -> torch.autocast:
        """Half precision on a GPU, full precision on a CPU."""
        on = self.device.type == "cuda"
        return torch.autocast(self.device.type, torch.bfloat16, enabled=on, cache_enabled=False)

    def gradients_of(self, k: int) -> None:
        """Loss and gradient of one network on its batch."""
        s = self.stream[k]
        images = self.images[s].contiguous(memory_format=torch.channels_last)
        with self.autocast():
            outputs = self.models[k](images)
        value = self.loss(outputs.float(), self.labels[s])
        value.backward()
        self.losses[k].copy_(value.detach())

    def all_gradients(self) -> None:
        """Gradients and norms of all networks, each on its own stream on a GPU."""
        self.gradients.zero_()
        if self.device.type != "cuda":
            for k in range(len(self.models)):
                self.gradients_of(k)
        else:
            here = torch.cuda.current_stream()
            for k, stream in enumerate(self.streams):
                stream.wait_stream(here)
                with torch.cuda.stream(stream):
                    self.gradients_of(k)
            for stream in self.streams:
                here.wait_stream(stream)
        torch.linalg.vector_norm(self.gradients, dim=1, out=self.norms)

    def record(self) -> Callable[[], None]:
        """Records :meth:`all_gradients` as one CUDA graph; restores what the warm-up changed."""
        if self.device.type == "cuda":
            side, *own = streams(1 + len(self.models))
            self.streams = [own[k % len(own)] for k in range(len(self.models))]
        if not self.graph:
            return self.all_gradients
        before = [{n: b.clone() for n, b in m.named_buffers()} for m in self.models]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.all_gradients()
        torch.cuda.current_stream().wait_stream(side)
        found: Callable[[], None] = self.all_gradients
        try:
            found = self.captured(side)
        except RuntimeError as error:
            reason = (str(error).splitlines() or ["?"])[0]
            print(f"no CUDA graph ({reason}); continuing without it, which is slower", file=sys.stderr, flush=True)
        for model, buffers in zip(self.models, before):
            for name, buffer in model.named_buffers():
                buffer.copy_(buffers[name])
        return found

    def captured(self, side: Any) -> Callable[[], None]:
        """The graph, after a check that it computes the same norms."""
        expected = self.norms.clone()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            self.all_gradients()
        self.norms.zero_()
        graph.replay()
        # Half precision and any order of summation; diverged networks stay NaN.
        if not torch.allclose(self.norms, expected, rtol=0.05, equal_nan=True):
            raise RuntimeError(f"norms {self.norms.tolist()} instead of {expected.tolist()}")
        return graph.replay

    def measure(self) -> list[float]:
        """Computes all gradients on the current batches; returns their norms."""
        if self._replay is None:
            self._replay = self.record()
        self._replay()
        return self.norms.tolist()

    @torch.no_grad()
    def step(self, factors: Sequence[float], rates: Sequence[float]) -> None:
        """A step of SGD with momentum; gradients are multiplied by ``factors``."""
        scale = torch.tensor([factors, rates], dtype=torch.float32).to(self.device, non_blocking=True)
        self.gradients.mul_(scale[0, :, None])
        self.momenta.mul_(self.momentum).add_(self.gradients)
        self.weights.addcmul_(self.momenta, scale[1, :, None], value=-1.0)

    def state(self) -> dict[str, Any]:
        """Everything that a step changes."""
        buffers = [dict(model.named_buffers()) for model in self.models]
        return {"weights": self.weights, "momenta": self.momenta, "buffers": buffers}

    @torch.no_grad()
    def restore(self, state: dict[str, Any]) -> None:
        """Restores what :meth:`state` returned, in place, because the graph uses these addresses."""
        self.weights.copy_(state["weights"])
        self.momenta.copy_(state["momenta"])
        for model, buffers in zip(self.models, state["buffers"]):
            for name, buffer in model.named_buffers():
                buffer.copy_(buffers[name])

    @torch.no_grad()
    def judge(self, images: Tensor, labels: Tensor) -> list[tuple[float, float]]:
        """Accuracy and mean loss of each network, with running statistics in batch norm."""
        found = []
        for model in self.models:
            model.eval()
            right, loss = torch.zeros((), device=self.device), torch.zeros((), device=self.device)
            for x, y in zip(images.split(1000), labels.split(1000)):
                with self.autocast():
                    outputs = model(x.contiguous(memory_format=torch.channels_last))
                right += (outputs.argmax(1) == y).sum()
                loss += self.loss(outputs.float(), y) * len(y)
            model.train()
            found.append((float(right) / len(labels), float(loss) / len(labels)))
        return found
