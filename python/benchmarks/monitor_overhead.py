"""Measures the overhead of the monitor and of the guard in training steps with and without clipping.

    python python/benchmarks/monitor_overhead.py --device cuda --json

A step is forward, backward and SGD of a ResNet-18 on 32x32 images, batch size 128 (CUDA) or 8 (CPU);
``--amp`` uses bfloat16 and channels last, for the shortest steps; ``--adamw`` uses AdamW, ``--fused`` a fused optimizer. Guards are attached
to the optimizer. The variants alternate in blocks of
``--steps`` steps, timed by CUDA events (on CPU in CPU time), in an order that rotates with the round.
Each block is compared with the block of the same round without the monitor. The result is the median
ratio over rounds, with a 95% interval from order statistics, which a disturbed round hardly affects.
With ``--calls`` only the calls are timed, in CPU time, on the same number of tiny gradients: the work
of the host.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

import toclip.torch

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from models import resnet18  # noqa: E402

# The baselines of each variant: the same step without the monitor or the guard.
AGAINST = {
    "Monitor, watching": ["no clipping"],
    "Monitor, clipping at 1": ["clip_grad_norm_"],
    "Monitor, apply=True": ["clip_grad_norm_"],
    "Guard, clip": ["no clipping", "clip_grad_norm_"],
    "Guard, skip": ["no clipping", "clip_grad_norm_"],
    "Guard with a monitor": ["no clipping", "clip_grad_norm_"],
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    # The monitor synchronises every 50 steps, which do not divide 130: at the end of a block, where the
    # benchmark synchronises anyway, its cost would not show.
    parser.add_argument("--steps", type=int, help="steps per block (default: 130, on CPU 2)")
    parser.add_argument("--rounds", type=int, help="default: 15, on CPU 7")
    parser.add_argument("--batch", type=int, help="default: 128, on CPU 8")
    parser.add_argument("--amp", action="store_true", help="bfloat16, channels last")
    parser.add_argument("--adamw", action="store_true", help="AdamW in place of SGD")
    parser.add_argument("--fused", action="store_true", help="a fused optimizer, which a guard does not hold up")
    parser.add_argument("--calls", action="store_true", help="time only the calls")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    args = parser.parse_args()
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error("no CUDA device; use --device cpu")
    device = args.device.startswith("cuda")
    args.steps = args.steps or (130 if device or args.calls else 2)
    args.rounds = args.rounds or (15 if device else 7)
    args.batch = args.batch or (128 if device else 8)
    if args.steps < 1 or args.rounds < 6:
        parser.error("--steps must be at least 1, and --rounds at least 6 for an interval")
    return args


class Bench:
    """A network, its training step, and the variants of clipping."""

    def __init__(self, args: argparse.Namespace):
        self.args, device = args, torch.device(args.device)
        self.cuda = device.type == "cuda"
        torch.manual_seed(0)
        if self.cuda:
            torch.backends.cudnn.benchmark = True
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        shape = torch.channels_last if args.amp else torch.contiguous_format
        self.model = resnet18().to(device, memory_format=shape)
        self.optimizer = self.new_optimizer()
        self.x = torch.randn(args.batch, 3, 32, 32, device=device).contiguous(memory_format=shape)
        self.y = torch.randint(0, 10, (args.batch,), device=device)
        if args.calls:
            for p in self.model.parameters():
                p.data, p.grad = torch.zeros(16, device=device), torch.randn(16, device=device)
        model = self.model
        watching, clipping, acting = (
            toclip.torch.Monitor(batch_size=args.batch, outputs=10, apply=apply)
            for apply in (False, False, True)
        )
        monitored = toclip.torch.Monitor(batch_size=args.batch, outputs=10)
        self.clips: dict[str, Callable[[], object]] = {
            "no clipping": lambda: None,
            "clip_grad_norm_": lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0),
            "Monitor, watching": lambda: watching.clip_(model.parameters()),
            "Monitor, clipping at 1": lambda: clipping.clip_(model.parameters(), 1.0),
            "Monitor, apply=True": lambda: acting.clip_(model.parameters()),
        }
        self.guards = {
            "Guard, clip": toclip.torch.Guard(),
            "Guard, skip": toclip.torch.Guard(action="skip"),
            "Guard with a monitor": toclip.torch.Guard(monitor=monitored),
        }
        self.names = [*self.clips, *self.guards]

    def new_optimizer(self) -> torch.optim.Optimizer:
        if self.args.adamw:
            return torch.optim.AdamW(self.model.parameters(), lr=1e-6, fused=self.args.fused or None)
        return torch.optim.SGD(self.model.parameters(), lr=1e-4, fused=self.args.fused or None)

    def step(self, name: str) -> None:
        self.optimizer.zero_grad()
        with torch.autocast(self.x.device.type, torch.bfloat16, enabled=self.args.amp):
            outputs = self.model(self.x)
        loss = torch.nn.functional.cross_entropy(outputs.float(), self.y)
        loss.backward()
        if name in self.clips:
            self.clips[name]()
        else:
            self.guards[name].loss = loss.detach()
        self.optimizer.step()

    def call(self, name: str) -> None:
        """Only what clips or guards; the gradients are those of before."""
        if name in self.clips:
            self.clips[name]()
        else:
            self.guards[name].clip_(self.model.parameters())

    @contextlib.contextmanager
    def attached(self, name: str) -> Iterator[None]:
        guard = None if self.args.calls else self.guards.get(name)
        if guard is not None:
            guard.attach(self.optimizer)
        yield
        if guard is not None:
            guard.detach()

    def block(self, name: str) -> float:
        """Seconds per step (or per call)."""
        with self.attached(name):
            return self._timed(self.call if self.args.calls else self.step, name)

    def _timed(self, act: Callable[[str], None], name: str) -> float:
        steps = self.args.steps
        if self.args.calls or not self.cuda:
            # CPU time, which does not count other processes.
            start = time.process_time()
            for _ in range(steps):
                act(name)
            return (time.process_time() - start) / steps
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # From idle device to idle device, to include time in which the device waits for the host.
        torch.cuda.synchronize()
        begin.record()
        for _ in range(steps):
            act(name)
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e3 / steps

    def run(self) -> dict[str, list[float]]:
        names = self.names
        for name in names:
            self.block(name)
        found: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(self.args.rounds):
            # Another order in each round, so that no variant always follows the same one.
            at = turn % len(names)
            for name in names[at:] + names[:at]:
                found[name].append(self.block(name))
        return found


def interval(values: list[float]) -> tuple[float, float]:
    """A 95% interval for the median: the k-th value from each end, by the binomial distribution."""
    ordered, n = sorted(values), len(values)
    chance, weight, k = 0.0, 0.5**n, 0
    for k in range(n // 2):
        chance += weight
        if chance > 0.025:
            break
        weight *= (n - k) / (k + 1)
    return ordered[k - 1], ordered[n - k]


def main() -> None:
    args = arguments()
    bench = Bench(args)
    found = bench.run()
    ratios = []
    for name, bases in AGAINST.items():
        for base in ["clip_grad_norm_"] if args.calls else bases:
            each = [a / b for a, b in zip(found[name], found[base])]
            low, high = interval(each)
            ratio = {"ratio": statistics.median(each), "low": low, "high": high}
            ratios.append({"variant": name, "against": base} | ratio)
    if args.json:
        device = torch.cuda.get_device_name() if bench.cuda else "cpu"
        print(json.dumps({
            "device": device, "torch": torch.__version__, "batch": args.batch, "amp": args.amp,
            "optimizer": type(bench.optimizer).__name__, "fused": args.fused,
            "steps": args.steps, "rounds": args.rounds, "calls_only": args.calls,
            "milliseconds": {name: 1e3 * statistics.median(t) for name, t in found.items()},
            "ratios": ratios,
        }))
        return
    for name, times in found.items():
        each = "call" if args.calls else "step"
        print(f"{name:24} {1e3 * statistics.median(times):9.3f} ms per {each}")
    for r in ratios:
        print(f"{r['variant']:24} {100 * (r['ratio'] - 1):+6.2f} % over {r['against']} "
              f"({100 * (r['low'] - 1):+.2f} to {100 * (r['high'] - 1):+.2f})")


if __name__ == "__main__":
    main()
