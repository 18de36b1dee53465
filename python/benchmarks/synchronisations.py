"""Counts how often a step synchronises with the GPU, with and without the monitor and the guard.

    python python/benchmarks/synchronisations.py --json

A step is forward, backward and AdamW of a small network on the GPU. PyTorch reports every synchronisation that
it causes itself (``torch.cuda.set_sync_debug_mode``); each is counted at the step in which it happened, over 120
steps after a warm-up, some of which are clipped or skipped. The profiler counts calls of the CUDA runtime that
wait, as a check that does not depend on PyTorch's own list.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable
from typing import Any

import torch

import toclip.torch

STEPS, WARMUP = 120, 20
WAITING = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")
# The additions of each variant to a plain step: a monitor or a guard, and a scaler.
VARIANTS: dict[str, Callable[[], tuple[Any, bool]]] = {
    "no clipping": lambda: (None, False),
    "Monitor": lambda: (toclip.torch.Monitor(), False),
    "Guard, clip": lambda: (toclip.torch.Guard(), False),
    "Guard, skip": lambda: (toclip.torch.Guard(action="skip"), False),
    "Guard with a monitor": lambda: (toclip.torch.Guard(monitor=toclip.torch.Monitor()), False),
    "GradScaler": lambda: (None, True),
    "GradScaler, Guard": lambda: (toclip.torch.Guard(), True),
}


class Training:
    """A network on the GPU whose batches are on the GPU too, so that loading them is not counted."""

    def __init__(self, observer: Any, scaled: bool, fused: bool):
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 8)).cuda()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), 1e-3, fused=fused)
        self.scaler = torch.amp.GradScaler("cuda", init_scale=64.0) if scaled else None
        self.observer = observer
        if isinstance(observer, toclip.torch.Guard):
            observer.attach(self.optimizer, scaler=self.scaler)
        self.x, self.y = torch.randn(64, 64, device="cuda"), torch.randn(64, 8, device="cuda")

    def step(self, index: int) -> None:
        self.optimizer.zero_grad()
        loss = (self.net(self.x) - self.y).square().mean() * (300.0 if index % 20 == 19 else 1.0)
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        if isinstance(self.observer, toclip.torch.Guard):
            self.observer.loss = loss
        elif self.observer is not None:
            self.observer.clip_(self.net.parameters(), 1.0, loss=loss)
        if self.scaler is None:
            self.optimizer.step()
        else:
            self.scaler.step(self.optimizer)
            self.scaler.update()


def reported(training: Training) -> list[int]:
    """Synchronisations that PyTorch reports, step by step."""
    found = []
    torch.cuda.set_sync_debug_mode("warn")
    for index in range(WARMUP, WARMUP + STEPS):
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            training.step(index)
        found.append(sum("synchroniz" in str(warning.message) for warning in raised))
    torch.cuda.set_sync_debug_mode("default")
    return found


def waited(training: Training) -> float:
    """Calls of the CUDA runtime that wait, per step."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        for index in range(WARMUP, WARMUP + STEPS):
            training.step(index)
    return sum(event.name in WAITING for event in seen.events()) / STEPS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one line of JSON per variant")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("no CUDA device")
    for fused in (False, True):
        for name, made in VARIANTS.items():
            training = Training(*made(), fused)
            for index in range(WARMUP):
                training.step(index)
            each, calls = reported(training), waited(training)
            acted = training.observer.counts if isinstance(training.observer, toclip.torch.Guard) else {}
            row = {"variant": name, "fused": fused, "mean": sum(each) / STEPS, "most": max(each)}
            row |= {"waiting_calls": calls} | acted
            if args.json:
                print(json.dumps(row))
            else:
                print(f"{name:24} fused={fused!s:5} {row['mean']:.2f} a step, at most {row['most']}; "
                      f"{calls:.2f} waiting calls")


if __name__ == "__main__":
    main()
