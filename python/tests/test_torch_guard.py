"""The guard in training loops of one's own: plain, with closures, scaled, wrapped, distributed."""

import copy
import math
import pickle
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import toclip  # noqa: E402
from toclip.torch import Guard, Monitor  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
import guard_worker  # noqa: E402
import two_ranks  # noqa: E402
from conftest import compare, messages  # noqa: E402

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.01),
    "adamw": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1),
    "fused": lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1, fused=True),
}


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def loss_of(net, step):
    """Every fortieth batch is corrupt; one is not finite."""
    g = torch.Generator().manual_seed(step)
    x, y = torch.randn(4, 6, generator=g), torch.randn(4, 1, generator=g)
    scale = {39: 400.0}.get(step % 40, 1.0)
    return (net(x) - y).square().mean() * (math.nan if step == 77 else scale)


def weights(net):
    return torch.cat([p.detach().reshape(-1) for p in net.parameters()])


def state_of(optimizer):
    return [t for s in optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]


@pytest.mark.parametrize("action", ["clip", "skip"])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_attached_or_asked_it_is_the_same(kind, action):
    nets = [model() for _ in range(3)]
    optimizers = [OPTIMIZERS[kind](net.parameters()) for net in nets]
    guards = [Guard(action=action, multiple=10.0, warmup=10) for _ in nets]
    guards[0].attach(optimizers[0])
    guards[2].attach(optimizers[2])
    rule = toclip.GuardRule(action=action, multiple=10.0, warmup=10)
    for step in range(130):
        for k, (net, optimizer, guard) in enumerate(zip(nets, optimizers, guards)):

            def closure():
                optimizer.zero_grad()
                loss = loss_of(net, step)
                loss.backward()
                return loss

            if k == 2:
                assert torch.equal(optimizer.step(closure).nan_to_num(), loss_of_before.nan_to_num())
                continue
            loss_of_before = closure().detach()
            if k == 0:
                norm = torch.nn.utils.get_total_norm([p.grad for p in net.parameters()])
                optimizer.step()
            elif not guard.clip_(net.parameters()).skipped:
                optimizer.step()
        made = rule.step(float(norm))
        assert all(repr(guard.last) == repr(made) for guard in guards)
    for net, guard in zip(nets, guards):
        assert torch.equal(weights(net), weights(nets[0])) and guard.counts == rule.counts
    assert rule.counts["non_finite"] == 1 and rule.counts[f"{action}ped"] >= 3


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_skipped_step_changes_nothing(kind):
    """Weights, moments, step counts and decay stay as they are."""
    net = model()
    optimizer = OPTIMIZERS[kind](net.parameters())
    guard = Guard(action="skip", multiple=10.0, warmup=10)
    guard.attach(optimizer)
    for step in [*range(39), 39, 77]:
        before, moments = weights(net), copy.deepcopy(state_of(optimizer))
        optimizer.zero_grad()
        loss_of(net, step).backward()
        optimizer.step()
        if step in (39, 77):
            assert guard.last.skipped and torch.equal(weights(net), before)
            assert all(torch.equal(a, b) for a, b in zip(state_of(optimizer), moments, strict=True))
        else:
            assert not torch.equal(weights(net), before)
    assert guard.counts == {"steps": 41, "clipped": 0, "skipped": 1, "non_finite": 1}


def test_it_synchronises_once_a_step():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Reads(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Reads.count += func is torch.ops.aten._local_scalar_dense.default
            return func(*args, **(kwargs or {}))

    net = model()
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    guard = Guard(multiple=10.0, warmup=10, monitor=Monitor())
    guard.attach(optimizer)
    for step in range(80):
        optimizer.zero_grad()
        loss_of(net, step).backward()
        before = Reads.count
        with Reads():
            optimizer.step()
        assert Reads.count == before + 1
    assert guard.counts["clipped"] >= 1


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_with_a_scaler(kind):
    """Scaled training is plain training, whoever unscales the gradients."""
    nets = [model().double() for _ in range(3)]
    optimizers = [OPTIMIZERS[kind](net.parameters()) for net in nets]
    guards = [Guard(multiple=10.0, warmup=10, action="skip") for _ in nets]
    for optimizer, guard in zip(optimizers[:2], guards):
        guard.attach(optimizer)
    scalers = [torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=10**6) for _ in nets]
    for step in range(70):
        for k, (net, optimizer, scaler) in enumerate(zip(nets, optimizers, scalers)):
            optimizer.zero_grad()
            g = torch.Generator().manual_seed(step)
            x, y = (torch.randn(4, n, generator=g).double() for n in (6, 1))
            loss = (net(x) - y).square().mean() * (400.0 if step == 39 else 1.0)
            if k == 0:
                loss.backward()
                optimizer.step()
                continue
            scaler.scale(loss).backward()
            if k == 1:
                scaler.step(optimizer)
            elif not guards[2].clip_(net, scaler=scaler, optimizer=optimizer).skipped:
                scaler.step(optimizer)
            scaler.update()
    for net, guard in zip(nets, guards):
        assert torch.allclose(weights(net), weights(nets[0]), rtol=1e-9)
        assert guard.counts == {"steps": 70, "clipped": 0, "skipped": 1, "non_finite": 0}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_steps_skipped_by_a_scaler_are_counted_once(kind):
    """By the guard and by its monitor, whether attached or asked; and by a monitor alone."""
    for how in ("attached", "unscaled", "asked", "monitor"):
        net = model()
        optimizer = OPTIMIZERS[kind](net.parameters())
        scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
        guard = Guard(monitor=Monitor(flush=7))
        if how in ("attached", "unscaled"):
            guard.attach(optimizer, scaler=scaler)
        for step in range(30):
            optimizer.zero_grad()
            loss = loss_of(net, 77 if step in (7, 8, 20) else step)
            scaler.scale(loss).backward()
            if how == "asked":
                skipped = guard.clip_(net, scaler=scaler, optimizer=optimizer, loss=loss).skipped
            elif how == "monitor":
                skipped = False
                guard.monitor.clip_(net, loss=loss, scaler=scaler, optimizer=optimizer)
            else:
                guard.loss, skipped = loss, False
                if how == "unscaled":
                    scaler.unscale_(optimizer)
            if not skipped:
                scaler.step(optimizer)
            scaler.update()
        assert scaler.get_scale() == 1024.0 / 2**3
        assert guard.monitor.metrics()["clip/non_finite"] == 3 and guard.monitor.steps == 30
        if how != "monitor":
            assert guard.counts == guard.counts | {"steps": 30, "non_finite": 3}
        guard.detach()
        assert "step" not in scaler.__dict__


def test_a_fused_optimizer_does_not_make_the_device_wait():
    """The norm of a step is read when the next begins, or when someone looks."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Reads(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Reads.count += func is torch.ops.aten._local_scalar_dense.default
            return func(*args, **(kwargs or {}))

    net = model()
    optimizer = OPTIMIZERS["fused"](net.parameters())
    guard = Guard(action="skip", multiple=10.0, warmup=10, monitor=Monitor())
    guard.attach(optimizer)
    for step in range(80):
        optimizer.zero_grad()
        loss_of(net, step).backward()
        before = weights(net), copy.deepcopy(state_of(optimizer)), Reads.count
        with Reads():
            optimizer.step()
        assert Reads.count <= before[2] + 1 and (step == 0 or guard._sent is not None)
        if step in (39, 77, 79):
            assert torch.equal(weights(net), before[0])
            assert all(torch.equal(a, b) for a, b in zip(state_of(optimizer), before[1], strict=True))
    assert not {"grad_scale", "found_inf"} & optimizer.__dict__.keys()
    assert guard.monitor.steps == 80 and guard.last.skipped
    assert guard.counts == {"steps": 80, "clipped": 0, "skipped": 2, "non_finite": 1}
    # A step that is left out before there are moments must not leave them undefined.
    net, bad = model(), Guard()
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9, fused=True)
    bad.attach(optimizer)
    for step in (77, 0, 1):
        optimizer.zero_grad()
        loss_of(net, step).backward()
        optimizer.step()
    assert bad.counts["non_finite"] == 1 and all(torch.isfinite(t).all() for t in state_of(optimizer))


def test_a_parameter_without_moments_is_waited_for():
    """A step that is left out must not leave the momentum of a new parameter undefined."""
    a, b = (torch.nn.Parameter(torch.zeros(1000)) for _ in range(2))
    optimizer = torch.optim.SGD([a, b], 0.01, momentum=0.9, fused=True)
    guard = Guard()
    guard.attach(optimizer)
    for parameter, value in [(a, 1.0)] * 10 + [(b, math.nan), (b, 1.0)]:
        optimizer.zero_grad()
        torch.full((1000,), math.nan)  # what the memory of the buffer may hold
        parameter.grad = torch.full((1000,), value)
        optimizer.step()
        assert parameter is a or math.isnan(value) or "momentum_buffer" in optimizer.state[b]
        if math.isnan(value):
            assert not optimizer.state[b]
    assert guard.counts["non_finite"] == 1 and torch.allclose(b, torch.tensor(-0.01))
    # Without momentum there is nothing to wait for.
    plain, guard = torch.optim.SGD([a], 0.01, fused=True), Guard()
    guard.attach(plain)
    a.grad = torch.ones(1000)
    plain.step()
    assert guard._sent is not None


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_the_monitor_of_a_guard_has_the_same_norms(kind, scaled):
    """The optimizer, its learning rate, and the norms of groups before clipping."""
    net = model()
    parts = {"first": list(net[0].parameters()), "last": list(net[2].parameters())}
    optimizer = OPTIMIZERS[kind](net.parameters())
    guard = Guard(multiple=1.0, warmup=1, monitor=Monitor(groups=parts, flush=7))
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, enabled=scaled)
    guard.attach(optimizer, scaler=scaler if scaled else None)
    expected = []
    for step in range(30):
        optimizer.zero_grad()
        scaler.scale(loss_of(net, step)).backward()
        expected.append([
            float(torch.nn.utils.get_total_norm([p.grad for p in part])) / (1024.0 if scaled else 1.0)
            for part in parts.values()
        ])
        scaler.step(optimizer)
        scaler.update()
    guard.monitor.flush()
    rows = guard.monitor._series.rows
    assert guard.counts["clipped"] > 5 and np.allclose(rows[:, 7:], expected, rtol=1e-5)
    assert guard.monitor._kind == ("sgd" if kind == "sgd" else "adam")
    assert np.allclose(rows[:, 3], optimizer.param_groups[0]["lr"])
    # Attached to another optimizer, it knows that one.
    guard.detach()
    other = torch.optim.RMSprop(net.parameters(), 0.5)
    guard.attach(other)
    other.step()
    assert guard.monitor._kind == "adam" and guard.monitor._pending[-1].learning_rate == 0.5
    shares = [guard.monitor.metrics()[f"clip/share/{name}"] for name in parts]
    assert math.isclose(sum(shares), 1.0, rel_tol=1e-5)


def test_the_loss_of_the_step_goes_before_that_of_a_closure():
    weight = torch.nn.Parameter(torch.zeros(1))
    for fused in (False, True):
        optimizer = torch.optim.AdamW([weight], 0.01, fused=fused)
        guard = Guard(monitor=Monitor())
        guard.attach(optimizer)

        def closure(loss):
            weight.grad = torch.ones(1)
            guard.loss = loss
            return torch.tensor(3.0)

        optimizer.step(lambda: closure(1.5))
        optimizer.step(lambda: closure(None))
        guard.monitor.flush()
        assert guard.monitor._series.rows[:, 2].tolist() == [1.5, 3.0]


@pytest.mark.parametrize("action, basis", [("skip", "is for a run without the guard"), ("clip", "its last threshold")])
def test_the_report_says_that_a_guard_is_on(action, basis):
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.AdamW([weight], 0.01)
    guard = Guard(action=action, monitor=Monitor(batch_size=32))
    guard.attach(optimizer)
    sizes = np.exp(0.1 * np.random.default_rng(1).normal(size=1000))
    sizes[[250, 550, 850]] *= 60.0
    for k, size in enumerate(sizes):
        weight.grad, guard.loss = torch.full((1,), float(size)), 2.0 + 10.0 * (size > 10.0)
        optimizer.step()
        if k == 100:
            assert "A guard acted on none of 101 steps." in str(guard.monitor.report())
    report = str(guard.monitor.report())
    assert report.startswith(f"A guard {action}ped 3 of 1,000 steps. The advice below ") and basis in report
    alone = Monitor()
    alone.observe(1.0)
    assert "guard" not in str(alone.report()).splitlines()[0]


def test_the_norm_of_another_run_is_not_logged():
    weight = torch.nn.Parameter(torch.zeros(1))
    guard, other = Guard(), Guard()
    weight.grad = torch.ones(1)
    guard.clip_([weight])
    guard.load_state_dict(other.state_dict())
    assert guard.metrics()["guard/steps"] == 0.0 and "guard/norm" not in guard.metrics()


def test_learning_rate_schedulers_before_and_after():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = []
        for first in ("guard", "scheduler"):
            net = model()
            optimizer = torch.optim.SGD(net.parameters(), 0.05)
            guard = Guard(multiple=10.0, warmup=10)

            def schedule():
                return torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.5)

            if first == "guard":
                guard.attach(optimizer)
            scheduler = schedule()
            if first == "scheduler":
                guard.attach(optimizer)
                schedule()
            for step in range(45):
                optimizer.zero_grad()
                loss_of(net, step).backward()
                optimizer.step()
                scheduler.step()
            assert guard.counts["steps"] == 45 and guard.counts["clipped"] == 1
            found.append(weights(net))
            guard.detach()
            optimizer.step()
            assert guard.counts["steps"] == 45
            guard.attach(optimizer)
        assert torch.equal(*found)


@pytest.mark.parametrize("scaled", [False, True])
def test_an_optimizer_that_accelerate_has_wrapped(scaled):
    accelerate = pytest.importorskip("accelerate")
    from accelerate.optimizer import AcceleratedOptimizer

    accelerate.Accelerator(cpu=True)
    nets = [model(), model()]
    plain, inner = (torch.optim.SGD(net.parameters(), 0.05) for net in nets)
    scaler = torch.amp.GradScaler("cpu", init_scale=64.0) if scaled else None
    wrapped = AcceleratedOptimizer(inner, scaler=scaler)
    guards = [Guard(action="skip", multiple=10.0, warmup=10), Guard(action="skip", multiple=10.0, warmup=10)]
    guards[0].attach(plain)
    guards[1].attach(wrapped)
    for step in range(45):
        for net, optimizer in zip(nets, (plain, wrapped)):
            optimizer.zero_grad()
            loss = loss_of(net, step)
            (scaler.scale(loss) if scaled and optimizer is wrapped else loss).backward()
            optimizer.step()
    assert torch.allclose(weights(nets[0]), weights(nets[1]), rtol=1e-5)
    assert [guard.counts["skipped"] for guard in guards] == [1, 1]
    guards[1].detach()
    wrapped.step()
    assert guards[1].counts["steps"] == 45


def test_the_accelerate_recipe():
    """A whole loop of Accelerate with accumulation, as in the documentation."""
    accelerate = pytest.importorskip("accelerate")
    accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    net, optimizer = accelerator.prepare(net, optimizer)
    guard = Guard(multiple=10.0, warmup=10)
    guard.attach(optimizer)
    for step in range(80):
        with accelerator.accumulate(net):
            accelerator.backward(loss_of(net, step if step != 77 else 78))
            optimizer.step()
            optimizer.zero_grad()
    assert guard.counts["steps"] == 40 and guard.counts["clipped"] >= 1


def test_the_fabric_recipe():
    fabric_of = pytest.importorskip("lightning.fabric").Fabric
    fabric = fabric_of(accelerator="cpu", devices=1)
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    guard = Guard(multiple=10.0, warmup=10, action="skip")
    guard.attach(optimizer)
    net, optimizer = fabric.setup(net, optimizer)
    for step in range(80):
        optimizer.zero_grad()
        fabric.backward(loss_of(net, step))
        optimizer.step()
    assert guard.counts == {"steps": 80, "clipped": 0, "skipped": 2, "non_finite": 1}


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("action", ["clip", "skip"])
def test_killed_and_resumed_it_ends_with_the_same_weights(action, kind, tmp_path):
    def run(start, end, load=None):
        net = model()
        optimizer = OPTIMIZERS[kind](net.parameters())
        guard = Guard(action=action, multiple=10.0, warmup=10, monitor=Monitor(flush=7))
        guard.attach(optimizer)
        if load:
            saved = torch.load(load, weights_only=True)
            net.load_state_dict(saved["net"])
            optimizer.load_state_dict(saved["optimizer"])
            guard.load_state_dict(saved["guard"])
        for step in range(start, end):
            optimizer.zero_grad()
            loss_of(net, step).backward()
            optimizer.step()
        file = tmp_path / f"{end}.pt"
        parts = {"net": net, "optimizer": optimizer, "guard": guard}
        torch.save({name: part.state_dict() for name, part in parts.items()}, file)
        return weights(net), guard, file

    whole, guard, _ = run(0, 200)
    _, _, saved = run(0, 90)
    resumed, again, _ = run(90, 200, load=saved)
    assert torch.equal(whole, resumed) and guard.rule == again.rule
    assert guard.counts[f"{action}ped"] >= 4


def test_reading_changes_nothing():
    guard = Guard(warmup=3)
    weight = torch.nn.Parameter(torch.zeros(1))
    for size in np.exp(np.random.default_rng(0).normal(size=50)):
        weight.grad = torch.full((1,), float(size))
        guard.clip_([weight])
        state = guard.state_dict()
        repr(guard), str(guard), guard.threshold, guard.counts, guard.metrics()
        assert guard.state_dict() == state
    found = guard.metrics()
    assert found["guard/steps"] == 50.0 and found["guard/norm"] == guard.last.norm
    guard.reset()
    assert guard.rule == Guard(warmup=3).rule


def test_copies_are_not_attached():
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), 0.05)
    guard = Guard(multiple=10.0)
    guard.attach(optimizer)
    for step in range(20):
        optimizer.zero_grad()
        loss_of(net, step).backward()
        optimizer.step()
    for other in (pickle.loads(pickle.dumps(guard)), copy.deepcopy(guard)):
        assert other.rule == guard.rule and other.last == guard.last
        other.detach()
    optimizer.step()
    assert guard.counts["steps"] == 21
    # Parameters that are added later are guarded too.
    more = torch.nn.Parameter(torch.zeros(2))
    optimizer.add_param_group({"params": [more]})
    more.grad = torch.full((2,), 1e6)
    optimizer.step()
    assert guard.last.clipped and float(more.detach().abs().max()) < 1.0


@pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")
def test_two_processes_agree_with_one(tmp_path):
    """DDP, both versions of FSDP and tensor parallelism, clipped and skipped alike."""
    first, second = two_ranks.run(guard_worker, tmp_path)
    assert first == second and set(first) == set(guard_worker.KINDS)
    for kind in guard_worker.KINDS:
        alone = guard_worker.train(kind)
        assert first[kind]["counts"] == alone["counts"], kind
        assert alone["counts"]["skipped"] >= 2 and alone["counts"]["non_finite"] == 1
        assert np.allclose(first[kind]["factors"], alone["factors"], rtol=1e-5), kind
        assert np.allclose(first[kind]["weights"], alone["weights"], rtol=1e-4, atol=1e-6), kind


ERRORS = [
    'Guard(action="drop")',
    "Guard(monitor=toclip.Monitor())",
    "Guard().attach(model())",
    "Guard().attach(None)",
    "Guard().attach(torch.optim.LBFGS(model().parameters()))",
    "Guard().clip_(model())",
    "Guard().clip_([])",
    "Guard().clip_(model(), scaler=object())",
    "Guard().attach(torch.optim.SGD(model().parameters(), 0.1), scaler=1024.0)",
    "Guard().load_state_dict({})",
    "Guard().load_state_dict(Guard(multiple=3.0).state_dict())",
    'Guard().load_state_dict({"guard": Guard().state_dict()["guard"] | {"norms": 3}})',
    "Guard(monitor=Monitor(apply=True))",
    "Guard().clip_(model(), scaler=3, optimizer=torch.optim.SGD(model().parameters(), 0.1))",
]


def test_error_messages():
    compare("errors-torch-guard.txt", messages(ERRORS, globals()))
    guard, optimizer = Guard(), torch.optim.SGD(model().parameters(), 0.1)
    guard.attach(optimizer)
    optimizer.step()  # without gradients, as it is without a guard
    with pytest.raises(ValueError, match="attached already"):
        guard.attach(optimizer)
