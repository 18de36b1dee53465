"""Training logs and advice from them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ._toclip import Log
from .results import Estimates

__all__ = ["Log", "LogAdvice", "advise", "read_log"]


@dataclass(frozen=True)
class LogAdvice:
    """The analysis of a log.

    ``action`` is the recommendation in one word and ``print`` gives it in full; ``curve`` has the
    criteria at 64 thresholds, and ``details`` all numbers as a dictionary.
    """

    action: str
    answers: list[dict[str, Any]]
    curve: Estimates
    details: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """All numbers."""
        return self.details

    def __str__(self) -> str:
        return "\n\n".join(
            "\n".join([answer["title"], *("  " + text for text in answer["text"])])
            for answer in self.answers
        )


def read_log(path: str | os.PathLike[str], **options: Any) -> Log:
    """Reads a training log: JSON lines, CSV, TensorBoard, W&B, MLflow, Trainer states or console output.

    ``path`` is a file, compressed or not, or the folder of a run. Format and columns are detected;
    threshold, batch size and optimizer are read from the log or the files beside it. ``format`` sets
    the format, ``norm``, ``step``, ``loss`` and ``learning_rate`` the names of the columns or parts of
    them; ``unscale=True`` divides norms by the loss scale.

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
    clip: float | str | None = None,
    batch_size: float | None = None,
    outputs: float | None = None,
    optimizer: str | None = None,
    confidence: float = 0.95,
    **options: Any,
) -> LogAdvice:
    """What clipping does in a logged run, and what to change.

    ``clip`` is the threshold in force (``"none"`` if the run does not clip) and ``batch_size`` the
    number of samples per gradient; by default both are read from the log, if it has them.
    ``optimizer`` is ``"sgd"`` or ``"adam"``; only for SGD does the advice change the learning rate to
    compensate for clipping. Further options are those of :func:`read_log`.
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
