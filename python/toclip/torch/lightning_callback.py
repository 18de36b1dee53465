"""The monitor in Lightning's Trainer."""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback  # type: ignore[assignment]

from .monitor import Monitor, monitor_from

__all__ = ["MonitorCallback"]


class MonitorCallback(Callback):
    """Monitors gradients in Lightning and, with ``apply``, clips them::

        callback = MonitorCallback(batch_size=32, outputs=10)
        Trainer(callbacks=[callback], gradient_clip_val=1.0).fit(model, loader)
        print(callback.monitor.advice())

    It gets the unscaled gradients before Lightning clips them; ``gradient_clip_val`` is the threshold
    in force. With ``apply`` the callback clips, and ``gradient_clip_val`` is an upper limit. The
    monitor is part of Lightning's checkpoints.

    Takes a :class:`toclip.torch.Monitor`, or its arguments.
    """

    def __init__(self, monitor: Monitor | None = None, **settings: Any) -> None:
        super().__init__()
        self.monitor = monitor_from(monitor, settings)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Checks that there is one optimizer."""
        if len(trainer.optimizers) > 1:
            raise ValueError(
                f"the model has {len(trainer.optimizers)} optimizers, but the callback supports only one; "
                "call one toclip.torch.Monitor per optimizer in training_step"
            )

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Each step, after backward and unscaling, before clipping."""
        value = trainer.gradient_clip_val
        by_norm = str(trainer.gradient_clip_algorithm or "norm").endswith("norm")
        limit = float(value) if value and by_norm else None
        # FSDP1 sums over shards only in its own method; for other models Lightning clips the
        # parameters of the optimizer.
        wrapped = getattr(trainer.strategy, "model", None)
        parameters: Any = [p for group in optimizer.param_groups for p in group["params"]]
        if hasattr(wrapped, "clip_grad_norm_"):
            parameters = wrapped
        if self.monitor.apply:
            self.monitor.clip_(parameters, limit)
        else:
            self.monitor.watch(parameters, limit)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Adds the last norms."""
        self.monitor.flush()

    def state_dict(self) -> dict[str, Any]:
        """For Lightning's checkpoints."""
        return self.monitor.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """From Lightning's checkpoints."""
        self.monitor.load_state_dict(state_dict)
