"""The table of ``guard.py``: mean validation loss over seeds, and how each rule compares with the best."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

Run = dict[str, Any]


# The loss of guessing all bytes alike: a run that ends above it has diverged, as one with NaN has.
GUESSING = math.log(256.0)


def loss(run: Run) -> float:
    """The final loss; infinite if the run diverged."""
    value = math.inf if run["loss"] is None else float(run["loss"])
    return value if value < GUESSING else math.inf


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def paired(ours: dict[int, float], theirs: dict[int, float]) -> tuple[float, float]:
    """The mean difference over the seeds that both have, and its standard error."""
    seeds = sorted(ours.keys() & theirs.keys())
    # A run that diverged in both is no difference.
    differences = [ours[s] - theirs[s] for s in seeds if min(ours[s], theirs[s]) < math.inf]
    n, middle = len(differences), mean(differences)  # NaN if there are none
    if n < 2 or not math.isfinite(middle):
        return middle, math.nan
    variance = sum((d - middle) ** 2 for d in differences) / (n - 1)
    return middle, math.sqrt(variance / n)


def cells(runs: list[Run]) -> dict[tuple[Any, ...], dict[str, dict[int, Run]]]:
    found: dict[tuple[Any, ...], dict[str, dict[int, Run]]] = defaultdict(lambda: defaultdict(dict))
    for run in runs:
        found[run["optimizer"], run["data"], run["rate"]][run["rule"]][run["seed"]] = run
    return found


def text_of(values: list[float]) -> str:
    """The mean and the range; how many diverged if some did."""
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return "diverged"
    said = f"{mean(finite):.3f}"
    if len(finite) > 1:
        said += f" ({min(finite):.3f}–{max(finite):.3f})"
    gone = len(values) - len(finite)
    return f"{said}, {gone} of {len(values)} diverged" if gone else said


def table(runs: list[Run]) -> str:
    """Markdown: one table per optimizer and kind of data, one row per rule, one column per rate."""
    found, lines = cells(runs), []
    for optimizer, data in sorted({key[:2] for key in found}):
        rates = sorted(rate for o, d, rate in found if (o, d) == (optimizer, data))
        names = list(dict.fromkeys(rule for rate in rates for rule in found[optimizer, data, rate]))
        lines += [f"### {optimizer}, {data}", "", "| rule | " + " | ".join(f"{r:g}" for r in rates) + " |"]
        lines.append("|---" * (1 + len(rates)) + "|")
        for name in names:
            row = [_cell(found[optimizer, data, rate], name) for rate in rates]
            lines.append(f"| {name} | " + " | ".join(row) + " |")
        lines.append("")
    return "\n".join(lines + _against_best(found))


def _cell(rules: dict[str, dict[int, Run]], name: str) -> str:
    runs = list(rules.get(name, {}).values())
    if not runs:
        return ""
    fires = mean([run["fires"] for run in runs])
    acts = f"{100 * fires:.1f}%" if fires < 0.1 else f"{100 * fires:.0f}%"
    return f"{text_of([loss(run) for run in runs])}; {acts}" if fires else text_of([loss(r) for r in runs])


def _against_best(found: dict[tuple[Any, ...], dict[str, dict[int, Run]]]) -> list[str]:
    """Each guard against no clipping, and against the best rule that does not clip every step."""
    lines = ["### Guards against the best rule at the same rate", ""]
    lines += ["| cell | guard | against none | best rule | against it | within two standard errors |"]
    lines += ["|---" * 6 + "|"]
    for (optimizer, data, rate), rules in sorted(found.items()):
        losses = {name: {s: loss(r) for s, r in seeds.items()} for name, seeds in rules.items()}
        rare = [n for n, seeds in rules.items() if mean([r["fires"] for r in seeds.values()]) < 0.95]
        others = [n for n in rare if not n.startswith("guard")]
        guards = [n for n in rules if n.startswith("guard")]
        if not (guards and others):
            continue
        best = min(others, key=lambda n: mean(list(losses[n].values())))
        for name in guards:
            none = paired(losses[name], losses.get("none", {}))
            over, error = paired(losses[name], losses[best])
            verdict = "yes" if over <= 0 or over <= 2 * error else "no"
            if math.isnan(error) and math.isfinite(over):
                verdict = "one seed"
            elif math.isinf(over):
                verdict = "no" if over > 0 else "yes"
            lines.append(
                f"| {optimizer}, {data}, {rate:g} | {name} | {_difference(*none)} | {best} | "
                f"{_difference(over, error)} | {verdict} |"
            )
    return lines


def _difference(middle: float, error: float) -> str:
    if math.isnan(middle):
        return "both diverged"
    if math.isinf(middle):
        return "the other diverged" if middle < 0 else "the guard diverged"
    return f"{middle:+.3f}" + ("" if math.isnan(error) else f" ± {error:.3f}")
