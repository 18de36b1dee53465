"""Compares five clipping rules on CIFAR-10 with randomly replaced labels.

    python advice.py --data ~/.cache/toclip/cifar10 --out results/advice
    python advice.py --out results/advice --table --given results/advice/given-rates   # as Markdown
    python advice.py --out results/advice --pictures docs/images
    python advice.py --data ... --out ... --model small_cnn --batch 16 --minutes 5
    python advice.py --data ... --out ... --rule unclipped --rate 0.01 0.03   # no tuning

All rules get the same number of steps, batches, initial weights and tuning. Tuning runs use a quarter
of the steps at five learning rates, compared by accuracy on 5000 held-out training images (with labels
as noisy as the rest), and continue at the next rate while the best one is at the edge. The final runs
use new seeds at the best rate. Finished runs are in ``runs.jsonl``, unfinished ones in a checkpoint:
after Ctrl-C, or after ``--minutes``, the same command resumes.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from advice_picture import draw
from advice_runs import Group, Stop, rules
from advice_store import Run, Store
from advice_table import best, tables
from cifar import Cifar10, load
from argument_types import COUNT, POSITIVE, SHARE

import toclip

NOISES = (0.0, 0.2, 0.4)
RULES = list(rules(1))
# Steps of a final run: minutes on a GPU; the small network runs longer.
STEPS = {
    ("small_cnn", 16): 12_000, ("small_cnn", 128): 4000,
    ("resnet18", 16): 4000, ("resnet18", 128): 1600,
}
SEEDS = {"small_cnn": 6, "resnet18": 4}
# The first learning rates of tuning as powers of sqrt(10), for momentum 0.9; and how many at most.
POWERS = {16: range(-6, -1), 128: range(-5, 0)}
MOST_RATES, TUNING_SEED = 8, 1000


def rate(power: int) -> float:
    return float(f"{10.0 ** (power / 2):.3g}")


def to_tune(tuned: list[Run], names: list[str], batch: int) -> list[Run]:
    """The first rates, then one more for each rule whose best rate is at the edge."""
    jobs = []
    for rule in names:
        these = [r for r in tuned if r["rule"] == rule]
        had, found = sorted(r["power"] for r in these), best(these)
        if found is None:
            more = list(POWERS[batch])
        elif len(had) >= MOST_RATES or had[0] < found["power"] < had[-1]:
            more = []
        else:
            more = [had[0] - 1 if found["power"] == had[0] else had[-1] + 1]
        jobs += [{"rule": rule, "power": p, "rate": rate(p), "seed": TUNING_SEED} for p in more]
    return jobs


def cell(store: Store, data: Cifar10, a: argparse.Namespace, stop: Stop, where: Run) -> bool:
    """One network, batch size and share of replaced labels: tuning, then the final runs."""
    steps = a.steps or STEPS[where["model"], where["batch"]]
    names = [rule for rule in rules(where["batch"]) if rule in (a.rule or RULES)]
    seeds = range(1, 1 + (a.seeds or SEEDS[where["model"]]))
    tuning = {"phase": "tuning"} | where | {"steps": max(1, steps // 4)}
    final = {"phase": "final"} | where | {"steps": steps}

    def run(setting: Run, jobs: list[Run]) -> bool:
        group = Group(data, setting, jobs, a.out, graph=not a.plain)
        records = group.run(stop, a.judged)
        if records is None:
            return False
        store.add(records)
        group.checkpoint.unlink(missing_ok=True)
        return True

    if a.rate:
        given = final | {"phase": "given rate"}
        made = {(r["rule"], r["rate"], r["seed"]) for r in store.of(given)}
        jobs = [
            {"rule": rule, "rate": rate, "seed": s}
            for rule in names for rate in dict.fromkeys(a.rate) for s in seeds
            if (rule, rate, s) not in made
        ]
        return not jobs or run(given, jobs)
    while jobs := to_tune(store.of(tuning), names, where["batch"]):
        if not run(tuning, jobs):
            return False
    had = {(r["rule"], r["seed"]) for r in store.of(final)}
    tuned = store.of(tuning)
    chosen = {n: found for n in names if (found := best(r for r in tuned if r["rule"] == n))}
    jobs = [
        {"rule": rule, "power": r["power"], "rate": r["rate"], "seed": s}
        for rule, r in chosen.items() for s in seeds if (rule, s) not in had
    ]
    return not jobs or run(final, jobs)


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--data", type=Path, nargs="+", help="folder(s) with the .bin files of CIFAR-10")
    p.add_argument("--out", type=Path, required=True, help="folder of the runs")
    p.add_argument("--table", action="store_true", help="print the tables of the existing runs and exit")
    p.add_argument("--given", type=Path, metavar="DIR", help="add the --rate runs in DIR to the table")
    p.add_argument("--pictures", type=Path, metavar="DIR", help="plot the existing runs into DIR and exit")
    p.add_argument("--model", choices=sorted(SEEDS), nargs="+", default=list(SEEDS))
    p.add_argument("--batch", type=int, choices=sorted(POWERS), nargs="+", default=sorted(POWERS))
    p.add_argument("--noise", type=SHARE, nargs="+", default=list(NOISES), help="shares of replaced labels")
    p.add_argument("--rule", choices=RULES, nargs="+", help="only these rules (default: all)")
    p.add_argument("--rate", type=POSITIVE, nargs="+", help="run at these learning rates, without tuning")
    p.add_argument("--steps", type=COUNT, help="steps per run (default: by network and batch size)")
    p.add_argument("--seeds", type=COUNT, help="number of final runs (default: by network)")
    p.add_argument("--files", type=int, choices=range(1, 6), default=5,
                   help="number of training files, up to five")
    p.add_argument("--judged", type=COUNT, help="number of test images (default: all)")
    p.add_argument("--plain", action="store_true", help="on a GPU, do not use a CUDA graph (slower)")
    p.add_argument("--minutes", type=POSITIVE, default=math.inf, help="stop after this many minutes; the same command resumes")
    return p.parse_args()


def main() -> None:
    a = arguments()
    store = Store(a.out)
    if (a.table or a.pictures) and not store.path.is_file():
        raise SystemExit(f"{store.path} does not exist; --out must be the folder of earlier runs")
    if a.given and not Store(a.given).path.is_file():
        raise SystemExit(f"{Store(a.given).path} does not exist; --given must be a folder of --rate runs")
    if a.pictures:
        if not any(r["phase"] == "final" for r in store.all()):
            raise SystemExit(f"nothing to plot: {store.path} has no run at a tuned learning rate")
        for path in draw(store.all(), a.pictures):
            print(path)
    if a.table:
        print(tables(store.all(), Store(a.given).all() if a.given else None))
    if a.table or a.pictures:
        return
    if not a.data:
        raise SystemExit("--data is missing; use the folder that `toclip data path cifar10` prints")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    versions = {"torch": torch.__version__, "toclip": toclip.__version__,
                "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu"}
    store.open(versions)
    data = load(a.data, device, a.files)
    stop = Stop(a.minutes)
    for model in a.model:
        for batch in a.batch:
            for noise in a.noise:
                if not cell(store, data, a, stop, {"model": model, "batch": batch, "noise": noise}):
                    raise SystemExit("stopped; progress is saved and the same command resumes")
    print(tables(store.all()))


if __name__ == "__main__":
    main()
