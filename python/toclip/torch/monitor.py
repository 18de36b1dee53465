"""A monitor that replaces ``clip_grad_norm_``."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from torch import Tensor, nn

from .. import _toclip
from ..monitor import Advice
from ..monitor import Monitor as CoreMonitor
from ..results import Estimates
from ._check import at_least, threshold
from ._norms import Parameters, clip_to, gradients_of, listed, total_norm, unscale

__all__ = ["Monitor"]

_VERSION = 1


class Monitor:
    """Monitors training through the norm of the gradient before clipping.

    Use it in place of ``torch.nn.utils.clip_grad_norm_``, once per optimizer step::

        monitor = toclip.torch.Monitor(batch_size=128)
        ...
        loss.backward()
        monitor.clip_(model.parameters(), max_norm=1.0)   # without max_norm: observe only
        optimizer.step()
        ...
        print(monitor.advice())

    ``batch_size``
        samples per step, over all accumulated micro-batches and all ranks.
    ``outputs``
        outputs of the model (classes) per sample.
    ``apply``
        clip at the threshold that the monitor chooses; ``max_norm`` is then an upper limit. Nothing
        is clipped until there is enough evidence.
    ``compensate``
        with ``apply``: multiply the gradient by 1/mu, which for SGD is a larger learning rate that
        compensates for the descent lost to clipping. Optimizers that normalise the gradient (Adam)
        ignore such a factor: multiply their learning rate by ``rate_factor`` instead.
    ``every``
        with ``apply``: the number of steps between updates of the threshold.
    ``flush``
        the number of steps for which norms stay on the device, to avoid synchronising with it.
    ``shared``
        the norm is the same on every rank (DDP, FSDP). ``False`` if each rank observes the norm of
        its own gradient; :meth:`merged` then combines the ranks.
    ``memory``, ``scale_memory``, ``confidence``, ``margin``
        as for :class:`toclip.Monitor`.

    With AMP, gradients must be unscaled first, as for ``clip_grad_norm_``: call
    ``scaler.unscale_(optimizer)``, or pass both to :meth:`clip_`. Steps that overflow are counted
    separately and do not affect the estimates.
    """

    def __init__(
        self,
        *,
        batch_size: int | None = None,
        outputs: int = 1,
        apply: bool = False,
        compensate: bool = False,
        every: int = 200,
        flush: int = 50,
        shared: bool = True,
        memory: int | None = None,
        scale_memory: float = 200.0,
        confidence: float = 0.95,
        margin: float = 0.1,
    ) -> None:
        if batch_size is not None:
            batch_size = at_least(1, batch_size, "batch_size", "a step has at least 1 sample")
        outputs = at_least(1, outputs, "outputs", "a model has at least 1 output")
        flush = at_least(1, flush, "flush", "expected at least 1 step")
        if compensate and not apply:
            raise ValueError("compensate = True needs apply = True")
        self.apply, self.compensate, self.shared = apply, compensate, shared
        self._flush_every, self._every = flush, every
        self._settings: dict[str, Any] = {
            "components": None if batch_size is None else float(batch_size * outputs),
            "memory": memory,
            "scale_memory": scale_memory,
            "confidence": confidence,
            "margin": margin,
        }
        self._pending: list[Tensor] = []
        self._seen = 0
        self._watched: float | None = None
        self._warned = False
        self._threshold, self._rate_factor = math.inf, 1.0
        self._rule: _toclip.ThresholdRule | None = None
        self._monitor: _toclip.Monitor | None = None
        if apply:
            self._rule = _toclip.ThresholdRule.monitored(every=every, **self._settings)
        else:
            # Checks the settings now rather than at the first step.
            _toclip.Monitor(**self._settings)

    # Each step.

    def clip_(
        self,
        parameters: Parameters,
        max_norm: float | str | None = None,
        norm_type: float = 2.0,
        error_if_nonfinite: bool = False,
        foreach: bool | None = None,
        *,
        scaler: Any = None,
        optimizer: Any = None,
    ) -> Tensor:
        """Clips the gradients in place and returns their norm before clipping, without synchronising.

        Clips at ``max_norm``, with ``apply`` at the threshold of the monitor, and without either (or
        with ``"none"`` or ``inf``) not at all. The arguments are those of ``clip_grad_norm_``, in the
        same order. Only the Euclidean norm is supported, and ``error_if_nonfinite`` synchronises with
        the device at every step. With FSDP1, pass the wrapped module itself, not its parameters.
        """
        limit = threshold(max_norm, "max_norm")
        _euclidean(norm_type)
        if scaler is not None:
            unscale(scaler, optimizer)
        if not isinstance(parameters, nn.Module):
            parameters = listed(parameters)  # a generator can be used only once
        self._watch(limit)
        bound = min(limit, self._threshold) if self.apply else limit
        if error_if_nonfinite:
            self._raise_on_overflow(total_norm(parameters, foreach))
        norm = clip_to(parameters, bound, foreach)
        if self.compensate and self._rate_factor != 1.0:
            grads = gradients_of(parameters)
            if grads:
                torch._foreach_mul_(grads, self._rate_factor)
        self.observe(norm)
        return norm

    def watch(
        self,
        parameters: Parameters,
        max_norm: float | str | None = None,
        *,
        scaler: Any = None,
        optimizer: Any = None,
    ) -> Tensor:
        """Adds the norm without clipping, for loops in which something else clips afterwards.

        ``max_norm`` is the threshold of that clipping.
        """
        limit = threshold(max_norm, "max_norm")
        if scaler is not None:
            unscale(scaler, optimizer)
        if not isinstance(parameters, nn.Module):
            parameters = listed(parameters)
        self._watch(limit)
        norm = total_norm(parameters)
        self.observe(norm)
        return norm

    def observe(self, norm: Tensor | float) -> None:
        """Adds a norm before clipping that was computed elsewhere."""
        if isinstance(norm, Tensor):
            norm = norm.detach()
            norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
            if norm.numel() != 1:
                raise ValueError(f"norm must be one number, not a tensor of shape {tuple(norm.shape)}")
            self._pending.append(norm.reshape(()))
        else:
            try:
                value = float(norm)
            except (TypeError, ValueError):
                raise ValueError(f"norm must be one number, not {norm!r:.60}") from None
            self._pending.append(torch.tensor(value, dtype=torch.float64))
        self._seen += 1
        if self._seen % self._flush_every == 0:
            self.flush()
            # Only here: reading or saving the monitor must not change the run.
            if self._rule is not None:
                self._threshold, self._rate_factor = self._rule.next()

    def _raise_on_overflow(self, norm: Tensor) -> None:
        if bool(torch.isfinite(norm)):
            return
        self.observe(norm)  # counted separately
        # The exception type of clip_grad_norm_, for code that catches it.
        raise RuntimeError(
            f"the gradient norm is {float(norm)}, so the gradients cannot be clipped; without "
            "error_if_nonfinite the step would be counted separately"
        )

    def flush(self) -> None:
        """Adds the norms that are still on the device; synchronises with it."""
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        if len({(norm.device, norm.dtype) for norm in pending}) > 1:
            pending = [norm.cpu().double() for norm in pending]
        # Double precision only here, because not every device supports it.
        norms = torch.stack(pending).cpu().double().numpy()
        if self._rule is not None:
            self._rule.thresholds(norms)
        else:
            self._core().observe(norms)

    def _watch(self, max_norm: float) -> None:
        if self.apply or max_norm == self._watched or math.isinf(max_norm):
            return
        if self._watched is not None or self._monitor is not None:
            # Only once: with a schedule of thresholds every step would warn.
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"max_norm changed from {self._watched} to {max_norm}; estimates at the threshold in "
                    f"force remain those for {self._watched}",
                    stacklevel=3,
                )
            return
        self._watched = max_norm

    def _core(self) -> _toclip.Monitor:
        followed = None if self._rule is None else self._rule.monitor
        if followed is not None:
            return followed
        if self._monitor is None:
            self._monitor = _toclip.Monitor(watched=self._watched, **self._settings)
        return self._monitor

    # Results.

    @property
    def threshold(self) -> float:
        """The threshold that the monitor chose, at which it clips with ``apply``; infinite for none."""
        self.flush()
        return self._threshold if self.apply else self._core().threshold()

    @property
    def rate_factor(self) -> float:
        """The factor for the learning rate that compensates for clipping at the chosen threshold."""
        self.flush()
        if self.apply:
            return self._rate_factor
        advice = self.advice()
        clips = advice.kind in ("clip", "loosen") and advice.choice is not None
        return float(advice.choice["rate_factor"]) if clips and advice.choice else 1.0

    @property
    def core(self) -> CoreMonitor:
        """Everything observed so far, as a :class:`toclip.Monitor`."""
        self.flush()
        return CoreMonitor._of(self._core())

    @property
    def steps(self) -> int:
        """Steps that count at present."""
        return self.core.steps

    def advice(self) -> Advice:
        """What to do about the threshold; ``print`` shows a sentence."""
        return self.core.advice()

    def curve(self) -> Estimates:
        """What clipping would do at 64 thresholds."""
        return self.core.curve()

    def watched(self) -> dict[str, Any] | None:
        """What clipping does at the ``max_norm`` in force."""
        return self.core.watched()

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
        """The whole state, for ``torch.save``."""
        self.flush()
        state = self._rule if self._rule is not None else self._core()
        return {
            "version": _VERSION,
            "apply": self.apply,
            "watched": self._watched,
            "seen": self._seen,
            # Checkpoints may be JSON, which has no infinity.
            "in_force": None if math.isinf(self._threshold) else [self._threshold, self._rate_factor],
            "state": state.to_json(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what :meth:`state_dict` returned."""
        if not isinstance(state, dict) or "state" not in state:
            raise ValueError("this is not the state of a toclip.torch.Monitor")
        if state.get("version") != _VERSION:
            raise ValueError(
                f"the state has version {state.get('version')}, but this toclip reads version {_VERSION}"
            )
        if state.get("apply") != self.apply:
            raise ValueError(
                f"the state was saved with apply = {state.get('apply')}, but the monitor has apply = "
                f"{self.apply}"
            )
        rule = monitor = None
        if self.apply:
            rule = _toclip.ThresholdRule.from_json(state["state"])
            found = rule.monitor
        else:
            found = monitor = _toclip.Monitor.from_json(state["state"])
        saved = None if found is None else found.settings["components"]
        if saved != self._settings["components"]:
            raise ValueError(
                f"the state was saved with batch_size × outputs = {saved}, but the monitor has "
                f"{self._settings['components']}"
            )
        self._pending, self._watched = [], state.get("watched")
        self._rule, self._monitor = rule, monitor
        self._seen = int(state.get("seen", 0))
        if rule is not None:
            # Older states do not have it.
            default = rule.next() if "in_force" not in state else (math.inf, 1.0)
            self._threshold, self._rate_factor = state.get("in_force") or default

    def __repr__(self) -> str:
        return f"<toclip.torch.Monitor: {self.steps} steps, apply={self.apply}>"


def monitor_from(monitor: Monitor | None, settings: dict[str, Any]) -> Monitor:
    """The monitor of a callback: the one given, or a new one with these settings."""
    if monitor is None:
        return Monitor(**settings)
    if not isinstance(monitor, Monitor):
        raise ValueError(
            "monitor must be a toclip.torch.Monitor, not a "
            f"{type(monitor).__module__}.{type(monitor).__name__}"
        )
    if settings:
        raise ValueError(
            f"both a monitor and {', '.join(settings)} were given; expected a monitor or its arguments"
        )
    return monitor


def _euclidean(norm_type: Any) -> None:
    try:
        given = float(norm_type)
    except (TypeError, ValueError):
        given = math.nan
    if given != 2.0:
        raise ValueError(
            f"norm_type = {norm_type} is not supported; expected norm_type = 2, the Euclidean norm"
        )
