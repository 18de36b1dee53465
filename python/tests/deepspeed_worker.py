"""Training with DeepSpeed on a CPU in a process of its own: ``deepspeed_worker.py STAGE FOLDER OUT``.

Stage ``none`` is the same run without DeepSpeed.
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


def main(stage, folder, out):
    from toclip.torch.huggingface import MonitorCallback
    from transformers import Trainer, TrainingArguments

    g = torch.Generator().manual_seed(1)
    rows = [{"x": torch.randn(6, generator=g), "labels": torch.randn(1, generator=g)} for _ in range(240)]
    settings = {}
    if stage != "none":
        settings["deepspeed"] = {
            "train_micro_batch_size_per_gpu": 4,
            "gradient_accumulation_steps": 2,
            "gradient_clipping": 0.5,
            "zero_optimization": {"stage": int(stage)},
            "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False,
        }
    args = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=2,
        max_steps=30,
        logging_steps=5,
        max_grad_norm=0.5,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
        save_strategy="no",
        optim="adamw_torch",
        seed=3,
        **settings,
    )
    callback = MonitorCallback(flush=4)
    trainer = Trainer(Net(), args, train_dataset=rows, callbacks=[callback])
    trainer.train()
    monitor = callback.monitor
    logged = [row["clip/norm"] for row in trainer.state.log_history if "loss" in row]
    seen = monitor._series.rows
    with open(out, "w") as file:
        found = {"norms": seen[:, 1].tolist(), "losses": seen[:, 2].tolist(), "logged": logged}
        json.dump(found | {"threshold": monitor.metrics()["clip/threshold"]}, file)


if __name__ == "__main__":
    port = sys.argv[4]
    os.environ |= {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "DS_ACCELERATOR": "cpu"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    main(*sys.argv[1:4])
    os._exit(0)  # as in ddp_worker.py: gloo's threads have been seen to abort a process that ends normally
