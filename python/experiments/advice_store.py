"""Stores the runs of ``advice.py``."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any

Run = dict[str, Any]

# The keys of a complete run.
KEYS = {"phase", "model", "batch", "noise", "steps", "rule", "rate", "seed", "accuracy", "loss",
        "aside_accuracy", "clip_fraction"}


class Store:
    """``runs.jsonl``; each group of runs is appended in one write."""

    def __init__(self, folder: Path):
        self.path = folder / "runs.jsonl"

    def open(self, versions: Run) -> None:
        """Creates the folder; fails if it has runs with other versions or of another device."""
        made_by = self.path.with_name("versions.json")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not made_by.exists():
                made_by.write_text(json.dumps(versions, indent=1) + "\n")
            found = json.loads(made_by.read_text())
        except (OSError, ValueError) as error:
            raise SystemExit(f"cannot use --out {self.path.parent}: {error}") from None
        if found != versions:
            raise SystemExit(
                f"{self.path.parent} has runs made with {found}, but this is {versions}; use another --out"
            )

    def all(self) -> list[Run]:
        records = []
        for number, line in enumerate(
            self.path.read_text().splitlines() if self.path.is_file() else [], 1
        ):
            try:
                records.append(json.loads(line))
                whole = isinstance(records[-1], dict) and records[-1].keys() >= KEYS
                why = "" if whole else "not a run; it needs " + ", ".join(sorted(KEYS))
            except json.JSONDecodeError as error:
                why = f"not JSON ({error})"
            if why:
                raise SystemExit(f"{self.path}: line {number} is {why}; remove the line")
        return records

    def of(self, setting: Run) -> list[Run]:
        return [r for r in self.all() if all(r.get(k) == v for k, v in setting.items())]

    def add(self, records: list[Run]) -> None:
        def plain(value: Any) -> Any:
            if isinstance(value, float):
                return float(f"{value:.6g}") if math.isfinite(value) else None
            return value

        lines = [json.dumps({k: plain(v) for k, v in r.items()}) for r in records]
        # Several processes may share the file; a single append is atomic.
        out = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(out, ("\n".join(lines) + "\n").encode())
        os.close(out)
