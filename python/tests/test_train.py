"""The training script of python/experiments, on images of noise and a tiny network."""

import json
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import toclip.torch  # noqa: E402, F401

sys.path.insert(0, str(Path(__file__).parents[1] / "experiments"))
import train  # noqa: E402


class Noise:
    """In the place of CIFAR-10."""

    def __init__(self, folders, device, batches=5):
        g = torch.Generator().manual_seed(0)
        self.train = torch.randn(256, 3, 32, 32, generator=g)
        self.train_labels = torch.randint(0, 10, (256,), generator=g)
        self.test, self.test_labels = self.train[:64], self.train_labels[:64]


def tiny(norm):
    nn = torch.nn
    middle = [nn.BatchNorm2d(4)] if norm else []
    return nn.Sequential(nn.Conv2d(3, 4, 3, 4), *middle, nn.GELU(), nn.Flatten(), nn.Linear(256, 10))


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setattr(train, "load", Noise)
    for name, norm in (("normed", True), ("plain", False)):
        monkeypatch.setitem(train.MODELS, name, lambda norm=norm: tiny(norm))
        monkeypatch.setitem(train.RATES, name, 0.02)

    def go(out, *more, model="normed", kill_at=None):
        class Killed(train.Run):
            def train_step(self):
                if self.step == kill_at:
                    raise KeyboardInterrupt
                super().train_step()

        given = ["--model", model, "--batch", "16", "--epochs", "1.5", "--measurements", "3",
                 "--measure-batches", "16", "--curvature-samples", "40", "--probes", "2",
                 "--data", "none", "--out", str(tmp_path / out), *more]
        Killed(train.arguments(given)).go()

    return go


def lines(folder, name):
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


def test_both_modes_of_batch_norm_are_measured_from_the_start(run, tmp_path):
    run("out")
    found = lines(tmp_path / "out", "curvature")
    steps = sorted({line["step"] for line in found})
    assert steps[0] == 0 and steps[-1] == 24 and len(steps) == 4
    said = [(x["step"], x["mode"], x["batch_norm"], x["batch_size"], x["samples"]) for x in found]
    # A short last batch has other statistics, and is left out where they count.
    assert said == [
        line
        for step in steps
        for line in (
            (step, "eval", "running" if step else "initial", 40, 40),
            (step, "train", "batch", 16, 32),
        )
    ]
    assert {line["step"] for line in lines(tmp_path / "out", "factors")} == set(steps)
    assert len(lines(tmp_path / "out", "log")) == 24


def test_a_model_without_batch_norm_has_one_line_a_measurement(run, tmp_path):
    run("out", model="plain")
    found = lines(tmp_path / "out", "curvature")
    assert [(x["mode"], x["batch_norm"]) for x in found] == [("eval", "none")] * 4


def test_measuring_does_not_change_the_run(run, tmp_path):
    run("measured")
    run("alone", "--measurements", "0")
    assert lines(tmp_path / "measured", "log") == lines(tmp_path / "alone", "log")
    ends = [torch.load(tmp_path / out / "checkpoint.pt")["model"] for out in ("measured", "alone")]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_a_killed_run_resumes_to_the_same_result(run, tmp_path):
    run("whole")
    with pytest.raises(KeyboardInterrupt):
        run("killed", kill_at=0)
    with pytest.raises(KeyboardInterrupt):
        run("killed", kill_at=9)
    run("killed")
    for name in ("log", "factors", "curvature"):
        assert lines(tmp_path / "killed", name) == lines(tmp_path / "whole", name)
    with pytest.raises(SystemExit, match="from a run with seed = 1, but this run has 2"):
        run("whole", "--seed", "2")


def test_error_for_less_than_one_step(run):
    with pytest.raises(SystemExit, match="less than one step"):
        run("out", "--epochs", "0.0001")


@pytest.mark.parametrize(("given", "said"), [
    ("--epochs nan", "nan; expected a number above 0"), ("--rate -1", "-1; expected a number above 0"),
    ("--batch 0", "0; expected an integer of at least 1"), ("--momentum 1", "1; expected a number from 0 to below 1"),
    ("--measure-batches 8", "8; expected an integer of at least 16"), ("--files 9", "invalid choice"),
])
def test_errors_of_arguments(given, said, capsys):
    with pytest.raises(SystemExit):
        train.arguments(["--model", "small_cnn", "--data", "x", "--out", "y", *given.split()])
    assert said in capsys.readouterr().err
