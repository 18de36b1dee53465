"""What clipping does to a training run, estimated from its gradient norms."""

from __future__ import annotations

import html
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _toclip
from ._toclip import Halves
from .results import Estimates, Table, flat

__all__ = ["Advice", "Monitor"]


@dataclass(frozen=True, eq=False, repr=False)
class Advice(Table):
    """What to do about the threshold.

    ``kind`` is ``"clip"``, ``"loosen"`` or ``"stay"``; ``reason`` is why to stay (``too_few``,
    ``drift``, ``swings``, ``one_stretch``, ``no_gain``, ``norms_alone``, ``no_better``); ``choice`` has
    the numbers of the advised threshold or of the best candidate. ``str(advice)`` is a sentence.
    """

    kind: str
    sentence: str
    reason: str | None
    choice: dict[str, Any] | None

    @classmethod
    def _of(cls, sentence: str, advice: dict[str, Any], choice: dict[str, Any] | None) -> Advice:
        ((kind, inner),) = advice.items()
        return cls(kind, sentence, next(iter(inner)) if kind == "stay" else None, choice)

    def columns(self) -> dict[str, np.ndarray]:
        """One row: the numbers of ``choice``."""
        return {name: np.array([x]) for name, x in flat(self.choice or {}).items()}

    def to_dict(self) -> dict[str, Any]:
        """The kind, the sentence, the reason and the numbers."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __str__(self) -> str:
        return self.sentence

    def __repr__(self) -> str:
        return f"<toclip.Advice: {self.sentence}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.sentence)}</pre>"


class Monitor(_toclip.Monitor):
    """Running estimates from the gradient norms before clipping, one norm per step.

    ``components``
        batch size times outputs of the model; 1 for single samples, ``None`` for very many.
    ``memory``
        the number of steps that count; ``None`` for all.
    ``scale_memory``, ``fixed_scale``
        thresholds are multiples of a running scale over about this many norms, or of a fixed scale.
    ``watched``
        the current threshold; ``"none"`` or ``inf`` if the run does not clip.
    ``confidence``
        the confidence level of all intervals and of the choice.
    ``margin``
        the gain that norms alone must show before it counts as evidence.

    >>> import numpy as np, toclip
    >>> monitor = toclip.Monitor(components=1)
    >>> k = np.arange(5000)
    >>> u = (k * 0.618033988749895) % 1
    >>> monitor.observe(np.where(k % 10 == 3, 20 + u, 1.5 * u + 0.01))
    >>> advice = monitor.advice()
    >>> advice.kind, 0.8 < advice.choice["threshold"] < 2.0
    ('clip', True)
    >>> toclip.Monitor.from_json(monitor.to_json()) == monitor
    True
    """

    def observe_vector(self, halves: Halves, gradient: ArrayLike) -> float:
        """Adds a whole gradient, as a flat vector, and returns its norm.

        ``halves`` keeps the mean gradients of the even and of the odd steps, each the reference for
        the other. This is :meth:`observe_aligned` at the cost of two vectors of memory.

        >>> import numpy as np, toclip
        >>> rng = np.random.default_rng(0)
        >>> monitor, halves = toclip.Monitor(watched=4.0), toclip.Halves(3, memory=1000)
        >>> for _ in range(2000):
        ...     _ = monitor.observe_vector(halves, [1.0, 0.0, 0.0] + rng.standard_normal(3))
        >>> round(monitor.watched()["direct"]["mu"]["value"], 1)
        1.0
        """
        if not isinstance(halves, Halves):
            raise ValueError(f"halves must be a toclip.Halves, not {halves!r}")
        return super().observe_vector(halves, gradient)

    def merge(self, other: Monitor) -> None:  # type: ignore[override]
        """Adds everything that another monitor with the same settings has observed."""
        if not isinstance(other, Monitor):
            raise ValueError(f"other must be a toclip.Monitor, not {other!r}")
        super().merge(other)

    def advice(self) -> Advice:  # type: ignore[override]
        """What to do about the threshold."""
        return Advice._of(*super().advice())

    def curve(self) -> Estimates:  # type: ignore[override]
        """The estimates at the 64 candidate thresholds, lowest first."""
        return Estimates(super().curve())
