"""Times a million points (R, c) in Python and in Rust: seconds, best of five, interleaved.

    python python/benchmarks/million.py

The Rust side is the example `million` of the crate toclip and needs cargo.
"""

import subprocess
import time
from pathlib import Path

import numpy as np

import toclip

ROOT = Path(__file__).parents[2]
NOISES = {
    "gaussian": toclip.noise.gaussian(0.7),
    "rademacher": toclip.noise.rademacher(0.3, lam=2.0),
    "laplace": toclip.noise.laplace(sigma=0.9),
}


def rust() -> dict[str, float]:
    command = ["cargo", "run", "--release", "--quiet", "-p", "toclip", "--example", "million"]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return {name: float(seconds) for name, seconds in map(str.split, out.splitlines())}


def python() -> dict[str, float]:
    r, c = np.linspace(1e-3, 10.0, 1000)[:, None], np.linspace(0.05, 5.0, 1000)
    found = {}
    for name, noise in NOISES.items():
        best = float("inf")
        for _ in range(5):
            start = time.perf_counter()
            toclip.factors(noise, r, c)
            best = min(best, time.perf_counter() - start)
        found[name] = best
    return found


if __name__ == "__main__":
    rounds = [(rust(), python()) for _ in range(3)]
    print(f"{'noise':12} {'Rust':>9} {'Python':>9} {'ratio':>7}")
    for name in NOISES:
        a, b = (min(side[name] for side in sides) for sides in zip(*rounds))
        print(f"{name:12} {a:8.4f}s {b:8.4f}s {b / a:7.3f}")
