"""Trains a network of the paper without clipping, with measurements at log-spaced steps.

    python train.py --model resnet18 --epochs 60 --data ~/.cache/toclip/cifar10 --out runs/resnet18

Writes to ``--out``: ``log.jsonl`` (one line per step with step, loss, learning_rate and grad_norm, for
``toclip advise``), ``factors.jsonl`` (one line per measurement, batch size and threshold),
``curvature.jsonl`` (one line per measurement and ``mode`` of batch norm), ``run.json`` (settings and
versions) and ``checkpoint.pt``. The same command resumes from the checkpoint. ``--minutes`` stops the
run after that time, with everything written.

The first measurement is at step 0, before any training. In ``curvature.jsonl``, ``batch_norm`` is the
source of the batch-norm statistics: with ``mode`` "train" the batch, of ``batch_size`` images as in
training; with "eval" the running averages, which at step 0 are "initial": zero and one. A model
without batch norm has one line per measurement.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

import torch

# For a package built in place; an installed one takes precedence.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from cifar import augment, load  # noqa: E402
from losses import LOSSES  # noqa: E402
from models import MODELS  # noqa: E402
from argument_types import BELOW_ONE, COUNT, POSITIVE, at_least  # noqa: E402

from toclip.torch import IntrinsicDimension, intrinsic_dimension, reduction_factors  # noqa: E402

# The base learning rates of the paper; ViT also has two epochs of warm-up.
RATES = {"resnet18": 0.05, "vit_s16": 0.00625, "vit_s4": 0.00625, "small_cnn": 0.02}
WARM_UP = {"vit_s16": 2.0, "vit_s4": 2.0}
# The paper uses three log-spaced thresholds up to 10; here also multiples of the median norm.
THRESHOLDS = (0.1, 0.3, 1.0, 3.0, 10.0)
MULTIPLES = (0.05, 0.5, 1.0, 2.0)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--model", choices=sorted(MODELS), required=True)
    p.add_argument("--loss", choices=sorted(LOSSES), default="mse")
    p.add_argument("--epochs", type=POSITIVE, default=200.0)
    p.add_argument("--batch", type=COUNT, default=128)
    p.add_argument("--rate", type=POSITIVE, help="base learning rate (default: that of the paper)")
    p.add_argument("--momentum", type=BELOW_ONE, default=0.9)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--data", type=Path, nargs="+", required=True, help="folder(s) with the .bin files")
    p.add_argument("--files", type=int, choices=range(1, 6), default=5,
                   help="number of training files, up to five")
    p.add_argument("--out", type=Path, required=True)
    p.add_argument("--measurements", type=at_least(0), default=12,
                   help="number of log-spaced measurements, in addition to the one at step 0")
    p.add_argument("--measure-batches", type=at_least(16), default=192)
    p.add_argument("--curvature-samples", type=COUNT, default=2048)
    p.add_argument("--probes", type=at_least(2), default=16)
    p.add_argument("--minutes", type=POSITIVE, default=math.inf, help="stop after this many minutes; the same command resumes")
    return p.parse_args(given)


class Run:
    """A training run and its output files."""

    def __init__(self, a: argparse.Namespace):
        self.a = a
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True
        torch.manual_seed(a.seed)
        self.data = load(a.data, self.device, a.files)
        self.model = MODELS[a.model]().to(self.device, memory_format=torch.channels_last)
        self.loss = LOSSES[a.loss]
        self.rate = a.rate or RATES[a.model]
        self.optimiser = torch.optim.SGD(self.model.parameters(), self.rate, a.momentum)
        self.random = torch.Generator(self.device).manual_seed(a.seed)
        self.per_epoch = len(self.data.train) // a.batch
        self.steps = int(a.epochs * self.per_epoch)
        if self.steps < 1:
            raise SystemExit(
                f"--epochs {a.epochs} of {len(self.data.train)} images in batches of {a.batch} is less than "
                "one step; use more epochs or smaller batches"
            )
        self.step = 0
        self.order = torch.empty(0, dtype=torch.long, device=self.device)
        self.pending: list = []
        a.out.mkdir(parents=True, exist_ok=True)
        self.due = self.schedule()

    def schedule(self) -> list[int]:
        count = self.a.measurements
        if count < 1:
            return []
        # The second measurement is some tens of steps after the start, when the running statistics of
        # batch norm are those of the data.
        first = min(max(1, self.per_epoch // 8), self.steps)
        ratio = self.steps / first
        spaced = {round(first * ratio ** (i / max(count - 1, 1))) for i in range(count)}
        return [0, *sorted(spaced)]

    def learning_rate(self) -> float:
        warm = WARM_UP.get(self.a.model, 0.0) * self.per_epoch
        if self.step < warm:
            return self.rate * (self.step + 1) / warm
        return self.rate * 0.5 * (1.0 + math.cos(math.pi * (self.step - warm) / (self.steps - warm)))

    def batch(self, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        if len(self.order) < size:
            self.order = torch.randperm(len(self.data.train), generator=self.random, device=self.device)
        index, self.order = self.order[:size], self.order[size:]
        images = augment(self.data.train[index], self.random)
        return images.contiguous(memory_format=torch.channels_last), self.data.train_labels[index]

    def train_step(self) -> None:
        rate = self.learning_rate()
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        inputs, labels = self.batch(self.a.batch)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            outputs = self.model(inputs)
        value = self.loss(outputs.float(), labels)
        self.optimiser.zero_grad(set_to_none=True)
        value.backward()
        norm = torch.linalg.vector_norm(
            torch.stack(torch._foreach_norm([p.grad for p in self.model.parameters()]))
        )
        self.optimiser.step()
        self.pending.append((self.step, rate, value.detach(), norm))
        self.step += 1
        if len(self.pending) >= 100:
            self.flush()

    def flush(self) -> None:
        if not self.pending:
            return
        values = torch.stack([v for *_, v, _ in self.pending]).tolist()
        norms = torch.stack([n for *_, n in self.pending]).tolist()
        with open(self.a.out / "log.jsonl", "a") as log:
            for (step, rate, _, _), value, norm in zip(self.pending, values, norms):
                log.write(json.dumps({
                    "step": step, "epoch": round(step / self.per_epoch, 4), "loss": float(f"{value:.6g}"),
                    "grad_norm": float(f"{norm:.6g}"), "learning_rate": float(f"{rate:.6g}"),
                }) + "\n")
        self.pending = []
        if not math.isfinite(values[-1]):
            raise SystemExit(f"step {self.step}: the loss is {values[-1]}; try a smaller --rate")

    @torch.no_grad()
    def accuracy(self) -> float:
        self.model.eval()
        right = 0
        for x, y in zip(self.data.test.split(1000), self.data.test_labels.split(1000)):
            right += int((self.model(x.contiguous(memory_format=torch.channels_last)).argmax(1) == y).sum())
        self.model.train()
        return right / len(self.data.test)

    def measure(self) -> None:
        """Factors on augmented training batches as in training; curvature on fixed images."""
        a, began = self.a, time.time()
        state, order = self.random.get_state(), self.order
        self.random.manual_seed(a.seed + 1_000_003)
        self.order = self.order[:0]
        at = {"step": self.step, "epoch": self.step / self.per_epoch, "accuracy": self.accuracy()}
        for size in dict.fromkeys((a.batch, 16)):
            pilot = reduction_factors(
                self.model, self.loss, (self.batch(size) for _ in range(24)), [1.0], blocks=4
            )
            median = sorted(pilot.norms)[len(pilot.norms) // 2]
            levels = sorted({*THRESHOLDS, *(float(f"{median * m:.4g}") for m in MULTIPLES)})
            found = reduction_factors(
                self.model, self.loss, (self.batch(size) for _ in range(a.measure_batches)), levels
            )
            record = at | {"batch": size, "loss": found.loss, "gradient_norm": found.gradient_norm,
                           "median_norm": median, "mode": found.mode, "batches": len(found.norms)}
            self.append("factors.jsonl", [record | row for row in found.records()])
        curvature = self.curvature()
        self.append("curvature.jsonl", [at | vars(one) for one in curvature])
        self.random.set_state(state)
        self.order = order
        dimensions = ", ".join(
            f"d {one.dimension:.1f} ± {one.dimension_stderr:.1f} ({one.mode})" for one in curvature
        )
        print(f"{a.model} {a.loss} step {self.step} accuracy {at['accuracy']:.4f} {dimensions} "
              f"({time.time() - began:.1f} s)", flush=True)

    def curvature(self) -> list[IntrinsicDimension]:
        """The intrinsic dimension on fixed images, in both modes if there is batch norm.

        In evaluation mode samples are independent, and the batches only limit memory; in training
        mode the batches have the size of training, because batch norm depends on them.
        """
        a = self.a
        chosen = torch.randperm(
            len(self.data.train), generator=torch.Generator().manual_seed(a.seed)
        )[: a.curvature_samples].to(self.device)
        images, labels = self.data.train[chosen], self.data.train_labels[chosen]
        sizes = {"eval": 512}
        if any(isinstance(m, torch.nn.modules.batchnorm._BatchNorm) for m in self.model.modules()):
            sizes["train"] = a.batch
        found = []
        for mode, size in sizes.items():
            loader = list(zip(images.split(size), labels.split(size)))
            if mode == "train" and len(loader) > 1 and len(loader[-1][0]) < size:
                loader.pop()  # a short batch has other statistics
            found.append(intrinsic_dimension(
                self.model, self.loss, loader, probes=a.probes, iterations=40, tolerance=2e-3,
                mode=mode, seed=a.seed,
            ))
        return found

    def append(self, name: str, records: list[dict]) -> None:
        with open(self.a.out / name, "a") as out:
            for record in records:
                out.write(json.dumps({
                    k: float(f"{v:.6g}") if isinstance(v, float) else v for k, v in record.items()
                }) + "\n")

    def save(self) -> None:
        self.flush()
        whole = {
            "step": self.step, "order": self.order, "random": self.random.get_state(),
            "model": self.model.state_dict(), "optimiser": self.optimiser.state_dict(),
            "due": self.due, "settings": self.settings(),
            "lines": {n: self.lines(n) for n in ("log", "factors", "curvature")},
        }
        partial = self.a.out / "checkpoint.partial"
        torch.save(whole, partial)
        os.replace(partial, self.a.out / "checkpoint.pt")

    def lines(self, name: str) -> int:
        path = self.a.out / f"{name}.jsonl"
        return sum(1 for _ in open(path)) if path.exists() else 0

    def resume(self) -> None:
        path = self.a.out / "checkpoint.pt"
        if not path.exists():
            for name in ("log", "factors", "curvature"):
                (self.a.out / f"{name}.jsonl").unlink(missing_ok=True)
            return
        whole = torch.load(path, map_location=self.device)
        for name, value in whole.get("settings", {}).items():
            if self.settings().get(name) != value:
                raise SystemExit(
                    f"{path} is from a run with {name} = {value}, but this run has "
                    f"{self.settings().get(name)}; use the same arguments or another --out"
                )
        self.step, self.order, self.due = whole["step"], whole["order"], whole["due"]
        self.random.set_state(whole["random"].cpu())
        self.model.load_state_dict(whole["model"])
        self.optimiser.load_state_dict(whole["optimiser"])
        # Lines that a killed run wrote after its checkpoint will be written again.
        for name, keep in whole["lines"].items():
            file = self.a.out / f"{name}.jsonl"
            if file.exists():
                kept = file.read_text().splitlines(keepends=True)[:keep]
                file.write_text("".join(kept))

    def settings(self) -> dict:
        """The settings that determine the results."""
        given = {k: v for k, v in vars(self.a).items() if k not in ("data", "out", "minutes")}
        return given | {"rate": self.rate, "steps": self.steps}

    def describe(self) -> None:
        settings = self.settings() | {
            "torch": torch.__version__,
            "device": torch.cuda.get_device_name() if self.device.type == "cuda" else "cpu",
            "parameters": sum(p.numel() for p in self.model.parameters()),
        }
        (self.a.out / "run.json").write_text(json.dumps(settings, indent=1) + "\n")

    def go(self) -> None:
        began = time.time()
        self.resume()
        self.describe()
        first, clock = self.step, 0.0
        while True:
            if self.due and self.step >= self.due[0]:
                self.measure()
                self.due.pop(0)
                self.save()
            late = time.time() - began > 60 * self.a.minutes
            if self.step >= self.steps or late:
                break
            tick = time.time()
            self.train_step()
            clock += time.time() - tick
            if self.step % 5000 == 0:
                self.save()
        self.save()
        done = self.step - first
        state = "finished" if self.step >= self.steps else "stopped (resumable)"
        print(f"{self.a.model} {self.a.loss} {state} at step {self.step} of {self.steps}: "
              f"{1e3 * clock / max(done, 1):.2f} ms per step", flush=True)


if __name__ == "__main__":
    Run(arguments()).go()
