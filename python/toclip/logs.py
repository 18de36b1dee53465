"""Training logs and advice from them."""

from __future__ import annotations

import html
import os
import textwrap
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _toclip
from .results import Estimates, Table, same

__all__ = ["Log", "LogAdvice", "advise", "read_log"]

_WIDTH = 96
_TAGS = {"act": "DO THIS", "leave": "LEAVE IT", "unknown": "CANNOT TELL"}
# The arguments for the values that would improve the advice.
_ARGUMENTS = {
    "norm_column": "norm",
    "unscale": "unscale=True",
    "threshold": "clip",
    "batch_size": "batch_size",
    "optimizer": "optimizer",
}


class Log(Table):
    """A training log in the order of its steps; ``Log(path)`` is :func:`read_log`.

    ``steps``, ``norms``, ``losses``, ``learning_rates``
        the steps with a finite norm; NaN where the log has no loss or learning rate.
    ``non_finite``
        the steps whose norm or loss is NaN or infinite: arrays of ``step``, ``norm`` and ``loss``.
    ``layers``, ``layer_steps``
        the norms of every layer, NaN where one is missing, and the steps that have them, at most 4096.
    ``findings``
        findings about the log as a file, in sentences.
    ``reading``
        how it was read: format, columns, rows.

    A pickle holds the arrays of a log made from arrays, and the path of one that was read.
    """

    steps: np.ndarray
    norms: np.ndarray
    losses: np.ndarray
    learning_rates: np.ndarray
    non_finite: dict[str, np.ndarray]
    layers: dict[str, np.ndarray]
    layer_steps: np.ndarray
    findings: list[str]
    reading: dict[str, Any]

    def __init__(self, path: str | os.PathLike[str], **options: Any) -> None:
        self.__setstate__((False, path, options))

    @classmethod
    def from_arrays(
        cls,
        norms: ArrayLike,
        *,
        steps: ArrayLike | None = None,
        losses: ArrayLike | None = None,
        learning_rates: ArrayLike | None = None,
        layers: dict[str, ArrayLike] | None = None,
    ) -> Log:
        """A log of numbers in memory, one of each for every step; masked numbers are missing.

        >>> import toclip
        >>> toclip.Log.from_arrays([1.0, 2.0, float("nan")])
        <toclip.Log: 2 rows of step, norm>
        """
        if layers is not None and not isinstance(layers, dict):
            raise ValueError(f"layers must be a dictionary of arrays, not {layers!r:.60}")
        arrays: list[tuple[str, str, Any]] = [
            ("norms", "grad_norm", norms),
            ("steps", "step", steps),
            ("losses", "loss", losses),
            ("learning_rates", "learning_rate", learning_rates),
        ]
        for name, values in (layers or {}).items():
            if not isinstance(name, str):
                raise ValueError(f"the name of a layer must be a string, not {name!r}")
            arrays.append((f'layers["{name}"]', f"grad_norm/{name}", values))
        made = cls.__new__(cls)
        given = [array for array in arrays if array[0] == "norms" or array[2] is not None]
        made.__setstate__((True, given, {}))
        return made

    def __getstate__(self) -> tuple[bool, Any, dict[str, Any]]:
        return self._made

    def __setstate__(self, made: tuple[bool, Any, dict[str, Any]]) -> None:
        from_arrays, what, options = self._made = made
        self._inner = (_toclip.Log.from_arrays if from_arrays else _toclip.Log)(what, **options)
        vars(self).update(self._inner.contents())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Log):
            return NotImplemented
        names = ("steps", "norms", "losses", "learning_rates", "non_finite", "layers", "layer_steps")
        return all(same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None

    def columns(self) -> dict[str, np.ndarray]:
        """The steps with a finite norm; loss and learning rate only if the log has them."""
        found = {"step": self.steps, "norm": self.norms}
        others = {"loss": self.losses, "learning_rate": self.learning_rates}
        return found | {name: x for name, x in others.items() if not np.isnan(x).all()}


@dataclass(frozen=True, repr=False)
class LogAdvice:
    """Findings about a log and a recommendation. ``print`` gives the answer in words.

    ``findings``
        the most important first: dictionaries with a ``code``, a ``sentence``,
        and the evidence, such as ``steps``.
    ``recommendation``
        what to do: ``action``, ``threshold``, ``fires``, ``rate_factor``, ``confidence``, …
    ``verdict``
        the recommendation in words: ``headline``, ``reasons``, ``code``, ``experiment``.
    ``analysis``, ``details``
        the estimates behind it, as numbers and in words.
    ``curve``
        the criteria at 64 thresholds.
    ``hints``
        arguments of :func:`advise` that would improve the answer.

    Names and values are those of ``toclip advise --json``.
    """

    findings: list[dict[str, Any]]
    recommendation: dict[str, Any]
    verdict: dict[str, Any]
    analysis: dict[str, Any]
    details: list[dict[str, Any]]
    curve: Estimates
    hints: list[str]
    format: str
    columns: list[dict[str, Any]]
    # The framework of the code in the verdict, as people call it.
    _framework: str | None = None
    # What the analysis does not know.
    _note: str | None = None

    @property
    def action(self) -> str:
        """What to do: ``keep``, ``guard``, ``clip``, ``remove``, ``lower_rate``, ``roll_back``,
        ``fix_loss``, ``fix_logging`` or ``cannot_tell``."""
        return str(self.recommendation["action"])

    @property
    def threshold(self) -> float | None:
        """The threshold to set, or for ``keep`` the one in force; ``None`` for no clipping."""
        found: float | None = self.recommendation["threshold"]
        return found

    @property
    def codes(self) -> list[str]:
        """The codes of the findings, such as ``spikes``."""
        return [finding["code"] for finding in self.findings]

    def to_dict(self) -> dict[str, Any]:
        """Everything that ``toclip advise --json`` writes about a log, except its name."""
        names = ("format", "columns", "findings", "recommendation", "verdict", "analysis", "details")
        return {name: getattr(self, name) for name in names}

    def to_pandas(self) -> Any:
        """The findings as a pandas data frame; needs pandas."""
        import pandas

        return pandas.DataFrame(self._rows())

    def to_polars(self) -> Any:
        """The findings as a polars data frame; needs polars."""
        import polars

        return polars.DataFrame(self._rows())

    def _rows(self) -> dict[str, list[str]]:
        return {name: [finding[name] for finding in self.findings] for name in ("code", "sentence")}

    def plot(self, axes: Any = None, **style: Any) -> Any:
        """CCC with its interval at each threshold; needs matplotlib."""
        return self.curve.plot(axes, **style)

    def _other_findings(self) -> list[str]:
        """Findings that are not among the reasons."""
        because = self.recommendation["because"][: len(self.verdict["reasons"])]
        shown = [reason["finding"] for reason in because if "finding" in reason]
        return [f["sentence"] for i, f in enumerate(self.findings) if i not in shown]

    def __str__(self) -> str:
        verdict, lines = self.verdict, [*_wrapped(self._note), ""] if self._note else []
        lines += _wrapped(f"{_TAGS[verdict['tone']]}: {verdict['headline']}")
        for reason in verdict["reasons"]:
            lines += _wrapped(reason, "  • ")
        if verdict["code"]:
            lines += ["", f"{self._framework}:"]
            lines += [f"    {line}" for line in verdict["code"]["lines"]]
        if verdict["experiment"]:
            text, *runs = verdict["experiment"]
            lines += ["", *_wrapped(text)]
            for run in runs:
                lines += _wrapped(run, "  • ")
        if others := self._other_findings():
            lines += ["", "Also found:"]
            for sentence in others:
                lines += _wrapped(sentence, "  • ")
        if self.hints:
            lines += ["", *_wrapped(f"To improve this answer, give {', '.join(self.hints)}.")]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<toclip.LogAdvice: {self.verdict['headline']}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
        break_on_hyphens=False,
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
    framework: str | None = None,
    confidence: float = 0.95,
    **options: Any,
) -> LogAdvice:
    """Diagnoses a logged run and advises whether to clip, and at which threshold.

    ``clip`` is the current threshold (``"none"`` if the run does not clip) and ``batch_size`` the
    number of samples per gradient, for a language model the tokens whose loss is averaged; by default
    both are read from the log, if it has them. ``optimizer`` is ``"sgd"``, or ``"adam"`` for all that
    divide by a running scale of the gradient. ``framework`` is the one to write code for:
    ``"pytorch"``, ``"huggingface"``, ``"lightning"``, ``"deepspeed"``, ``"axolotl"`` or ``"optax"``.
    Further options are those of :func:`read_log`.

    >>> import toclip
    >>> log = toclip.Log.from_arrays([1.0, 1.1] * 300 + [float("nan")] * 20)
    >>> advice = toclip.advise(log, clip="none", optimizer="adamw")
    >>> advice.codes[0], advice.action
    ('diverged', 'roll_back')
    """
    if isinstance(log, Log):
        if options:
            raise ValueError(
                f"{', '.join(options)}: a log that was read already cannot be read in another way; "
                "give its path"
            )
    else:
        log = read_log(log, **options)
    found, curve = log._inner.advise(
        clip=clip,
        batch_size=batch_size,
        outputs=outputs,
        optimizer=optimizer,
        framework=framework,
        confidence=confidence,
    )
    hints = [_ARGUMENTS.get(hint, hint) for hint in found.pop("hints")]
    return LogAdvice(**found, hints=hints, curve=Estimates(curve))
