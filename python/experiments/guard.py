"""Compares guards with other clipping rules on a small GPT on bytes.

    python guard.py --data wikitext-2 --out results/guard              # all runs; on a GPU
    python guard.py --data wikitext-2 --out results/guard --minutes 9  # some of them; the same command resumes
    python guard.py --out results/guard --table                        # the table of the existing runs
    python guard.py --data wikitext-2 --out quick --quick              # a tiny model, to try the script

A GPT of 4 layers and width 256 on the bytes of ``train.txt``, batches of 32 × 192, 1500 steps, 100 of them
warm-up, then a cosine. Every cell (optimizer, data, learning rate) has the rules of ``guard_rules.py``, with
the same initial weights and batches for the same seed. "Corrupt" replaces 2% of the batches by random bytes
with 30 times the loss. Unclipped runs have lower learning rates too, because a threshold that is always
active is a lower rate in disguise.

All runs of an optimizer, a kind of data and a seed are trained side by side, and stored when they are finished.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from pathlib import Path
from typing import Any

import torch
from argument_types import COUNT, POSITIVE
from guard_gpt import Optimizer, Shape, SideBySide, Text, schedule
from guard_rules import NAMES, candidate, settings
from guard_table import table

import toclip

Run = dict[str, Any]
RATES = {"adamw": (1e-3, 4e-3, 1.2e-2), "sgd": (0.1, 0.2, 0.4, 1.0)}
# For unclipped runs, in addition to the rates above.
LOWER = {"adamw": (2.5e-4, 5e-4, 2e-3), "sgd": (0.025, 0.05)}
CORRUPT, LARGER = 0.02, 30.0
SHAPE = Shape()
QUICK = Shape(layers=2, width=32, heads=2, context=32, batch=8)


def groups(optimizers: list[str], seeds: int, rules: list[str], rates: list[float] | None) -> list[list[Run]]:
    """The runs in the order in which they are made: SGD, where rules differ most, comes first."""
    found = []
    for seed in range(1, seeds + 1):
        for optimizer in optimizers:
            for data in ("corrupt", "clean"):
                pairs = [(rate, rule) for rate in rates or RATES[optimizer] for rule in rules]
                if "none" in rules and not rates:
                    pairs += [(rate, "none") for rate in LOWER[optimizer]]
                found.append([
                    {"optimizer": optimizer, "data": data, "rate": rate, "rule": rule, "seed": seed}
                    | {"settings": settings(rule)}
                    for rate, rule in pairs
                ])
    return found


def key(run: Run) -> tuple[Any, ...]:
    return tuple(run[name] for name in ("optimizer", "data", "rate", "rule", "seed", "steps"))


class Store:
    """Finished runs, one a line, in ``runs.jsonl``."""

    def __init__(self, folder: Path):
        self.path = folder / "runs.jsonl"

    def all(self) -> list[Run]:
        if not self.path.is_file():
            return []
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def current(self) -> list[Run]:
        """Those of guards with the settings that they have now."""
        return [run for run in self.all() if run.get("settings", {}) == settings(run["rule"])]

    def add(self, runs: list[Run]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        out = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(out, "".join(json.dumps(run) + "\n" for run in runs).encode())
        os.close(out)


def train(runs: list[Run], text: Text, shape: Shape, steps: int, bf16: bool) -> list[Run]:
    """Trains the runs of a group, which share seed, optimizer and data."""
    seed, device = runs[0]["seed"], text.device
    model = SideBySide(shape, len(runs), seed, device)
    optimizer = Optimizer(runs[0]["optimizer"], model)
    rules = [candidate(run["rule"])() for run in runs]
    peak = torch.tensor([run["rate"] for run in runs], device=device)
    corrupt = runs[0]["data"] == "corrupt"
    batches, bad = (torch.Generator().manual_seed(1000 * k + seed) for k in (1, 2))
    fired, skipped, dead = ([0] * len(runs) for _ in range(3))
    warmup = min(100, steps // 4)
    for step in range(steps):
        rows, weight = text.batch(batches), 1.0
        if float(torch.rand((), generator=bad)) < CORRUPT and corrupt:
            rows, weight = text.noise(bad), LARGER
        rows = rows.expand(len(runs), *rows.shape)
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            losses = model.losses(rows[..., :-1], rows[..., 1:])
        (weight * losses.sum()).backward()
        factors = []
        for k, norm in enumerate(model.norms().tolist()):
            factor = math.nan if dead[k] else rules[k](norm)
            dead[k] |= math.isnan(factor)
            fired[k] += factor < 1.0
            skipped[k] += factor == 0.0
            factors.append(0.0 if math.isnan(factor) else factor)
        now = schedule(step, steps, warmup)
        optimizer.step(torch.tensor(factors, device=device), now * peak)
    final = validate(model, text, len(runs))
    return [
        run | {
            "steps": steps,
            "loss": None if dead[k] or not math.isfinite(final[k]) else round(final[k], 5),
            "fires": round(fired[k] / steps, 5),
            "skips": round(skipped[k] / steps, 5),
        }
        for k, run in enumerate(runs)
    ]


@torch.no_grad()
def validate(model: SideBySide, text: Text, runs: int, batches: int = 20) -> list[float]:
    total = torch.zeros(runs, device=text.device)
    for rows in text.validation(batches):
        rows = rows.expand(runs, *rows.shape)
        total += model.losses(rows[..., :-1], rows[..., 1:])
    return (total / batches).tolist()


def arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--data", type=Path, help="folder with train.txt and valid.txt")
    p.add_argument("--out", type=Path, required=True, help="folder of the runs")
    p.add_argument("--table", action="store_true", help="print the table of the existing runs and exit")
    p.add_argument("--optimizer", choices=sorted(RATES), nargs="+", default=["sgd", "adamw"])
    p.add_argument("--rule", nargs="+", default=NAMES, help="rules, or 'guard multiple=3 rise=0.0005 …'")
    p.add_argument("--rate", type=POSITIVE, nargs="+", help="learning rates (default: by optimizer)")
    p.add_argument("--seeds", type=COUNT, default=4)
    p.add_argument("--steps", type=COUNT, default=1500)
    p.add_argument("--together", type=COUNT, default=64, help="the most runs to train side by side")
    p.add_argument("--bf16", action="store_true", help="matrix products in bfloat16: half the time on a GPU")
    p.add_argument("--quick", action="store_true", help="a tiny model")
    p.add_argument("--minutes", type=POSITIVE, default=math.inf,
                   help="start no group that would end later than this")
    return p.parse_args()


def main() -> None:
    a = arguments()
    store = Store(a.out)
    if a.table:
        print(table(store.current()))
        return
    if a.data is None:
        raise SystemExit("--data is missing; expected a folder with train.txt and valid.txt")
    for rule in a.rule:
        try:
            candidate(rule)
        except ValueError as error:
            raise SystemExit(f"--rule: {error}") from None
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    shape = QUICK if a.quick else SHAPE
    text = Text((a.data / "train.txt").read_bytes(), (a.data / "valid.txt").read_bytes(), shape, device)
    precision = "bfloat16" if a.bf16 else "TensorFloat32" if device.type == "cuda" else "float32"
    versions = f"torch {torch.__version__}, toclip {toclip.__version__}, {device}, {precision}"
    began, longest = time.time(), 0.0
    made = {key(run) for run in store.current()}
    for group in groups(a.optimizer, a.seeds, a.rule, a.rate):
        left = [run for run in group if key(run | {"steps": a.steps}) not in made]
        for first in range(0, len(left), a.together):
            start = time.time()
            if start + longest > began + 60.0 * a.minutes:
                raise SystemExit("stopped; finished runs are stored and the same command resumes")
            part = left[first : first + a.together]
            done = train(part, text, shape, a.steps, a.bf16)
            store.add([run | {"versions": versions} for run in done])
            longest = max(longest, time.time() - start)
            label = " ".join(str(part[0][name]) for name in ("optimizer", "data", "seed"))
            print(f"{label}: {len(part)} runs in {time.time() - start:.0f} s", flush=True)
    print(table(store.current()))


if __name__ == "__main__":
    main()
