"""The tables of docs/classification.md: tuned against tuned, unclipped, at the best threshold and at small ones; and
what the best threshold gains for other teachers and times.

    python python/experiments/classification_table.py    # two minutes
"""

import toclip

SPECTRUM, NORM, TIME = toclip.isotropic(1000), 3.0, 10.0
NORMS = [1.0, 3.0, 6.0, 10.0, 20.0]


def main() -> None:
    print("| flips | rate | unclipped | best c | loss | c = 0.3 | c = 0.1 |\n|---|---|---|---|---|---|---|")
    for flips in [0.0, 0.05, 0.1, 0.2, 0.3]:
        problem = SPECTRUM, NORM, {"kind": "logistic", "flips": flips}, TIME
        for shape in ["constant", "cosine"]:
            best = toclip.glm.best_clip(*problem, shape=shape)
            rows = [toclip.glm.best_rate(*problem, c, shape=shape).loss for c in (None, 0.3, 0.1)]
            where = "none" if best.c == float("inf") else f"{best.c:.2f}"
            losses = f"{rows[0]:.4f} | {where} | {best.loss:.4f} | {rows[1]:.4f} | {rows[2]:.4f}"
            print(f"| {flips:g} | {shape} | {losses} |", flush=True)
    print("\n| T | flips | norm 1 | 3 | 6 | 10 | 20 |\n|---|---|---|---|---|---|---|")
    for time in [10.0, 30.0, 100.0]:
        for flips in [0.0, 0.05, 0.1, 0.2]:
            model = {"kind": "logistic", "flips": flips}
            cells = [" / ".join(gain(norm, model, time, shape) for shape in ["constant", "cosine"]) for norm in NORMS]
            print(f"| {time:g} | {flips:g} | {' | '.join(cells)} |", flush=True)


def gain(norm: float, model: dict, time: float, shape: str) -> str:
    """By how many percent the best threshold lowers the loss."""
    best = toclip.glm.best_clip(SPECTRUM, norm, model, time, shape=shape)
    if best.c == float("inf"):
        return "0"
    percent = 100 * (1 - best.loss / toclip.glm.best_rate(SPECTRUM, norm, model, time, shape=shape).loss)
    return f"{percent:.2f}" if percent >= 0.005 else "<0.01"


if __name__ == "__main__":
    main()
