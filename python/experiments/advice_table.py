"""The tables of ``advice.py``: final accuracy and loss, compared with no clipping."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from advice_store import Run

# Student's t at 97.5% by degrees of freedom.
T = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}

# The first columns of a row.
PLACE = "| network | batch | labels replaced | steps |"


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def spread(values: list[float]) -> float:
    """Standard deviation over seeds; NaN for a single seed."""
    if len(values) < 2:
        return math.nan
    middle = mean(values)
    return math.sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1))


def best(runs: Iterable[Run]) -> Run | None:
    """The run with the highest accuracy on the held-out images."""
    return max(runs, key=lambda r: r["aside_accuracy"], default=None)


def difference(runs: list[Run], base: list[Run], of: str) -> tuple[float, float]:
    """Mean difference from ``base``, seed by seed, and the half width of its 95% interval."""
    by_seed = {r["seed"]: r[of] for r in base}
    apart = [r[of] - by_seed[r["seed"]] for r in runs if r["seed"] in by_seed]
    if len(apart) < 2:
        return mean(apart) if apart else 0.0, math.inf
    return mean(apart), T[min(len(apart) - 1, 9)] * spread(apart) / math.sqrt(len(apart))


def verdict(runs: list[Run], base: list[Run], of: str, better: float) -> int:
    """1 if better than unclipped, -1 if worse, 0 if the interval of the difference contains zero."""
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
    """The final runs by network, batch size, share of replaced labels and steps, then by rule."""
    found: dict[tuple[str, int, float, int], dict[str, list[Run]]] = {}
    for run in runs:
        if run["phase"] == "final":
            place = run["model"], run["batch"], run["noise"], run["steps"]
            cell = found.setdefault(place, {})
            cell.setdefault(run["rule"], []).append(run)
    return dict(sorted(found.items()))


def at_given_rates(runs: list[Run], tuned: list[Run]) -> str:
    """The ``--rate`` runs, one line per rule and rate, compared with the best tuned rule."""
    found: dict[tuple[str, int, float, int, str, float], list[Run]] = {}
    for r in runs:
        if r["phase"] == "given rate":
            place = r["model"], r["batch"], r["noise"], r["steps"], r["rule"], r["rate"]
            found.setdefault(place, []).append(r)
    grid = cells(tuned)
    lines = ["Runs at given rates: test accuracy in percent and cross-entropy, mean ± standard deviation over "
             "seeds; last column: by how much the best tuned rule is more accurate on the same seeds.", "",
             f"{PLACE} rule | rate | runs | clipped | accuracy | cross-entropy | best tuned rule |",
             "|---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|"]
    for (*place, rule, rate), these in sorted(found.items()):
        model, batch, noise, steps = place
        accuracy = shown(these, these, "accuracy", 1.0, percent)
        loss = shown(these, these, "loss", -1.0, plain)
        clips = mean([r["clip_fraction"] for r in these])
        lines.append(f"| {model} | {batch} | {noise:.0%} | {steps} | {rule} | {rate:g} | {len(these)} | "
                     f"{clips:.0%} | {accuracy} | {loss} | {ahead(these, grid.get(tuple(place), {}))} |")
    return "\n".join(lines) if found else ""


def ahead(runs: list[Run], by_rule: dict[str, list[Run]]) -> str:
    """The tuned rule with the highest accuracy, and its advantage over ``runs`` with a 95% interval."""
    if not by_rule:
        return "–"
    name = max(by_rule, key=lambda n: mean([r["accuracy"] for r in by_rule[n]]))
    apart, half = difference(by_rule[name], runs, "accuracy")
    return f"{name} {100 * apart:+.2f} ± {100 * half:.2f}"


def at_every_rate(runs: list[Run]) -> str:
    """The tuning runs: each rule minus no clipping, below, at and above the best rate."""
    grid: dict[tuple[str, int, float, int], dict[str, dict[float, Run]]] = {}
    for r in runs:
        if r["phase"] == "tuning":
            place = r["model"], r["batch"], r["noise"], r["steps"]
            grid.setdefault(place, {}).setdefault(r["rule"], {})[r["rate"]] = r
    whole = [by_rule for by_rule in grid.values() if "unclipped" in by_rule]
    names = list(dict.fromkeys(n for by_rule in whole for n in by_rule if n != "unclipped"))
    lines = ["Test accuracy of the tuning runs (a quarter of the steps, one seed) minus that without "
             "clipping, in percentage points: mean (minimum to maximum). The best rate is that without "
             "clipping, except in the first column.", "",
             "| network | rule | each at its best | both below the best | both at it | both above it |",
             "|---|---|--:|--:|--:|--:|"]
    for model, name in ((m, n) for m in sorted({place[0] for place in grid}) for n in names):
        apart: list[list[float]] = [[], [], [], []]
        for place, by_rule in grid.items():
            if place[0] != model or "unclipped" not in by_rule or name not in by_rule:
                continue
            base, own = best(by_rule["unclipped"].values()), best(by_rule[name].values())
            apart[0].append(own["accuracy"] - base["accuracy"])
            for rate, run in by_rule[name].items():
                if other := by_rule["unclipped"].get(rate):
                    where = 1 + (rate >= base["rate"]) + (rate > base["rate"])
                    apart[where].append(run["accuracy"] - other["accuracy"])
        entries = [
            f"{100 * mean(a):+.1f} ({100 * min(a):+.1f} to {100 * max(a):+.1f})" if a else "–"
            for a in apart
        ]
        lines.append(f"| {model} | {name} | " + " | ".join(entries) + " |")
    return "\n".join(lines) if names else ""


def percent(middle: float, spread: float) -> str:
    return f"{100 * middle:.2f} ± {100 * spread:.2f}"


def plain(middle: float, spread: float) -> str:
    return f"{middle:.4f} ± {spread:.4f}"


def tables(runs: list[Run], given: list[Run] | None = None) -> str:
    """Accuracy, loss and clipping of each rule, as Markdown; ``given`` are runs of another folder."""
    parts = [compared(runs), at_every_rate(runs), at_given_rates(runs + (given or []), runs)]
    return "\n\n".join(part for part in parts if part) or "no run has finished yet"


def compared(runs: list[Run]) -> str:
    """The rules compared, each at its tuned rate."""
    grid = cells(runs)
    if not grid:
        return ""
    names = list(dict.fromkeys(name for by_rule in grid.values() for name in by_rule))

    def with_base(by_rule: dict[str, list[Run]], name: str) -> tuple[list[Run], list[Run]]:
        """The runs of a rule and those without clipping, or the rule itself if there are none."""
        return by_rule[name], by_rule.get("unclipped", by_rule[name])

    def table(title: str, entry: Callable[[list[Run], list[Run]], str], foot: str = "") -> str:
        lines = [title, "", f"{PLACE} " + " | ".join(names) + " |",
                 "|---|--:|--:|--:|" + "--:|" * len(names)]
        for (model, batch, noise, steps), by_rule in grid.items():
            entries = [entry(*with_base(by_rule, n)) if n in by_rule else "–" for n in names]
            lines.append(f"| {model} | {batch} | {noise:.0%} | {steps} | " + " | ".join(entries) + " |")
        return "\n".join(lines) + ("\n" + foot if foot else "")

    def count(of: str, better: float) -> str:
        tally = []
        for n in names:
            found = [verdict(*with_base(c, n), of, better) for c in grid.values() if n in c]
            tally.append(f"{found.count(1)} / {found.count(0)} / {found.count(-1)}")
        return "| better / no difference / worse | | | | " + " | ".join(tally) + " |"

    def clipping(runs: list[Run], _: list[Run]) -> str:
        clips = mean([r["clip_fraction"] for r in runs])
        return f"{clips:.0%}, rate {runs[0]['rate']:g}"

    return "\n\n".join([
        table("Test accuracy in percent, mean ± standard deviation over seeds.",
              lambda r, b: shown(r, b, "accuracy", 1.0, percent),
              count("accuracy", 1.0)),
        table("Test cross-entropy, mean ± standard deviation over seeds.",
              lambda r, b: shown(r, b, "loss", -1.0, plain),
              count("loss", -1.0)),
        table("Share of the steps that were clipped, and the learning rate that tuning chose.", clipping),
    ])
