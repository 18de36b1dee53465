"""The monitor in the Trainer of Hugging Face transformers."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from .monitor import Monitor, monitor_from

__all__ = ["MonitorCallback"]

STATE = "toclip_monitor.json"
log = logging.getLogger(__name__)


class MonitorCallback(TrainerCallback):
    """Monitors gradients in the Trainer and, with ``apply``, clips them::

        callback = MonitorCallback(batch_size=32, outputs=10)
        Trainer(model, args, callbacks=[callback], ...).train()
        print(callback.monitor.advice())

    The Trainer calls callbacks only after it has clipped the gradients. The callback therefore clips
    in place of the Trainer: during training ``args.max_grad_norm`` is infinite, so that the Trainer
    unscales gradients and logs their norm without clipping, and the callback clips at the original
    value. The monitor is saved with every checkpoint and restored from it. With ``apply``, later
    callbacks find ``clip_threshold`` in the logs.

    Takes a :class:`toclip.torch.Monitor`, or its arguments. ``batch_size`` is by default the number
    of samples per step: batch size per device × devices × accumulation steps.
    """

    def __init__(self, monitor: Monitor | None = None, **settings: Any) -> None:
        # Checks the settings now rather than when training begins.
        checked = monitor_from(monitor, settings)
        self._settings, self._monitor = settings, None if monitor is None else checked
        self._max_norm: float | None = None
        self._original: float | None = None
        self._clips = False
        self._norm: Any = None

    @property
    def monitor(self) -> Monitor:
        """The monitor; created when training begins if only its arguments were given."""
        if self._monitor is None:
            self._monitor = Monitor(**self._settings)
        return self._monitor

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Takes over clipping, and resumes from a checkpoint."""
        if getattr(args, "deepspeed", None):
            raise ValueError("DeepSpeed is not supported: it clips inside its own step, without access for callbacks")
        if self._monitor is None and "batch_size" not in self._settings:
            each = args.train_batch_size * args.gradient_accumulation_steps
            self._settings["batch_size"] = each * args.world_size
        if state.global_step > 0:
            self._resume(args, state)
        # After an interrupted run, max_grad_norm is still the infinity that this callback set.
        if not (self._clips and args.max_grad_norm == math.inf):
            self._original = args.max_grad_norm
        self._clips = True
        self._max_norm = self._original if self._original and self._original > 0 else None
        args.max_grad_norm = math.inf

    def _resume(self, args: Any, state: Any) -> None:
        folders = [Path(args.output_dir) / f"checkpoint-{state.global_step}"]
        if isinstance(args.resume_from_checkpoint, str):
            folders.insert(0, Path(args.resume_from_checkpoint))
        found = next((f / STATE for f in folders if (f / STATE).exists()), None)
        if found is None:
            log.warning("no %s in %s; the monitor starts from scratch", STATE, folders[-1])
        else:
            self.monitor.load_state_dict(json.loads(found.read_text()))

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Each step, after backward."""
        optimizer = kwargs.get("optimizer")
        # accelerate wraps the optimizer, but a scaler needs the inner one.
        scaler = getattr(optimizer, "scaler", None)
        inner = getattr(optimizer, "optimizer", optimizer)
        # The model itself, because FSDP1 sums over shards only in its own method.
        self._norm = self.monitor.clip_(
            kwargs["model"], self._max_norm, scaler=scaler, optimizer=inner
        )

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Adds the norm and the threshold to the logs."""
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
            temporary = folder / f"{STATE}.tmp"
            temporary.write_text(json.dumps(self.monitor.state_dict()))
            temporary.replace(folder / STATE)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Restores the arguments."""
        args.max_grad_norm, self._clips = self._original, False
        self.monitor.flush()
