"""The monitor and the guard in Lightning's Trainer."""

from __future__ import annotations

import math
from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback  # type: ignore[assignment]

from .guard import Guard, given_or_new
from .monitor import Monitor

__all__ = ["GuardCallback", "MonitorCallback"]


class _Callback(Callback):
    """What both callbacks do: add up losses, log, and save and resume."""

    def __init__(self) -> None:
        super().__init__()
        self._loss: Any = None

    def _observer(self) -> Any:
        raise NotImplementedError

    def _check_one_optimizer(self, trainer: Any) -> None:
        if len(trainer.optimizers) > 1:
            raise ValueError(
                f"the model has {len(trainer.optimizers)} optimizers, but the callback supports only one; "
                f"call one toclip.torch.{type(self._observer()).__name__} per optimizer in training_step"
            )

    def _log(self, trainer: Any) -> None:
        """Logs the metrics, as often as the Trainer logs."""
        often = trainer.log_every_n_steps
        if trainer.loggers and often and (trainer.global_step + 1) % often == 0:
            found = {name: x for name, x in self._observer().metrics().items() if math.isfinite(x)}
            for logger in trainer.loggers:
                logger.log_metrics(found, step=trainer.global_step)

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: Any) -> None:
        """Adds the losses of micro-batches, which Lightning has divided by their number."""
        self._loss = loss.detach() if self._loss is None else self._loss + loss.detach()

    def state_dict(self) -> dict[str, Any]:
        """For Lightning's checkpoints."""
        state: dict[str, Any] = self._observer().state_dict()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """From Lightning's checkpoints."""
        self._observer().load_state_dict(state_dict)


class MonitorCallback(_Callback):
    """Monitors gradients in Lightning and, with ``apply``, clips them::

        callback = MonitorCallback(batch_size=32, outputs=10)
        Trainer(callbacks=[callback], gradient_clip_val=1.0).fit(model, loader)
        print(callback.monitor.report())

    It gets the unscaled gradients before Lightning clips them; ``gradient_clip_val`` is the threshold
    in force. With ``apply`` the callback clips, and ``gradient_clip_val`` is an upper limit. The
    metrics of the monitor go to the Trainer's loggers. The monitor is part of Lightning's checkpoints.

    Takes a :class:`toclip.torch.Monitor`, or its arguments. The optimizer is that of the module.
    """

    def __init__(self, monitor: Monitor | None = None, **settings: Any) -> None:
        super().__init__()
        self.monitor = given_or_new(Monitor, monitor, settings)
        self._guard: Guard | None = None

    def _observer(self) -> Monitor:
        return self.monitor

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Checks that there is one optimizer."""
        self._check_one_optimizer(trainer)
        guards = [c.guard for c in trainer.callbacks if isinstance(c, GuardCallback)]
        self._guard = guards[0] if guards else None
        if self._guard is not None:
            self.monitor._set_guard(self._guard)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Each step, after backward and unscaling, before clipping."""
        value = trainer.gradient_clip_val
        by_norm = str(trainer.gradient_clip_algorithm or "norm").endswith("norm")
        limit = float(value) if value and by_norm else None
        if self._guard is not None:
            limit = self._guard._limit(self._guard.threshold)
        # FSDP1 sums over shards only in its own method; for other models Lightning clips the
        # parameters of the optimizer.
        wrapped = getattr(trainer.strategy, "model", None)
        parameters: Any = [p for group in optimizer.param_groups for p in group["params"]]
        if hasattr(wrapped, "clip_grad_norm_"):
            parameters = wrapped
        loss, self._loss = self._loss, None
        observe = self.monitor.clip_ if self.monitor.apply else self.monitor.watch
        observe(parameters, limit, loss=loss, optimizer=optimizer)
        self._log(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Adds the last norms."""
        self.monitor.flush()


class GuardCallback(_Callback):
    """Guards the steps of Lightning's Trainer against rare large gradients::

        callback = GuardCallback()
        Trainer(callbacks=[callback]).fit(model, loader)
        print(callback.guard)

    A skipped step does not call the optimizer. Do not set ``gradient_clip_val``: Lightning would clip
    before the guard sees the gradient; ``GuardCallback(max_norm=1.0)`` adds a fixed threshold. The
    guard's metrics go to the Trainer's loggers. The guard is part of Lightning's checkpoints.

    Takes a :class:`toclip.torch.Guard`, or its arguments.
    """

    def __init__(self, guard: Guard | None = None, **settings: Any) -> None:
        super().__init__()
        self.guard = given_or_new(Guard, guard, settings)
        self._logged = -1

    def _observer(self) -> Guard:
        return self.guard

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Attaches the guard to the optimizer."""
        self._check_one_optimizer(trainer)
        if trainer.gradient_clip_val:
            raise ValueError(
                "gradient_clip_val is set, so Lightning would clip before the guard sees the gradient; use "
                f"GuardCallback(max_norm={trainer.gradient_clip_val}) instead"
            )
        wrapped = getattr(trainer.strategy, "model", None)
        whole = wrapped if hasattr(wrapped, "clip_grad_norm_") else None
        self.guard.detach()  # from an interrupted run
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        self.guard.attach(trainer.optimizers[0], whole, scaler=scaler)

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Hands the loss of the step to the monitor."""
        self.guard.loss, self._loss = self._loss, None

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any) -> None:
        """Logs the metrics of the guard, once a step: with accumulation a step has several batches."""
        if trainer.global_step != self._logged:
            self._logged = trainer.global_step
            self._log(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Gives the optimizer its own step back."""
        self.guard.detach()
