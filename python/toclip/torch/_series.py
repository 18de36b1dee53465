"""The numbers of every step that a monitor has seen, as they are needed for a report."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np

from ..logs import Log

__all__ = ["Series"]

COLUMNS = ("step", "norm", "loss", "learning_rate", "missing_loss", "compared_norm", "inner")
# A longer series is thinned: every second step is dropped.
CAPACITY = 1 << 18
# The number of last steps that are always kept.
RECENT = 100


class Series:
    """Steps in their order: norm, loss and learning rate of each, and the norms of groups.

    ``compared_norm`` and ``inner`` are the norm of a gradient and its inner product with an independent
    one at the same weights, where there was one. ``recent`` has a row for each of the last 100 steps:
    the current threshold, the norm and the norms of groups. ``non_finite`` counts norms of all steps.
    """

    def __init__(self, groups: list[str]) -> None:
        self.groups = groups
        self._rows = np.empty((0, len(COLUMNS) + len(groups)))
        self._used = 0
        self.seen, self.every = 0, 1
        self.recent = np.empty((0, 2 + len(groups)))
        self.non_finite = 0

    def __len__(self) -> int:
        return self._used

    def add(
        self, norms: Any, losses: Any, missing: Any, rates: Any, compared: Any, groups: Any, thresholds: Any
    ) -> None:
        """Adds steps; ``missing`` says which losses were not given, ``compared`` has two columns."""
        count = len(norms)
        groups = groups.reshape(count, -1)
        recent = np.column_stack([thresholds, norms, groups])
        self.recent = np.concatenate([self.recent, recent])[-RECENT:]
        self.non_finite += int((~np.isfinite(norms)).sum())
        steps = np.arange(self.seen, self.seen + count, dtype=float)
        self.seen += count
        parts = [steps, norms, losses, rates, missing, compared, groups]
        rows = np.column_stack(parts)
        rows = rows[steps % self.every == 0]
        if self._used + len(rows) > len(self._rows):
            size = max(1024, 2 * len(self._rows), self._used + len(rows))
            larger = np.empty((size, self._rows.shape[1]))
            larger[: self._used] = self._rows[: self._used]
            self._rows = larger
        self._rows[self._used : self._used + len(rows)] = rows
        self._used += len(rows)
        while self._used > CAPACITY:
            self.every *= 2
            kept = self.rows[self.rows[:, 0] % self.every == 0]
            self._used = len(kept)
            self._rows[: self._used] = kept

    @property
    def rows(self) -> Any:
        """One row per kept step, in the order of :data:`COLUMNS`, then the groups."""
        return self._rows[: self._used]

    @property
    def norms(self) -> Any:
        """The norms of the kept steps."""
        return self.rows[:, 1]

    @property
    def compared(self) -> Any:
        """Norms and inner products of the steps that have them: two columns."""
        pairs = self.rows[:, 5:7]
        return pairs[np.isfinite(pairs).all(1)]

    def log(self) -> Log:
        """As a log, for advice."""
        step, norm, loss, rate, missing = self.rows[:, :5].T
        names = self.groups
        return Log.from_arrays(
            norm,
            steps=step,
            losses=None if missing.all() else np.ma.array(loss, mask=missing.astype(bool)),
            learning_rates=None if np.isnan(rate).all() else np.ma.masked_invalid(rate),
            layers={name: self.rows[:, len(COLUMNS) + k] for k, name in enumerate(names)},
        )

    def state_dict(self) -> dict[str, Any]:
        """As plain values, which fit into JSON."""
        return {
            "groups": self.groups,
            "seen": self.seen,
            "every": self.every,
            "rows": _packed(self.rows),
            "recent": _packed(self.recent),
            "non_finite": self.non_finite,
        }

    @classmethod
    def of(cls, state: dict[str, Any]) -> Series:
        """Reads what :meth:`state_dict` wrote."""
        made = cls(list(state["groups"]))
        made._rows = _unpacked(state["rows"], made._rows.shape[1])
        made._used, made.seen, made.every = len(made._rows), int(state["seen"]), int(state["every"])
        # Both are missing in older states.
        if "recent" in state:
            made.recent = _unpacked(state["recent"], made.recent.shape[1])
        made.non_finite = int(state.get("non_finite", (~np.isfinite(made.norms)).sum()))
        return made


def _packed(rows: Any) -> str:
    packed = zlib.compress(np.ascontiguousarray(rows, "<f8").tobytes(), 1)
    return base64.b64encode(packed).decode("ascii")


def _unpacked(text: str, width: int) -> Any:
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(text)), "<f8")
    return numbers.reshape(-1, width).copy()
