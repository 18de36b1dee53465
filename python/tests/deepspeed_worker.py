"""Training with DeepSpeed on a CPU in a process of its own: ``deepspeed_worker.py WHAT STAGE FOLDER OUT``.

Stage ``none`` is the same run without DeepSpeed. What is ``monitor``, or ``guard clip`` or ``guard skip``.
"""

import json
import os
import sys

import torch


class Net(torch.nn.Module):
    """As transformers wants it: the loss from forward."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.inner = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))

    def forward(self, x, labels):
        return {"loss": (self.inner(x) - labels).square().mean()}


def rows(corrupt):
    """Two hundred and forty examples; some are far too large, and one is not finite."""
    g = torch.Generator().manual_seed(1)
    found = [{"x": torch.randn(6, generator=g), "labels": torch.randn(1, generator=g)} for _ in range(240)]
    for k in (3, 90, 160) if corrupt else ():
        found[k]["labels"] = found[k]["labels"] + 1000.0
    if corrupt:
        found[200]["labels"] = torch.full((1,), float("nan"))
    return found


def engine_settings(stage, limit):
    return {
        "train_micro_batch_size_per_gpu": 4,
        "gradient_accumulation_steps": 2,
        "gradient_clipping": limit,
        "zero_optimization": {"stage": int(stage)},
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
    }


def trainer_for(what, stage, folder, limit, callback):
    from transformers import Trainer, TrainingArguments

    settings = {} if stage == "none" else {"deepspeed": engine_settings(stage, limit)}
    args = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        max_steps=30,
        logging_steps=5,
        max_grad_norm=limit,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        save_strategy="no",
        optim="adamw_torch",
        weight_decay=0.1,
        lr_scheduler_type="constant",
        logging_nan_inf_filter=False,
        seed=3,
        **settings,
    )
    return Trainer(Net(), args, train_dataset=rows(what != "monitor"), callbacks=[callback])


def monitored(stage, folder):
    from toclip.torch.huggingface import MonitorCallback

    callback = MonitorCallback(flush=4)
    trainer = trainer_for("monitor", stage, folder, 0.5, callback)
    trainer.train()
    monitor = callback.monitor
    logged = [row["clip/norm"] for row in trainer.state.log_history if "loss" in row]
    seen = monitor._series.rows
    found = {"norms": seen[:, 1].tolist(), "losses": seen[:, 2].tolist(), "logged": logged}
    return found | {"threshold": monitor.metrics()["clip/threshold"]}


def guarded(what, stage, folder):
    """Counts, factors, losses and final weights; and the weights before and after every step."""
    from toclip.torch import Monitor
    from toclip.torch.huggingface import GuardCallback
    from transformers import TrainerCallback

    class Watching(TrainerCallback):
        """What each step did."""

        def __init__(self):
            self.steps = []

        def on_step_end(self, args, state, control, model=None, **kwargs):
            last = callback.guard.last
            self.steps.append({"factor": last.factor, "weights": weights(model)})

    callback = GuardCallback(action=what.split()[1], multiple=8.0, warmup=3, monitor=Monitor(flush=4))
    trainer = trainer_for(what, stage, folder, 0.0, callback)
    watching = Watching()
    trainer.add_callback(watching)
    trainer.train()
    losses = callback.guard.monitor._series.rows[:, 2].tolist()
    return {"counts": callback.guard.counts, "losses": losses, "steps": watching.steps}


def weights(model):
    found = [p.detach().reshape(-1) for p in model.parameters()]
    if any(hasattr(p, "ds_id") for p in model.parameters()):
        import deepspeed

        with deepspeed.zero.GatheredParameters(list(model.parameters())):
            found = [p.detach().clone().reshape(-1) for p in model.parameters()]
    return torch.cat(found).tolist()


if __name__ == "__main__":
    what, stage, folder, out = sys.argv[1:5]
    os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "DS_ACCELERATOR": "cpu"}
    # Port 0 is one that is free.
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}
    found = monitored(stage, folder) if what == "monitor" else guarded(what, stage, folder)
    with open(out, "w") as file:
        json.dump(found, file)
    os._exit(0)  # as in ddp_worker.py: gloo's threads have been seen to abort a process that ends normally
