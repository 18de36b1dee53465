"""The experiments on networks: training in parallel equals training one by one."""

import json
import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))

import advice  # noqa: E402
import advice_runs  # noqa: E402
import advice_table  # noqa: E402
from side_by_side import SideBySide  # noqa: E402

F = torch.nn.functional


def tiny():
    """A network with filters, batch norm and biases."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, 4), torch.nn.BatchNorm2d(4), torch.nn.GELU(),
        torch.nn.Flatten(), torch.nn.Linear(4 * 64, 10),
    )


@pytest.fixture
def data(monkeypatch):
    monkeypatch.setattr(advice_runs, "KEPT_ASIDE", 24)
    monkeypatch.setitem(advice_runs.MODELS, "small_cnn", tiny)
    random = torch.Generator().manual_seed(0)
    return SimpleNamespace(
        train=torch.randn(88, 3, 32, 32, generator=random),
        train_labels=torch.randint(0, 10, (88,), generator=random),
        test=torch.randn(40, 3, 32, 32, generator=random),
        test_labels=torch.randint(0, 10, (40,), generator=random),
    )


def test_side_by_side_is_one_by_one():
    seeds, stream, limits, rates = [5, 6], [0, 1, 0], [0.5, 1.0, math.inf], [0.1, 0.03, 0.01]
    many = SideBySide(tiny, seeds, stream, 8, F.cross_entropy, torch.device("cpu"))
    batches = [
        [(torch.randn(8, 3, 32, 32), torch.randint(0, 10, (8,))) for _ in seeds] for _ in range(6)
    ]
    for batch in batches:
        for s, (images, labels) in enumerate(batch):
            many.images[s].copy_(images)
            many.labels[s].copy_(labels)
        factors = [min(1.0, c / norm) for c, norm in zip(limits, many.measure())]
        many.step(factors, rates)
    for k, s in enumerate(stream):
        torch.manual_seed(seeds[s])
        alone = tiny()
        optimiser = torch.optim.SGD(alone.parameters(), rates[k], momentum=0.9)
        for batch in batches:
            optimiser.zero_grad()
            F.cross_entropy(alone(batch[s][0]), batch[s][1]).backward()
            torch.nn.utils.clip_grad_norm_(alone.parameters(), limits[k])
            optimiser.step()
        for ours, theirs in zip(many.models[k].state_dict().values(), alone.state_dict().values()):
            # Single precision, sums in another order.
            assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        accuracy, loss = many.judge(*batches[0][s])[k]
        alone.eval()
        outputs = alone(batches[0][s][0])
        assert accuracy == (outputs.argmax(1) == batches[0][s][1]).float().mean()
        assert math.isclose(loss, F.cross_entropy(outputs, batches[0][s][1]).item(), rel_tol=1e-4)


def test_every_tensor_is_aligned_and_the_padding_is_nothing():
    many = SideBySide(tiny, [5], [0, 0, 0], 8, F.cross_entropy, torch.device("cpu"))
    for model in many.models:
        for p in model.parameters():
            assert p.data_ptr() % 64 == many.weights.data_ptr() % 64
            assert p.storage_offset() % 64 == 0 and p.grad.storage_offset() % 64 == 0
    many.images[0].copy_(torch.randn(8, 3, 32, 32))
    norms = many.measure()
    for model, norm in zip(many.models, norms):
        whole = torch.cat([p.grad.reshape(-1) for p in model.parameters()]).norm()
        assert math.isclose(norm, float(whole), rel_tol=1e-5)


def pretend(monkeypatch, folder):
    """Runs that are not made; gives the list of the jobs that would have been."""
    ran = []
    monkeypatch.setattr(advice, "Group", lambda data, setting, jobs, *a, **k: SimpleNamespace(
        run=lambda stop, judged: [
            setting | j | {"aside_accuracy": -abs(j.get("power", 0) + 4), "accuracy": 0.5 + 0.01 * j["seed"],
                           "loss": 1.0, "clip_fraction": 0.0}
            for j in jobs
        ],
        checkpoint=folder / f"none-{len(ran.append(jobs) or ran)}",
    ))
    return ran


def asked(folder, **given):
    none = {"rule": None, "rate": None, "steps": 40, "seeds": 2, "plain": False, "judged": None}
    return SimpleNamespace(out=folder, **(none | given))


WHERE = {"model": "small_cnn", "batch": 16, "noise": 0.2}
GO_ON = SimpleNamespace(now=lambda: False)


def test_more_seeds_later_are_only_those(data, tmp_path, monkeypatch):
    ran = pretend(monkeypatch, tmp_path)
    store = advice.Store(tmp_path)
    for seeds in (2, 3):
        assert advice.cell(store, data, asked(tmp_path, seeds=seeds), GO_ON, WHERE)
    assert [len(jobs) for jobs in ran] == [25, 10, 5]
    assert {j["seed"] for j in ran[-1]} == {3}
    assert {j["seed"] for j in ran[0]} == {advice.TUNING_SEED} and advice.TUNING_SEED > 100


def test_given_rates_are_run_without_tuning_and_kept_apart(data, tmp_path, monkeypatch):
    ran = pretend(monkeypatch, tmp_path)
    store = advice.Store(tmp_path)
    for rates in ([0.01], [0.01, 0.03]):
        wish = asked(tmp_path, rule=["zclip", "unclipped"], rate=rates)
        assert advice.cell(store, data, wish, GO_ON, WHERE)
    assert [len(jobs) for jobs in ran] == [4, 4] and {j["rate"] for j in ran[1]} == {0.03}
    assert advice.cell(store, data, asked(tmp_path, rule=["zclip"], rate=[0.03, 0.03]), GO_ON, WHERE)
    assert len(ran) == 2
    found = advice_table.tables(store.all())
    line = "| small_cnn | 16 | 20% | 40 | zclip | 0.03 | 2 | 0% | 51.50 ± 0.71 | 1.0000 ± 0.0000 | – |"
    assert line in found and "better / no difference" not in found
    # Tuning afterwards does not see them.
    assert advice.cell(store, data, asked(tmp_path, rule=["zclip"]), GO_ON, WHERE)
    assert [len(jobs) for jobs in ran[2:]] == [5, 2]
    assert "| better / no difference / worse | | | | 0 / 1 / 0 |" in advice_table.tables(store.all())
    # On the same seeds a tuned rule is so far ahead of the runs at a given rate.
    given = [r | {"phase": "given rate", "accuracy": r["accuracy"] - 0.02 - 0.01 * r["seed"]}
             for r in store.all() if r["phase"] == "final"]
    tuned = [r for r in store.all() if r["phase"] == "final"]
    assert "| zclip +3.50 ± 6.35 |" in advice_table.tables(tuned, given)


@pytest.mark.parametrize(("given", "said"), [
    ("--rate 0", "0; expected a number above 0"), ("--rate nan", "nan; expected a number above 0"),
    ("--steps 1.5", "1.5; expected an integer of at least 1"), ("--noise 2", "2; expected a share from 0 to 1"),
    ("--seeds 0", "0; expected an integer"), ("--files 6", "invalid choice"),
    ("--rule me", "invalid choice"),
])
def test_errors_of_arguments(given, said, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["advice.py", "--out", "x", *given.split()])
    with pytest.raises(SystemExit):
        advice.arguments()
    assert said in capsys.readouterr().err


def test_error_for_a_folder_without_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["advice.py", "--out", f"{tmp_path}/typo", "--table"])
    with pytest.raises(SystemExit, match="runs.jsonl does not exist"):
        advice.main()
    assert not (tmp_path / "typo").exists()
    (tmp_path / "runs.jsonl").write_text("")
    wrong = ["advice.py", "--out", f"{tmp_path}", "--table", "--given", f"{tmp_path}/typo"]
    monkeypatch.setattr(sys, "argv", wrong)
    with pytest.raises(SystemExit, match="--given must be a folder"):
        advice.main()


def test_error_for_missing_images(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["advice.py", "--out", f"{tmp_path}", "--data", f"{tmp_path}/none"])
    with pytest.raises(SystemExit, match="toclip data get cifar10"):
        advice.main()


def test_rates_below_at_and_above_the_best_are_told_apart():
    where = {"phase": "tuning", "model": "small_cnn", "batch": 16, "noise": 0.0, "steps": 10}

    def run(rule, rate, accuracy, aside):
        return where | {"rule": rule, "rate": rate, "accuracy": accuracy, "aside_accuracy": aside}

    # The best is that of the images kept aside, not of the test.
    base = [run("unclipped", 0.01, 0.7, 0.5), run("unclipped", 0.1, 0.6, 0.6),
            run("unclipped", 1.0, 0.1, 0.1)]
    clips = [run("c", 0.01, 0.4, 0.1), run("c", 0.1, 0.59, 0.1), run("c", 1.0, 0.62, 0.9),
             run("c", 10.0, 0.3, 0.1)]
    line = ("| small_cnn | c | +2.0 (+2.0 to +2.0) | -30.0 (-30.0 to -30.0) | -1.0 (-1.0 to -1.0) "
            "| +52.0 (+52.0 to +52.0) |")
    assert line in advice_table.at_every_rate(base + clips)
    assert advice_table.at_every_rate(clips) == ""


@pytest.mark.parametrize("freedom", sorted(advice_table.T))
def test_students_t_leaves_five_percent_outside(freedom):
    def density(x):
        size = math.gamma((freedom + 1) / 2) / math.gamma(freedom / 2) / math.sqrt(freedom * math.pi)
        return size * (1 + x * x / freedom) ** (-(freedom + 1) / 2)

    # The middle, by Simpson's rule.
    n, end = 4000, advice_table.T[freedom]
    weights = [1 if i in (0, n) else 4 if i % 2 else 2 for i in range(n + 1)]
    inside = 2 * end / n / 3 * sum(w * density(i * end / n) for i, w in enumerate(weights))
    assert abs(inside - 0.95) < 1e-4


def test_seeds_that_one_side_lacks_are_left_out():
    runs = [{"seed": s, "accuracy": 0.5 + 0.1 * s} for s in (1, 2, 3)]
    base = [{"seed": s, "accuracy": 0.4 + 0.1 * s} for s in (1, 2)]
    apart, half = advice_table.difference(runs, base, "accuracy")
    assert math.isclose(apart, 0.1) and half < 1e-9
    assert advice_table.difference(runs, [{"seed": 9, "accuracy": 1.0}], "accuracy") == (0.0, math.inf)


def test_pictures_are_the_same_for_the_same_runs(data, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    import advice_picture

    pretend(monkeypatch, tmp_path)
    store = advice.Store(tmp_path)
    assert advice.cell(store, data, asked(tmp_path), GO_ON, WHERE)
    first, again = (advice_picture.draw(store.all(), tmp_path / name) for name in ("a", "b"))
    assert [p.name for p in first] == ["advice-rates.svg", "advice-final.svg"]
    assert [p.read_bytes() for p in first] == [p.read_bytes() for p in again]


def test_pictures_show_the_runs():
    pytest.importorskip("matplotlib")
    import advice_picture
    from matplotlib import pyplot

    where = {"model": "small_cnn", "batch": 16, "noise": 0.2}

    def runs(phase, rule, rate, accuracies):
        return [where | {"phase": phase, "rule": rule, "rate": rate, "seed": s, "accuracy": a, "steps": 9}
                for s, a in enumerate(accuracies)]

    every = (runs("tuning", "unclipped", 0.1, [0.3]) + runs("tuning", "unclipped", 0.01, [0.2])
             + runs("final", "unclipped", 0.1, [0.50, 0.60]) + runs("final", "fixed 1", 0.1, [0.48, 0.57]))
    (axes,) = advice_picture.rates(every).axes
    line, _ = axes.get_lines()
    assert line.get_label() == "unclipped" and line.get_xydata().tolist() == [[0.01, 20.0], [0.1, 30.0]]
    (axes,) = advice_picture.final(every).axes
    (bar,) = axes.containers
    ends = bar[2][0].get_segments()[0][:, 0].tolist()
    half = 100 * advice_table.T[1] * 0.01 * math.sqrt(0.5) / math.sqrt(2)
    assert bar.get_label() == "fixed 1"
    assert all(map(math.isclose, ends, [-2.5 - half, -2.5 + half]))
    pyplot.close("all")


def test_norms_that_overflowed_do_not_hide_the_others():
    watch = advice_runs.RuleRecord(advice_runs.rules(16)["unclipped"])
    for norm in (1.0, math.inf, 3.0, math.nan):
        watch.answer(norm)
    assert watch.summary()["norm_50"] == 2.0
    halved = advice_runs.RuleRecord(advice_runs.rules(16)["fixed 1"])
    assert [halved.answer(norm) for norm in (2.0, 0.5)] == [(0.5, 1.0), (1.0, 1.0)]
    did = halved.summary()
    assert (did["mean_factor"], did["clip_fraction"], did["first_clip"]) == (0.75, 0.5, 0)
    watch.norms = [math.nan]
    assert math.isnan(watch.summary()["norm_50"])


def jobs(rules=("unclipped", "fixed 1", "autoclip 10", "zclip", "monitor")):
    return [{"rule": r, "power": -2, "rate": 0.1, "seed": s} for r in rules for s in (1, 2)]


def group(data, folder, steps=7):
    setting = {"phase": "final", "model": "small_cnn", "batch": 8, "noise": 0.4, "steps": steps}
    return advice_runs.Group(data, setting, jobs(), folder)


def test_a_resumed_group_has_the_same_result(data, tmp_path):
    stop = SimpleNamespace(now=lambda: False)
    whole = group(data, tmp_path).run(stop, None)
    assert len(whole) == 10
    calls = iter([False] * 3 + [True] * 9)
    first = group(data, tmp_path)
    assert first.run(SimpleNamespace(now=lambda: next(calls)), None) is None
    assert first.done == 3 and first.checkpoint.exists()
    again = group(data, tmp_path).run(stop, None)
    assert json.dumps(again) == json.dumps(whole)
    # On the same data from the same start, a rule that never clips equals no clipping.
    by_rule = {(r["rule"], r["seed"]): r for r in whole}
    assert by_rule["monitor", 1]["loss"] == by_rule["unclipped", 1]["loss"]
    assert by_rule["autoclip 10", 1]["clip_fraction"] > 0.5
    assert by_rule["unclipped", 1]["loss"] != by_rule["unclipped", 2]["loss"]


def test_the_share_of_wrong_labels_is_as_given():
    labels = torch.zeros(20_000, dtype=torch.long)
    wrong = float((advice_runs.with_noise(labels, 0.4, 3) != 0).float().mean())
    # A tenth of the draws hit the right class; six standard errors either way.
    assert abs(wrong - 0.36) < 6 * math.sqrt(0.36 * 0.64 / 20_000)
    assert torch.equal(advice_runs.with_noise(labels, 0.0, 3), labels)


def test_tuning_goes_outward_while_the_best_is_at_the_edge():
    names = ["a", "b"]
    first = advice.to_tune([], names, 16)
    assert [j["power"] for j in first if j["rule"] == "a"] == [-6, -5, -4, -3, -2]
    peak = {"a": -4, "b": -1}
    tuned, rounds = [], 0
    while more := advice.to_tune(tuned, names, 16):
        tuned += [j | {"aside_accuracy": -abs(j["power"] - peak[j["rule"]])} for j in more]
        rounds += 1
    chosen = {n: advice.best(r for r in tuned if r["rule"] == n)["power"] for n in names}
    assert rounds == 3 and chosen == peak
    # A rule that always wants more is stopped.
    tuned = [j | {"aside_accuracy": j["power"]} for j in first]
    while more := advice.to_tune(tuned, names, 16):
        tuned += [j | {"aside_accuracy": j["power"]} for j in more]
    assert len(tuned) == 2 * advice.MOST_RATES


def test_the_table_marks_what_the_interval_shows(tmp_path):
    def runs(rule, accuracies, loss=1.0, steps=100):
        return [
            {"phase": "final", "model": "small_cnn", "batch": 16, "noise": 0.2, "steps": steps,
             "rule": rule, "seed": s, "rate": 0.1, "accuracy": a, "loss": loss, "clip_fraction": 0.5,
             "aside_accuracy": a}
            for s, a in enumerate(accuracies)
        ]

    store = advice.Store(tmp_path)
    assert "no run has finished" in advice_table.tables(store.all())
    store.add(runs("unclipped", [0.50, 0.60, 0.70]) + runs("up", [0.51, 0.611, 0.71], 0.9)
              + runs("down", [0.49, 0.589, 0.69], 1.1) + runs("same", [0.52, 0.59, 0.70], math.nan))
    found = advice_table.tables(store.all())
    assert "**61.03 ± 10.00**" in found and " *58.97 ± 10.00* " in found
    # A lower loss is a better one.
    assert "**0.9000 ± 0.0000**" in found and " *1.1000 ± 0.0000* " in found
    assert "1 / 0 / 0" in found and "0 / 0 / 1" in found and "diverged (3 of 3)" in found
    # Runs of another length, of a trial say, are a row of their own.
    short = [runs(rule, [0.1, 0.1, 0.1], steps=5) for rule in ("unclipped", "up", "down", "same")]
    longer = advice_table.tables(store.all() + sum(short, []))
    assert "**61.03 ± 10.00**" in longer and "| 20% | 5 | 10.00 ± 0.00 |" in longer
    store.path.write_text(store.path.read_text() + '{"phase": "fi')
    with pytest.raises(SystemExit, match="line 13 is not JSON"):
        store.all()
    store.path.write_text('{"phase": "final"}\n')
    with pytest.raises(SystemExit, match="line 1 is not a run; it needs accuracy, "):
        store.all()


def test_runs_of_two_machines_are_not_mixed(tmp_path):
    store = advice.Store(tmp_path / "deep" / "out")
    store.open({"device": "a"})
    store.open({"device": "a"})
    with pytest.raises(SystemExit, match="use another --out"):
        store.open({"device": "b"})
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit, match="cannot use"):
        advice.Store(tmp_path / "file").open({})
