"""The rules that ``guard.py`` compares: from the norm of a gradient to the factor that it is multiplied by."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from statistics import median

import toclip

# A new rule: a function of the norm that returns the factor, 0 for a skipped step.
Rule = Callable[[float], float]


def threshold_rule(rule: toclip.ThresholdRule) -> Rule:
    """Clips at the threshold that the rule gives for each norm. A gradient that is not finite ends the run,
    as it does with ``clip_grad_norm_``: the factor is NaN."""

    def factor(norm: float) -> float:
        if not math.isfinite(norm):
            return math.nan
        threshold = float(rule.thresholds([norm])[0])
        return min(1.0, threshold / norm) if norm > 0.0 else 1.0

    return factor


def skip_above(multiple: float, window: int = 100) -> Rule:
    """Skips steps above a multiple of the running median, which follows the norms."""
    norms: deque[float] = deque(maxlen=window)

    def factor(norm: float) -> float:
        if not math.isfinite(norm):
            return 0.0
        large = len(norms) >= 20 and norm > multiple * median(norms)
        norms.append(norm)
        return 0.0 if large else 1.0

    return factor


def guard(**settings: object) -> Rule:
    rule = toclip.GuardRule(**settings)  # type: ignore[arg-type]
    return lambda norm: rule.step(norm).factor


RULES: dict[str, Callable[[], Rule]] = {
    "none": lambda: threshold_rule(toclip.ThresholdRule.fixed("none")),
    "fixed 1.0": lambda: threshold_rule(toclip.ThresholdRule.fixed(1.0)),
    "fixed 0.25": lambda: threshold_rule(toclip.ThresholdRule.fixed(0.25)),
    "autoclip": lambda: threshold_rule(toclip.ThresholdRule.autoclip(10.0)),
    "zclip": lambda: threshold_rule(toclip.ThresholdRule.zclip(cap="none")),
    "skip 4": lambda: skip_above(4.0),
}
GUARDS: dict[str, dict[str, object]] = {
    "guard clip": {"action": "clip"},
    "guard skip": {"action": "skip"},
    "guard 1.5": {"action": "clip", "multiple": 1.5},
}
NAMES = [*RULES, *GUARDS]


def candidate(name: str) -> Callable[[], Rule]:
    """A rule by its name: one of :data:`NAMES`, or ``guard`` with settings, such as
    ``guard multiple=3 rise=0.0005 action=skip``."""
    if name in RULES:
        return RULES[name]
    given = _given(name)
    guard(**given)
    return lambda: guard(**given)


def settings(name: str) -> dict[str, object]:
    """All settings of a guard, defaults included; none for other rules. Runs are stored with them, so that
    those of other defaults are not taken for these."""
    return {} if name in RULES else toclip.GuardRule(**_given(name)).settings()  # type: ignore[arg-type]


def _given(name: str) -> dict[str, object]:
    if name in GUARDS:
        return GUARDS[name]
    kind, *pairs = name.split()
    if kind != "guard" or not all(pair.count("=") == 1 for pair in pairs):
        raise ValueError(f"unknown rule {name!r}; expected one of: {', '.join(NAMES)}")

    def value(text: str) -> object:
        for read in (int, float):
            try:
                return read(text)
            except ValueError:
                pass
        return text

    return {key: value(text) for key, text in (pair.split("=") for pair in pairs)}
