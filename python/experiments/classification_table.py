"""The table of docs/classification.md: tuned against tuned, unclipped, at the best threshold and at small ones.

    python python/experiments/classification_table.py    # a minute
"""

import toclip

SPECTRUM, NORM, TIME = toclip.isotropic(1000), 3.0, 10.0


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


if __name__ == "__main__":
    main()
