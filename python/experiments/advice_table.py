"""The tables of ``advice.py``: final accuracy and loss, and what differs from no clipping."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Run = dict[str, Any]

# Student's t at 97.5% by degrees of freedom.
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def spread(values: list[float]) -> float:
    """Standard deviation over seeds; not a number for one."""
    if len(values) < 2:
        return math.nan
    middle = mean(values)
    return math.sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1))


def difference(runs: list[Run], base: list[Run], of: str) -> tuple[float, float]:
    """Mean difference from ``base``, seed by seed, and the half width of its 95% interval."""
    by_seed = {r["seed"]: r[of] for r in base}
    apart = [r[of] - by_seed[r["seed"]] for r in runs]
    if len(apart) < 2:
        return mean(apart), math.inf
    return mean(apart), T[min(len(apart) - 1, 9)] * spread(apart) / math.sqrt(len(apart))


def verdict(runs: list[Run], base: list[Run], of: str, better: float) -> int:
    """1 better than unclipped, -1 worse, 0 when the interval of the difference holds zero."""
    if runs is base or any(r[of] is None for r in runs + base):
        return 0
    apart, half = difference(runs, base, of)
    return 0 if abs(apart) <= half else round(math.copysign(1.0, apart * better))


def shown(runs: list[Run], base: list[Run], of: str, better: float, form: Callable[..., str]) -> str:
    values = [r[of] for r in runs]
    if any(v is None for v in values):
        return f"diverged ({sum(v is None for v in values)} of {len(values)})"
    text = form(mean(values), spread(values))
    mark = {1: "**", -1: "*", 0: ""}[verdict(runs, base, of, better)]
    return f"{mark}{text}{mark}"


def cells(runs: list[Run]) -> dict[tuple[str, int, float, int], dict[str, list[Run]]]:
    """The runs that count, by network, batch size, share of wrong labels and length, then by rule."""
    found: dict[tuple[str, int, float, int], dict[str, list[Run]]] = {}
    for run in runs:
        if run["phase"] == "final":
            place = run["model"], run["batch"], run["noise"], run["steps"]
            cell = found.setdefault(place, {})
            cell.setdefault(run["rule"], []).append(run)
    return dict(sorted(found.items()))


def tables(runs: list[Run]) -> str:
    """Accuracy, loss, and what each rule did, as Markdown."""
    grid = cells(runs)
    if not grid:
        return "no run has finished yet"
    names = list(next(iter(grid.values())))

    def table(title: str, entry: Callable[[list[Run], list[Run]], str], foot: str = "") -> str:
        lines = [title, "", "| network | batch | wrong labels | steps | " + " | ".join(names) + " |",
                 "|---|--:|--:|--:|" + "--:|" * len(names)]
        for (model, batch, noise, steps), by_rule in grid.items():
            entries = [entry(by_rule[n], by_rule["unclipped"]) for n in names]
            lines.append(f"| {model} | {batch} | {noise:.0%} | {steps} | " + " | ".join(entries) + " |")
        return "\n".join(lines) + ("\n" + foot if foot else "")

    def count(of: str, better: float) -> str:
        tally = []
        for n in names:
            found = [verdict(c[n], c["unclipped"], of, better) for c in grid.values()]
            tally.append(f"{found.count(1)} / {found.count(0)} / {found.count(-1)}")
        return "| better / no difference / worse | | | | " + " | ".join(tally) + " |"

    def did(runs: list[Run], _: list[Run]) -> str:
        clips = mean([r["clip_fraction"] for r in runs])
        return f"{clips:.0%}, rate {runs[0]['rate']:g}"

    return "\n\n".join([
        table("Test accuracy in percent, mean ± standard deviation over seeds.",
              lambda r, b: shown(r, b, "accuracy", 1.0, lambda m, s: f"{100 * m:.2f} ± {100 * s:.2f}"),
              count("accuracy", 1.0)),
        table("Test cross-entropy, mean ± standard deviation over seeds.",
              lambda r, b: shown(r, b, "loss", -1.0, lambda m, s: f"{m:.4f} ± {s:.4f}"),
              count("loss", -1.0)),
        table("Share of the steps that were clipped, and the learning rate that tuning chose.", did),
    ])
