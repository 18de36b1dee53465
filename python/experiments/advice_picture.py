"""The plots of ``advice.py``: accuracy of each rule at every learning rate, and after tuning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from advice_store import Run
from advice_table import cells, difference

# Okabe and Ito's colour-blind-safe colours; lines and markers differ as well. Rules that seldom clip
# coincide with "unclipped", so their markers are open.
STYLE: dict[str, dict[str, Any]] = {
    "unclipped": {"color": "#000000", "marker": "o", "linestyle": "-", "markersize": 3},
    "fixed 1": {"color": "#0072b2", "marker": "s", "linestyle": "--", "markersize": 4},
    "autoclip 10": {"color": "#009e73", "marker": "^", "linestyle": "-.", "markersize": 5},
    "zclip": {"color": "#cc79a7", "marker": "D", "linestyle": ":", "markersize": 8,
              "markerfacecolor": "none"},
    "monitor": {"color": "#d55e00", "marker": "x", "linestyle": (0, (1, 1)), "markersize": 7},
}
NAMES = {"resnet18": "ResNet-18", "small_cnn": "small CNN"}
GUESSING = 10.0
# Larger differences are on a logarithmic scale, in percentage points.
LINEAR = 2.0


def by_rate(runs: list[Run], axes: Any) -> None:
    """Test accuracy against learning rate, one line per rule."""
    for rule, style in STYLE.items():
        these = sorted((r["rate"], 100 * r["accuracy"]) for r in runs if r["rule"] == rule)
        if these:
            axes.plot(*zip(*these), label=rule, linewidth=1.4, **style)
    axes.axhline(GUESSING, color="0.6", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)


def rates(runs: list[Run]) -> Any:
    """The tuning runs: one row per network and batch size."""
    from matplotlib import pyplot

    tuning = [r for r in runs if r["phase"] == "tuning"]
    columns = sorted({r["noise"] for r in tuning})
    lines = sorted({(r["model"], r["batch"]) for r in tuning})
    figure, grid = pyplot.subplots(len(lines), len(columns), figsize=(11, 2.9 * len(lines)),
                                   sharex="row", sharey="row", squeeze=False, layout="constrained")
    for row, (model, batch) in zip(grid, lines):
        for axes, noise in zip(row, columns):
            these = [r for r in tuning if (r["model"], r["batch"], r["noise"]) == (model, batch, noise)]
            by_rate(these, axes)
            steps = these[0]["steps"] if these else 0
            title = f"{NAMES.get(model, model)}, batch {batch}, {noise:.0%} of labels replaced\n{steps} steps"
            axes.set_title(title, fontsize=9, loc="left")
        row[0].set_ylabel("test accuracy, %\n(grey: guessing)")
    for axes in grid[-1]:
        axes.set_xlabel("learning rate")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure


def final(runs: list[Run]) -> Any:
    """Accuracy of each rule minus no clipping, at tuned rates; one panel per network."""
    from matplotlib import pyplot

    grid = {place: c for place, c in cells(runs).items() if "unclipped" in c}
    models = sorted({place[0] for place in grid})
    figure, row = pyplot.subplots(1, len(models), figsize=(11, 4.6), squeeze=False, layout="constrained")
    for axes, model in zip(row[0], models):
        these = {place: c for place, c in grid.items() if place[0] == model}
        for k, rule in enumerate(rule for rule in STYLE if rule != "unclipped"):
            found = [(line, *difference(c[rule], c["unclipped"], "accuracy"))
                     for line, c in enumerate(these.values()) if rule in c]
            if found:
                lines, apart, half = zip(*found)
                axes.errorbar([100 * x for x in apart], [line + 0.18 * (k - 1.5) for line in lines],
                              xerr=[100 * x for x in half], capsize=2, label=rule,
                              **STYLE[rule] | {"linestyle": "none", "markersize": 6})
        axes.axvline(0.0, color="0.4", linewidth=0.8)
        axes.set_xscale("symlog", linthresh=LINEAR)
        ticks = [-20, -10, -5, -2, -1, 0, 1, 2, 5, 10, 20]
        low, high = axes.get_xlim()
        axes.set_xticks([x for x in ticks if low <= x <= high])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set_yticks(range(len(these)), [f"batch {b}\n{n:.0%} replaced" for _, b, n, _ in these])
        axes.invert_yaxis()
        axes.set_title(NAMES.get(model, model), loc="left")
        axes.set_xlabel("test accuracy minus that without clipping, percentage points, 95% intervals\n"
                        f"(logarithmic beyond ±{LINEAR:g})")
        axes.grid(axis="x", alpha=0.25)
    handles, labels = row[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure


def draw(runs: list[Run], folder: Path) -> list[Path]:
    """Writes both plots as SVG, byte-identical for the same runs."""
    from matplotlib import pyplot, rc_context

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    with rc_context({"svg.hashsalt": "toclip", "font.size": 9}):
        for name, figure in (("rates", rates(runs)), ("final", final(runs))):
            paths.append(folder / f"advice-{name}.svg")
            figure.savefig(paths[-1], metadata={"Date": None})
            pyplot.close(figure)
    return paths
