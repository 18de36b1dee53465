"""What the monitor adds to a step of training that clips anyway, and to one that does not.

    python python/benchmarks/monitor_overhead.py --device cuda --json

A step is forward, backward and SGD of a ResNet-18 for 32x32 images, batch 128 (CUDA) or 8 (CPU);
``--amp`` takes bfloat16 and channels last, with which a step is shortest. The loops take turns, in
blocks of ``--steps`` steps between two CUDA events (on CPU in CPU time), and the order turns with the
round. Each block is compared with the block of its own round that does the same without the monitor;
the ratio is the median over rounds, with a 95% interval for it (by order statistics, so that a
disturbed round moves nothing). With ``--calls`` only the calls are timed, in CPU time, on as many
gradients that are tiny: what the host does beside the device.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

import toclip.torch

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from models import resnet18  # noqa: E402

# What each loop is compared with: the same step without the monitor.
AGAINST = {
    "Monitor, watching": "no clipping",
    "Monitor, clipping at 1": "clip_grad_norm_",
    "Monitor, apply=True": "clip_grad_norm_",
}


def arguments() -> argparse.Namespace:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    asked.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    # The monitor takes its norms in every 50 steps, which do not divide 130: were it always at the end
    # of a block, where the device is waited for anyway, its own wait would not be seen.
    asked.add_argument("--steps", type=int, help="steps of a block (default: 130, on CPU 2)")
    asked.add_argument("--rounds", type=int, help="default: 15, on CPU 7")
    asked.add_argument("--batch", type=int, help="default: 128, on CPU 8")
    asked.add_argument("--amp", action="store_true", help="bfloat16, channels last")
    asked.add_argument("--calls", action="store_true", help="time the calls alone")
    asked.add_argument("--json", action="store_true", help="one line of JSON")
    args = asked.parse_args()
    if args.device.startswith("cuda") and not torch.cuda.is_available():
        asked.error("there is no CUDA device here: give --device cpu")
    device = args.device.startswith("cuda")
    args.steps = args.steps or (130 if device or args.calls else 2)
    args.rounds = args.rounds or (15 if device else 7)
    args.batch = args.batch or (128 if device else 8)
    if args.steps < 1 or args.rounds < 6:
        asked.error("--steps must be 1 or more, and --rounds 6 or more for an interval")
    return args


class Bench:
    """One network, its step, and the ways to clip in it."""

    def __init__(self, args: argparse.Namespace):
        self.args, device = args, torch.device(args.device)
        self.cuda = device.type == "cuda"
        torch.manual_seed(0)
        if self.cuda:
            torch.backends.cudnn.benchmark = True
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        shape = torch.channels_last if args.amp else torch.contiguous_format
        self.model = resnet18().to(device, memory_format=shape)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4)
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
        self.loops: dict[str, Callable[[], object]] = {
            "no clipping": lambda: None,
            "clip_grad_norm_": lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0),
            "Monitor, watching": lambda: watching.clip_(model.parameters()),
            "Monitor, clipping at 1": lambda: clipping.clip_(model.parameters(), 1.0),
            "Monitor, apply=True": lambda: acting.clip_(model.parameters()),
        }

    def step(self, clip: Callable[[], object]) -> None:
        self.optimizer.zero_grad()
        with torch.autocast(self.x.device.type, torch.bfloat16, enabled=self.args.amp):
            outputs = self.model(self.x)
        torch.nn.functional.cross_entropy(outputs.float(), self.y).backward()
        clip()
        self.optimizer.step()

    def block(self, clip: Callable[[], object]) -> float:
        """Seconds a step (or a call)."""
        steps = self.args.steps
        if self.args.calls:
            start = time.process_time()
            for _ in range(steps):
                clip()
            return (time.process_time() - start) / steps
        if not self.cuda:
            # CPU time: whatever else the machine does is not counted.
            start = time.process_time()
            for _ in range(steps):
                self.step(clip)
            return (time.process_time() - start) / steps
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        # From an idle device to an idle device, so that time in which it waits for the host counts.
        torch.cuda.synchronize()
        begin.record()
        for _ in range(steps):
            self.step(clip)
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) / 1e3 / steps

    def run(self) -> dict[str, list[float]]:
        names = list(self.loops)
        for name in names:
            self.block(self.loops[name])
        found: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(self.args.rounds):
            # In another order each time: no loop always follows the same one.
            at = turn % len(names)
            for name in names[at:] + names[:at]:
                found[name].append(self.block(self.loops[name]))
        return found


def interval(values: list[float]) -> tuple[float, float]:
    """A 95% interval for the median: the k-th from each end, by the binomial law."""
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
    ratios = {}
    for name, base in AGAINST.items():
        base = "clip_grad_norm_" if args.calls else base  # no call takes no time
        each = [a / b for a, b in zip(found[name], found[base])]
        low, high = interval(each)
        ratios[name] = {"against": base, "ratio": statistics.median(each), "low": low, "high": high}
    if args.json:
        device = torch.cuda.get_device_name() if bench.cuda else "cpu"
        print(json.dumps({
            "device": device, "torch": torch.__version__, "batch": args.batch, "amp": args.amp,
            "steps": args.steps, "rounds": args.rounds, "calls_only": args.calls,
            "milliseconds": {name: 1e3 * statistics.median(t) for name, t in found.items()},
            "ratios": ratios,
        }))
        return
    for name, times in found.items():
        each = "call" if args.calls else "step"
        line = f"{name:24} {1e3 * statistics.median(times):9.3f} ms a {each}"
        if name in ratios:
            r = ratios[name]
            line += (f"  {100 * (r['ratio'] - 1):+6.2f} % on {r['against']} "
                     f"({100 * (r['low'] - 1):+.2f} to {100 * (r['high'] - 1):+.2f})")
        print(line)


if __name__ == "__main__":
    main()
