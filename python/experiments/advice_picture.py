"""The pictures of ``advice.py``: what each rule reaches at every rate, and after tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from advice_table import cells, difference

Run = dict[str, Any]

# Okabe and Ito's colours, told apart by the colour-blind; lines and marks differ as well.
STYLE = {
    "unclipped": ("#000000", "o", "-"),
    "fixed 1": ("#0072b2", "s", "--"),
    "autoclip 10": ("#009e73", "^", "-."),
    "zclip": ("#cc79a7", "D", ":"),
    "monitor": ("#d55e00", "x", (0, (1, 1))),
}
NAMES = {"resnet18": "ResNet-18", "small_cnn": "small CNN"}


def place(model: str, batch: int, noise: float) -> str:
    return f"{NAMES.get(model, model)}, batch {batch}, {noise:.0%} wrong labels"


def by_rate(runs: list[Run], axes: Any) -> None:
    """Test accuracy over the learning rate, of the runs by which the rates were chosen."""
    for rule, (colour, mark, line) in STYLE.items():
        these = sorted((r["rate"], 100 * r["accuracy"]) for r in runs if r["rule"] == rule)
        if not these:
            continue
        # The monitor often does what no clipping does: its marks lie on the other's.
        axes.plot(*zip(*these), color=colour, marker=mark, linestyle=line, label=rule,
                  markersize=7 if rule == "monitor" else 4, linewidth=1.4)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)


def draw_rates(runs: list[Run], path: Path) -> None:
    from matplotlib import pyplot

    tuning = [r for r in runs if r["phase"] == "tuning"]
    places = sorted({(r["model"], r["batch"], r["noise"]) for r in tuning})
    columns = sorted({p[2] for p in places})
    lines = sorted({p[:2] for p in places})
    figure, grid = pyplot.subplots(len(lines), len(columns), figsize=(11, 2.9 * len(lines)),
                                   sharey="row", squeeze=False, layout="constrained")
    for row, (model, batch) in zip(grid, lines):
        for axes, noise in zip(row, columns):
            these = [r for r in tuning if (r["model"], r["batch"], r["noise"]) == (model, batch, noise)]
            by_rate(these, axes)
            steps = these[0]["steps"] if these else 0
            axes.set_title(f"{place(model, batch, noise)}\n{steps} steps", fontsize=9, loc="left")
        row[0].set_ylabel("test accuracy, %")
    for axes in grid[-1]:
        axes.set_xlabel("learning rate")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def draw_final(runs: list[Run], path: Path) -> None:
    from matplotlib import pyplot

    grid = cells(runs)
    models = sorted({place[0] for place in grid})
    figure, row = pyplot.subplots(1, len(models), figsize=(11, 4.6), squeeze=False, layout="constrained")
    for axes, model in zip(row[0], models):
        these = {p: by_rule for p, by_rule in grid.items() if p[0] == model}
        rules = [rule for rule in STYLE if rule != "unclipped"]
        for line, by_rule in enumerate(these.values()):
            for k, rule in enumerate(rules):
                if rule not in by_rule or "unclipped" not in by_rule:
                    continue
                apart, half = difference(by_rule[rule], by_rule["unclipped"], "accuracy")
                colour, mark, _ = STYLE[rule]
                axes.errorbar(100 * apart, line + 0.18 * (k - 1.5), xerr=100 * half, color=colour,
                              marker=mark, linestyle="none", capsize=2, markersize=6,
                              label=rule if line == 0 else None)
        axes.axvline(0.0, color="0.4", linewidth=0.8)
        axes.set_yticks(range(len(these)), [f"batch {b}\n{n:.0%} wrong" for _, b, n, _ in these])
        axes.invert_yaxis()
        axes.set_title(NAMES.get(model, model), loc="left")
        axes.set_xlabel("test accuracy less that of no clipping, percentage points")
        axes.grid(axis="x", alpha=0.25)
    handles, labels = row[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def draw(runs: list[Run], folder: Path) -> list[Path]:
    """Both pictures, as SVG: the same bytes from the same runs."""
    from matplotlib import rc_context

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "advice-rates.svg", folder / "advice-final.svg"]
    with rc_context({"svg.hashsalt": "toclip", "font.size": 9}):
        draw_rates(runs, paths[0])
        draw_final(runs, paths[1])
    return paths
