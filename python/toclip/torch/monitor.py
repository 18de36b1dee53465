"""A monitor that replaces ``clip_grad_norm_``."""

from __future__ import annotations

import functools
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import _toclip
from ..logs import LogAdvice, advise
from ..monitor import Monitor as CoreMonitor
from ..results import Estimates
from ._check import at_least, threshold
from ._norms import (
    Parameters,
    clip_to,
    gradients_of,
    inner_product,
    listed,
    scale_by,
    total_norm,
    unscale,
)
from ._optimizer import kind_of, rate_of
from ._ranks import RankGradients
from ._series import Series

__all__ = ["Monitor"]

_VERSION = 2
# ``metrics`` analyses the series again when it is longer by this factor.
_GROWTH = 1.1


@dataclass(frozen=True, slots=True)
class _Step:
    """A step whose numbers may still be on the device."""

    norm: Tensor
    loss: Tensor | None
    learning_rate: float
    group_norms: list[Tensor]
    # The norm of a gradient, and its inner product with an independent one at the same weights.
    compared: tuple[Tensor, Tensor] | None
    # The threshold in force; infinite without clipping.
    threshold: float


class Monitor:
    """Monitors training through the norm of the gradient before clipping.

    Use it in place of ``torch.nn.utils.clip_grad_norm_``, once per optimizer step::

        monitor = toclip.torch.Monitor(optimizer=optimizer, batch_size=128)
        ...
        loss.backward()
        monitor.clip_(model.parameters(), max_norm=1.0, loss=loss)   # without max_norm: observe only
        optimizer.step()
        ...
        print(monitor.report())

    ``optimizer``
        the optimizer, or ``"sgd"``, or ``"adam"`` for all that divide by a running scale of the
        gradient. Given the optimizer itself, the learning rate is recorded too. Only for SGD is
        anything derived about the learning rate.
    ``batch_size``
        samples per step, over all accumulated micro-batches and all ranks; for a language model the
        tokens whose loss is averaged. Without it the estimates are those for a single sample, which
        credits as little to clipping as possible.
    ``outputs``
        outputs of the model (classes) per sample.
    ``groups``
        a dictionary of parameters, or an optimizer for its parameter groups: their norms are observed
        too, and :meth:`report` says which of them drives the total.
    ``apply``
        clip at the threshold that the monitor chooses; ``max_norm`` is then an upper limit. Nothing
        is clipped until there is enough evidence.
    ``compensate``
        with ``apply`` and SGD: multiply the gradient by 1/mu, a larger learning rate that compensates
        for the descent lost to clipping. The gradient is never longer than ``max_norm``.
    ``every``
        with ``apply``: the number of steps between updates of the threshold.
    ``flush``
        the number of steps for which norms stay on the device, to avoid synchronising with it.
    ``shared``
        the norm is the same on every rank (DDP, FSDP). ``False`` if each rank observes the norm of
        its own gradient; :meth:`merged` then combines the ranks.
    ``memory``, ``scale_memory``, ``confidence``, ``margin``
        as for :class:`toclip.Monitor`; by default the margin is the measured error of the estimates
        at this batch size.

    With AMP, gradients must be unscaled first, as for ``clip_grad_norm_``: call
    ``scaler.unscale_(optimizer)``, or pass both to :meth:`clip_`.

    Looking at the monitor, in whatever way, changes neither it nor the training.
    """

    def __init__(
        self,
        *,
        optimizer: Any = None,
        batch_size: int | None = None,
        outputs: int = 1,
        groups: Any = None,
        apply: bool = False,
        compensate: bool = False,
        every: int = 200,
        flush: int = 50,
        shared: bool = True,
        memory: int | None = None,
        scale_memory: float = 200.0,
        confidence: float = 0.95,
        margin: float | None = None,
    ) -> None:
        if batch_size is not None:
            batch_size = at_least(1, batch_size, "batch_size", "a step has at least 1 sample")
        outputs = at_least(1, outputs, "outputs", "a model has at least 1 output")
        flush = at_least(1, flush, "flush", "expected at least 1 step")
        self._kind, self._optimizer, self._given = kind_of(optimizer), optimizer, optimizer is not None
        if compensate and not apply:
            raise ValueError("compensate = True needs apply = True")
        if compensate and self._kind != "sgd":
            raise ValueError(
                "compensate = True needs optimizer = \"sgd\" or an SGD optimizer; others divide by a running "
                "scale of the gradient, or are unknown, so no learning rate follows from the norms"
            )
        self.apply, self.compensate, self.shared = apply, compensate, shared
        self._flush_every, self._every = flush, every
        self._batch_size, self._outputs, self._confidence = batch_size, outputs, confidence
        components = None if batch_size is None else float(batch_size * outputs)
        self._settings: dict[str, Any] = {
            # Without the batch size, as little is credited to clipping as for a single sample.
            "components": 1.0 if components is None else components,
            "memory": memory,
            "scale_memory": scale_memory,
            "confidence": confidence,
            "margin": _toclip.Monitor.measured_margin(components) if margin is None else margin,
        }
        self._groups = _groups(groups)
        # The guard that acts on the same gradients.
        self._guard: Any = None
        self._ranks: RankGradients | None = None
        # Checks the settings now rather than at the first step.
        _toclip.Monitor(**self._settings)
        if apply:
            _toclip.ThresholdRule.monitored(every=every, **self._settings)
        self.reset()

    def reset(self) -> None:
        """Forgets everything that was observed, such as after a change of the data."""
        self._series = Series(list(self._groups))
        self._pending: list[_Step] = []
        # The gradients of all micro-batches but the last, and how many these are.
        self._before_last: tuple[list[Tensor | None], int] | None = None
        self._micro_batches = 0
        self._max_norm: float | None = None
        self._threshold, self._rate_factor = math.inf, 1.0
        self._rule: _toclip.ThresholdRule | None = None
        self._last: tuple[tuple[Any, ...], LogAdvice] | None = None
        self._summary: tuple[int, dict[str, float]] | None = None
        if self.apply:
            self._rule = _toclip.ThresholdRule.monitored(every=self._every, **self._settings)

    # Each step.

    def clip_(
        self,
        parameters: Parameters,
        max_norm: float | str | None = None,
        norm_type: float = 2.0,
        error_if_nonfinite: bool = False,
        foreach: bool | None = None,
        *,
        loss: Tensor | float | None = None,
        reference: Iterable[Tensor | None] | None = None,
        scaler: Any = None,
        optimizer: Any = None,
    ) -> Tensor:
        """Clips the gradients in place and returns their norm before clipping, without synchronising.

        Clips at ``max_norm``, with ``apply`` at the threshold of the monitor, and without either (or
        with ``"none"`` or ``inf``) not at all. The arguments are those of ``clip_grad_norm_``, in the
        same order. Only the Euclidean norm is supported, and ``error_if_nonfinite`` synchronises with
        the device at every step. With FSDP1, pass the wrapped module itself, not its parameters.

        ``loss`` is recorded for :meth:`report`, which needs it to tell what a large gradient did.
        ``reference`` is the gradient of another batch at the same weights, one tensor for each
        parameter, as from ``torch.autograd.grad``; give one now and then for :meth:`direct`.
        """
        limit = threshold(max_norm, "max_norm")
        _euclidean(norm_type)
        parameters = self._prepared(parameters, scaler, optimizer)
        bound = min(limit, self._threshold) if self.apply else limit
        if error_if_nonfinite:
            self._raise_on_overflow(total_norm(parameters, foreach), loss)
        groups = self._group_norms()
        pair = self._compared(parameters, reference, scaler)
        norm = clip_to(parameters, bound, foreach)
        if self.compensate and self._rate_factor != 1.0:
            grads = gradients_of(parameters)
            if grads:
                scale_by(grads, self._rate_factor)
                clip_to(parameters, limit, foreach)
        self._max_norm = limit
        self._observe(norm, loss, groups, pair)
        return norm

    def before_micro_batch(self, parameters: Parameters) -> None:
        """Call it before the backward pass of each accumulated micro-batch, for :meth:`direct`.

        The last micro-batch is then compared with those before it, at the same weights. It copies the
        gradient: do so now and then, such as at every hundredth step.
        """
        grads = [None if p.grad is None else p.grad.detach().clone() for p in listed(parameters)]
        self._micro_batches = 0 if all(g is None for g in grads) else self._micro_batches + 1
        self._before_last = (grads, self._micro_batches) if self._micro_batches else None

    def compare_ranks(self, model: Any, every: int = 100) -> None:
        """Compares the gradient of this rank with that of the others, for :meth:`direct`.

        ``model`` is wrapped in ``DistributedDataParallel`` and has no communication hook. Once, before
        training; at every ``every``-th step the gradient is copied before DDP averages it. With a
        ``GradScaler``, pass it to :meth:`clip_`.
        """
        self._ranks = RankGradients(model, at_least(1, every, "every", "expected at least 1 step"))

    def _compared(
        self, parameters: Parameters, reference: Iterable[Tensor | None] | None, scaler: Any = None
    ) -> tuple[Tensor, Tensor] | None:
        """The norm of a gradient, and its inner product with an independent one at the same weights."""
        before, self._before_last, self._micro_batches = self._before_last, None, 0
        between = None
        if self._ranks is not None:
            scale = 1.0 if scaler is None else float(scaler.get_scale())
            between = self._ranks.compared(listed(parameters), scale)
        if reference is None and before is None:
            return between
        params = listed(parameters)
        own: list[Tensor | None] = [p.grad for p in params]
        if reference is not None:
            other = list(reference)
            if len(other) != len(params):
                raise ValueError(
                    f"reference has {len(other)} gradients, but there are {len(params)} parameters; expected "
                    "one for each, or None"
                )
            return total_norm(params), inner_product(own, other)
        assert before is not None
        earlier, count = before
        last = [
            g if e is None or g is None else g - e for g, e in zip(own, earlier, strict=True)
        ]
        # On the scale of the whole: the sum of count + 1 micro-batches.
        more, all_of_them = (count + 1) / count, count + 1
        norm = inner_product(earlier, earlier).sqrt() * more
        return norm, inner_product(earlier, last) * (more * all_of_them)

    def watch(
        self,
        parameters: Parameters,
        max_norm: float | str | None = None,
        *,
        loss: Tensor | float | None = None,
        scaler: Any = None,
        optimizer: Any = None,
    ) -> Tensor:
        """Adds the norm without clipping, for loops in which something else clips afterwards.

        ``max_norm`` is the threshold of that clipping.
        """
        limit = threshold(max_norm, "max_norm")
        parameters = self._prepared(parameters, scaler, optimizer)
        norm = total_norm(parameters)
        self._max_norm = limit
        self._observe(norm, loss, self._group_norms(), self._compared(parameters, None, scaler))
        return norm

    def observe(
        self,
        norm: Tensor | float,
        *,
        loss: Tensor | float | None = None,
        max_norm: float | str | None = None,
    ) -> None:
        """Adds a norm before clipping that was computed elsewhere, and the threshold of that clipping."""
        self._observe_norm(norm, loss, max_norm, None)

    def _observe_norm(
        self, norm: Tensor | float, loss: Any, max_norm: float | str | None, groups: list[Tensor] | None
    ) -> None:
        if not isinstance(norm, Tensor):
            norm = _tensor(norm, "norm")
        if max_norm is not None:
            self._max_norm = threshold(max_norm, "max_norm")
        norm = norm.detach()
        norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
        if norm.numel() != 1:
            raise ValueError(f"norm must be one number, not a tensor of shape {tuple(norm.shape)}")
        if groups is None:
            groups = [torch.tensor(math.nan)] * len(self._groups)
        self._observe(norm.reshape(()), loss, groups, None)

    def _prepared(self, parameters: Parameters, scaler: Any, optimizer: Any) -> Parameters:
        if scaler is not None:
            unscale(scaler, optimizer)
        self._set_optimizer(optimizer)
        # A generator can be used only once.
        return parameters if isinstance(parameters, nn.Module) else listed(parameters)

    def _set_optimizer(self, optimizer: Any) -> None:
        """Takes the optimizer from a step or a guard, unless one was given."""
        if not self._given and optimizer is not None and optimizer is not self._optimizer:
            self._kind, self._optimizer = kind_of(optimizer), optimizer

    def _set_guard(self, guard: Any) -> None:
        """The guard that reports mention."""
        if self.apply:
            raise ValueError(
                "a monitor with apply = True cannot be combined with a guard, which clips itself; create the "
                "monitor without apply"
            )
        self._guard = guard

    def _group_norms(self) -> list[Tensor]:
        nothing = torch.tensor(math.nan)
        return [
            nothing if all(p.grad is None for p in part) else total_norm(part)
            for part in self._groups.values()
        ]

    def _observe(self, norm: Tensor, loss: Any, groups: list[Tensor], pair: Any) -> None:
        if loss is not None:
            loss = (loss if isinstance(loss, Tensor) else _tensor(loss, "loss")).detach()
            if loss.numel() != 1:
                raise ValueError(f"loss must be one number, not a tensor of shape {tuple(loss.shape)}")
            # A copy: with CUDA graphs the same tensor is used at every step.
            loss = loss.reshape(()).clone()
        in_force = math.inf if self._max_norm is None else self._max_norm
        if self.apply:
            in_force = min(in_force, self._threshold)
        self._pending.append(_Step(norm.detach(), loss, rate_of(self._optimizer), groups, pair, in_force))
        if (self._series.seen + len(self._pending)) % self._flush_every == 0:
            self.flush()
            # Only here: reading or saving the monitor must not change the run.
            if self._rule is not None:
                self._threshold, factor = self._rule.next()
                self._rate_factor = factor if self._kind == "sgd" else 1.0

    def _raise_on_overflow(self, norm: Tensor, loss: Any) -> None:
        if bool(torch.isfinite(norm)):
            return
        self._observe(norm, loss, self._group_norms(), None)  # counted separately
        # The exception type of clip_grad_norm_, for code that catches it.
        raise RuntimeError(
            f"the gradient norm is {float(norm)}, so the gradients cannot be clipped; without "
            "error_if_nonfinite the step would be counted separately"
        )

    def flush(self) -> None:
        """Fetches the norms that are still on the device; synchronises with it."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        missing = np.array([step.loss is None for step in pending])
        with_pair = np.array([step.compared is not None for step in pending])
        parts = (
            [step.norm for step in pending],
            [step.loss for step in pending if step.loss is not None],
            [norm for step in pending for norm in step.group_norms],
            [x for step in pending for x in step.compared or ()],
        )
        norms, known, groups, products = np.split(
            _fetched([x for part in parts for x in part]), np.cumsum([len(part) for part in parts[:-1]])
        )
        losses = np.full(len(pending), math.nan)
        losses[~missing] = known
        rates = np.array([step.learning_rate for step in pending])
        compared = np.full((len(pending), 2), math.nan)
        compared[with_pair] = products.reshape(-1, 2)
        thresholds = np.array([step.threshold for step in pending])
        self._series.add(norms, losses, missing, rates, compared, groups, thresholds)
        if self._rule is not None:
            self._rule.thresholds(norms)

    # Results.

    @property
    def threshold(self) -> float:
        """The threshold that the monitor chose, at which it clips with ``apply``; infinite for none."""
        return self._threshold if self.apply else self.core.threshold()

    @property
    def rate_factor(self) -> float:
        """The factor for SGD's learning rate that compensates for clipping at the chosen threshold.

        1 for every other optimizer, and if the optimizer is unknown.
        """
        if self.apply:
            return self._rate_factor
        advice = self.core.advice() if self._kind == "sgd" else None
        clips = advice is not None and advice.kind in ("clip", "loosen")
        return float(advice.choice["rate_factor"]) if clips and advice and advice.choice else 1.0

    @property
    def core(self) -> CoreMonitor:
        """The estimates from everything observed so far, at the present ``max_norm``."""
        self.flush()
        made = self._empty_core()
        made.observe(self._series.norms)
        return made

    def _empty_core(self) -> CoreMonitor:
        watched = None if self._max_norm == math.inf else self._max_norm
        return CoreMonitor(watched=watched, **self._settings)

    @property
    def steps(self) -> int:
        """Steps observed, those that are not finite included."""
        return self._series.seen + len(self._pending)

    def report(self, framework: str | None = None) -> LogAdvice:
        """Findings and advice, the same as :func:`toclip.advise` gives for a log of this run."""
        self.flush()
        if not len(self._series):
            raise ValueError("nothing was observed yet; call clip_ or watch at every step")
        clip = self._max_norm
        if self.apply and math.isfinite(self._threshold):
            clip = min(self._threshold, math.inf if clip is None else clip)
        now = (self._series.seen, clip, self._kind, framework)
        if self._last is None or self._last[0] != now:
            found = advise(
                self._series.log(),
                clip="none" if clip == math.inf else clip,
                batch_size=None if self._batch_size is None else float(self._batch_size),
                outputs=None if self._batch_size is None else float(self._outputs),
                optimizer=self._kind,
                framework=framework or "pytorch",
                confidence=self._confidence,
            )
            self._last = now, found
            self._summary = self._series.seen, _summary(found)
        return replace(self._last[1], _note=self._guard_note())

    def _guard_note(self) -> str | None:
        """The actions of the guard, which the analysis of the norms does not see."""
        counts = {} if self._guard is None else self._guard.counts
        if not counts.get("steps"):
            return None
        numbers = {"skipped": counts["skipped"] + counts["non_finite"], "clipped": counts["clipped"]}
        acted = " and ".join(f"{what} {count:,}" for what, count in numbers.items() if count)
        if self._guard.rule.action == "skip":
            basis = "is for a run without the guard"
        else:
            basis = "takes its last threshold as fixed"
        return f"A guard {acted or 'acted on none'} of {counts['steps']:,} steps. The advice below {basis}."

    def advice(self) -> LogAdvice:
        """The same as :meth:`report`."""
        return self.report()

    def metrics(self, prefix: str = "clip/") -> dict[str, float]:
        """Flat numbers for a logger.

        ``norm`` and ``threshold`` of the last step; ``clipped_share`` and ``step_factor`` (the mean of
        min(1, threshold/norm)) over the last 100 steps, each with its own threshold; how many steps were
        ``non_finite`` and how many were ``spikes``; ``ccc`` with its interval at the best threshold, if there
        is enough to tell; and for each group its norm and, over the last 100 steps, the ``clipped_share`` that
        it would have by itself and its mean ``share`` of the squared norm: the group with the largest drives
        the total. ``spikes`` and ``ccc`` are those of the last :meth:`report`, which is made again when there
        are 10% more steps.
        """
        self.flush()
        recent = self._series.recent
        if not len(recent):
            return {}
        last, usable = recent[-1], recent[np.isfinite(recent[:, 1]) & (recent[:, 1] > 0.0)]
        limits, norms = usable[:, 0], usable[:, 1]
        found = {"norm": float(last[1]), "threshold": float(last[0])}
        if len(usable):
            found["clipped_share"] = float((norms > limits).mean())
            found["step_factor"] = float(np.minimum(1.0, limits / norms).mean())
        for name, own, norm in zip(self._groups, usable[:, 2:].T, last[2:], strict=True):
            found[f"norm/{name}"] = float(norm)
            known = np.isfinite(own)
            if known.any():
                found[f"clipped_share/{name}"] = float((own[known] > limits[known]).mean())
                found[f"share/{name}"] = float(((own[known] / norms[known]) ** 2).mean())
        found["non_finite"] = float(self._series.non_finite)
        if len(usable):
            if self._summary is None or self._series.seen >= _GROWTH * self._summary[0]:
                self.report()
            found |= {} if self._summary is None else self._summary[1]
        return {prefix + name: value for name, value in found.items()}

    def curve(self) -> Estimates:
        """The effect of clipping at 64 thresholds."""
        return self.core.curve()

    def watched(self) -> dict[str, Any] | None:
        """The effect of clipping at the ``max_norm`` in force."""
        return self.core.watched()

    def direct(self) -> CoreMonitor:
        """Estimates that assume nothing about the direction of gradients: each was compared with an
        independent one at the same weights.

        Their ``watched()`` and ``curve()`` have the entry ``direct``. Steps count if they had a
        ``reference``, if :meth:`before_micro_batch` was called for them, or with :meth:`compare_ranks`.
        """
        self.flush()
        pairs = self._series.compared
        if not len(pairs):
            raise ValueError(
                "no gradient was compared with another at the same weights: pass clip_ a reference now and "
                "then, or call before_micro_batch, or compare_ranks with DDP (successive steps do not serve, "
                "because the weights move)"
            )
        made = self._empty_core()
        made.observe_aligned(pairs[:, 0], pairs[:, 1])
        return made

    def merged(self, group: Any = None) -> CoreMonitor:
        """The monitors of all ranks combined; every rank must call it.

        With ``shared`` norms all ranks have observed the same, and the result is the monitor of the
        first; otherwise the monitors are merged in the order of the ranks.
        """
        own = self.core
        if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
            return own
        states: list[Any] = [None] * torch.distributed.get_world_size(group)
        torch.distributed.all_gather_object(states, own.to_json(), group=group)
        merged = CoreMonitor.from_json(states[0])
        if self.shared:
            return merged
        for state in states[1:]:
            merged.merge(CoreMonitor.from_json(state))
        return merged

    # Checkpoints.

    def state_dict(self) -> dict[str, Any]:
        """The whole state as plain values, for ``torch.save`` or JSON."""
        self.flush()
        # JSON has no infinity.
        limit = "none" if self._max_norm == math.inf else self._max_norm
        return {
            "version": _VERSION,
            "apply": self.apply,
            "components": self._settings["components"],
            "max_norm": limit,
            "in_force": None if math.isinf(self._threshold) else [self._threshold, self._rate_factor],
            "series": self._series.state_dict(),
            "rule": None if self._rule is None else self._rule.to_json(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what :meth:`state_dict` returned."""
        if not isinstance(state, dict) or "version" not in state:
            raise ValueError("this is not the state of a toclip.torch.Monitor")
        if state["version"] != _VERSION:
            raise ValueError(
                f"the state has version {state['version']}, but this toclip reads version {_VERSION}"
            )
        for name, own in (("apply", self.apply), ("components", self._settings["components"])):
            if state.get(name) != own:
                shown = "batch_size × outputs" if name == "components" else name
                raise ValueError(
                    f"the state was saved with {shown} = {state.get(name)}, but the monitor has {own}"
                )
        try:
            series = Series.of(state["series"])
            limit, in_force = state["max_norm"], state["in_force"] or (math.inf, 1.0)
            own_threshold, rate_factor = in_force
            rule = None if state["rule"] is None else _toclip.ThresholdRule.from_json(state["rule"])
        except (KeyError, TypeError, ValueError, zlib.error):
            raise ValueError("the state of the monitor is damaged") from None
        if series.groups != list(self._groups):
            raise ValueError(
                f"the state was saved with groups {series.groups}, but the monitor has {list(self._groups)}"
            )
        self._rule, self._pending, self._series = rule, [], series
        self._last = self._summary = None
        self._max_norm = math.inf if limit == "none" else limit
        self._threshold, self._rate_factor = own_threshold, rate_factor

    def __repr__(self) -> str:
        return f"<toclip.torch.Monitor: {self.steps} steps, apply={self.apply}>"


def _tensor(value: Any, name: str) -> Tensor:
    try:
        return torch.tensor(float(value), dtype=torch.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be one number, not {value!r:.60}") from None


def _fetched(values: list[Tensor]) -> Any:
    """The values as double precision numbers on the host, in one transfer from each device."""
    found = np.empty(len(values))
    for device in {value.device for value in values}:
        at = [k for k, value in enumerate(values) if value.device == device]
        kind = functools.reduce(torch.promote_types, {values[k].dtype for k in at})
        # Double precision only on the host, because not every device supports it.
        found[at] = torch.stack([values[k].to(kind) for k in at]).cpu().double().numpy()
    return found


def _groups(given: Any) -> dict[str, list[Tensor]]:
    """Parameters by the name of their group."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): listed(part) for name, part in given.items()}
    if not hasattr(given, "param_groups"):
        raise ValueError(
            f"groups must be a dictionary of parameters or an optimizer, not {given!r:.60}"
        )
    found: dict[str, list[Tensor]] = {}
    for k, group in enumerate(given.param_groups):
        name = str(group.get("name", f"group {k}"))
        # Several groups may have the same name.
        found[f"{name} (group {k})" if name in found else name] = list(group["params"])
    return found


def _summary(report: LogAdvice) -> dict[str, float]:
    """The numbers of ``metrics`` from a report."""
    steps = [f["steps"] for f in report.findings if f["code"] == "spikes"]
    found = {"spikes": float(sum(map(len, steps)))}
    if best := report.analysis["best"]:
        parts = {"ccc": "value", "ccc_low": "low", "ccc_high": "high"}
        found |= {name: best["ccc"][part] for name, part in parts.items() if best["ccc"][part] is not None}
    return found


def _euclidean(norm_type: Any) -> None:
    try:
        given = float(norm_type)
    except (TypeError, ValueError):
        given = math.nan
    if given != 2.0:
        raise ValueError(
            f"norm_type = {norm_type} is not supported; expected norm_type = 2, the Euclidean norm"
        )
