"""The monitor in the Trainers of Hugging Face and Lightning: real runs on a tiny model."""

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import toclip  # noqa: E402
from toclip.torch import Monitor  # noqa: E402

WORKER = str(Path(__file__).with_name("deepspeed_worker.py"))


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


class Net(torch.nn.Module):
    """As transformers wants it: the loss from forward."""

    def __init__(self):
        super().__init__()
        self.inner = model()

    def forward(self, x, labels):
        return {"loss": (self.inner(x) - labels).square().mean()}


@pytest.fixture
def transformers(tmp_path):
    """``train(callback, steps, ...)`` by the Trainer of transformers."""
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from transformers import Trainer, TrainingArguments

    g = torch.Generator().manual_seed(1)
    rows = [
        {"x": torch.randn(6, generator=g), "labels": torch.randn(1, generator=g)} for _ in range(240)
    ]

    def train(
        callback, steps, resume=None, folder="out", limit=0.5, scaler=None, report_to=(), args=None, **settings
    ):
        args = args or TrainingArguments(
            output_dir=str(tmp_path / folder),
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            max_steps=steps,
            save_steps=30,
            logging_steps=5,
            max_grad_norm=limit,
            lr_scheduler_type="constant",
            report_to=list(report_to),
            disable_tqdm=True,
            use_cpu=True,
            seed=3,
            **settings,
        )
        callbacks = callback if isinstance(callback, list) else [] if callback is None else [callback]
        trainer = train.last = Trainer(Net(), args, train_dataset=rows, callbacks=callbacks)
        if scaler is not None:
            trainer.accelerator.scaler, trainer.accelerator.native_amp = scaler, True
        trainer.train(resume_from_checkpoint=resume)
        assert args.max_grad_norm == limit
        return trainer

    return train


def norms(trainer):
    return [row["grad_norm"] for row in trainer.state.log_history if "grad_norm" in row]


def same_training(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters()))


def test_the_trainer_of_transformers(transformers, tmp_path):
    from toclip.torch.huggingface import MonitorCallback

    whole = MonitorCallback(flush=4)
    watched = transformers(whole, 60)
    assert whole.monitor.steps == 60 and whole.monitor.core.settings["components"] == 8.0
    assert whole.monitor.watched() is not None
    # Training is the same as without the callback.
    plain = transformers(None, 60, folder="plain")
    assert np.allclose(norms(watched), norms(plain), rtol=1e-6) and same_training(watched, plain)
    resumed = MonitorCallback(flush=4)
    again = transformers(resumed, 60, resume=str(tmp_path / "out" / "checkpoint-30"))
    assert resumed.monitor.core == whole.monitor.core and same_training(again, watched)


@pytest.mark.parametrize("kind", ["bf16", "fp16"])
def test_transformers_in_half_precision(transformers, kind):
    from toclip.torch.huggingface import MonitorCallback

    callback = MonitorCallback(flush=4)
    watched = transformers(callback, 40, **{kind: True})
    plain = transformers(None, 40, folder="plain", **{kind: True})
    assert np.allclose(norms(watched), norms(plain), rtol=1e-6) and same_training(watched, plain)
    assert callback.monitor.steps == 40


def test_transformers_with_a_scaler(transformers):
    """On a CPU no scaler is made, so it is given: the path is that of fp16 on a GPU."""
    from toclip.torch.huggingface import MonitorCallback

    def run(callback, folder, scale, steps=40):
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        return transformers(callback, steps, folder=folder, fp16=True, scaler=scaler)

    callback, unscaled = MonitorCallback(flush=4), MonitorCallback(flush=4)
    watched, plain = run(callback, "out", 1024.0), run(None, "plain", 1024.0)
    assert norms(watched) == norms(plain) and same_training(watched, plain)
    # The norms do not depend on the scale, except for the rounding of half precision.
    assert np.allclose(norms(run(unscaled, "unscaled", 1.0)), norms(watched), rtol=0.02)
    assert unscaled.monitor.steps == callback.monitor.steps == 40
    assert math.isclose(unscaled.monitor.core.scale, callback.monitor.core.scale, rel_tol=0.02)
    # At a scale that overflows, steps are skipped and learnt nothing from until it is low enough.
    callback = MonitorCallback(flush=4)
    run(callback, "high", 2.0**24, steps=60)
    left_out = callback.monitor.core.left_out["not_finite"]
    assert 1 <= left_out <= 12 and callback.monitor.steps == 60


@pytest.mark.parametrize("optim", ["adamw_torch", "adamw_torch_fused"])
def test_steps_that_a_scaler_skips_are_counted(transformers, optim):
    """Once each, by the guard and by its monitor."""
    from toclip.torch.huggingface import GuardCallback

    callback = GuardCallback(monitor=Monitor(flush=4))
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)
    transformers(callback, 60, limit=0.0, fp16=True, scaler=scaler, optim=optim)
    counts = callback.guard.counts
    halved = math.log2(2.0**24 / scaler.get_scale())
    assert counts["steps"] == 60 and counts["non_finite"] == halved >= 1
    assert callback.guard.monitor.metrics()["clip/non_finite"] == halved
    assert "step" not in scaler.__dict__  # given back


@pytest.mark.parametrize("kind", ["MonitorCallback", "GuardCallback"])
def test_arguments_survive_an_interrupted_run(transformers, kind):
    """After Ctrl-C the same arguments train as before, with a callback and without, as in a notebook."""
    from toclip.torch import huggingface

    class Interrupting(getattr(huggingface, kind)):
        def on_step_end(self, args, state, control, **kwargs):
            raise KeyboardInterrupt

    callback = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        transformers(callback, 10, limit=0.05)
    trainer = transformers.last
    args = trainer.args
    assert args.max_grad_norm == 0.05
    plain = transformers(None, 10, limit=0.05, folder="plain")
    assert same_training(transformers(None, 10, limit=0.05, args=args), plain)
    assert same_training(transformers(huggingface.MonitorCallback(), 10, limit=0.05, args=args), plain)
    guarded = huggingface.GuardCallback()
    transformers(guarded, 10, limit=0.05, args=args)
    assert guarded.guard.counts["clipped"] == 10
    # Without the callback the interrupted Trainer clips too.
    trainer.remove_callback(callback)
    for p in trainer.model.parameters():
        p.grad = torch.ones_like(p)
    clip = getattr(trainer, "_clip_grad_norm", None) or trainer.accelerator.clip_grad_norm_
    clip(*([trainer.model] if hasattr(trainer, "_clip_grad_norm") else [trainer.model.parameters(), 0.05]))
    assert math.isclose(toclip.torch._norms.total_norm(trainer.model), 0.05, rel_tol=1e-3)


@pytest.mark.parametrize("guard_first", [False, True])
def test_the_guard_beside_a_monitor_sees_gradients_before_clipping(transformers, guard_first):
    """The run is that of the guard alone, and the monitor has the norms before clipping."""
    from toclip.torch.huggingface import GuardCallback, MonitorCallback

    def guard():
        return GuardCallback(action="skip", multiple=1.5, warmup=10, monitor=Monitor(flush=4))

    alone, guarded, monitor = guard(), guard(), MonitorCallback(flush=4)
    expected = transformers(alone, 60, folder="alone")
    both = [guarded, monitor] if guard_first else [monitor, guarded]
    found = transformers(both, 60, folder="both")
    assert same_training(found, expected) and guarded.guard.rule == alone.guard.rule
    assert guarded.guard.counts["skipped"] >= 3 and guarded.guard.counts["clipped"] >= 3
    seen = [m._series.rows[:, :4] for m in (monitor.monitor, guarded.guard.monitor)]
    assert np.allclose(*seen, rtol=1e-6) and monitor.monitor.metrics()["clip/threshold"] == 0.5
    assert "A guard skipped" in str(monitor.monitor.report())
    with pytest.raises(ValueError, match="apply = True cannot be combined with a guard"):
        transformers([MonitorCallback(apply=True), guard()], 4, folder="apply")


def test_a_checkpoint_of_another_folder(transformers, tmp_path):
    """The guard comes from the checkpoint that the Trainer resumes from, not from output_dir."""
    from toclip.torch.huggingface import GuardCallback

    def run(folder, **settings):
        callback = GuardCallback(multiple=1.5, warmup=10)
        return callback.guard, transformers(callback, 60, folder=folder, **settings)

    whole, trained = run("one")
    # A stale checkpoint of the same step in output_dir.
    run("two", limit=0.4)
    resumed, again = run("two", resume=str(tmp_path / "one" / "checkpoint-30"))
    assert resumed.rule == whole.rule and same_training(again, trained)
    with pytest.raises(ValueError, match=r"max_norm = 0.5, .*max_norm = 0.7; .*max_grad_norm .*delete this file"):
        run("three", resume=str(tmp_path / "one" / "checkpoint-30"), limit=0.7)


def test_every_node_that_saves_has_the_state(tmp_path):
    pytest.importorskip("transformers")
    from types import SimpleNamespace

    from toclip.torch.huggingface import GuardCallback

    (tmp_path / "checkpoint-5").mkdir()
    state = SimpleNamespace(global_step=5, is_world_process_zero=False)
    for should_save in (False, True):
        args = SimpleNamespace(output_dir=str(tmp_path), should_save=should_save)
        GuardCallback().on_save(args, state, None)
        assert (tmp_path / "checkpoint-5" / "toclip_guard.json").exists() == should_save


@pytest.mark.parametrize("optim", ["adamw_torch", "adamw_torch_fused"])
@pytest.mark.parametrize("action", ["clip", "skip"])
def test_the_guard_in_the_trainer_of_transformers(transformers, tmp_path, action, optim):
    """A run that is killed and resumed ends with the same weights as one that was not."""
    from toclip.torch.huggingface import GuardCallback

    def run(folder, **settings):
        callback = GuardCallback(action=action, multiple=1.5, warmup=10, monitor=Monitor(flush=4))
        return callback, transformers(callback, 60, folder=folder, limit=0.0, optim=optim, **settings)

    callback, whole = run("out")
    guard = callback.guard
    assert guard._detach is None and guard.counts["steps"] == 60 and guard.counts[f"{action}ped"] >= 3
    plain = transformers(None, 60, folder="plain", limit=0.0, optim=optim)
    assert not same_training(whole, plain)
    again, resumed = run("out", resume=str(tmp_path / "out" / "checkpoint-30"))
    assert again.guard.rule == guard.rule and same_training(resumed, whole)
    assert again.guard.monitor.report() == guard.monitor.report()
    rows = [row for row in whole.state.log_history if "loss" in row]
    assert [row["guard/steps"] for row in rows] == list(range(5, 65, 5))
    assert sum(row["guard/factor"] == 0.0 for row in rows) <= guard.counts["skipped"]
    # The loss of every step is known, not only the mean that the Trainer logs.
    losses = guard.monitor._series.rows[:, 2]
    logged = [row["loss"] for row in rows]
    assert np.allclose(losses.reshape(-1, 5).mean(1), logged, rtol=1e-3)


def test_a_fixed_threshold_remains_beside_the_guard(transformers):
    from toclip.torch.huggingface import GuardCallback

    callback = GuardCallback(multiple=1e9)
    guarded = transformers(callback, 40, limit=0.5)
    plain = transformers(None, 40, folder="plain", limit=0.5)
    for a, b in zip(guarded.model.parameters(), plain.model.parameters()):
        assert torch.allclose(a, b, rtol=1e-4, atol=1e-6)
    assert callback.guard.counts["clipped"] > 10 and callback.guard.rule.max_norm == math.inf


def test_logged_metrics_reach_the_reporting_callbacks(transformers):
    """Reporters come before the callbacks of users; they see the metrics all the same."""
    from toclip.torch.huggingface import MonitorCallback
    from transformers import TrainerCallback

    class Reporter(TrainerCallback):
        def __init__(self):
            self.seen = []

        def on_log(self, args, state, control, logs=None, **kwargs):
            self.seen.append(dict(logs))

    reporter, callback = Reporter(), MonitorCallback(flush=4)
    trainer = transformers([reporter, callback], 60)
    found = [row for row in reporter.seen if "loss" in row]
    history = [row for row in trainer.state.log_history if "loss" in row]
    for rows in (found, history):
        assert len(rows) == 12
        assert all({"clip/norm", "clip/threshold", "clip/clipped_share"} <= row.keys() for row in rows)
        assert rows[-1]["clip/threshold"] == 0.5 and math.isclose(rows[-1]["clip/norm"], rows[-1]["grad_norm"])
    assert callback.monitor._kind == "adam"
    losses = callback.monitor._series.rows[:, 2].reshape(-1, 5).mean(1)
    assert np.allclose(losses, [row["loss"] for row in history], rtol=1e-3)
    assert np.isfinite(callback.monitor._series.rows[:, 3]).all()  # learning rates


@pytest.mark.parametrize("where", ["tensorboard", "wandb", "mlflow"])
def test_metrics_arrive_in_experiment_trackers(transformers, tmp_path, monkeypatch, where):
    """What the trackers have written to disk, read back."""
    pytest.importorskip(where)
    from toclip.torch.huggingface import GuardCallback, MonitorCallback

    environment = {
        "TENSORBOARD_LOGGING_DIR": tmp_path / "logs",
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "WANDB_DIR": tmp_path,
        "MLFLOW_TRACKING_URI": f"file:{tmp_path / 'mlruns'}",
        "MLFLOW_ALLOW_FILE_STORE": "true",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.chdir(tmp_path)
    transformers([MonitorCallback(flush=4), GuardCallback()], 20, report_to=[where], save_strategy="no")
    if where == "wandb":
        import wandb

        wandb.finish()
    files = [file for file in tmp_path.rglob("*") if file.is_file() and "out/checkpoint" not in str(file)]
    content = b"".join(file.read_bytes() for file in files)
    for name in ("clip/norm", "clip/threshold", "guard/norm"):
        by_path = any(file.parts[-2:] == tuple(name.split("/")) for file in files)  # MLflow: a file each
        assert by_path or name.encode() in content, (where, name)


@pytest.fixture
def deepspeed(tmp_path):
    """``train(what, stage)`` with DeepSpeed in a process of its own; see ``deepspeed_worker.py``."""
    for name in ("transformers", "accelerate", "deepspeed"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    if not (shutil.which("ninja", path=path) and shutil.which("c++", path=path)):
        pytest.skip("DeepSpeed compiles a part of itself, which needs ninja and a C++ compiler")

    def train(what, stage):
        out = tmp_path / f"{what} {stage}.json"
        words = [sys.executable, WORKER, what, stage, str(tmp_path / stage), str(out)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=os.environ | {"PATH": path})
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(out.read_text())

    return train


def test_deepspeed(deepspeed):
    """The norms that its engine knows are those of the same run without it."""
    plain = deepspeed("monitor", "none")
    for stage in (deepspeed("monitor", "1"), deepspeed("monitor", "2")):
        assert len(stage["norms"]) == 30 and stage["threshold"] == 0.5
        assert np.allclose(stage["norms"], plain["norms"], rtol=1e-4)
        assert np.allclose(stage["losses"], plain["losses"], rtol=1e-4)
        assert stage["logged"] == stage["norms"][4::5]


@pytest.mark.parametrize("what, stages", [("guard skip", "0123"), ("guard clip", "2")])
def test_the_guard_in_deepspeed(deepspeed, what, stages):
    """Clipped and skipped as without it; a skipped step changes neither weights, moments nor decay."""
    plain = deepspeed(what, "none")
    action = what.split()[1] + "ped"
    assert plain["counts"][action] >= 2 and plain["counts"]["non_finite"] == 1
    for stage in stages:
        found = deepspeed(what, stage)
        assert found["counts"] == plain["counts"], stage
        assert np.allclose(found["losses"], plain["losses"], rtol=1e-4, equal_nan=True)
        for k, (ours, theirs) in enumerate(zip(found["steps"], plain["steps"], strict=True)):
            # Moments and decay show in the weights of the steps after a skipped one.
            assert np.allclose(ours["weights"], theirs["weights"], rtol=1e-4, atol=1e-6), (stage, k)
            assert np.isclose(ours["factor"], theirs["factor"], rtol=1e-4)
            if ours["factor"] == 0.0:
                assert ours["weights"] == found["steps"][k - 1]["weights"]


def hash_of(step):
    """A number between 0 and 1 that looks random."""
    return float(torch.rand(1, generator=torch.Generator().manual_seed(step)))


@pytest.fixture
def lightning(tmp_path):
    """``fit(callback, steps, ...)`` by the Trainer of Lightning."""
    pl = pytest.importorskip("lightning.pytorch")

    class Module(pl.LightningModule):
        def __init__(self, optimizers, outliers):
            super().__init__()
            self.outliers = outliers
            self.inner, self.norms, self.count = model(), [], optimizers
            self.automatic_optimization = optimizers == 1

        def training_step(self, batch, index):
            # By step number, because a resumed run starts its loader from the beginning.
            x, y = (part[self.global_step % 20 :: 20] for part in data.tensors)
            if hash_of(self.global_step) < self.outliers:
                y = y + 30.0
            return (self.inner(x) - y).square().mean()

        def on_before_optimizer_step(self, optimizer):
            self.norms.append(float(torch.nn.utils.get_total_norm(p.grad for p in self.parameters())))

        def configure_optimizers(self):
            made = [
                torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9) for _ in range(self.count)
            ]
            return made[0] if self.count == 1 else made

    g = torch.Generator().manual_seed(1)
    data = torch.utils.data.TensorDataset(
        torch.randn(80, 6, generator=g), torch.randn(80, 1, generator=g)
    )

    def fit(callback, steps, resume=None, limit=0.5, optimizers=1, outliers=0.0, **settings):
        net = Module(optimizers, outliers)
        saving = [pl.callbacks.ModelCheckpoint(dirpath=tmp_path, every_n_epochs=1, save_top_k=-1)]
        trainer = pl.Trainer(
            max_steps=steps,
            max_epochs=-1,
            callbacks=saving + (callback if isinstance(callback, list) else [callback] if callback else []),
            gradient_clip_val=limit,
            accelerator="cpu",
            devices=1,
            default_root_dir=tmp_path,
            enable_progress_bar=False,
            enable_model_summary=False,
            **{"logger": False, **settings},
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loader = torch.utils.data.DataLoader(data, batch_size=4)
            trainer.fit(net, loader, ckpt_path=resume, **({"weights_only": False} if resume else {}))
        return net, trainer

    return fit


def weights(net):
    return torch.cat([p.detach().reshape(-1) for p in net.parameters()])


def test_the_trainer_of_lightning(lightning, tmp_path):
    from toclip.torch.lightning_callback import MonitorCallback

    whole = MonitorCallback(batch_size=4, flush=4)
    net, _ = lightning(whole, 80)
    core = toclip.Monitor(components=4, watched=0.5, margin=0.13)
    core.observe(net.norms)
    assert whole.monitor.core == core and core.steps == 80
    assert whole.monitor.watched() is not None
    plain, _ = lightning(None, 80)
    assert plain.norms == net.norms and torch.equal(weights(plain), weights(net))
    # A run that resumes from a checkpoint equals the run that never stopped.
    resumed = MonitorCallback(batch_size=4, flush=7)
    after, _ = lightning(resumed, 80, resume=tmp_path / "epoch=1-step=40.ckpt")
    assert after.norms == net.norms[40:] and torch.equal(weights(after), weights(net))
    assert resumed.monitor.core == whole.monitor.core
    assert resumed.monitor.watched() == whole.monitor.watched()


def test_lightning_clips_where_the_monitor_says(lightning, tmp_path):
    from toclip.torch.lightning_callback import MonitorCallback

    def run(resume=None):
        callback = MonitorCallback(batch_size=1, flush=4, apply=True, every=50, margin=0.1)
        net, _ = lightning(callback, 1000, limit=None, outliers=0.1, resume=resume)
        return net, callback.monitor

    net, whole = run()
    assert whole.threshold < math.inf
    # The module's hook runs after the callback's, so it sees clipped gradients.
    assert max(net.norms[-100:]) < 1.5 * whole.threshold and max(net.norms[:100]) > 5 * whole.threshold
    after, resumed = run(tmp_path / "epoch=24-step=500.ckpt")
    assert resumed.core == whole.core and resumed.threshold == whole.threshold
    assert after.norms == net.norms[500:] and torch.equal(weights(after), weights(net))


@pytest.mark.parametrize("action", ["clip", "skip"])
def test_the_guard_in_lightning(lightning, tmp_path, action):
    """A run that is killed and resumed ends with the same weights as one that was not."""
    from toclip.torch.lightning_callback import GuardCallback

    def run(resume=None):
        callback = GuardCallback(action=action, warmup=10, monitor=Monitor(flush=7))
        net, _ = lightning(callback, 200, limit=None, outliers=0.05, resume=resume)
        return net, callback.guard

    net, whole = run()
    assert whole.counts["steps"] == 200 and whole.counts[f"{action}ped"] >= 3
    plain, _ = lightning(None, 200, limit=None, outliers=0.05)
    assert not torch.equal(weights(plain), weights(net))
    after, resumed = run(tmp_path / "epoch=4-step=100.ckpt")
    assert resumed.rule == whole.rule and torch.equal(weights(after), weights(net))
    assert not np.isnan(whole.monitor._series.rows[:, 2]).any()
    assert "spikes" in whole.monitor.report().codes
    with pytest.raises(ValueError, match="use GuardCallback\\(max_norm=0.5\\) instead"):
        lightning(GuardCallback(), 4, limit=0.5)


def test_lightning_logs_where_its_loggers_see_it(lightning, tmp_path):
    from lightning.pytorch.loggers import CSVLogger
    from toclip.torch.lightning_callback import GuardCallback, MonitorCallback

    for made, name in ((MonitorCallback(batch_size=4), "clip/norm"), (GuardCallback(), "guard/norm")):
        logger = CSVLogger(tmp_path, name=name[:4])
        lightning(made, 40, limit=None, logger=logger, log_every_n_steps=10)
        logger.save()
        rows = (tmp_path / name[:4] / "version_0" / "metrics.csv").read_text().splitlines()
        assert name in rows[0] and len(rows) == 5


def test_lightning_with_accumulation(lightning, tmp_path):
    """One loss and one line of the log for a step of four micro-batches."""
    from lightning.pytorch.loggers import CSVLogger
    from toclip.torch.lightning_callback import GuardCallback, MonitorCallback

    settings = {"limit": None, "accumulate_grad_batches": 4, "log_every_n_steps": 10}
    logger = CSVLogger(tmp_path, name="accumulated")
    guard, monitor = GuardCallback(multiple=1e9, monitor=Monitor(flush=4)), MonitorCallback(flush=4)
    lightning(guard, 40, logger=logger, **settings)
    lightning(monitor, 40, **settings)
    guarded, watched = (m._series.rows[:, :4] for m in (guard.guard.monitor, monitor.monitor))
    assert len(guarded) == 40 and np.allclose(guarded, watched, rtol=1e-6)
    logger.save()
    rows = (tmp_path / "accumulated" / "version_0" / "metrics.csv").read_text().splitlines()
    assert len(rows) == 5


def test_the_lightning_guard_beside_a_monitor(lightning):
    from toclip.torch.lightning_callback import GuardCallback, MonitorCallback

    monitor, guard = MonitorCallback(flush=4), GuardCallback(warmup=10, monitor=Monitor(flush=4))
    lightning([monitor, guard], 100, limit=None, outliers=0.05)
    own = guard.guard.monitor.metrics()
    assert monitor.monitor.metrics() == own and own["clip/clipped_share"] > 0.0
    assert "A guard clipped" in str(monitor.monitor.report())
    with pytest.raises(ValueError, match="apply = True cannot be combined with a guard"):
        lightning([MonitorCallback(apply=True), GuardCallback()], 4, limit=None)


def test_lightning_in_half_precision(lightning):
    from toclip.torch.lightning_callback import MonitorCallback

    callback = MonitorCallback(batch_size=4, flush=4)
    net, _ = lightning(callback, 40, precision="bf16-mixed")
    plain, _ = lightning(None, 40, precision="bf16-mixed")
    assert plain.norms == net.norms and torch.equal(weights(plain), weights(net))
    assert callback.monitor.steps == 40


def test_lightning_counts_steps_skipped_by_a_scaler(lightning):
    from lightning.pytorch.plugins import MixedPrecision
    from toclip.torch.lightning_callback import GuardCallback

    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24)
    callback = GuardCallback(monitor=Monitor(flush=4))
    lightning(callback, 40, limit=None, plugins=[MixedPrecision("16-mixed", "cpu", scaler)])
    halved = math.log2(2.0**24 / scaler.get_scale())
    assert callback.guard.counts["steps"] == 40 and callback.guard.counts["non_finite"] == halved >= 1
    assert callback.guard.monitor.metrics()["clip/non_finite"] == halved


def test_lightning_with_two_optimizers_is_an_error(lightning):
    from toclip.torch.lightning_callback import MonitorCallback

    with pytest.raises(ValueError, match="has 2 optimizers, but the callback supports only one"):
        lightning(MonitorCallback(), 4, limit=None, optimizers=2)


@pytest.mark.parametrize("place", ["huggingface", "lightning_callback"])
def test_errors_of_callbacks(place):
    pytest.importorskip({"huggingface": "transformers"}.get(place, "lightning"))
    import importlib

    made = importlib.import_module(f"toclip.torch.{place}").MonitorCallback
    monitor = Monitor(batch_size=4)
    assert made(monitor).monitor is monitor
    with pytest.raises(ValueError, match="a monitor and batch_size, outputs were given"):
        made(monitor, batch_size=4, outputs=2)
    with pytest.raises(ValueError, match="must be a toclip.torch.Monitor"):
        made(toclip.Monitor())
    with pytest.raises(ValueError, match="flush = 0 is not allowed"):
        made(flush=0)
    with pytest.raises(TypeError, match="batchsize"):
        made(batchsize=4)
