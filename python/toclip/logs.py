"""Training logs, and advice from them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ._toclip import Log
from .results import Estimates

__all__ = ["Log", "LogAdvice", "advise", "read_log"]


@dataclass(frozen=True)
class LogAdvice:
    """Everything found out about a log.

    ``action`` is what to do in a word, ``print`` says it all in sentences, ``curve`` has the criteria at
    64 thresholds, and ``details`` every number as a dictionary.
    """

    action: str
    answers: list[dict[str, Any]]
    curve: Estimates
    details: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Every number."""
        return self.details

    def __str__(self) -> str:
        return "\n\n".join(
            "\n".join([answer["title"], *("  " + text for text in answer["text"])])
            for answer in self.answers
        )


def read_log(path: str | os.PathLike[str], **options: Any) -> Log:
    """Reads a log of any format that is known: JSON lines, CSV, TensorBoard, Trainer states, text.

    Columns are found by their names; ``norm``, ``step``, ``loss`` and ``learning_rate`` name them
    where that fails, ``format`` names the format, ``unscale=True`` divides by the loss scale.

    >>> import tempfile, toclip
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv", delete=False) as file:
    ...     _ = file.write("step,grad_norm\\n1,2.5\\n2,nan\\n3,4.0\\n")
    >>> toclip.read_log(file.name).norms.tolist()
    [2.5, 4.0]
    """
    return Log(path, **options)


def advise(
    log: Log | str | os.PathLike[str],
    *,
    clip: float | None = None,
    batch_size: float | None = None,
    outputs: float | None = None,
    optimizer: str | None = None,
    confidence: float = 0.95,
    **options: Any,
) -> LogAdvice:
    """What clipping does in a logged run, and what to do about it.

    ``clip`` is the threshold in force, ``batch_size`` the samples behind one gradient; both are
    taken from the log where it names them. ``optimizer`` is ``"sgd"`` or ``"adam"``; a learning rate
    is compensated for SGD only. Further options are those of :func:`read_log`.
    """
    log = log if isinstance(log, Log) else read_log(log, **options)
    found = log.advise(
        clip=clip, batch_size=batch_size, outputs=outputs, optimizer=optimizer, confidence=confidence
    )
    action = found["recommendation"]["action"]
    return LogAdvice(
        action=action if isinstance(action, str) else next(iter(action)),
        answers=found["answers"],
        curve=Estimates(found["curve"]),
        details=found,
    )
