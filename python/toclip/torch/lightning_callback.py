"""The monitor in Lightning's Trainer."""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback  # type: ignore[assignment]

from .monitor import Monitor, given_or_made

__all__ = ["MonitorCallback"]


class MonitorCallback(Callback):
    """Watches, and with ``apply`` clips, in Lightning::

        callback = MonitorCallback(batch_size=32, outputs=10)
        Trainer(callbacks=[callback], gradient_clip_val=1.0).fit(model, loader)
        print(callback.monitor.advice())

    It sees gradients unscaled and before Lightning clips them, so that ``gradient_clip_val`` is the
    threshold it watches. With ``apply`` it clips itself, and ``gradient_clip_val`` comes after as a
    ceiling. The monitor is part of Lightning's checkpoints.

    Takes a :class:`toclip.torch.Monitor`, or the arguments of one.
    """

    def __init__(self, monitor: Monitor | None = None, **settings: Any) -> None:
        super().__init__()
        self.monitor = given_or_made(monitor, settings)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Refuses what one monitor cannot watch."""
        if len(trainer.optimizers) > 1:
            raise ValueError(
                f"the model has {len(trainer.optimizers)} optimizers, and one monitor watches one: "
                "call a toclip.torch.Monitor for each in training_step"
            )

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        """Each step, after backward and unscaling, before clipping."""
        value = trainer.gradient_clip_val
        by_norm = str(trainer.gradient_clip_algorithm or "norm").endswith("norm")
        limit = float(value) if value and by_norm else None
        # FSDP's first version adds up its shards only by its own method; of other models Lightning
        # clips what the optimizer holds.
        wrapped = getattr(trainer.strategy, "model", None)
        parameters: Any = [p for group in optimizer.param_groups for p in group["params"]]
        if hasattr(wrapped, "clip_grad_norm_"):
            parameters = wrapped
        if self.monitor.apply:
            self.monitor.clip_(parameters, limit)
        else:
            self.monitor.watch(parameters, limit)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Takes in the last norms."""
        self.monitor.flush()

    def state_dict(self) -> dict[str, Any]:
        """For Lightning's checkpoints."""
        return self.monitor.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """From Lightning's checkpoints."""
        self.monitor.load_state_dict(state_dict)
