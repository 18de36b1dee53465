"""What the monitor adds to a step of training that clips anyway, and to one that does not.

    python python/benchmarks/monitor_overhead.py [--device cuda] [--steps 100]

A step is forward, backward and SGD of a ResNet-18 for 32x32 images, batch 128 (CUDA) or 8 (CPU).
The loops are interleaved in rounds, and medians of the rounds are compared. With ``--calls`` only the
calls are timed, in CPU time, on as many gradients that are tiny: what the host does beside the device.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch

import toclip.torch

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
from models import resnet18  # noqa: E402


def main() -> None:
    asked = argparse.ArgumentParser()
    asked.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked.add_argument("--steps", type=int, default=100)
    asked.add_argument("--calls", action="store_true")
    asked.add_argument("--rounds", type=int, default=7)
    args = asked.parse_args()
    size = 128 if args.device == "cuda" else 8
    model = resnet18().to(args.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.randn(size, 3, 32, 32, device=args.device)
    y = torch.randint(0, 10, (size,), device=args.device)
    monitor = toclip.torch.Monitor(batch_size=size, outputs=10)
    clipping = toclip.torch.Monitor(batch_size=size, outputs=10)
    acting = toclip.torch.Monitor(batch_size=size, outputs=10, apply=True)
    loops = {
        "no clipping": lambda: None,
        "clip_grad_norm_": lambda: torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0),
        "Monitor, watching": lambda: monitor.clip_(model.parameters()),
        "Monitor, clipping at 1": lambda: clipping.clip_(model.parameters(), 1.0),
        "Monitor, apply=True": lambda: acting.clip_(model.parameters()),
    }

    def run(clip) -> float:
        if args.device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(args.steps):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            clip()
            optimizer.step()
        if args.device == "cuda":
            torch.cuda.synchronize()
        return (time.perf_counter() - start) / args.steps

    if args.calls:
        for p in model.parameters():
            p.data, p.grad = torch.zeros(16), torch.randn(16)

        def run(clip) -> float:  # noqa: F811
            start = time.process_time()
            for _ in range(args.steps):
                clip()
            return (time.process_time() - start) / args.steps

    found = {name: [] for name in loops}
    for name, clip in loops.items():
        run(clip)
    for _ in range(args.rounds):
        for name, clip in loops.items():
            found[name].append(run(clip))
    base = statistics.median(found["clip_grad_norm_"])
    for name, times in found.items():
        mid = statistics.median(times)
        print(f"{name:24} {1e3 * mid:9.3f} ms a step {100 * (mid / base - 1):+7.2f} %")


if __name__ == "__main__":
    main()
