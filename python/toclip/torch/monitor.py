"""A monitor that stands where ``clip_grad_norm_`` stands."""

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
from ._check import at_least
from ._norms import Parameters, clip_to, gradients_of, listed, total_norm

__all__ = ["Monitor"]

_VERSION = 1


class Monitor:
    """Watches training through the norm of the gradient before clipping.

    Use it where ``torch.nn.utils.clip_grad_norm_`` is used, once for each step of the optimizer::

        monitor = toclip.torch.Monitor(batch_size=128)
        ...
        loss.backward()
        monitor.clip_(model.parameters(), max_norm=1.0)   # or without max_norm: only watch
        optimizer.step()
        ...
        print(monitor.advice())

    ``batch_size``
        samples behind one step: those of all micro-batches that are accumulated, on all ranks.
    ``outputs``
        outputs of the model (classes) that share a sample's loss.
    ``apply``
        clip where the monitor chooses rather than where you say; a ``max_norm`` is then a ceiling.
        Nothing is clipped until the evidence is there.
    ``compensate``
        with ``apply``: multiply the gradient by 1/mu, which for SGD is a larger learning rate that
        makes up for the descent that clipping takes away. Optimizers that divide by the size of
        the gradient (Adam) would not feel it: multiply their learning rate by ``rate_factor``.
    ``every``
        with ``apply``: how often the choice is reconsidered, in steps.
    ``flush``
        norms stay on the device for so many steps, so that the device is not waited for.
    ``shared``
        the norm is the same on every rank (DDP, FSDP). ``False`` where each rank shows the norm of
        its own gradient: :meth:`merged` then adds the ranks up.
    ``memory``, ``scale_memory``, ``confidence``, ``margin``
        as for :class:`toclip.Monitor`.

    Under AMP, gradients must be unscaled first, as for ``clip_grad_norm_``: call
    ``scaler.unscale_(optimizer)``, or hand both to :meth:`clip_`. Steps that overflow are counted
    apart and learnt nothing from.
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
            batch_size = at_least(1, batch_size, "batch_size", "a step has 1 or more samples")
        outputs = at_least(1, outputs, "outputs", "a model has 1 or more outputs")
        flush = at_least(1, flush, "flush", "norms are taken in every 1 or more steps")
        if compensate and not apply:
            raise ValueError("compensate = True makes up for clipping by apply = True: give both")
        self.apply, self.compensate, self.shared = apply, compensate, shared
        self._flush_every, self._every = flush, every
        self._settings: dict[str, Any] = {
            "components": None if batch_size is None else float(batch_size * outputs),
            "memory": memory,
            "scale_memory": scale_memory,
            "confidence": confidence,
            "margin": margin,
        }
        self._waiting: list[Tensor] = []
        self._seen = 0
        self._watched: float | None = None
        self._warned = False
        self._threshold, self._rate_factor = math.inf, 1.0
        self._rule: _toclip.Rule | None = None
        self._monitor: _toclip.Monitor | None = None
        if apply:
            self._rule = _toclip.Rule.monitored(every=every, **self._settings)
        else:
            # Refuses impossible settings here and not at the first step.
            _toclip.Monitor(**self._settings)

    # Each step.

    def clip_(
        self,
        parameters: Parameters,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        error_if_nonfinite: bool = False,
        foreach: bool | None = None,
        *,
        scaler: Any = None,
        optimizer: Any = None,
    ) -> Tensor:
        """Clips the gradients in place and gives their norm before that, without waiting for the device.

        Clips at ``max_norm``, or at the monitor's choice with ``apply``, or not at all. Takes what
        ``clip_grad_norm_`` takes, in the same order; of norms only the Euclidean, and with
        ``error_if_nonfinite`` every step waits for the device. With FSDP's first version give the
        wrapped module itself, not its parameters.
        """
        limit = _limit(max_norm)
        _euclidean(norm_type)
        if scaler is not None:
            _unscale(scaler, optimizer)
        if not isinstance(parameters, nn.Module):
            parameters = listed(parameters)  # a generator can be used only once
        self._watch(limit)
        bound = math.inf if limit is None else limit
        if self.apply:
            bound = min(bound, self._threshold)
        if error_if_nonfinite:
            self._refuse_overflow(total_norm(parameters, foreach))
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
        max_norm: float | None = None,
        *,
        scaler: Any = None,
        optimizer: Any = None,
    ) -> Tensor:
        """Takes in the norm and changes nothing: for loops in which something else clips afterwards.

        ``max_norm`` is the threshold at which it will.
        """
        limit = _limit(max_norm)
        if scaler is not None:
            _unscale(scaler, optimizer)
        if not isinstance(parameters, nn.Module):
            parameters = listed(parameters)
        self._watch(limit)
        norm = total_norm(parameters)
        self.observe(norm)
        return norm

    def observe(self, norm: Tensor | float) -> None:
        """Takes in a norm that was computed elsewhere, before clipping."""
        if isinstance(norm, Tensor):
            norm = norm.detach()
            norm = norm.full_tensor() if hasattr(norm, "full_tensor") else norm
            if norm.numel() != 1:
                raise ValueError(f"a norm is one number, not a tensor of shape {tuple(norm.shape)}")
            self._waiting.append(norm.reshape(()))
        else:
            try:
                value = float(norm)
            except (TypeError, ValueError):
                raise ValueError(f"a norm is one number, not {norm!r:.60}") from None
            self._waiting.append(torch.tensor(value, dtype=torch.float64))
        self._seen += 1
        if self._seen % self._flush_every == 0:
            self.flush()
            # Only here: looking at the monitor, or saving it, must not change the run.
            if self._rule is not None:
                self._threshold, self._rate_factor = self._rule.next()

    def _refuse_overflow(self, norm: Tensor) -> None:
        if bool(torch.isfinite(norm)):
            return
        self.observe(norm)  # it is counted apart
        # The type that clip_grad_norm_ raises, for those who catch it.
        raise RuntimeError(
            f"the norm of the gradients is {float(norm)}, so they cannot be clipped; without "
            "error_if_nonfinite the step would be counted apart"
        )

    def flush(self) -> None:
        """Takes in the norms that are still on the device: the one moment that waits for it."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        if len({(norm.device, norm.dtype) for norm in waiting}) > 1:
            waiting = [norm.cpu().double() for norm in waiting]
        # Doubles only here: not every device has them.
        norms = torch.stack(waiting).cpu().double().numpy()
        if self._rule is not None:
            self._rule.thresholds(norms)
        else:
            self._core().observe(norms)

    def _watch(self, max_norm: float | None) -> None:
        if max_norm is None or self.apply or max_norm == self._watched or math.isinf(max_norm):
            return
        if self._watched is not None or self._monitor is not None:
            # Once: along a schedule of thresholds every step would say it.
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"max_norm is now {max_norm} and was {self._watched}: the estimates at the "
                    f"threshold in force stay those of {self._watched}",
                    stacklevel=3,
                )
            return
        self._watched = float(max_norm)

    def _core(self) -> _toclip.Monitor:
        followed = None if self._rule is None else self._rule.monitor
        if followed is not None:
            return followed
        if self._monitor is None:
            self._monitor = _toclip.Monitor(watched=self._watched, **self._settings)
        return self._monitor

    # What it found.

    @property
    def threshold(self) -> float:
        """The threshold that the monitor chose and, with ``apply``, clips at; infinite for none."""
        self.flush()
        return self._threshold if self.apply else self._core().threshold()

    @property
    def rate_factor(self) -> float:
        """By what the learning rate without clipping is to be multiplied at the chosen threshold."""
        self.flush()
        if self.apply:
            return self._rate_factor
        advice = self.advice()
        clips = advice.kind in ("clip", "loosen") and advice.choice is not None
        return float(advice.choice["rate_factor"]) if clips and advice.choice else 1.0

    @property
    def core(self) -> CoreMonitor:
        """What has been seen so far as a :class:`toclip.Monitor`."""
        self.flush()
        return CoreMonitor._of(self._core())

    @property
    def steps(self) -> int:
        """Steps that are counted at present."""
        return self.core.steps

    def advice(self) -> Advice:
        """What to do about the threshold; ``print`` it for a sentence."""
        return self.core.advice()

    def curve(self) -> Estimates:
        """What clipping would do at 64 thresholds."""
        return self.core.curve()

    def watched(self) -> dict[str, Any] | None:
        """What clipping does at the ``max_norm`` in force."""
        return self.core.watched()

    def merged(self, group: Any = None) -> CoreMonitor:
        """What all ranks have seen, on every rank; all must call it.

        With ``shared`` norms every rank has seen the same and the first one's monitor is it;
        otherwise the ranks' monitors are merged in their order.
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
        """Everything it knows, for ``torch.save``."""
        self.flush()
        state = self._rule if self._rule is not None else self._core()
        return {
            "version": _VERSION,
            "apply": self.apply,
            "watched": self._watched,
            "seen": self._seen,
            # JSON, in which checkpoints may be kept, has no infinity.
            "in_force": None if math.isinf(self._threshold) else [self._threshold, self._rate_factor],
            "state": state.to_json(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where :meth:`state_dict` was taken."""
        if not isinstance(state, dict) or "state" not in state:
            raise ValueError("this is not the state of a toclip.torch.Monitor")
        if state.get("version") != _VERSION:
            raise ValueError(
                f"the state has version {state.get('version')} and this toclip reads {_VERSION}"
            )
        if state.get("apply") != self.apply:
            raise ValueError(
                f"the state was saved with apply = {state.get('apply')} and the monitor has apply = "
                f"{self.apply}: make them the same"
            )
        rule = monitor = None
        if self.apply:
            rule = _toclip.Rule.from_json(state["state"])
            found = rule.monitor
        else:
            found = monitor = _toclip.Monitor.from_json(state["state"])
        saved = None if found is None else found.settings["components"]
        if saved != self._settings["components"]:
            raise ValueError(
                f"the state was saved with batch_size times outputs = {saved} and the monitor has "
                f"{self._settings['components']}: their norms do not go together"
            )
        self._waiting, self._watched = [], state.get("watched")
        self._rule, self._monitor = rule, monitor
        self._seen = int(state.get("seen", 0))
        if rule is not None:
            # States of before had it implied.
            implied = rule.next() if "in_force" not in state else (math.inf, 1.0)
            self._threshold, self._rate_factor = state.get("in_force") or implied

    def __repr__(self) -> str:
        return f"<toclip.torch.Monitor: {self.steps} steps, apply={self.apply}>"


def given_or_made(monitor: Monitor | None, settings: dict[str, Any]) -> Monitor:
    """What a callback watches with: the monitor it was given, or one of these settings."""
    if monitor is None:
        return Monitor(**settings)
    if not isinstance(monitor, Monitor):
        raise ValueError(
            f"the monitor is a {type(monitor).__module__}.{type(monitor).__name__}; it must be a "
            "toclip.torch.Monitor"
        )
    if settings:
        raise ValueError(
            f"a monitor and {', '.join(settings)} were given: give the monitor, or its arguments"
        )
    return monitor


def _limit(max_norm: Any) -> float | None:
    if max_norm is None:
        return None
    try:
        limit = float(max_norm)
    except (TypeError, ValueError):
        raise ValueError(
            f"max_norm is {max_norm!r:.60}; it must be a positive number, or None to "
            "clip nothing"
        ) from None
    if not limit > 0:
        raise ValueError(f"max_norm = {max_norm} is not allowed: a threshold must be positive")
    return limit


def _euclidean(norm_type: Any) -> None:
    try:
        given = float(norm_type)
    except (TypeError, ValueError):
        given = math.nan
    if given != 2.0:
        raise ValueError(
            f"norm_type = {norm_type} is not allowed: what is known of clipping is known of the "
            "Euclidean norm, norm_type = 2"
        )


def _unscale(scaler: Any, optimizer: Any) -> None:
    if optimizer is None:
        raise ValueError("a scaler unscales the gradients of an optimizer: give optimizer too")
    try:
        scaler.unscale_(optimizer)
    except RuntimeError as error:
        if "already been called" not in str(error):
            raise
