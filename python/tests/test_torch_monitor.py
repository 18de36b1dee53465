"""The monitor in training loops: plain, scaled, distributed, and in other people's Trainers."""

import copy
import json
import math
import socket
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import toclip  # noqa: E402
from toclip.torch import Monitor  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import ddp_worker  # noqa: E402


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def backward(net, step, scale=1.0):
    g = torch.Generator().manual_seed(step)
    x = torch.randn(4, 6, generator=g)
    y = torch.randn(4, 1, generator=g) * (20.0 if step % 10 == 3 else 1.0)
    net.zero_grad()
    (scale * (net(x) - y).square().mean()).backward()


@pytest.mark.parametrize("limit", [0.5, None, 1e9])
def test_it_does_what_clip_grad_norm_does(limit):
    net, monitor = model(), Monitor(batch_size=4)
    other = copy.deepcopy(net)
    for step in range(20):
        backward(net, step), backward(other, step)
        found = monitor.clip_(net.parameters(), limit)
        bound = math.inf if limit is None else limit
        assert torch.equal(found, torch.nn.utils.clip_grad_norm_(other.parameters(), bound))
        assert all(torch.equal(a.grad, b.grad) for a, b in zip(net.parameters(), other.parameters()))


def test_norms_wait_on_the_device_and_all_are_counted():
    net, monitor, seen = model(), Monitor(flush=10), []
    for step in range(65):
        backward(net, step)
        seen.append(float(monitor.clip_(net.parameters(), 1.0)))
        assert len(monitor._waiting) == (step + 1) % 10
    core = toclip.Monitor(watched=1.0)
    core.observe(seen)
    assert monitor.core == core and monitor._waiting == [] and monitor.steps == 65
    assert monitor.watched() == core.watched()


def test_norms_may_come_from_anywhere():
    monitor, core = Monitor(flush=4), toclip.Monitor()
    seen = [1.5, torch.tensor(2.5), torch.tensor([0.25], dtype=torch.bfloat16), np.float32(3.5)] * 20
    for norm in seen:
        monitor.observe(norm)
    core.observe([1.5, 2.5, 0.25, 3.5] * 20)
    assert monitor.core == core and core.steps == 80


def outliers(apply, steps=3000, **settings):
    """A run by norms alone: one weight whose gradient is given."""
    weight = torch.nn.Parameter(torch.zeros(1))
    rng = np.random.default_rng(7)
    sizes = np.abs(rng.normal(size=steps)) * np.where(rng.random(steps) < 0.1, 20.0, 1.0)
    monitor = Monitor(batch_size=1, apply=apply, flush=20, every=100, **settings)
    left = []
    for size in sizes:
        weight.grad = torch.full((1,), float(size))
        monitor.clip_([weight])
        left.append(float(weight.grad.abs()))
    return monitor, sizes, np.array(left)


def test_it_only_watches_unless_told_to_act():
    monitor, sizes, left = outliers(apply=False)
    assert np.allclose(left, sizes)
    assert monitor.advice().kind == "clip" and monitor.threshold < 5.0
    assert monitor.rate_factor > 1.0


def test_it_applies_its_choice_once_there_is_evidence():
    monitor, sizes, left = outliers(apply=True)
    assert np.allclose(left[:100], sizes[:100])
    assert monitor.threshold < 5.0
    # Clipped at the threshold of the moment, which follows the scale.
    late = left[-500:]
    assert late.max() < 2 * monitor.threshold and sizes[-500:].max() > 20
    _, _, made_up_for = outliers(apply=True, compensate=True)
    ratio = made_up_for[-20:] / left[-20:]
    assert np.allclose(ratio, monitor.rate_factor, rtol=1e-5) and monitor.rate_factor > 1


@pytest.mark.parametrize("apply", [False, True])
def test_a_checkpoint_goes_on_as_if_nothing_had_happened(apply, tmp_path):
    def steps(monitor, net, some):
        for step in some:
            backward(net, step)
            monitor.clip_(net.parameters(), 2.0)

    whole, first = (Monitor(batch_size=4, apply=apply, flush=8, every=50) for _ in range(2))
    net = model()
    steps(whole, net, range(1000))
    steps(first, net, range(600))
    torch.save(first.state_dict(), tmp_path / "m.pt")
    resumed = Monitor(batch_size=4, apply=apply, flush=8, every=50)
    resumed.load_state_dict(torch.load(tmp_path / "m.pt", weights_only=True))
    steps(resumed, net, range(600, 1000))
    assert resumed.core == whole.core and resumed.threshold == whole.threshold
    assert resumed.watched() == whole.watched()


def test_scaled_gradients_are_seen_unscaled():
    net, plain = model(), Monitor(batch_size=4)
    scaled = Monitor(batch_size=4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for step in range(40):
        backward(net, step)
        plain.clip_(net.parameters(), 1.0)
        optimizer.zero_grad()
        backward(net, step, scale=1.0)
        for p in net.parameters():
            p.grad.mul_(1024.0)
        scaler.scale(torch.ones(()))
        if step % 2:  # by the user's own hand
            scaler.unscale_(optimizer)
        scaled.clip_(net.parameters(), 1.0, scaler=scaler, optimizer=optimizer)
        scaler.step(optimizer)
        scaler.update(1024.0)
    assert scaled.core == plain.core and plain.steps == 40
    # A step that overflows is counted apart.
    next(iter(net.parameters())).grad.fill_(math.inf)
    scaled.clip_(net.parameters(), 1.0)
    assert scaled.core.left_out == {"zero": 0, "not_finite": 1}


def test_accumulated_gradients_are_one_step():
    net, parts = model(), Monitor(batch_size=8)
    x, y = torch.randn(8, 6), torch.randn(8, 1)
    for half in (slice(0, 4), slice(4, 8)):
        ((net(x[half]) - y[half]).square().mean() / 2).backward()
    found = parts.clip_(net.parameters())
    net.zero_grad()
    (net(x) - y).square().mean().backward()
    whole = Monitor(batch_size=8).clip_(net.parameters())
    assert math.isclose(float(found), float(whole), rel_tol=1e-5)


def two_processes(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = [
        subprocess.Popen(
            [sys.executable, ddp_worker.__file__, str(rank), "2", port, str(tmp_path / "out")]
        )
        for rank in range(2)
    ]
    try:
        assert [rank.wait(timeout=240) for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            rank.kill()
    return [json.loads((tmp_path / f"out.{rank}").read_text()) for rank in range(2)]


@pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")
def test_two_processes_find_what_one_does(tmp_path):
    first, second = two_processes(tmp_path)
    assert first == second  # every rank has the same answer
    alone = ddp_worker.train().core
    assert alone.steps == ddp_worker.STEPS
    for how in ("ddp", "fsdp"):
        curve = toclip.Monitor.from_json(first[how]).curve().columns()
        for name, column in alone.curve().columns().items():
            # The mean of two halves is the whole but for rounding.
            assert np.allclose(curve[name], column, rtol=1e-9, equal_nan=True), (how, name)
    own = [ddp_worker.train(rank, 2, how="own").core for rank in range(2)]
    own[0].merge(own[1])
    merged = toclip.Monitor.from_json(first["own"])
    assert merged == own[0] and merged.steps == 2 * ddp_worker.STEPS


def test_the_trainer_of_transformers(tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    from transformers import Trainer, TrainingArguments

    from toclip.torch.huggingface import MonitorCallback

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model()

        def forward(self, x, labels):
            return {"loss": (self.inner(x) - labels).square().mean()}

    g = torch.Generator().manual_seed(1)
    rows = [
        {"x": torch.randn(6, generator=g), "labels": torch.randn(1, generator=g)} for _ in range(240)
    ]

    def train(callback, steps, resume=None, folder="out", limit=0.5):
        args = TrainingArguments(
            output_dir=str(tmp_path / folder),
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            max_steps=steps,
            save_steps=30,
            logging_steps=5,
            max_grad_norm=limit,
            lr_scheduler_type="constant",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            seed=3,
        )
        callbacks = [] if callback is None else [callback]
        trainer = Trainer(Net(), args, train_dataset=rows, callbacks=callbacks)
        trainer.train(resume_from_checkpoint=resume)
        assert args.max_grad_norm == limit
        return trainer

    torch.manual_seed(0)
    whole = MonitorCallback(flush=4)
    watched = train(whole, 60)
    assert whole.monitor.steps == 60 and whole.monitor.core.settings["components"] == 8.0
    assert whole.monitor.watched() is not None
    logged = [row["grad_norm"] for row in watched.state.log_history if "grad_norm" in row]
    plain = train(None, 60, folder="plain")
    expected = [row["grad_norm"] for row in plain.state.log_history if "grad_norm" in row]
    # Training is what it is without the callback.
    assert np.allclose(logged, expected, rtol=1e-6)
    for a, b in zip(watched.model.parameters(), plain.model.parameters()):
        assert torch.equal(a, b)
    resumed = MonitorCallback(flush=4)
    train(resumed, 60, resume=str(tmp_path / "out" / "checkpoint-30"))
    assert resumed.monitor.core == whole.monitor.core


def test_the_trainer_of_lightning(tmp_path):
    lightning = pytest.importorskip("lightning.pytorch")
    from toclip.torch.lightning_callback import MonitorCallback

    class Net(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.inner = model()
            self.norms = []

        def training_step(self, batch, index):
            x, y = batch
            return (self.inner(x) - y).square().mean()

        def on_before_optimizer_step(self, optimizer):
            self.norms.append(float(torch.nn.utils.get_total_norm(p.grad for p in self.parameters())))

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    g = torch.Generator().manual_seed(1)
    data = torch.utils.data.TensorDataset(
        torch.randn(80, 6, generator=g), torch.randn(80, 1, generator=g)
    )

    def fit(callback, steps, resume=None, limit=0.5):
        net = Net()
        trainer = lightning.Trainer(
            max_steps=steps,
            max_epochs=-1,
            callbacks=[callback],
            gradient_clip_val=limit,
            accelerator="cpu",
            default_root_dir=tmp_path,
            enable_progress_bar=False,
            enable_checkpointing=False,
            enable_model_summary=False,
            logger=False,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loader = torch.utils.data.DataLoader(data, batch_size=4)
            trainer.fit(net, loader, ckpt_path=resume, **({"weights_only": False} if resume else {}))
        return net, trainer

    whole = MonitorCallback(batch_size=4, flush=4)
    net, _ = fit(whole, 80)
    core = toclip.Monitor(components=4, watched=0.5)
    core.observe(net.norms)
    assert whole.monitor.core == core and whole.monitor.watched() is not None
    first = MonitorCallback(batch_size=4, flush=4)
    before, trainer = fit(first, 40)
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    resumed = MonitorCallback(batch_size=4, flush=4)
    after, _ = fit(resumed, 80, resume=tmp_path / "half.ckpt")
    core = toclip.Monitor(components=4, watched=0.5)
    core.observe(before.norms + after.norms)
    assert resumed.monitor.core == core and core.steps == 80


def test_a_changed_threshold_is_said():
    net, monitor = model(), Monitor()
    backward(net, 1)
    monitor.clip_(net.parameters(), 1.0)
    with pytest.warns(UserWarning, match="max_norm is now 2.0 and was 1.0"):
        monitor.clip_(net.parameters(), 2.0)


def loaded(state, **settings):
    Monitor(**settings).load_state_dict(state)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: Monitor(batch_size=0), "batch_size = 0 is not allowed"),
        (lambda: Monitor(outputs=0), "outputs = 0 is not allowed"),
        (lambda: Monitor(flush=0), "flush = 0 is not allowed"),
        (lambda: Monitor(confidence=2.0), "confidence = 2 is not allowed"),
        (lambda: Monitor(compensate=True), "give both"),
        (lambda: Monitor(apply=True, every=0), "every = 0 is not allowed"),
        (lambda: Monitor().clip_([]), "there are no parameters"),
        (lambda: Monitor().clip_(model().parameters()), "no parameter has a gradient"),
        (lambda: Monitor().clip_(model().parameters(), 0.0), "max_norm = 0.0 is not allowed"),
        (lambda: Monitor().observe(torch.ones(3)), "one number, not a tensor of shape"),
        (lambda: Monitor().clip_(model(), scaler=object()), "give optimizer too"),
        (lambda: loaded({}), "not the state of a toclip.torch.Monitor"),
        (lambda: loaded(Monitor(apply=True).state_dict()), "saved with apply = True"),
        (lambda: loaded(Monitor(batch_size=4).state_dict()), "do not go together"),
    ],
)
def test_bad_input_meets_a_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()
