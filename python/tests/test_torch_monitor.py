"""The monitor in training loops of one's own: plain, scaled, distributed."""

import copy
import json
import math
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
import two_ranks  # noqa: E402
from conftest import compare, messages  # noqa: E402


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))


def backward(net, step, scale=1.0):
    g = torch.Generator().manual_seed(step)
    x = torch.randn(4, 6, generator=g)
    y = torch.randn(4, 1, generator=g) * (20.0 if step % 10 == 3 else 1.0)
    net.zero_grad()
    (scale * (net(x) - y).square().mean()).backward()


def estimates(**settings):
    """The estimates that a monitor without a batch size makes."""
    return toclip.Monitor(**{"components": 1.0, "margin": 0.13, **settings})


@pytest.mark.parametrize("limit", [0.5, None, 1e9])
def test_it_agrees_with_clip_grad_norm_(limit):
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
        assert len(monitor._pending) == (step + 1) % 10
    core = estimates(watched=1.0)
    core.observe(seen)
    assert monitor.core == core and monitor._pending == [] and monitor.steps == 65
    assert monitor.watched() == core.watched()


def test_norms_may_come_from_anywhere():
    monitor, core = Monitor(flush=4), estimates()
    seen = [1.5, torch.tensor(2.5), torch.tensor([0.25], dtype=torch.bfloat16), np.float32(3.5)] * 20
    for norm in seen:
        monitor.observe(norm)
    core.observe([1.5, 2.5, 0.25, 3.5] * 20)
    assert monitor.core == core and core.steps == 80


@pytest.mark.parametrize("tails, gain", [("heavy", True), ("gaussian", False)])
def test_metrics_have_the_ccc_with_its_interval(tails, gain):
    rng = np.random.default_rng(3)
    norms = np.abs(rng.standard_t(2.5, 4000) if tails == "heavy" else rng.standard_normal(4000))
    monitor = Monitor(batch_size=1, optimizer="adamw")
    for norm in norms:
        monitor.observe(norm)
    found = monitor.metrics()
    assert all(type(value) is float for value in found.values())
    if gain:
        assert 1.0 < found["clip/ccc_low"] < found["clip/ccc"] < found["clip/ccc_high"]
    else:
        assert found.get("clip/ccc_low", 1.0) <= 1.01


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
    assert monitor.core.advice().kind == "clip" and monitor.threshold < 5.0
    assert monitor.rate_factor == 1.0  # the optimizer is unknown
    assert outliers(apply=False, optimizer="sgd")[0].rate_factor > 1.0
    assert outliers(apply=False, optimizer="adamw")[0].rate_factor == 1.0


def test_it_applies_its_choice_once_there_is_evidence():
    monitor, sizes, left = outliers(apply=True)
    assert np.allclose(left[:100], sizes[:100])
    assert monitor.threshold < 5.0
    # Clipped at the threshold of the moment, which follows the scale.
    late = left[-500:]
    assert late.max() < 2 * monitor.threshold and sizes[-500:].max() > 20
    sgd, _, made_up_for = outliers(apply=True, compensate=True, optimizer="sgd")
    ratio = made_up_for[-20:] / left[-20:]
    assert np.allclose(ratio, sgd.rate_factor, rtol=1e-5) and sgd.rate_factor > 1
    assert monitor.rate_factor == 1.0


def test_compensation_respects_the_ceiling():
    """The gradient is never longer than max_norm, however much is made up for."""
    weight = torch.nn.Parameter(torch.zeros(1))
    rng = np.random.default_rng(7)
    sizes = np.abs(rng.normal(size=2000)) * np.where(rng.random(2000) < 0.1, 20.0, 1.0)
    monitor = Monitor(batch_size=1, apply=True, compensate=True, optimizer="sgd", flush=20, every=100)
    ceiling, left = 0.5, []
    for size in sizes:
        weight.grad = torch.full((1,), float(size))
        monitor.clip_([weight], ceiling)
        left.append(float(weight.grad.abs()))
    assert monitor.rate_factor > 1.05 and max(left) <= ceiling * (1 + 1e-5)


@pytest.mark.parametrize("apply", [False, True])
def test_a_resumed_run_equals_an_uninterrupted_one(apply, tmp_path):
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


def test_reading_and_saving_change_nothing():
    """A run that clips by itself is the same run, however often it is looked at, saved or resumed."""
    weight = torch.nn.Parameter(torch.zeros(1))
    rng = np.random.default_rng(7)
    sizes = np.abs(rng.normal(size=900)) * np.where(rng.random(900) < 0.1, 20.0, 1.0)

    def run(disturb):
        monitor = Monitor(batch_size=1, apply=True, compensate=True, optimizer="sgd", flush=8, every=50)
        left = []
        for step, size in enumerate(sizes):
            weight.grad = torch.full((1,), float(size))
            monitor.clip_([weight])
            left.append(float(weight.grad))
            monitor = disturb(monitor, step)
        return left, monitor

    def looked_at(monitor, step):
        if step % 5 == 0:
            monitor.threshold, monitor.steps, monitor.flush()
        return monitor

    def resumed(monitor, step):
        if step not in (101, 401, 603):
            return monitor
        other = Monitor(batch_size=1, apply=True, compensate=True, optimizer="sgd", flush=8, every=50)
        other.load_state_dict(json.loads(json.dumps(monitor.state_dict(), allow_nan=False)))
        return other

    left, monitor = run(lambda monitor, step: monitor)
    assert monitor.threshold < 5.0 and left != list(np.float32(sizes))
    for disturb in (looked_at, resumed):
        again, other = run(disturb)
        assert again == left and other.core == monitor.core


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
    g = torch.Generator().manual_seed(4)
    x, y = torch.randn(8, 6, generator=g), torch.randn(8, 1, generator=g)
    for half in (slice(0, 4), slice(4, 8)):
        ((net(x[half]) - y[half]).square().mean() / 2).backward()
    found = parts.clip_(net.parameters())
    net.zero_grad()
    (net(x) - y).square().mean().backward()
    whole = Monitor(batch_size=8).clip_(net.parameters())
    assert math.isclose(float(found), float(whole), rel_tol=1e-5)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="no torch.distributed")
def test_two_processes_find_the_same_as_one(tmp_path):
    first, second = two_ranks.run(ddp_worker, tmp_path)
    # Each rank compares its own gradient with that of the other.
    for between in (first.pop("ranks"), second.pop("ranks")):
        assert len(between["found"]) == 12
        assert np.allclose(between["found"], between["expected"], rtol=1e-9)
    assert first == second  # every rank has the same answer
    # The shards of one rank have a norm that is not the gradient's: it is not taken for it.
    assert "pass the FSDP module itself" in first.pop("refused")
    alone = ddp_worker.train()[0].core
    assert alone.steps == ddp_worker.STEPS
    for how in ("ddp", "fsdp"):
        curve = toclip.Monitor.from_json(first[how]).curve().columns()
        for name, column in alone.curve().columns().items():
            # The mean of two halves is the whole but for rounding.
            assert np.allclose(curve[name], column, rtol=1e-9, equal_nan=True), (how, name)
    own = [ddp_worker.train(rank, 2, how="own")[0].core for rank in range(2)]
    own[0].merge(own[1])
    for how in ("fsdp1", "fsdp1 by parameter"):
        assert np.allclose(first[how], ddp_worker.train(how=how)[1], rtol=1e-5), how
    merged = toclip.Monitor.from_json(first["own"])
    assert merged == own[0] and merged.steps == 2 * ddp_worker.STEPS


def test_it_follows_a_threshold_that_changes():
    net, monitor = model(), Monitor(optimizer="sgd")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(300):
            backward(net, step)
            # Looking early, before there is a threshold, changes nothing either.
            monitor.steps, repr(monitor), monitor.threshold
            monitor.clip_(net.parameters(), 1.0 if step < 150 else 3.0)
    assert monitor.watched()["threshold"] == 3.0
    assert monitor.report().analysis["current"]["threshold"] == 3.0
    monitor.clip_(net.parameters(), "none")
    assert monitor.watched() is None and monitor.report().analysis["current"]["threshold"] == "none"


def heavy(steps, seed=1):
    """Norms and losses of a run with four bad batches."""
    rng = np.random.default_rng(seed)
    norms = np.exp(0.2 * rng.normal(size=steps)) * 0.8
    losses = 2.0 + np.exp(-np.arange(steps) / 200.0) + 0.02 * rng.normal(size=steps)
    for step in range(300, steps, 400):
        norms[step], losses[step] = 60.0, 40.0
    return norms, losses


def test_the_report_is_that_of_the_log(tmp_path):
    """One analysis and one wording: a monitor says what ``toclip.advise`` says of the same numbers."""
    norms, losses = heavy(1500)
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=1e-3)
    monitor = Monitor(optimizer=optimizer, batch_size=32, flush=7)
    for norm, loss in zip(norms, losses):
        monitor.observe(norm, loss=torch.tensor(loss), max_norm="none")
    file = tmp_path / "log.jsonl"
    rows = zip(norms.tolist(), losses.tolist())
    file.write_text("\n".join(
        json.dumps({"step": k, "grad_norm": norm, "loss": loss, "learning_rate": 1e-3})
        for k, (norm, loss) in enumerate(rows)
    ))
    expected = toclip.advise(file, clip="none", batch_size=32, outputs=1, optimizer="adam")
    report = monitor.report()
    assert report.action == "guard" and "spikes" in report.codes
    # A loss in single precision has fewer digits.
    assert report.recommendation == expected.recommendation and str(report) == str(expected)
    assert monitor.advice() == report
    metrics = monitor.metrics()
    assert metrics["clip/spikes"] == 3.0 and metrics["clip/norm"] == norms[-1]
    assert metrics["clip/clipped_share"] == 0.0 and metrics["clip/step_factor"] == 1.0


def test_reading_results_changes_nothing():
    norms, losses = heavy(600)
    plain, looked = Monitor(optimizer="sgd", flush=50), Monitor(optimizer="sgd", flush=50)
    for norm, loss in zip(norms, losses):
        plain.observe(norm, loss=loss)
        looked.observe(norm, loss=loss)
        repr(looked), looked.steps, looked.threshold
        if looked.steps % 100 == 1:
            looked.report(), looked.metrics(), looked.curve(), looked.state_dict(), looked.rate_factor
    assert plain.state_dict() == looked.state_dict() and plain.report() == looked.report()


@pytest.mark.parametrize("optimizer", ["adam", None])
def test_a_learning_rate_is_derived_for_sgd_only(optimizer):
    """Heavy tails, for which a larger rate used to be advised under Adam."""
    rng = np.random.default_rng(2)
    monitor = Monitor(batch_size=1, optimizer=optimizer)
    for norm in np.abs(rng.standard_t(2.5, size=3000)) + 0.01:
        monitor.observe(norm, loss=1.0, max_norm="none")
    report = monitor.report()
    assert report.recommendation["rate_factor"] is None and report.recommendation["experiments"] == []
    assert monitor.rate_factor == 1.0 and report.action in ("guard", "keep")


def test_without_a_batch_size_gaussian_data_show_no_gain():
    """A CCC of 14.5 was invented there."""
    rng = np.random.default_rng(2)
    monitor, clipping = Monitor(optimizer="sgd"), Monitor(optimizer="sgd", apply=True)
    for norm in np.abs(rng.normal(size=3000)):
        monitor.observe(norm)
        clipping.observe(norm)
    assert monitor.core.advice().kind == "stay" and monitor.threshold == math.inf
    assert clipping.threshold == math.inf
    assert monitor.core.curve()["ccc"].max() < 1.2
    assert monitor.report().action not in ("clip", "remove", "lower_rate")


def test_a_forgotten_unscale_is_recognised():
    rng = np.random.default_rng(2)
    monitor = Monitor(optimizer="adam", batch_size=16)
    for norm in np.exp(0.2 * rng.normal(size=1000)):
        monitor.observe(65536.0 * norm, loss=2.0, max_norm=1.0)
    report = monitor.report()
    assert "norm_scale" in report.codes and report.action == "fix_loss"
    assert report.recommendation["rate_factor"] is None


def test_nan_steps_are_reported_as_such():
    monitor = Monitor(optimizer="adam", flush=3)
    for step in range(1000):
        monitor.observe(1.0 + 0.1 * math.sin(step) if step < 500 else math.nan, loss=2.0)
    report = monitor.report()
    assert report.codes[0] == "diverged" and len(report.findings[0]["steps"]) == 500
    assert monitor.metrics()["clip/non_finite"] == 500.0
    only = Monitor()
    for _ in range(500):
        only.observe(math.nan)
    assert only.report().codes[0] == "diverged" and "NaN" in str(only.report())


def test_reset():
    norms, losses = heavy(600)
    monitor, fresh = Monitor(batch_size=4, apply=True), Monitor(batch_size=4, apply=True)
    for norm, loss in zip(norms, losses):
        monitor.observe(norm, loss=loss)
    monitor.reset()
    assert monitor.state_dict() == fresh.state_dict() and monitor.steps == 0
    with pytest.raises(ValueError, match="nothing was observed yet"):
        monitor.report()
    assert monitor.metrics() == {}


@pytest.mark.parametrize("by_optimizer", [False, True])
def test_groups(by_optimizer):
    """Which group drives the total."""
    net = model()
    parts = {"first": list(net[0].parameters()), "last": list(net[2].parameters())}
    optimizer = torch.optim.SGD(
        [{"params": params, "name": name} for name, params in parts.items()], lr=0.01
    )
    monitor = Monitor(groups=optimizer if by_optimizer else parts, flush=8, optimizer=optimizer)
    limit, expected = 1.0, {name: [] for name in parts}
    for step in range(200):
        backward(net, step)
        for name, part in parts.items():
            expected[name].append(float(torch.nn.utils.get_total_norm([p.grad for p in part])))
        monitor.clip_(net.parameters(), limit, loss=1.0)
    found = monitor.metrics()
    total = np.hypot(*expected.values())[-100:]
    for name, norms in expected.items():
        recent = np.array(norms[-100:])
        assert math.isclose(found[f"clip/norm/{name}"], norms[-1], rel_tol=1e-6)
        assert math.isclose(found[f"clip/clipped_share/{name}"], (recent > limit).mean())
        assert math.isclose(found[f"clip/share/{name}"], np.mean((recent / total) ** 2), rel_tol=1e-5)
    assert math.isclose(sum(found[f"clip/share/{name}"] for name in parts), 1.0, rel_tol=1e-5)
    layers = {f["code"]: f for f in monitor.report().findings}["layers"]
    assert layers["count"] == 2 and layers["driver"] in parts
    again = Monitor(groups=parts, optimizer="sgd")
    again.load_state_dict(json.loads(json.dumps(monitor.state_dict(), allow_nan=False)))
    assert again.report() == monitor.report()


def test_a_long_run_is_thinned(monkeypatch):
    from toclip.torch import _series

    monkeypatch.setattr(_series, "CAPACITY", 256)
    monitor = Monitor(flush=7)
    for step in range(2000):
        monitor.observe(1.0 + step)
    monitor.flush()
    rows = monitor._series.rows
    assert 64 < len(rows) <= 256 and (np.diff(rows[:, 0]) == monitor._series.every).all()
    assert (rows[:, 1] == 1.0 + rows[:, 0]).all() and monitor.steps == 2000


def test_non_finite_steps_are_counted_for_good(monkeypatch):
    """Also those whose rows are dropped from a long series."""
    from toclip.torch import _series

    monkeypatch.setattr(_series, "CAPACITY", 64)
    monitor, counts = Monitor(flush=7), []
    for step in range(600):
        monitor.observe(math.nan if step % 10 == 1 else 1.0)
        counts.append(monitor.metrics()["clip/non_finite"])
    assert counts[-1] == 60.0 and (np.diff(counts) >= 0.0).all()
    again = Monitor()
    again.load_state_dict(json.loads(json.dumps(monitor.state_dict(), allow_nan=False)))
    assert again.metrics() == monitor.metrics()
    # States that were saved before there was a count.
    state = monitor.state_dict()
    del state["series"]["non_finite"], state["series"]["recent"]
    again.load_state_dict(state)
    again.observe(2.0, max_norm=1.0)
    assert again.metrics()["clip/clipped_share"] == 1.0


def test_shares_are_those_of_the_thresholds_in_force():
    """Fifty steps clipped at 1 and fifty not clipped at 4, all of length 2."""
    monitor = Monitor(flush=7)
    for step in range(100):
        monitor.observe(2.0, max_norm=1.0 if step < 50 else 4.0)
    found = monitor.metrics()
    assert found["clip/clipped_share"] == 0.5 and found["clip/step_factor"] == 0.75
    assert found["clip/threshold"] == 4.0
    # A threshold of its own that changes.
    monitor, sizes, left = outliers(apply=True, steps=2050)
    found = monitor.metrics()
    assert math.isclose(found["clip/clipped_share"], (left[-100:] < 0.999 * sizes[-100:]).mean())
    assert math.isclose(found["clip/step_factor"], (left / sizes)[-100:].mean(), rel_tol=1e-4)


def test_metrics_do_not_repeat_the_analysis_and_reports_do(monkeypatch):
    from toclip.torch import monitor as module

    calls = []
    advise = module.advise
    monkeypatch.setattr(module, "advise", lambda log, **given: calls.append(1) or advise(log, **given))
    norms, losses = heavy(1500)
    monitor = Monitor(optimizer="adam", batch_size=32)
    for step, (norm, loss) in enumerate(zip(norms, losses)):
        monitor.observe(norm, loss=loss, max_norm="none")
        if step >= 1000:
            assert monitor.metrics()["clip/norm"] == norm
    # At 1001, 1102, 1213, 1335 and 1469 steps.
    assert len(calls) == 5
    assert len({f["steps"][-1] for f in monitor.report().findings if f["code"] == "spikes"}) == 1
    assert len(calls) == 6 and monitor.metrics()["clip/spikes"] == 3.0 and len(calls) == 6
    monitor.observe(60.0, loss=40.0)
    fresh = Monitor(optimizer="adam", batch_size=32)
    fresh.load_state_dict(monitor.state_dict())
    assert monitor.report() == fresh.report()


def test_groups_of_one_name_stay_apart():
    net = model()
    groups = [{"params": list(net[k].parameters()), "name": "part"} for k in (0, 2)]
    monitor = Monitor(groups=torch.optim.SGD(groups, lr=0.1))
    backward(net, 0)
    monitor.clip_(net.parameters())
    found = monitor.metrics()
    both = [found["clip/norm/part"], found["clip/norm/part (group 1)"]]
    assert math.isclose(math.hypot(*both), found["clip/norm"], rel_tol=1e-5)


def moving(step, weight):
    """A batch of a linear problem whose optimum moves, so that successive gradients are not alike."""
    g = torch.Generator().manual_seed(step)
    x = torch.randn(16, 20, generator=g, dtype=torch.double)
    noise = torch.randn(16, generator=g, dtype=torch.double) ** 3
    residual = x @ weight - x @ optimum(step) - noise
    return x.T @ residual / 16


def optimum(step):
    at = 0.7 * (step // 2)
    return torch.tensor([math.cos(at), math.sin(at)] + [0.0] * 18, dtype=torch.double) * 2.0


@pytest.mark.parametrize("how", ["reference", "micro-batches"])
def test_direct_evidence_from_the_same_weights(how):
    """Halves of successive steps find nothing there, because the weights move."""
    weight = torch.nn.Parameter(torch.zeros(20, dtype=torch.double))
    limit, monitor = 1.5, Monitor(batch_size=16, flush=7)
    halves, core = toclip.Halves(20, memory=50.0), toclip.Monitor(watched=limit)
    clipped = plain = 0.0
    for step in range(3000):
        first, second = moving(2 * step, weight.detach()), moving(2 * step + 1, weight.detach())
        core.observe_vector(halves, first.numpy())
        if how == "reference":
            weight.grad = first.clone()
            monitor.clip_([weight], limit, reference=[second])
        else:
            weight.grad = None
            monitor.before_micro_batch([weight])
            weight.grad = first / 2
            monitor.before_micro_batch([weight])
            weight.grad = weight.grad + second / 2
            monitor.clip_([weight], limit)
        scale = min(1.0, limit / float(first.norm()))
        clipped, plain = clipped + scale * float(first @ second), plain + float(first @ second)
    truth = clipped / plain
    found = monitor.direct().watched()["direct"]["mu"]
    assert math.isclose(found["value"], truth, rel_tol=0.02)
    assert found["low"] < truth < found["high"] and monitor.direct().steps == 3000
    # The norm alone assumes that it says nothing about the direction.
    moved = core.watched()["direct"]
    assert moved is None or abs(moved["mu"]["value"] - truth) > 5 * abs(found["value"] - truth)
    again = Monitor(batch_size=16)
    again.load_state_dict(json.loads(json.dumps(monitor.state_dict(), allow_nan=False)))
    assert again.direct() == monitor.direct()


def test_why_direct_evidence_is_missing():
    net, monitor = model(), Monitor()
    backward(net, 1)
    monitor.before_micro_batch([torch.nn.Parameter(torch.zeros(1))])  # before the first there is nothing
    monitor.clip_(net.parameters(), 1.0)
    with pytest.raises(ValueError, match="because the weights move"):
        monitor.direct()
    with pytest.raises(ValueError, match="must be wrapped in DistributedDataParallel, not a Sequential"):
        monitor.compare_ranks(net)
    with pytest.raises(ValueError, match="reference has 1 gradients, but there are 4 parameters"):
        monitor.clip_(net.parameters(), 1.0, reference=[None])
    with pytest.raises(ValueError, match="no parameter in common"):
        monitor.clip_(net.parameters(), 1.0, reference=[None] * 4)


@pytest.mark.parametrize(
    "made, kind",
    [
        (torch.optim.SGD, "sgd"),
        (torch.optim.AdamW, "adam"),
        (torch.optim.RMSprop, "adam"),
        (torch.optim.NAdam, "adam"),
        (torch.optim.ASGD, None),
    ],
)
def test_the_optimizer_is_recognised(made, kind):
    optimizer = made([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    assert Monitor(optimizer=optimizer)._kind == kind
    monitor = Monitor()
    weight = optimizer.param_groups[0]["params"][0]
    weight.grad = torch.ones(1)
    monitor.clip_([weight], optimizer=optimizer)
    assert monitor._kind == kind and monitor._pending[0].learning_rate == 0.5


@pytest.mark.parametrize("name", ["sgd", "SGD", "adam", "AdamW", "lion", "adamw_torch", "muon"])
def test_names_of_optimizers_mean_what_they_mean_in_advice(name):
    log = toclip.Log.from_arrays(np.linspace(1.0, 2.0, 100))
    assert toclip.advise(log, optimizer=name).analysis["optimizer"] == Monitor(optimizer=name)._kind


def test_it_takes_the_arguments_of_clip_grad_norm_():
    for foreach in (None, False, True):
        net, monitor = model(), Monitor(batch_size=4)
        other = copy.deepcopy(net)
        for step in range(5):
            backward(net, step), backward(other, step)
            taken = (0.5, 2, True, foreach)  # by position, as people have them in their loops
            found = monitor.clip_(net.parameters(), *taken)
            assert torch.equal(found, torch.nn.utils.clip_grad_norm_(other.parameters(), *taken))
            for a, b in zip(net.parameters(), other.parameters()):
                assert torch.equal(a.grad, b.grad)
    # A tensor for a threshold, one tensor for parameters, frozen and unused parameters.
    net[0].weight.requires_grad_(False).grad = None
    monitor.clip_(net.parameters(), torch.tensor(0.5))
    monitor.clip_(net[2].weight, np.float32(0.5))


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_an_overflow_is_an_error_where_it_is_asked_to_be(bad):
    net, monitor = model(), Monitor(flush=1)
    for step in range(40):
        backward(net, step)
        monitor.clip_(net.parameters(), 1.0, error_if_nonfinite=True)
    backward(net, 1)
    net[0].weight.grad[0, 0] = bad
    before = [p.grad.clone() for p in net.parameters()]
    with pytest.raises(RuntimeError, match="the gradients cannot be clipped"):
        monitor.clip_(net.parameters(), 1.0, error_if_nonfinite=True)
    for p, was in zip(net.parameters(), before):
        assert torch.equal(p.grad.nan_to_num(9.0, 8.0), was.nan_to_num(9.0, 8.0))
    # Watching changes nothing either, whatever the gradient is.
    assert not math.isfinite(float(monitor.watch(net.parameters(), 1.0)))
    assert torch.equal(net[2].weight.grad, before[2])
    assert monitor.core.left_out == {"zero": 0, "not_finite": 2} and monitor.steps == 42


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_gradients_in_half_precision(kind):
    net, half = model(), model().to(kind)
    plain, monitor = Monitor(batch_size=4), Monitor(batch_size=4, flush=7)
    for step in range(60):
        backward(net, step)
        for p, q in zip(half.parameters(), net.parameters()):
            p.grad = q.grad.to(kind)
        whole, found = plain.clip_(net.parameters(), 0.5), monitor.clip_(half.parameters(), 0.5)
        assert math.isclose(float(found), float(whole), rel_tol=0.02)
    assert monitor.steps == 60


def loaded(state, **settings):
    Monitor(**settings).load_state_dict(state)


ERRORS = [
    "Monitor(batch_size=0)",
    "Monitor(outputs=0)",
    "Monitor(flush=0)",
    "Monitor(batch_size=12.5)",
    'Monitor(batch_size="32")',
    "Monitor(confidence=2.0)",
    "Monitor(compensate=True)",
    "Monitor(apply=True, compensate=True)",
    'Monitor(apply=True, compensate=True, optimizer="adam")',
    'Monitor(optimizer="tiger")',
    "Monitor(groups=3)",
    "Monitor().report()",
    'Monitor().observe(1.0, loss="two")',
    "Monitor().observe(1.0, loss=torch.ones(2))",
    "Monitor(apply=True, every=0)",
    "Monitor().clip_([])",
    "Monitor().clip_(model().parameters())",
    "Monitor().clip_(model().parameters(), 0.0)",
    "Monitor().clip_(model().parameters(), -1.0)",
    "Monitor().clip_(model().parameters(), math.nan)",
    "Monitor().watch(model().parameters(), 0.0)",
    'Monitor().clip_(model().parameters(), "one")',
    "Monitor().clip_(model(), 1.0, math.inf)",
    'Monitor().clip_(model(), 1.0, norm_type="nuc")',
    "Monitor().clip_(None, 1.0)",
    'Monitor().clip_([{"params": []}], 1.0)',
    "Monitor().clip_(model().named_parameters(), 1.0)",
    "Monitor().clip_(torch.optim.SGD(model().parameters(), 0.1), 1.0)",
    "Monitor().observe(torch.ones(3))",
    'Monitor().observe("1,5")',
    "Monitor().observe(None)",
    "Monitor().clip_(model(), scaler=object())",
    "Monitor().clip_(model(), scaler=3, optimizer=torch.optim.SGD(model().parameters(), 0.1))",
    "Monitor(optimizer=3)",
    "Monitor(optimizer=model())",
    'loaded(Monitor().state_dict() | {"in_force": 3})',
    'loaded({"version": 1, "state": "{}"})',
    'loaded(Monitor().state_dict() | {"series": {}})',
    'loaded(Monitor().state_dict() | {"series": Monitor().state_dict()["series"] | {"rows": "xyz"}})',
    'loaded(Monitor(groups={"all": model().parameters()}).state_dict())',
    "loaded(None)",
    "loaded({})",
    "loaded(Monitor(apply=True).state_dict())",
    "loaded(Monitor(batch_size=4).state_dict())",
]


def test_error_messages():
    compare("errors-torch-monitor.txt", messages(ERRORS, globals()))
