"""The experiment on guards: training side by side is training one by one, and runs are resumed."""

import json
import math
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))

import guard  # noqa: E402
import guard_gpt  # noqa: E402
import guard_table  # noqa: E402
from guard_rules import NAMES, candidate, settings  # noqa: E402

TINY = guard_gpt.Shape(layers=1, width=8, heads=2, context=6, batch=3)


def batch(step):
    g = torch.Generator().manual_seed(step)
    rows = torch.randint(0, 256, (TINY.batch, TINY.context + 1), generator=g)
    return rows[:, :-1], rows[:, 1:]


def models(runs):
    """In double precision: Adam divides rounding errors by each other where a gradient is zero."""
    made = guard_gpt.SideBySide(TINY, runs, seed=5, device=torch.device("cpu"))
    made.weights = {n: w.detach().double().requires_grad_(True) for n, w in made.weights.items()}
    return made


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
def test_side_by_side_is_one_by_one(kind):
    """Three runs with their own rates and factors, one of which skips steps, against PyTorch's optimizers."""
    rates, factors = [0.1, 0.03, 0.01], [[1.0, 0.5, 1.0], [0.2, 1.0, 0.0], [1.0, 1.0, 1.0], [0.7, 1.0, 0.0]]
    many = models(3)
    optimizer = guard_gpt.Optimizer(kind, many)
    optimizer.steps = optimizer.steps.double()
    for step, factor in enumerate(factors):
        x, y = (part.expand(3, *part.shape) for part in batch(step))
        many.losses(x, y).sum().backward()
        norms = many.norms()
        optimizer.step(*(torch.tensor(numbers, dtype=torch.double) for numbers in (factor, rates)))
    for k, rate in enumerate(rates):
        alone = models(1)
        weights = list(alone.weights.values())
        matrices = [w for w in weights if w.dim() == 3]
        vectors = [w for w in weights if w.dim() < 3]
        if kind == "sgd":
            own = torch.optim.SGD(weights, rate, momentum=0.9)
        else:
            groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
            own = torch.optim.AdamW(groups, rate, betas=(0.9, 0.95))
        for step, factor in enumerate(factors):
            own.zero_grad()
            x, y = (part[None] for part in batch(step))
            alone.losses(x, y).sum().backward()
            norm = torch.nn.utils.get_total_norm([w.grad for w in weights])
            for w in weights:
                w.grad.mul_(factor[k])
            if factor[k] > 0.0:
                own.step()
        assert math.isclose(float(norm), float(norms[k]), rel_tol=1e-6)
        for one, other in zip(weights, many.weights.values(), strict=True):
            assert torch.allclose(one[0], other[k], rtol=1e-6, atol=1e-9)


def test_a_diverged_run_does_not_affect_the_others():
    many = guard_gpt.SideBySide(TINY, 2, seed=5, device=torch.device("cpu"))
    with torch.no_grad():
        many.weights["0.up"][0].fill_(math.nan)
    losses = many.losses(*(part.expand(2, *part.shape) for part in batch(0)))
    losses.sum().backward()
    norms = many.norms()
    assert math.isnan(float(norms[0])) and math.isfinite(float(norms[1]))


def test_runs_are_stored_and_resumed(tmp_path, monkeypatch, capsys):
    data = tmp_path / "data"
    data.mkdir()
    for name in ("train.txt", "valid.txt"):
        (data / name).write_bytes(b"some text, over and over. " * 200)
    monkeypatch.setattr(guard, "QUICK", TINY)
    words = ["guard.py", "--data", str(data), "--out", str(tmp_path / "runs"), "--quick", "--steps", "8"]
    words += ["--seeds", "2", "--optimizer", "sgd", "--rate", "0.1", "--rule", "none", "guard clip"]
    monkeypatch.setattr(sys, "argv", words)
    guard.main()
    file = tmp_path / "runs" / "runs.jsonl"
    made = file.read_text().splitlines()
    assert len(made) == 8
    capsys.readouterr()
    file.write_text("\n".join(made[:5]) + "\n")  # as if it had been interrupted
    guard.main()
    again = file.read_text().splitlines()
    assert sorted(again) == sorted(made)
    assert "| guard clip | " in capsys.readouterr().out
    # Runs of a guard with other settings do not count.
    file.write_text(file.read_text().replace('"window": ', '"window": 9'))
    assert [run["rule"] for run in guard.Store(tmp_path / "runs").current()] == ["none"] * 4
    assert settings("none") == {} and settings("guard skip")["multiple"] == 4.0
    monkeypatch.setattr(sys, "argv", [*words, "--rule", "guards"])
    with pytest.raises(SystemExit, match="unknown rule 'guards'; expected one of: none"):
        guard.main()


def test_every_rule_acts_on_a_spike_or_is_none():
    for name in [*NAMES, "guard multiple=3 rise=0.0005 action=skip"]:
        rule = candidate(name)()
        factors = [rule(1.0 + 0.1 * math.sin(k)) for k in range(60)] + [rule(40.0)]
        assert (factors[-1] == 1.0) == (name == "none"), name


def test_the_table_compares_paired_seeds():
    def run(rule, seed, loss):
        cell = {"optimizer": "sgd", "data": "clean", "rate": 0.1, "steps": 8, "skips": 0.0}
        return cell | {"rule": rule, "seed": seed, "loss": loss, "fires": 0.0 if rule == "none" else 0.02}

    runs = [run("none", s, 2.0 + s) for s in range(4)] + [run("guard clip", s, 1.9 + s) for s in range(4)]
    runs += [run("guard skip", 0, None), *(run("guard skip", s, 2.2 + s) for s in range(1, 4))]
    text = guard_table.table(runs)
    assert "| guard clip | 3.400 (1.900–4.900); 2.0% |" in text
    assert "| sgd, clean, 0.1 | guard clip | -0.100 ± 0.000 | none | -0.100 ± 0.000 | yes |" in text
    assert "| guard skip | 4.200 (3.200–5.200), 1 of 4 diverged; 2.0% |" in text
    assert "the guard diverged" in text
    json.dumps(runs)
