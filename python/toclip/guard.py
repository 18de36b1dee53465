"""A guard against rare large gradients, which clips or skips a step by the norm of its gradient."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from typing import Any

from ._toclip import as_integer, as_number, as_threshold
from .results import Table

__all__ = ["GuardRule", "GuardStep"]

_VERSION = 1
MULTIPLES = {"clip": 2.0, "skip": 4.0}


@dataclass(frozen=True, eq=False, repr=False)
class GuardStep(Table):
    """The decision of a guard about a step.

    ``norm`` is the norm of the gradient before clipping, ``threshold`` the threshold of the guard
    (infinite during the warm-up), and ``factor`` the factor of the gradient: 0 for a step that is
    skipped.
    """

    norm: float
    threshold: float
    factor: float

    @property
    def skipped(self) -> bool:
        """Whether the step is skipped: the optimizer must not be called."""
        return self.factor == 0.0

    @property
    def clipped(self) -> bool:
        """Whether the gradient is shortened."""
        return 0.0 < self.factor < 1.0


def _is_length(value: Any) -> bool:
    return isinstance(value, (int, float)) and 0.0 < value < math.inf


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _are_counts(value: Any, names: dict[str, int]) -> bool:
    return isinstance(value, dict) and value.keys() == names.keys() and all(map(_is_count, value.values()))


class GuardRule:
    """Clips or skips steps whose gradient norm is far above the running median.

    ``action``
        ``"clip"`` shortens the gradient to the threshold; ``"skip"`` leaves the step out.
    ``multiple``
        the threshold is this many times the anchor: by default 2 to clip, and 4 to skip, because a
        skipped step is lost.
    ``window``
        the running median is that of the last ``window`` norms, before clipping.
    ``rise``
        the anchor is the running median, except that it rises by at most this share in a step. It
        falls without a limit. A threshold that simply follows the norms does not protect a run whose
        norms grow.
    ``warmup``
        the number of norms that must be known before the guard acts. It is small, because SGD does not
        recover from a bad batch among the first steps.
    ``max_norm``
        an additional fixed threshold: longer gradients are clipped to it, also during the warm-up.
    ``max_skips``
        after this many skipped steps in a row, large gradients are clipped instead until one is
        ordinary again; otherwise a lasting change of the norms would stop training.

    A gradient with NaN or infinite numbers is always skipped, counted, and otherwise forgotten.

    >>> import toclip
    >>> guard = toclip.GuardRule(multiple=2.0, warmup=3)
    >>> [guard.step(norm).factor for norm in [1.0, 1.1, 0.9, 1.0, 8.0, 1.5, float("nan")]]
    [1.0, 1.0, 1.0, 1.0, 0.25, 1.0, 0.0]
    >>> guard.counts
    {'steps': 7, 'clipped': 1, 'skipped': 0, 'non_finite': 1}
    """

    def __init__(
        self,
        *,
        action: str = "clip",
        multiple: float | None = None,
        window: int = 100,
        rise: float = 0.001,
        warmup: int = 5,
        max_norm: float | str | None = None,
        max_skips: int = 10,
    ) -> None:
        if action not in MULTIPLES:
            raise ValueError(f"unknown action {action!r}; expected one of: {', '.join(MULTIPLES)}")
        self.action = action
        self.multiple = MULTIPLES[action] if multiple is None else as_number("multiple", multiple)
        self.window = as_integer("window", window)
        self.rise = as_number("rise", rise)
        self.warmup = as_integer("warmup", warmup)
        self.max_norm = as_threshold("max_norm", max_norm)
        self.max_skips = as_integer("max_skips", max_skips)
        for name, wrong, expected in (
            ("multiple", not 0.0 < self.multiple < math.inf, "a positive number"),
            ("window", self.window < 1, "at least 1 step"),
            ("rise", not 0.0 <= self.rise < math.inf, "a share per step, such as 0.001"),
            ("warmup", not 1 <= self.warmup <= self.window, "from 1 to window steps"),
            ("max_norm", not self.max_norm > 0.0, "a positive number, or None for no limit"),
        ):
            if wrong:
                raise ValueError(f"{name} = {getattr(self, name)} is not allowed; expected {expected}")
        self.reset()

    def reset(self) -> None:
        """Forgets everything that was observed."""
        self._norms: deque[float] = deque()
        self._sorted: list[float] = []
        self._anchor: float | None = None
        self._skips_in_a_row = 0
        self._counts = {"steps": 0, "clipped": 0, "skipped": 0, "non_finite": 0}

    @property
    def anchor(self) -> float | None:
        """The norm of which the threshold is a multiple; ``None`` before the first norm."""
        return self._anchor

    @property
    def threshold(self) -> float:
        """The threshold for the next step; infinite during the warm-up."""
        if self._anchor is None or len(self._norms) < self.warmup:
            return math.inf
        return self.multiple * self._anchor

    @property
    def clip_above(self) -> float:
        """The norm to which the next gradient is shortened, if it is longer and not skipped."""
        return min(self.threshold, self.max_norm)

    @property
    def skip_above(self) -> float:
        """The norm above which the next step is skipped; infinite if the guard clips."""
        skips = self.action == "skip" and self._skips_in_a_row < self.max_skips
        return self.threshold if skips else math.inf

    @property
    def counts(self) -> dict[str, int]:
        """The number of ``steps``, and how many of them were ``clipped``, ``skipped`` because the
        gradient was large, and skipped because it was ``non_finite``."""
        return dict(self._counts)

    def step(self, norm: float) -> GuardStep:
        """Decides about a gradient and remembers its norm."""
        norm = float(norm)
        threshold, counts = self.threshold, self._counts
        counts["steps"] += 1
        if not math.isfinite(norm):
            counts["non_finite"] += 1
            return GuardStep(norm, threshold, 0.0)
        limit, factor = self.clip_above, 1.0
        if norm > self.skip_above:
            self._skips_in_a_row += 1
            counts["skipped"] += 1
            factor = 0.0
        elif norm > limit:
            counts["clipped"] += 1
            factor = limit / norm
        if norm <= threshold:
            self._skips_in_a_row = 0
        self._remember(norm)
        return GuardStep(norm, threshold, factor)

    def _remember(self, norm: float) -> None:
        # A gradient of zero says nothing about the scale of the others.
        if norm <= 0.0:
            return
        self._norms.append(norm)
        insort(self._sorted, norm)
        if len(self._norms) > self.window:
            del self._sorted[bisect_left(self._sorted, self._norms.popleft())]
        middle = len(self._sorted) // 2
        median = self._sorted[middle]
        if len(self._sorted) % 2 == 0:
            median = 0.5 * (self._sorted[middle - 1] + median)
        if self._anchor is None or len(self._norms) < self.warmup:
            self._anchor = median
        else:
            self._anchor = min(median, self._anchor * (1.0 + self.rise))

    def settings(self) -> dict[str, Any]:
        """The arguments."""
        return {
            "action": self.action,
            "multiple": self.multiple,
            "window": self.window,
            "rise": self.rise,
            "warmup": self.warmup,
            # Checkpoints may be JSON, which has no infinity.
            "max_norm": None if math.isinf(self.max_norm) else self.max_norm,
            "max_skips": self.max_skips,
        }

    def state_dict(self) -> dict[str, Any]:
        """The whole state as plain numbers, for ``torch.save`` or JSON."""
        return {
            "version": _VERSION,
            "settings": self.settings(),
            "norms": list(self._norms),
            "anchor": self._anchor,
            "skips_in_a_row": self._skips_in_a_row,
            "counts": self.counts,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what :meth:`state_dict` returned; the settings must be the same."""
        if not isinstance(state, dict) or not {"version", "settings", "norms"} <= state.keys():
            raise ValueError("this is not the state of a guard")
        if state["version"] != _VERSION:
            raise ValueError(
                f"the state has version {state['version']}, but this toclip reads version {_VERSION}"
            )
        settings, norms, anchor = state["settings"], state["norms"], state.get("anchor")
        counts: Any = state.get("counts")
        skips: Any = state.get("skips_in_a_row")
        for name, right, expected in (
            ("settings", isinstance(settings, dict), "a dictionary"),
            ("norms", isinstance(norms, list) and all(map(_is_length, norms)), "a list of positive numbers"),
            ("anchor", _is_length(anchor) if norms else anchor is None, "a positive number, or none without norms"),
            ("skips_in_a_row", _is_count(skips), "an integer, at least 0"),
            ("counts", _are_counts(counts, self._counts), f"integers for {', '.join(self._counts)}"),
        ):
            if not right:
                raise ValueError(
                    f"the state of the guard is damaged: {name} is {state.get(name)!r:.60}; expected {expected}"
                )
        for name, value in self.settings().items():
            if settings.get(name) != value:
                raise ValueError(
                    f"the state was saved with {name} = {settings.get(name)}, but the guard has {name} = {value}; "
                    f"use {name} = {settings.get(name)}, or do not load the state"
                )
        if len(norms) > self.window:
            raise ValueError(
                f"the state of the guard is damaged: it has {len(norms)} norms; expected at most {self.window}"
            )
        self._norms = deque(norms)
        self._sorted = sorted(self._norms)
        self._anchor = anchor
        self._skips_in_a_row = skips
        self._counts = dict(counts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GuardRule) and self.state_dict() == other.state_dict()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self._described("toclip.GuardRule")

    def _described(self, name: str) -> str:
        c = self._counts
        return (
            f"<{name}: {self.action} above {self.multiple:g} × the running median, now "
            f"{self.threshold:.3g}; {c['steps']} steps, {c['clipped']} clipped, {c['skipped']} skipped, "
            f"{c['non_finite']} not finite>"
        )
