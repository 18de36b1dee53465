"""Logs that the real writers write: each must give back the numbers that were logged."""

import math
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
import toclip

STEPS = 400
RNG = np.random.default_rng(11)
NORMS = np.abs(RNG.normal(size=STEPS)) + 0.5
LOSSES = np.exp(-np.arange(STEPS) / 200) + 0.01 * RNG.random(STEPS)


def check(log, steps=None, norms=NORMS, losses=LOSSES, digits=1e-6):
    steps = np.arange(len(norms)) if steps is None else steps
    assert log.steps.tolist() == list(steps)
    np.testing.assert_allclose(log.norms, norms, rtol=digits)
    np.testing.assert_allclose(log.losses, losses, rtol=digits)
    # Whatever it is, there is advice about it.
    assert str(toclip.advise(log))


def python(code, folder, **environment):
    """Runs a writer in a process of its own: some write their last bytes when it ends."""
    numbers = f"NORMS, LOSSES = {NORMS.tolist()}, {LOSSES.tolist()}\n"
    done = subprocess.run(
        [sys.executable, "-c", numbers + code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_tensorboard_run_that_was_resumed(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    for first, last, suffix in [(0, 250, ".first"), (200, STEPS, ".second")]:
        writer = SummaryWriter(tmp_path / "run", filename_suffix=suffix)
        for step in range(first, last):
            # What the first attempt logged after its last checkpoint is replaced.
            lost = 3.0 if last == 250 and step >= 200 else 0.0
            writer.add_scalar("train/grad_norm", NORMS[step] + lost, step)
            writer.add_scalar("train/loss", LOSSES[step], step)
        writer.add_hparams({"lr": 0.1}, {"hparam/accuracy": 0.5})
        writer.close()
    log = toclip.read_log(tmp_path)
    check(log)
    assert any("resumed" in finding for finding in log.findings)


def test_tensorboard_layers(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    from torch.utils.tensorboard import SummaryWriter

    shares = np.array([0.1, 0.3, 0.6])
    with SummaryWriter(tmp_path) as writer:
        for step in range(STEPS):
            for name, share in zip(["wte", "h.0.attn.weight", "lm_head"], shares, strict=True):
                writer.add_scalar(f"grad_norm/{name}", NORMS[step] * math.sqrt(share), step)
            writer.add_scalar("loss", LOSSES[step], step)
            writer.add_histogram("gradients/wte", np.ones(4), step)
    log = toclip.read_log(tmp_path)
    check(log)
    assert log.reading["layers"] == ["wte", "h.0.attn.weight", "lm_head"]
    assert log.reading["combined"]


@pytest.mark.parametrize("target", ["", "wandb"])
def test_wandb_offline_run(tmp_path, target):
    pytest.importorskip("wandb")
    config = {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 8,
        "max_grad_norm": 0.5,
        "optim": "adamw_torch",
    }
    code = f"""
import wandb
run = wandb.init(project="p", config={config!r}, settings=wandb.Settings(console="off"))
for step, (norm, loss) in enumerate(zip(NORMS, LOSSES)):
    row = {{"train/grad_norm": norm, "train/loss": loss, "train/global_step": step}}
    if step % 100 == 0:
        row["gradients/w"] = wandb.Histogram([1.0, 2.0])
        row["eval/loss"] = 7.0
    run.log(row)
    if step == 300:
        run.log({{"note": "x" * 100_000}})
run.finish()
"""
    python(code, tmp_path, WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=str(tmp_path))
    log = toclip.read_log(tmp_path / target)
    check(log)
    found = log.reading
    assert found["format"] == "wandb"
    assert (found["batch_size"], found["clip"], found["optimizer"]) == (32.0, 0.5, "adam")


def test_mlflow_file_store(tmp_path):
    pytest.importorskip("mlflow")
    code = """
import mlflow
mlflow.set_tracking_uri("file:./mlruns")
with mlflow.start_run():
    mlflow.log_params({"batch_size": 16, "gradient_clip_val": 0.5, "optimizer": "SGD"})
    for step, (norm, loss) in enumerate(zip(NORMS, LOSSES)):
        mlflow.log_metrics({"train/grad_norm": norm, "train/loss": loss}, step=step)
        if step % 10 == 0:
            mlflow.log_metric("val_loss", 7.0, step=step)
"""
    python(code, tmp_path, MLFLOW_ALLOW_FILE_STORE="true")
    log = toclip.read_log(tmp_path / "mlruns")
    check(log)
    found = log.reading
    assert found["format"] == "mlflow"
    assert (found["batch_size"], found["clip"], found["optimizer"]) == (16.0, 0.5, "sgd")
    # The file of one metric.
    (metric,) = (tmp_path / "mlruns").glob("*/*/metrics/train/grad_norm")
    np.testing.assert_allclose(toclip.read_log(metric).norms, NORMS)


def test_lightning_csv_logger(tmp_path):
    torch = pytest.importorskip("torch")
    lightning = pytest.importorskip("lightning")
    from lightning.pytorch.loggers import CSVLogger
    from lightning.pytorch.utilities import grad_norm

    norms, losses = [], []

    class Model(lightning.LightningModule):
        def __init__(self, batch_size=8):
            super().__init__()
            self.save_hyperparameters()
            self.fc1, self.fc2 = torch.nn.Linear(4, 8), torch.nn.Linear(8, 1)

        def training_step(self, batch, _):
            x, y = batch
            loss = (self.fc2(torch.relu(self.fc1(x))) - y).square().mean()
            losses.append(loss.item())
            self.log("train_loss", loss)
            return loss

        def on_before_optimizer_step(self, _):
            layers = grad_norm(self, norm_type=2)
            norms.append(float(layers.pop("grad_2.0_norm_total")))
            self.log_dict(layers)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.02)

    torch.manual_seed(0)
    x = torch.randn(8 * STEPS, 4)
    data = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            max_epochs=1,
            logger=CSVLogger(tmp_path),
            log_every_n_steps=1,
            accelerator="cpu",
            enable_progress_bar=False,
            enable_model_summary=False,
            enable_checkpointing=False,
        )
        trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=8))
    log = toclip.read_log(tmp_path)
    check(log, norms=norms, losses=losses, digits=1e-5)
    layers = ["fc1.bias", "fc1.weight", "fc2.bias", "fc2.weight"]
    assert log.reading["layers"] == layers and log.reading["batch_size"] == 8.0


def test_transformers_trainer(tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(6, 1)

        def forward(self, x, labels):
            return {"loss": (self.inner(x) - labels).square().mean()}

    logged = []

    class Record(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            if "grad_norm" in logs:
                logged.append((state.global_step, float(logs["grad_norm"]), float(logs["loss"])))

    g = torch.Generator().manual_seed(1)
    rows = [{"x": torch.randn(6, generator=g), "labels": torch.randn(1)} for _ in range(200)]
    args = TrainingArguments(
        output_dir=str(tmp_path / "out"),
        per_device_train_batch_size=4,
        max_steps=60,
        save_steps=20,
        logging_steps=1,
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    Trainer(Net(), args, train_dataset=rows, callbacks=[Record()]).train()
    log = toclip.read_log(tmp_path)
    steps, norms, losses = zip(*logged, strict=True)
    check(log, steps=steps, norms=norms, losses=losses)
    assert log.reading["format"] == "trainer_state"
    assert log.reading["micro_batch_size"] == 4.0
    # The arguments that scripts save beside it.
    (tmp_path / "out" / "training_args.json").write_text(args.to_json_string())
    found = toclip.read_log(tmp_path).reading
    assert (found["batch_size"], found["clip"], found["optimizer"]) == (4.0, 1.0, "adam")


def test_deepspeed_printed_log(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("deepspeed")
    code = """
import logging, torch, deepspeed
from deepspeed.utils.logging import logger
for part in [logger, *logger.handlers]:
    part.setLevel(logging.INFO)
model = torch.nn.Linear(4, 1)
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.AdamW(model.parameters(), lr=1e-2),
    config={
        "train_batch_size": 8,
        "train_micro_batch_size_per_gpu": 8,
        "gradient_clipping": 0.5,
        "steps_per_print": 1,
        "zero_optimization": {"stage": 1},
        "zero_allow_untested_optimizer": True,
    },
)
for step in range(40):
    x = torch.randn(8, 4)
    loss = (engine(x) - x.sum(1, keepdim=True)).square().mean()
    engine.backward(loss)
    engine.step()
    norm = float(engine.get_global_grad_norm())
    print(f"step: {engine.global_steps} loss: {loss.item():.6f} grad_norm: {norm:.6f}")
"""
    environment = {
        "DS_ACCELERATOR": "cpu",
        "RANK": "0",
        "WORLD_SIZE": "1",
        "LOCAL_RANK": "0",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "0",  # one that is free
        "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"],
    }
    try:
        printed = python(code, tmp_path, **environment)
    except AssertionError as error:
        # DeepSpeed compiles a part of itself on first use.
        if "compil" in str(error) or "JIT" in str(error):
            pytest.skip("DeepSpeed found no compiler")
        raise
    (tmp_path / "train.log").write_text(printed)
    lines = [line.split() for line in printed.splitlines() if line.startswith("step: ")]
    truth = np.array([[float(line[1]), float(line[5]), float(line[3])] for line in lines])
    assert len(truth) == 40
    log = toclip.read_log(tmp_path)
    check(log, steps=truth[:, 0], norms=truth[:, 1], losses=truth[:, 2])
    found = log.reading
    assert (found["format"], found["clip"], found["batch_size"]) == ("deep_speed", 0.5, 8.0)
