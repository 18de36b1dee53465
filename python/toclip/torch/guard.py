"""A guard against rare large gradients, in PyTorch."""

from __future__ import annotations

import functools
import math
import types
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ..guard import GuardRule, GuardStep
from ._deepspeed import attach as attach_to_engine
from ._deepspeed import is_engine, plain_optimizer
from ._fused import Sent, can_leave_out, decided_on_device, has_state
from ._norms import Parameters, divide_by, gradients_of, listed, total_norm, unscale
from ._replace import replaced
from .monitor import Monitor

__all__ = ["Guard"]

T = TypeVar("T")


class Guard:
    """Clips or skips steps whose gradient norm is far above the running median.

    Attach it to the optimizer once; then every ``optimizer.step()`` is guarded, also in a Trainer::

        guard = toclip.torch.Guard()
        guard.attach(optimizer)
        ...
        loss.backward()
        optimizer.step()          # clipped, or skipped, where the gradient is far too large
        ...
        print(guard)

    Or ask it at each step::

        if not guard.clip_(model.parameters()).skipped:
            optimizer.step()

    A skipped step does not call the optimizer: weights, moments and weight decay stay as they are. A
    gradient with NaN or infinite numbers is always skipped.

    The arguments are those of :class:`toclip.GuardRule`; ``monitor`` is a
    :class:`toclip.torch.Monitor` that gets every norm, and the loss that was set as ``guard.loss``
    before the step or, without it, that a closure returned; it must not have ``apply``. Attached, the
    guard needs gradients that nothing else has clipped. It reads the norm once per step, which
    synchronises with the device. With an optimizer that is ``fused`` the device need not wait for the
    host: the norm is read one step later, and a skipped step calls the optimizer with the ``found_inf``
    of a GradScaler, so that it does nothing.

    ``state_dict`` and ``load_state_dict`` save and restore it exactly.
    """

    def __init__(self, *, monitor: Monitor | None = None, **settings: Any) -> None:
        if monitor is not None and not isinstance(monitor, Monitor):
            raise ValueError(f"monitor must be a toclip.torch.Monitor, not {monitor!r:.60}")
        self._rule = GuardRule(**settings)
        if monitor is not None:
            monitor._set_guard(self)
        self.monitor = monitor
        self._last: GuardStep | None = None
        # The norm of the last step, if the host does not know it yet.
        self._sent: Sent | None = None
        # The loss of the next step, for the monitor.
        self.loss: Any = None
        self._calls = 0
        self._detach: Callable[[], None] | None = None

    # Each step.

    def clip_(
        self,
        parameters: Parameters,
        *,
        loss: Tensor | float | None = None,
        scaler: Any = None,
        optimizer: Any = None,
    ) -> GuardStep:
        """Clips the gradients in place if they are too large, and returns the decision.

        If the result is ``skipped``, do not call ``optimizer.step()``. ``loss`` is for the monitor.
        With AMP, gradients must be unscaled first: call ``scaler.unscale_(optimizer)``, or pass both.
        With FSDP1, pass the wrapped module itself, not its parameters.
        """
        if scaler is not None:
            unscale(scaler, optimizer)
        if not isinstance(parameters, nn.Module):
            parameters = listed(parameters)  # a generator can be used only once
        if self.monitor is not None:
            self.monitor._set_optimizer(optimizer)
        made, loss, groups = self._decide(parameters, self.loss if loss is None else loss, None)
        self._tell_monitor(made.norm, made.threshold, loss, groups)
        return made

    def _decide(
        self, parameters: Parameters, loss: Any, grad_scale: Tensor | None
    ) -> tuple[GuardStep, Any, list[Tensor]]:
        """Decides, clips if need be, and returns the loss and the norms of groups for the monitor."""
        norm, groups = _unscaled(total_norm(parameters), grad_scale), self._group_norms(grad_scale)
        length, loss = _read(norm, None if self.monitor is None else loss)
        limit, made = self.rule.clip_above, self._decide_by(length)
        if made.clipped:
            divide_by(gradients_of(parameters), length / limit)
        self.loss = None
        return made, loss, groups

    def _decide_by(self, length: float) -> GuardStep:
        made = self._last = self.rule.step(length)
        self._calls += 1
        return made

    def _decide_on_device(
        self, optimizer: Any, parameters: Parameters, loss: Any, call: Callable[[], Any], wait: bool
    ) -> tuple[GuardStep | None, Any]:
        """As :meth:`_decide`, and calls the optimizer; without waiting for the norm unless told to."""
        rule = self.rule  # settled: it knows all norms before this one
        grad_scale = getattr(optimizer, "grad_scale", None)
        # Before the optimizer clips: it may write the clipped gradients back.
        norm, groups = _unscaled(total_norm(parameters), grad_scale), self._group_norms(grad_scale)
        self.loss = None
        threshold, result = rule.threshold, None
        with decided_on_device(optimizer, norm, rule):
            self._sent = Sent(norm)
            if not (wait and self.last is not None and self.last.skipped):
                result = call()
        self._tell_monitor(norm, threshold, loss, groups)
        self._calls += 1
        return self._last if wait else None, result

    def _settle(self) -> None:
        """Waits for the norm of the last step, if it has not arrived yet."""
        if self._sent is not None:
            sent, self._sent = self._sent, None
            self._last = self._rule.step(sent.received())

    def _group_norms(self, grad_scale: Tensor | None) -> list[Tensor]:
        """The norms of the monitor's groups, before clipping."""
        norms = [] if self.monitor is None else self.monitor._group_norms()
        return [_unscaled(norm, grad_scale) for norm in norms]

    def _limit(self, threshold: float) -> float:
        """Where gradients are clipped, for a monitor, if the guard's own threshold is this."""
        fixed = self._rule.max_norm
        return fixed if self._rule.action == "skip" else min(threshold, fixed)

    def _tell_monitor(
        self, norm: Tensor | float, threshold: float, loss: Any, groups: list[Tensor] | None = None
    ) -> None:
        if self.monitor is not None:
            self.monitor._observe_norm(norm, loss, self._limit(threshold), groups)

    def _observed(self, length: float) -> GuardStep:
        """Decides about a step whose norm was computed elsewhere.

        It is infinite if a GradScaler, say, found that and did not call the optimizer.
        """
        made, loss, self.loss = self._decide_by(length), self.loss, None
        self._tell_monitor(made.norm, made.threshold, loss)
        return made

    # In place of the optimizer's own step.

    def attach(
        self, optimizer: Any, parameters: Parameters | None = None, *, scaler: Any = None
    ) -> None:
        """Guards every ``optimizer.step()`` from now on.

        ``parameters`` are by default those of the optimizer; with FSDP1 pass the wrapped module. A
        closure is called once, before the guard looks at its gradients. With a ``GradScaler``, pass it
        as ``scaler`` and call ``scaler.step(optimizer)`` as usual. The scaler itself skips steps that
        overflow; the guard counts them as ``non_finite``. The scaler of Accelerate is found without
        being given. With DeepSpeed pass the engine; its ``gradient_clipping`` remains an additional
        fixed threshold.
        """
        if self._detach is not None:
            raise ValueError("the guard is attached already; detach() it first")
        if is_engine(optimizer):
            if self.monitor is not None:
                self.monitor._set_optimizer(optimizer.optimizer)
            plain = plain_optimizer(optimizer)
            if plain is None:
                self._detach = attach_to_engine(self, optimizer)
                return
            optimizer = plain
        # Accelerate wraps the optimizer.
        inner = getattr(optimizer, "optimizer", optimizer)
        if not isinstance(inner, torch.optim.Optimizer):
            raise ValueError(f"optimizer must be a torch.optim.Optimizer, not {optimizer!r:.60}")
        if isinstance(inner, torch.optim.LBFGS):
            raise ValueError("LBFGS is not supported: it computes several gradients in a step")
        scaler = getattr(optimizer, "scaler", None) if scaler is None else scaler
        if scaler is not None and not hasattr(scaler, "unscale_"):
            raise ValueError(f"scaler must be a torch.amp.GradScaler, not {scaler!r:.60}")
        if self.monitor is not None:
            self.monitor._set_optimizer(inner)
        chosen: Any = parameters
        if parameters is not None and not isinstance(parameters, nn.Module):
            chosen = listed(parameters)
        original: Any = inner.step

        @functools.wraps(original)
        def step(this: Any, closure: Callable[[], Any] | None = None, **options: Any) -> Any:
            loss = None
            if closure is not None:
                with torch.enable_grad():
                    loss = closure()
            found = chosen
            if found is None:
                found = [p for group in inner.param_groups for p in group["params"]]
                if all(p.grad is None for p in found):
                    return original(**options) if closure is None else loss

            def call() -> Any:
                return original(**options) if closure is None else original(lambda: loss, **options)

            # With accumulation a closure returns the loss of the last micro-batch only.
            of_step = loss if self.loss is None else self.loss
            if chosen is None and can_leave_out(inner, found):
                wait = not has_state(inner)
                waited, result = self._decide_on_device(inner, found, of_step, call, wait)
                return loss if waited is not None and waited.skipped else result
            # Fused optimizers divide by the scale of a GradScaler themselves.
            made, of_step, groups = self._decide(found, of_step, getattr(inner, "grad_scale", None))
            # Before the monitor, because the device waits.
            result = loss if made.skipped else call()
            self._tell_monitor(made.norm, made.threshold, of_step, groups)
            return result

        # On the instance, where a learning rate scheduler replaces it too.
        undo = [replaced(inner, step=types.MethodType(step, inner))]
        undo += [_patch_accelerate(optimizer, inner), self._count_overflows(scaler, inner)]

        def detach() -> None:
            for restore in undo:
                restore()

        self._detach = detach

    def _count_overflows(self, scaler: Any, optimizer: Any) -> Callable[[], None]:
        """A scaler that found an overflow does not call the optimizer, and so not the guard."""
        if scaler is None:
            return lambda: None
        original = scaler.step

        @functools.wraps(original)
        def step(stepped: Any, *args: Any, **kwargs: Any) -> Any:
            known = self._calls
            result = original(stepped, *args, **kwargs)
            if getattr(stepped, "optimizer", stepped) is optimizer and self._calls == known:
                self._observed(math.inf)
            return result

        return replaced(scaler, step=step)

    def detach(self) -> None:
        """Gives the optimizer its own step back."""
        if self._detach is not None:
            self._detach()
            self._detach = None

    # Results.

    @property
    def rule(self) -> GuardRule:
        """The rule, which knows the norms of all steps so far."""
        self._settle()
        return self._rule

    @property
    def last(self) -> GuardStep | None:
        """The decision about the last step."""
        self._settle()
        return self._last

    @property
    def threshold(self) -> float:
        """The threshold for the next step; infinite during the warm-up."""
        return self.rule.threshold

    @property
    def counts(self) -> dict[str, int]:
        """The number of ``steps``, and how many were ``clipped``, ``skipped`` because the gradient was
        large, and skipped because it was ``non_finite``."""
        return self.rule.counts

    def metrics(self, prefix: str = "guard/") -> dict[str, float]:
        """Flat numbers for a logger."""
        counts: dict[str, float] = dict(self.counts)
        found = {"threshold": self.threshold} | counts
        if self.last is not None:
            found |= {"norm": self.last.norm, "factor": self.last.factor}
        return {prefix + name: float(value) for name, value in found.items()}

    def reset(self) -> None:
        """Forgets everything that was observed."""
        self.rule.reset()
        self._last = None

    def state_dict(self) -> dict[str, Any]:
        """The whole state as plain numbers, for ``torch.save`` or JSON."""
        state = {"guard": self.rule.state_dict()}
        if self.monitor is not None:
            state["monitor"] = self.monitor.state_dict()
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restores what :meth:`state_dict` returned."""
        if not isinstance(state, dict) or "guard" not in state:
            raise ValueError("this is not the state of a toclip.torch.Guard")
        self.rule.load_state_dict(state["guard"])
        self._last = None  # that of another run
        if self.monitor is not None and "monitor" in state:
            self.monitor.load_state_dict(state["monitor"])

    def __getstate__(self) -> dict[str, Any]:
        # A copy is attached to nothing.
        self._settle()
        return self.__dict__ | {"_detach": None}

    def __repr__(self) -> str:
        return self.rule._described("toclip.torch.Guard")


def _unscaled(norm: Tensor, grad_scale: Tensor | None) -> Tensor:
    return norm if grad_scale is None else norm / grad_scale.to(norm.device)


def _read(norm: Tensor, loss: Any) -> tuple[float, Any]:
    """The norm as a number and, if it is on the same device, the loss too: in one transfer."""
    if not isinstance(loss, Tensor) or loss.numel() != 1 or loss.device != norm.device:
        return norm.item(), loss
    loss = loss.detach()
    loss = loss.full_tensor() if hasattr(loss, "full_tensor") else loss
    kind = torch.promote_types(norm.dtype, loss.dtype)
    length, value = torch.stack([norm.to(kind), loss.reshape(()).to(kind)]).tolist()
    return length, value


def _patch_accelerate(wrapper: Any, inner: Any) -> Callable[[], None]:
    """With a scaler, accelerate calls the step that the optimizer had when it was wrapped."""
    names = ("_optimizer_original_step_method", "_optimizer_patched_step_method")
    if wrapper is inner or not all(hasattr(wrapper, name) for name in names):
        return lambda: None

    def patched(*args: Any, **kwargs: Any) -> Any:
        wrapper._accelerate_step_called = True
        return guarded(*args, **kwargs)

    guarded = inner.step
    return replaced(wrapper, **dict(zip(names, (guarded, patched), strict=True)))


def given_or_new(kind: type[T], given: T | None, settings: dict[str, Any]) -> T:
    """The monitor or guard of a callback: the one given, or a new one with these settings."""
    name = kind.__name__.lower()
    if given is None:
        return kind(**settings)
    if not isinstance(given, kind):
        found = f"{type(given).__module__}.{type(given).__name__}"
        raise ValueError(f"{name} must be a toclip.torch.{kind.__name__}, not a {found}")
    if settings:
        raise ValueError(
            f"both a {name} and {', '.join(settings)} were given; expected a {name} or its arguments"
        )
    return given
