"""Reading logs and advice from Python."""

import json
import subprocess

import numpy as np
import pytest
import toclip
from conftest import command


@pytest.fixture
def log(tmp_path):
    rng = np.random.default_rng(3)
    norms = np.abs(rng.normal(size=4000)) * np.where(rng.random(4000) < 0.1, 20.0, 1.0) + 0.01
    file = tmp_path / "log.jsonl"
    rows = ({"step": k, "grad_norm": float(g), "loss": 1.0} for k, g in enumerate(norms))
    file.write_text("\n".join(json.dumps(row) for row in rows))
    return file, norms


def test_a_log_is_read_and_advised_upon(log):
    file, norms = log
    read = toclip.read_log(file)
    assert read.norms.tolist() == norms.tolist() and read.steps[-1] == 3999
    assert (read.losses == 1.0).all() and np.isnan(read.learning_rates).all()
    assert read.reading["format"] == "jsonl"
    advised = toclip.advise(read, batch_size=1)
    assert advised.action == "clip" and "What to do" in str(advised)
    assert advised.curve["ccc"].max() > 1.5 and advised.to_dict()["points"] == 4000


def test_the_same_numbers_as_the_command(log):
    words = ["advise", str(log[0]), "--batch-size", "1", "--json"]
    done = subprocess.run([command(), *words], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this command toclip has no advise")
    said = json.loads(done.stdout)["logs"][0]["advice"]
    found = toclip.advise(log[0], batch_size=1).to_dict()
    assert said["recommendation"] == found["recommendation"]
    assert [at["ccc"] for at in said["curve"]] == [at["ccc"] for at in found["curve"]]


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
