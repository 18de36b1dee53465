#!/usr/bin/env python3
"""Measures the overhead of a sweep: use of the cores, time per cell, memory by the number of cells.

    cargo build --release && scripts/measure-sweep.py
    scripts/measure-sweep.py --python      also Python executors; needs toclip, and optionally Dask and Ray

Run it on an idle machine. It prints numbers and asserts nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

SWEEP = """
spectrum      = {{ kind = "power_law", dim = {dim}, exponent = 0.2 }}
start         = {{ kind = "uniform", norm = 1.0 }}
noise         = {noise}
time          = {time}
{fixed}

[vary]
{key} = {{ linear = [1.5, 6.0], count = {columns} }}
clip     = {{ log = [0.03, 10.0], count = {rows} }}
"""


def run(toclip: Path, folder: Path, text: str, *more: str) -> tuple[float, float, float]:
    """Seconds, seconds of processor time and megabytes of a sweep."""
    (folder / "s.toml").write_text(text)
    out = folder / f"out-{time.monotonic_ns()}"
    begin = time.perf_counter()
    child = subprocess.Popen([toclip, "sweep", folder / "s.toml", "--out", out, "--quiet", *more])
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begin
    if status != 0:
        sys.exit(f"toclip sweep failed with status {status}")
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toclip", type=Path, default=ROOT / "target" / "release" / "toclip")
    parser.add_argument("--python", action="store_true", help="also measure Python executors")
    args = parser.parse_args()
    if not args.toclip.exists():
        parser.error(f"{args.toclip} does not exist; run cargo build --release")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        grid = SWEEP.format(
            noise='{ family = "student_t", df = 2.5, scale = 0.5 }', fixed="learning_rate = 0.3",
            key="noise.df", dim=500, time=10.0, columns=40, rows=50,
        )
        seconds, busy, _ = run(args.toclip, folder, grid)
        one, _, _ = run(args.toclip, folder, grid, "--threads", "1")
        print(f"2,000 cells: {seconds:.2f} s on {cores} cores, which were busy {busy / seconds / cores:.0%} of it; "
              f"{one:.2f} s on one core: {one / seconds / cores:.0%} of {cores} times as fast")
        # Cells with hardly any work, to measure the sweep itself.
        for cells in (1_000, 10_000, 100_000):
            tiny = SWEEP.format(
                noise='{ family = "laplace", sigma = 0.5 }', fixed="",
                key="learning_rate", dim=2, time=0.01, columns=100, rows=cells // 100,
            )
            seconds, busy, megabytes = run(args.toclip, folder, tiny)
            print(f"{cells:,} cells of hardly any work: {seconds:.2f} s, {1e6 * busy / cells:.0f} µs of processor "
                  f"time a cell, {megabytes:.0f} MB")
        if args.python:
            executors(folder, grid)


def executors(folder: Path, grid: str) -> None:
    """Time of the same 2,000 cells on each executor that is installed, two workers each."""
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

    import toclip

    (folder / "s.toml").write_text(grid)
    spec = folder / "s.toml"
    expected = toclip.sweep(spec)

    def measure(name: str, executor: object) -> None:
        # Once to start the workers.
        toclip.sweep(spec, executor)
        begin = time.perf_counter()
        same = toclip.sweep(spec, executor) == expected
        seconds = time.perf_counter() - begin
        extra = 1e3 * (seconds - alone) / len(expected)
        print(f"{name:<28} {seconds:6.2f} s, {extra:+.2f} ms a cell over threads in Rust, "
              f"{'the same table' if same else 'ANOTHER TABLE'}")

    begin = time.perf_counter()
    toclip.sweep(spec)
    alone = time.perf_counter() - begin
    print(f"{'threads in Rust':<28} {alone:6.2f} s")
    with ThreadPoolExecutor(2) as pool:
        measure("concurrent.futures, threads", pool)
    with ProcessPoolExecutor(2) as pool:
        measure("concurrent.futures, processes", pool)
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        print("Dask is not installed")
    else:
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                measure("Dask", client)
    try:
        import ray
    except ImportError:
        print("Ray is not installed")
    else:
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
        measure("Ray", ray)
        ray.shutdown()


if __name__ == "__main__":
    main()
