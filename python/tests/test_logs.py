"""Reading logs and advice from Python."""

import json
import math
import pickle
import subprocess

import numpy as np
import pytest
import toclip
from conftest import ROOT, command, compare

CASES = ROOT / "crates" / "toclip-logs" / "tests" / "data" / "cases"


def cases():
    for file in sorted(CASES.glob("*/cases.json")):
        for name, case in json.loads(file.read_text()).items():
            packed = file.parent / f"{name}.gz"
            yield pytest.param(packed if packed.exists() else file.parent / name, case, id=name)


def flags_of(case):
    """The flags of a case, and the arguments that stand for them."""
    batch = str(case.get("batch", 32))
    flags = [*case["flags"], "--batch-size", batch]
    pairs = zip(flags[::2], flags[1::2])
    given = {flag[2:].replace("-", "_"): value for flag, value in pairs}
    given["batch_size"] = float(batch)
    if given.get("clip", "none") != "none":
        given["clip"] = float(given["clip"])
    return flags, given


@pytest.fixture
def log(tmp_path):
    rng = np.random.default_rng(3)
    norms = np.abs(rng.normal(size=4000)) * np.where(rng.random(4000) < 0.1, 20.0, 1.0) + 0.01
    file = tmp_path / "log.jsonl"
    rows = ({"step": k, "grad_norm": float(g), "loss": 1.0} for k, g in enumerate(norms))
    file.write_text("\n".join(json.dumps(row) for row in rows))
    return file, norms


def test_a_log_is_read(log):
    file, norms = log
    read = toclip.read_log(file)
    assert read.norms.tolist() == norms.tolist() and read.steps[-1] == 3999
    assert (read.losses == 1.0).all() and np.isnan(read.learning_rates).all()
    assert read.reading["format"] == "jsonl"
    assert read.non_finite["step"].size == 0 and read.layers == {} and read.layer_steps.size == 0


def test_steps_that_are_not_finite_and_layers_are_kept(tmp_path):
    file = tmp_path / "log.jsonl"
    rows = [
        {"step": 1, "grad_norm": 5.0, "grad_norm/first": 3.0, "grad_norm/second": 4.0, "loss": 2.0},
        {"step": 2, "grad_norm": math.nan, "loss": 2.0},
        {"step": 3, "grad_norm": 1.0, "grad_norm/first": 0.6, "loss": math.nan},
        {"step": 4, "grad_norm": math.inf, "loss": math.inf},
        {"step": 5, "grad_norm": 1.5, "loss": 1.0},
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    read = toclip.read_log(file)
    assert read.steps.tolist() == [1, 3, 5]
    assert np.array_equal(read.losses, [2.0, math.nan, 1.0], equal_nan=True)
    found = read.non_finite
    assert found["step"].tolist() == [2, 3, 4]
    assert np.array_equal(found["norm"], [math.nan, 1.0, math.inf], equal_nan=True)
    assert np.array_equal(found["loss"], [2.0, math.nan, math.inf], equal_nan=True)
    assert read.layer_steps.tolist() == [1, 3]
    assert {name: norms[0] for name, norms in read.layers.items()} == {"first": 3.0, "second": 4.0}
    assert np.isnan(read.layers["second"][1])


def test_the_advice_has_everything(log):
    advised = toclip.advise(log[0], clip="none", batch_size=1, optimizer="sgd")
    assert advised.action == "clip" == advised.recommendation["action"]
    assert advised.threshold == advised.recommendation["threshold"] < 5.0
    assert "heavy_tail" in advised.codes or "spikes" in advised.codes
    assert all(finding["sentence"] for finding in advised.findings)
    assert advised.curve["ccc"].max() > 1.5 and advised.analysis["points"] == 4000
    assert {"title", "text"} == set(advised.details[0])
    assert advised.verdict["code"]["framework"] == "pytorch"
    assert repr(advised) == f"<toclip.LogAdvice: {advised.verdict['headline']}>"
    assert advised._repr_html_().startswith("<pre>DO THIS: ")
    assert "PyTorch:\n    torch.nn.utils.clip_grad_norm_" in str(advised)
    again = toclip.advise(log[0], clip="none", batch_size=1, optimizer="sgd", framework="lightning")
    assert "gradient_clip_val" in str(again) and again.recommendation == advised.recommendation
    assert pickle.loads(pickle.dumps(advised)) == advised != again


@pytest.mark.parametrize("path, case", list(cases()))
def test_the_same_as_the_command(path, case):
    """All that ``toclip advise`` writes, on logs whose cause is known."""
    flags, given = flags_of(case)
    done = subprocess.run(
        [command(), "advise", path, *flags, "--json"], capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout)["logs"][0]
    del said["log"]
    found = toclip.advise(path, **given)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == said
    shown = subprocess.run(
        [command(), "advise", path, *flags], capture_output=True, text=True, check=True
    )
    # Between the head, which names file and columns, and the hint at options of the command.
    text = shown.stdout[shown.stdout.index(f"{str(found)[:8]}") :]
    own = str(found).split("\n\nTo improve this answer")[0]
    assert text.startswith(own)


def test_the_answers_in_words():
    chosen = ["healthy-adamw", "bad-batches-unclipped", "sgd-too-fast", "after-clipping", "heavy-tail"]
    found = [case.values for case in cases() if case.id.removesuffix(".jsonl") in chosen]
    answers = [f"{path.name}\n{toclip.advise(path, **flags_of(case)[1])}\n" for path, case in found]
    assert len(answers) == len(chosen)
    compare("advice.txt", "\n".join(answers))


def test_arrays_are_a_log():
    """Arrays get the advice of a file with the same numbers."""
    read = toclip.read_log(CASES / "gpt" / "bad-batches-unclipped.jsonl.gz")
    same = toclip.Log.from_arrays(
        read.norms, steps=read.steps, losses=read.losses, learning_rates=read.learning_rates
    )
    for name in ("steps", "norms", "losses", "learning_rates"):
        assert np.array_equal(getattr(same, name), getattr(read, name), equal_nan=True)
    options = {"clip": "none", "optimizer": "adam", "batch_size": 32.0}
    expected, found = toclip.advise(read, **options), toclip.advise(same, **options)
    assert found.recommendation == expected.recommendation
    assert found.verdict == expected.verdict


def test_masked_numbers_are_missing_and_nan_is_nan():
    norms, losses = np.full(200, 1.5), np.ma.array(np.full(200, 2.0), mask=np.arange(200) % 10 != 0)
    norms[50] = math.nan
    losses[100] = math.nan
    log = toclip.Log.from_arrays(norms, steps=np.arange(200), losses=losses)
    assert log.non_finite["step"].tolist() == [50, 100]
    # 180 are masked, and one is NaN.
    assert np.isnan(log.losses).sum() == 181 and log.losses[[0, 10]].tolist() == [2.0, 2.0]


def test_errors_of_logs(tmp_path, log):
    with pytest.raises(FileNotFoundError, match="cannot read"):
        toclip.read_log(tmp_path / "none.csv")
    (tmp_path / "empty").write_text("")
    with pytest.raises(ValueError, match="the log is empty"):
        toclip.read_log(tmp_path / "empty")
    (tmp_path / "loss.csv").write_text("step,loss\n1,2\n2,3\n")
    with pytest.raises(ValueError, match="no gradient norm"):
        toclip.advise(tmp_path / "loss.csv")
    with pytest.raises(ValueError, match="unknown column `x`"):
        toclip.read_log(log[0], norm="x")
    (tmp_path / "names.csv").write_text("step,norm_a,norm_b\n1,2,3\n2,3,4\n")
    with pytest.raises(ValueError, match="several columns match `norm`: `norm_a`, `norm_b`"):
        toclip.read_log(tmp_path / "names.csv", norm="norm")
    two = tmp_path / "two"
    two.mkdir()
    (two / "a.csv").write_text("step,grad_norm\n1,2\n2,3\n")
    assert toclip.read_log(two).norms.tolist() == [2.0, 3.0]
    (two / "b.csv").write_text("step,grad_norm\n1,2\n2,3\n")
    with pytest.raises(ValueError, match=r"has 2 logs; give one of them: .*a\.csv, .*b\.csv"):
        toclip.read_log(two)
    (two / "a.csv").unlink()
    (two / "b.csv").unlink()
    with pytest.raises(ValueError, match="no training log in this folder; looked for"):
        toclip.read_log(two)
    with pytest.raises(ValueError):
        toclip.advise(log[0], clip=-1.0)
    with pytest.raises(ValueError):
        toclip.read_log(log[0], format="excel")
    with pytest.raises(ValueError, match="unknown framework `keras`; expected one of: pytorch"):
        toclip.advise(log[0], framework="keras")
    with pytest.raises(ValueError, match="unknown optimizer `tiger`"):
        toclip.advise(log[0], optimizer="tiger")
    with pytest.raises(ValueError, match="norm: a log that was read already"):
        toclip.advise(toclip.read_log(log[0]), norm="g")
    with pytest.raises(ValueError, match="norms is empty"):
        toclip.Log.from_arrays([])
    with pytest.raises(ValueError, match="norms has 2 numbers but losses has 1"):
        toclip.Log.from_arrays([1.0, 2.0], losses=[1.0])
