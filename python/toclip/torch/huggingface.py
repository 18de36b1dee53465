"""The monitor in the Trainer of Hugging Face transformers."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from .monitor import Monitor, given_or_made

__all__ = ["MonitorCallback"]

STATE = "toclip_monitor.json"
log = logging.getLogger(__name__)


class MonitorCallback(TrainerCallback):
    """Watches, and with ``apply`` clips, in the Trainer::

        callback = MonitorCallback(batch_size=32, outputs=10)
        Trainer(model, args, callbacks=[callback], ...).train()
        print(callback.monitor.advice())

    The Trainer shows callbacks gradients only after it has clipped them. So the callback takes
    clipping over: while training, ``args.max_grad_norm`` is infinite, with which the Trainer unscales
    gradients and logs their norm but clips nothing, and the callback clips at what it was. The
    monitor is saved with every checkpoint and goes on from it. With ``apply``, the callbacks that
    follow find ``clip_threshold`` in the logs.

    Takes a :class:`toclip.torch.Monitor`, or the arguments of one. ``batch_size`` is the samples of
    a step unless given: per device times devices times accumulated.
    """

    def __init__(self, monitor: Monitor | None = None, **settings: Any) -> None:
        # Refuses impossible settings here and not when training begins.
        checked = given_or_made(monitor, settings)
        self._given, self._made = settings, None if monitor is None else checked
        self._max_norm: float | None = None
        self._taken: float | None = None
        self._holds = False
        self._norm: Any = None

    @property
    def monitor(self) -> Monitor:
        """The monitor; made when training begins if only its arguments were given."""
        if self._made is None:
            self._made = Monitor(**self._given)
        return self._made

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Takes clipping over, and goes on from a checkpoint."""
        if getattr(args, "deepspeed", None):
            raise ValueError("DeepSpeed clips inside its own step, where callbacks see no gradients")
        if self._made is None and "batch_size" not in self._given:
            each = args.train_batch_size * args.gradient_accumulation_steps
            self._given["batch_size"] = each * args.world_size
        if state.global_step > 0:
            self._resume(args, state)
        # After a run that broke off, the infinity in the arguments is still this callback's own.
        if not (self._holds and args.max_grad_norm == math.inf):
            self._taken = args.max_grad_norm
        self._holds = True
        self._max_norm = self._taken if self._taken and self._taken > 0 else None
        args.max_grad_norm = math.inf

    def _resume(self, args: Any, state: Any) -> None:
        folders = [Path(args.output_dir) / f"checkpoint-{state.global_step}"]
        if isinstance(args.resume_from_checkpoint, str):
            folders.insert(0, Path(args.resume_from_checkpoint))
        found = next((f / STATE for f in folders if (f / STATE).exists()), None)
        if found is None:
            log.warning("no %s in %s: the monitor starts anew", STATE, folders[-1])
        else:
            self.monitor.load_state_dict(json.loads(found.read_text()))

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Each step, after backward."""
        optimizer = kwargs.get("optimizer")
        # accelerate wraps the optimizer, and a scaler knows only the inner one.
        scaler = getattr(optimizer, "scaler", None)
        inner = getattr(optimizer, "optimizer", optimizer)
        # The model itself, because FSDP's first version adds up its shards only by its own method.
        self._norm = self.monitor.clip_(
            kwargs["model"], self._max_norm, scaler=scaler, optimizer=inner
        )

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Adds what the Trainer does not see."""
        if logs is None or self._norm is None or "loss" not in logs:
            return
        logs.setdefault("grad_norm", float(self._norm))
        if self.monitor.apply:
            logs["clip_threshold"] = self.monitor.threshold

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Saves the monitor beside the model."""
        if not state.is_world_process_zero:
            return
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        if folder.is_dir():
            whole = folder / f"{STATE}.tmp"
            whole.write_text(json.dumps(self.monitor.state_dict()))
            whole.replace(folder / STATE)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Gives the arguments back as they were."""
        args.max_grad_norm, self._holds = self._taken, False
        self.monitor.flush()
