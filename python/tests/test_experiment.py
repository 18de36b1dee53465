"""Experiments: the same file gives the same bits and the same sentences as the command."""

import csv
import subprocess
from pathlib import Path

import numpy as np
import pytest

import toclip
from conftest import ROOT, command, compare, messages

SHIPPED = ["figure-1a", "figure-1b", "figure-4a"]
BITS = """
name = "bits"
time = 3.0
methods = ["ode", "unclipped", "volterra", "hsgd", "sgd"]
points = { count = 7, spacing = "log" }
learning_rate = { kind = "cosine", from = 0.3, over = 4 }
clip = 0.8
batch = { size = 2, rule = "per_sample" }
spectrum = { kind = "eigenvalues", values = [2.0, 1.0, 0.5, 0.5] }
start = { kind = "uniform", norm = 1.0 }
noise = { family = "laplace", sigma = 0.5 }
ensemble = { runs = 5, seed = 3 }
tolerance = 1e-6
"""
SMALL = {
    "time": 2.0,
    "points": {"count": 5, "spacing": "log", "first": 0.1},
    "methods": ["unclipped", "sgd", "hsgd"],
    "spectrum": {"kind": "isotropic", "dim": 100},
    "start": {"kind": "uniform", "norm": 1.0},
    "noise": {"family": "gaussian", "sigma": 0.5},
    "learning_rate": 0.5,
    "clip": 0.9,
    "ensemble": {"runs": 3},
}


def ran(file: Path, out: Path) -> list[dict[str, str]]:
    """The table that the command writes."""
    words = [command(), "run", str(file), "--out", str(out), "--quiet"]
    subprocess.run(words, capture_output=True, check=True)
    with open(out / f"{file.stem}.trajectory.csv") as table:
        return list(csv.DictReader(table))


def assert_same(curves: dict, rows: list[dict[str, str]]) -> None:
    assert list(curves) == list(dict.fromkeys(row["method"] for row in rows))
    for method, curve in curves.items():
        own = [row for row in rows if row["method"] == method]
        if isinstance(curve, toclip.Band):
            columns = {"risk": curve.risk["median"], "distance": curve.distance["median"]}
            for end in ("low", "high"):
                columns[f"risk_{end}"] = curve.risk[end]
                columns[f"distance_{end}"] = curve.distance[end]
        else:
            names = ("risk", "distance", "mu", "m2", "eta", "c")
            columns = {name: getattr(curve, name) for name in names}
            if curve.flow is not None:
                columns["risk_flow"] = curve.flow
        for name, values in {"t": curve.t, **columns}.items():
            assert [float(row[name]) for row in own] == values.tolist(), (method, name)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_file_gives_the_bits_of_the_command(name, tmp_path):
    file = ROOT / "experiments" / f"{name}.toml"
    assert_same(toclip.experiment(file), ran(file, tmp_path))


def test_every_method_and_a_dictionary_give_the_bits_of_the_command(tmp_path):
    file = tmp_path / "e.toml"
    file.write_text(BITS)
    rows = ran(file, tmp_path)
    assert_same(toclip.experiment(str(file)), rows)
    tomllib = pytest.importorskip("tomllib")
    given = tomllib.loads(BITS)
    assert_same(toclip.experiment(given), rows)
    # What stands for a dictionary or a list gives the same.
    given["noise"] = toclip.noise.laplace(sigma=0.5)
    given["learning_rate"] = toclip.Schedule(given["learning_rate"])
    given["spectrum"]["values"] = np.array(given["spectrum"]["values"])
    given["ensemble"]["runs"] = np.int64(5)
    assert_same(toclip.experiment(given, threads=1), rows)


def test_files_named_in_an_experiment_are_read_beside_it(tmp_path, monkeypatch):
    np.save(tmp_path / "k.npy", np.array([2.0, 1.0, 0.5]))
    np.save(tmp_path / "residuals.npy", np.array([-1.0, 0.5, 2.0]))
    parts = {
        "spectrum": {"kind": "file", "path": Path("k.npy")},
        "noise": {"family": "empirical", "file": "residuals.npy"},
    }
    same = {
        "spectrum": {"kind": "eigenvalues", "values": [2.0, 1.0, 0.5]},
        "noise": {"family": "empirical", "values": [-1.0, 0.5, 2.0]},
    }
    monkeypatch.chdir(tmp_path)
    found, known = (toclip.experiment(SMALL | change) for change in (parts, same))
    assert (found["sgd"].risk["mean"] == known["sgd"].risk["mean"]).all()
    monkeypatch.chdir("/")
    with pytest.raises(ValueError, match="spectrum: k.npy"):
        toclip.experiment(SMALL | parts)


def test_the_eigenvalues_of_a_covariance_in_a_file(tmp_path, monkeypatch):
    # The package has a method of its own for them, instead of a library that takes minutes to build.
    x = np.random.default_rng(0).standard_normal((400, 60)) * np.linspace(2.0, 0.1, 60)
    k = x.T @ x / 400
    np.save(tmp_path / "k.npy", k)
    monkeypatch.chdir(tmp_path)
    change = {"methods": ["ode"]}
    found = toclip.experiment(SMALL | change | {"spectrum": {"kind": "file", "path": "k.npy"}})
    known = toclip.experiment(SMALL | change | {"spectrum": toclip.eigenvalues(np.linalg.eigvalsh(k))})
    assert np.allclose(found["ode"].risk, known["ode"].risk, rtol=1e-12)


def test_defaults_are_those_of_the_command():
    needed = {k: v for k, v in SMALL.items() if k not in ("points", "methods", "ensemble")}
    curves = toclip.experiment(needed)
    assert list(curves) == ["ode", "sgd"] and len(curves["ode"].t) == 201
    assert curves["sgd"].runs == 100 and curves["sgd"].probabilities == pytest.approx([0.1, 0.9])


def test_an_experiment_from_a_dictionary_is_the_problem_itself():
    curves = toclip.experiment(SMALL)
    times = toclip.log_times(0.1, 2.0, 5)
    parts = toclip.isotropic(100), 1.0, toclip.noise.gaussian(0.5)
    alone = toclip.Problem(*parts, learning_rate=0.5).predict(times)
    assert (curves["unclipped"].risk == alone.risk).all()
    clipped = toclip.Problem(*parts, learning_rate=0.5, clip=0.9)
    for name, form in (("sgd", "collapsed"), ("hsgd", "hsgd")):
        band = clipped.simulate(times, runs=3, method=form)
        assert (curves[name].risk["mean"] == band.risk["mean"]).all()


@pytest.mark.parametrize(
    "policy",
    [
        {"learning_rate": 0.5, "clip": "max_ccc"},
        {"learning_rate": "greedy", "clip": "none"},
        {"learning_rate": 0.5, "clip": {"kind": "proportional", "kappa": 1.0}, "margin": 0.9},
        {"learning_rate": 0.5, "clip": {"kind": "online", "memory": 50}},
        {"learning_rate": toclip.Schedule({"kind": "cosine", "from": 0.5, "over": 2.0}), "clip": 0.9},
        {
            "learning_rate": np.inf,
            "clip": "inf",
            "margin": {"kind": "predicted", "margin": 0.5, "time": 2.0},
        },
    ],
)
@pytest.mark.parametrize("norm", [1.0, 4.0])
def test_a_policy_is_the_same_in_an_experiment_and_in_a_problem(policy, norm):
    spectrum = toclip.blocks([norm], [100])
    curves = toclip.experiment(SMALL | policy | {"spectrum": spectrum, "methods": ["ode", "hsgd"]})
    problem = toclip.Problem(spectrum, 1.0, toclip.noise.gaussian(0.5), **policy)
    path = problem.predict(toclip.log_times(0.1, 2.0, 5))
    assert (curves["ode"].risk == path.risk).all()
    band = problem.simulate(toclip.log_times(0.1, 2.0, 5), runs=3, seed=1, method="hsgd")
    assert (curves["hsgd"].risk["median"] == band.risk["median"]).all()


def test_curves_of_the_criteria():
    noises = [{"label": "normal", "noise": toclip.noise.gaussian(1.0)}]
    asked = {"curves": ["csc", "ccc"], "risk": 0.5, "threshold": [0.1, 10.0], "points": 5}
    found = toclip.experiment({"criteria": asked | {"noises": noises}})
    assert list(found) == ["criteria"]
    curves = found["criteria"]
    known = toclip.factors(toclip.noise.gaussian(1.0), 0.5, curves["c"])
    assert (curves["csc"]["normal"] == known.csc).all() and len(curves["c"]) == 5
    assert (curves["ccc"]["normal"] == known.ccc).all()


def test_progress_is_told_over_all_methods_and_may_stop_the_work():
    told = []
    toclip.experiment(SMALL, progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (6, 6) and told == sorted(told)

    def enough(done, of):
        raise RuntimeError("enough")

    long = SMALL | {"time": 200.0, "ensemble": {"runs": 5000}}
    with pytest.raises(RuntimeError, match="enough"):
        toclip.experiment(long, progress=enough)


# (a line of TOML, the same in Python, the error message)
MISTAKES = [
    "time = 1e18",
    "noise = { family = 'gaussian', sigma = nan }",
    "spectrum = { kind = 'file', path = 'gone.npy' }",
    "ensemble = { runs = 1000000000000 }",
    # Those of the grammar, as far as they are valid TOML.
    *(ROOT / "crates/toclip-experiment/src/mistakes.txt").read_text().splitlines(),
]
MISTAKES.remove("time = 15 15")


@pytest.mark.parametrize("line", MISTAKES)
def test_error_messages_are_those_of_the_command(line, tmp_path, monkeypatch):
    tomllib = pytest.importorskip("tomllib")
    whole = {
        "time": "2.0",
        "points": "5",
        "methods": "['sgd']",
        "spectrum": "{ kind = 'isotropic', dim = 100 }",
        "start": "{ kind = 'uniform', norm = 1.0 }",
        "noise": "{ family = 'gaussian', sigma = 0.5 }",
        "learning_rate": "0.5",
        "clip": "0.9",
        "ensemble": "{ runs = 3 }",
    }
    key, _, value = line.partition(" = ")
    whole[key] = value
    monkeypatch.chdir(tmp_path)
    Path("e.toml").write_text("\n".join(f"{k} = {v}" for k, v in whole.items()))
    place = f"e.toml, line {list(whole).index(key) + 1}: "
    with pytest.raises(ValueError) as of_file:
        toclip.experiment("e.toml")
    given = SMALL | {"points": 5, "methods": ["sgd"]} | tomllib.loads(line)
    with pytest.raises(ValueError) as of_values:
        toclip.experiment(given)
    said = str(of_values.value)
    assert str(of_file.value) == place + said
    done = subprocess.run([command(), "run", "e.toml"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.strip() == f"error: {place}{said}"


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot read the experiment .*gone.toml: No such"):
        toclip.experiment(tmp_path / "gone.toml")
    with pytest.raises(OSError, match="cannot read the experiment"):
        toclip.experiment(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"name = '\xe9'")
    with pytest.raises(ValueError, match="cannot read the experiment .*UTF-8"):
        toclip.experiment(tmp_path / "latin.toml")


ERRORS = [
    'toclip.experiment(SMALL | {"time": 1e18})',
    'toclip.experiment(SMALL | {"ensemble": {"runs": 10**12}})',
    'toclip.experiment(SMALL | {"spectrum": {"kind": "isotropic", "dim": "large"}})',
    'toclip.experiment(SMALL | {"noise": None})',
    "toclip.experiment(SMALL | {3: 4})",
    'toclip.experiment(SMALL | {"start": {"kind": "uniform", "norm": {1.0}}})',
    'toclip.experiment(SMALL | {"start": {"kind": "uniform", "norm": 1 + 2j}})',
    'toclip.experiment(SMALL | {"time": 10**400})',
    'toclip.experiment(SMALL | {"noise": toclip.noise.gaussian(1.0).batched(4)})',
    'toclip.experiment({key: SMALL[key] for key in SMALL if key != "noise"})',
]


def test_error_messages():
    compare("errors-experiment.txt", messages(ERRORS, globals()))


@pytest.mark.parametrize("what", [None, 3, [("time", 1.0)], b"\xff\x00", 1.5])
def test_other_types_are_errors(what):
    with pytest.raises(ValueError):
        toclip.experiment(what)


def test_a_list_that_contains_itself_is_an_error():
    endless: list = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested too deeply"):
        toclip.experiment(SMALL | {"methods": endless})
