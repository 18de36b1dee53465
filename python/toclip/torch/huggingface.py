"""The monitor and the guard in the Trainer of Hugging Face transformers."""

from __future__ import annotations

import inspect
import json
import logging
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainerCallback
from transformers.trainer_callback import CallbackHandler

from ._replace import replaced
from .guard import Guard, given_or_new
from .monitor import Monitor

__all__ = ["GuardCallback", "MonitorCallback"]

log = logging.getLogger(__name__)

class _Callback(TrainerCallback):
    """What both callbacks do: take over clipping, record losses, save and resume, and log."""

    state_file = ""

    def __init__(self) -> None:
        self._max_norm: float | None = None
        self._deepspeed = False
        self._losses: list[torch.Tensor] = []
        self._summed = False
        self._undo: list[Callable[[], None]] = []

    # The Trainer clips before it calls callbacks, so while it trains it only measures the norm. The arguments
    # stay as they are: after Ctrl-C, which ends training without on_train_end, they can be used again.
    def _take_over(self, args: Any, model: Any) -> None:
        self._give_back()  # from an interrupted run
        self._max_norm = args.max_grad_norm if args.max_grad_norm and args.max_grad_norm > 0 else None
        trainer = _caller(Trainer)
        # DeepSpeed clips by itself, at the threshold that it has in its configuration.
        if trainer is not None and not self._deepspeed:
            self._undo.append(_only_measure(trainer))
        if model is not None:
            self._undo.append(model.register_forward_hook(self._keep_loss, with_kwargs=True).remove)

    def _give_back(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _keep_loss(self, model: Any, given: Any, kwargs: dict[str, Any], output: Any) -> None:
        if not (model.training and torch.is_grad_enabled()):
            return
        loss = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
        if isinstance(loss, torch.Tensor) and loss.numel() == 1:
            self._losses.append(loss.detach())
            # The loss of a micro-batch is then its part of the mean.
            self._summed = kwargs.get("num_items_in_batch") is not None

    def _mean_loss(self) -> torch.Tensor:
        total = torch.stack(self._losses).sum()
        return total if self._summed else total / len(self._losses)

    def _loss(self) -> torch.Tensor | None:
        """The loss of the step, over its micro-batches."""
        loss = self._mean_loss() if self._losses else None
        self._losses = []
        return loss

    def _resume(self, args: Any, state: Any) -> None:
        # The folder that the Trainer resumes from, whatever is in output_dir.
        name = "resume_from_checkpoint"
        folder = next((found[name] for found in _callers(Trainer) if name in found), None)
        if not isinstance(folder, (str, os.PathLike)):
            folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        file = Path(folder) / self.state_file
        if not file.exists():
            log.warning("no %s in %s; it starts from scratch", self.state_file, folder)
            return
        try:
            self._observer().load_state_dict(json.loads(file.read_text()))
        except ValueError as error:
            raise ValueError(
                f"{file}: {error}. Train with the settings that it was saved with, max_grad_norm among them, "
                "or delete this file to start from scratch"
            ) from None

    def _observer(self) -> Any:
        raise NotImplementedError

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Adds the metrics to the Trainer's log and to ``log_history``."""
        if logs is None or "loss" not in logs:
            return
        found = {name: x for name, x in self._observer().metrics().items() if math.isfinite(x)}
        logs.update(found)
        if state.log_history and state.log_history[-1].get("step") == state.global_step:
            state.log_history[-1].update(found)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Saves the state beside the model."""
        if not args.should_save:
            return
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if folder.is_dir():
            temporary = folder / f"{self.state_file}.tmp"
            temporary.write_text(json.dumps(self._observer().state_dict()))
            temporary.replace(folder / self.state_file)


class MonitorCallback(_Callback):
    """Monitors gradients in the Trainer and, with ``apply``, clips them::

        callback = MonitorCallback()
        Trainer(model, args, callbacks=[callback], ...).train()
        print(callback.monitor.report())

    The Trainer calls callbacks only after it has clipped the gradients. The callback therefore clips
    in place of the Trainer, at ``args.max_grad_norm``. The loss is that of the model's output. The metrics of the monitor are
    logged with the Trainer's own, so they reach W&B, TensorBoard, MLflow and ``log_history``. The
    monitor is saved with every checkpoint and restored from it. With DeepSpeed (ZeRO stage 1 or
    higher), which clips inside its own step, and beside a :class:`GuardCallback` it only observes.

    Takes a :class:`toclip.torch.Monitor`, or its arguments. ``batch_size`` is by default the number
    of samples per step: batch size per device × devices × accumulation steps. The optimizer is that of
    the Trainer.
    """

    state_file = "toclip_monitor.json"

    def __init__(self, monitor: Monitor | None = None, **settings: Any) -> None:
        super().__init__()
        # Checks the settings now rather than when training begins.
        checked = given_or_new(Monitor, monitor, settings)
        self._settings, self._monitor = settings, None if monitor is None else checked
        self._guard: Guard | None = None

    @property
    def monitor(self) -> Monitor:
        """The monitor; created when training begins if only its arguments were given."""
        if self._monitor is None:
            self._monitor = Monitor(**self._settings)
        return self._monitor

    def _observer(self) -> Monitor:
        return self.monitor

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Takes over clipping, and resumes from a checkpoint."""
        self._deepspeed = bool(getattr(args, "deepspeed", None))
        if self._monitor is None and "batch_size" not in self._settings:
            each = args.train_batch_size * args.gradient_accumulation_steps
            self._settings["batch_size"] = each * args.world_size
        self.monitor._set_optimizer(kwargs.get("optimizer"))
        if self._deepspeed and self.monitor.apply:
            raise ValueError("apply = True is not supported with DeepSpeed, which clips inside its own step")
        handler = _caller(CallbackHandler)
        others = [] if handler is None else handler.callbacks
        self._guard = next((c.guard for c in others if isinstance(c, GuardCallback)), None)
        if self._guard is not None:
            self.monitor._set_guard(self._guard)
        if state.global_step > 0:
            self._resume(args, state)
        self._take_over(args, kwargs.get("model"))
        _move_to_the_front(self)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Each step, after backward."""
        limit = "none" if self._max_norm is None else self._max_norm
        if self._deepspeed:
            # Its engine has made the step already, and knows the norm; that of a skipped step the guard.
            last = None if self._guard is None else self._guard.last
            if self._guard is not None and last is not None:
                norm, limit = last.norm, self._guard._limit(last.threshold)
            else:
                norm = _caller(Trainer).model_wrapped.get_global_grad_norm()
            loss = self._loss()
            if norm is not None:
                self.monitor.observe(norm, loss=loss, max_norm=limit)
            elif state.global_step == 0:
                log.warning("DeepSpeed does not know the gradient norm; use ZeRO stage 1 or higher")
            return
        optimizer = kwargs.get("optimizer")
        # accelerate wraps the optimizer, but a scaler needs the inner one.
        scaler = getattr(optimizer, "scaler", None)
        inner = getattr(optimizer, "optimizer", optimizer)
        given: dict[str, Any] = {"loss": self._loss(), "scaler": scaler, "optimizer": inner}
        # The model itself, because FSDP1 sums over shards only in its own method.
        if self._guard is None:
            self.monitor.clip_(kwargs["model"], limit, **given)
        else:
            # The guard clips, in the optimizer's step.
            self.monitor.watch(kwargs["model"], self._guard._limit(self._guard.threshold), **given)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Lets the Trainer clip again."""
        self._give_back()
        self.monitor.flush()


class GuardCallback(_Callback):
    """Guards the steps of the Trainer against rare large gradients::

        callback = GuardCallback()
        Trainer(model, args, callbacks=[callback], ...).train()
        print(callback.guard)

    A skipped step does not call the optimizer; the learning rate schedule goes on, except with DeepSpeed,
    which treats such a step as one that overflowed. The callback clips in place of the Trainer:
    ``args.max_grad_norm`` remains an additional fixed threshold (0 for none). The guard's metrics are
    logged with the Trainer's own. It is saved with every checkpoint and restored from it.

    Takes a :class:`toclip.torch.Guard`, or its arguments. For a monitor as well, give the guard one:
    ``GuardCallback(monitor=toclip.torch.Monitor(...))``.
    """

    state_file = "toclip_guard.json"

    def __init__(self, guard: Guard | None = None, **settings: Any) -> None:
        super().__init__()
        self.guard = given_or_new(Guard, guard, settings)
        self._own_limit = self.guard.rule.max_norm

    def _observer(self) -> Guard:
        return self.guard

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Attaches the guard, and resumes from a checkpoint."""
        model = kwargs.get("model")
        self._deepspeed = bool(getattr(args, "deepspeed", None))
        self._take_over(args, model)
        fixed = math.inf if self._max_norm is None else float(self._max_norm)
        self.guard.detach()  # from an interrupted run
        self.guard.rule.max_norm = min(self._own_limit, fixed)
        if state.global_step > 0:
            self._resume(args, state)
        _move_to_the_front(self)
        if self._deepspeed:
            self.guard.attach(_caller(Trainer).model_wrapped)
            return
        whole = model if hasattr(model, "clip_grad_norm_") else None
        self.guard.attach(kwargs["optimizer"], whole)

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Hands the loss of the step to the monitor."""
        loss = self._loss()
        # DeepSpeed's engine has made the step already.
        self.guard.loss = None if self._deepspeed else loss

    def _keep_loss(self, *given: Any) -> None:
        super()._keep_loss(*given)
        if self._deepspeed and self._losses:
            self.guard.loss = self._mean_loss()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Restores the optimizer, and lets the Trainer clip again."""
        self.guard.detach()
        self._give_back()
        self.guard.rule.max_norm = self._own_limit


def _only_measure(trainer: Any) -> Callable[[], None]:
    """Makes the Trainer measure the norm without clipping, as long as one of these callbacks is in its list."""

    def ours() -> bool:
        return any(isinstance(c, _Callback) for c in trainer.callback_handler.callbacks)

    def measure(what: Any, *rest: Any, **named: Any) -> Any:
        if not ours():
            return clip(what, *rest, **named)
        # For None the Trainer computes the norm itself.
        return None if owner is trainer else clip(what, math.inf)

    owner, name = trainer, "_clip_grad_norm"
    if not hasattr(trainer, name):  # before transformers 5
        owner, name = trainer.accelerator, "clip_grad_norm_"
    clip = getattr(owner, name)
    # Another callback may have done so already.
    return (lambda: None) if clip.__module__ == __name__ else replaced(owner, **{name: measure})


def _callers(kind: type) -> Iterator[dict[str, Any]]:
    """The local variables of the methods being called of objects of this kind, the innermost first.

    The Trainer gives callbacks neither itself nor its list of them.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), kind):
            yield frame.f_locals
        frame = frame.f_back


def _caller(kind: type) -> Any:
    """The first object of this kind whose method is being called."""
    return next((found["self"] for found in _callers(kind)), None)


def _move_to_the_front(callback: TrainerCallback) -> None:
    """Makes the callback the first, so that those that report to W&B and others see its metrics."""
    handler = _caller(CallbackHandler)
    if handler is not None and callback in handler.callbacks:
        # A new list: the caller is going through the old one.
        handler.callbacks = [callback, *(c for c in handler.callbacks if c is not callback)]
