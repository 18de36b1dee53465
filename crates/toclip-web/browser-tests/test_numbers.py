"""Numbers of the page are those of the command line."""

import csv
import json
import math
import subprocess

import pytest

BASE = {
    "spectrum": {"kind": "power_law", "dim": 500, "exponent": 0.2},
    "start": {"kind": "uniform", "norm": 1.0},
    "time": 15.0,
    "learning_rate": 0.4,
    "clip": 0.5,
}
NOISES = {
    "gaussian": {"sigma": 0.8},
    "rademacher": {"sigma": 0.8, "p": 0.2},
    "uniform": {"sigma": 0.8},
    "laplace": {"sigma": 0.8},
    "student_t": {"df": 2.5, "scale": 0.5},
}
SETTINGS = [
    *({"noise": {"family": family, **numbers}} for family, numbers in NOISES.items()),
    {"noise": {"family": "student_t", "df": 1.0, "scale": 0.5}, "learning_rate": 0.6, "clip": 0.4},
    {"noise": {"family": "none"}, "clip": "none"},
    {"noise": {"family": "laplace", "sigma": 0.5}, "clip": {"kind": "proportional", "kappa": 1.0}},
    {"noise": {"family": "rademacher", "sigma": 0.8, "p": 0.2}, "clip": {"kind": "max_ccc"}},
    {"noise": {"family": "gaussian", "sigma": 0.8}, "spectrum": {"kind": "marchenko_pastur", "dim": 300, "aspect": 0.5}},
    {"noise": {"family": "gaussian", "sigma": 0.8}, "spectrum": {"kind": "isotropic", "dim": 100}, "momentum": 0.9, "learning_rate": 0.05},
    {"noise": {"family": "rademacher", "sigma": 0.8, "p": 0.2}, "batch": 16},
    {"noise": {"family": "student_t", "df": 2.5, "scale": 0.5}, "rule": "skip"},
    {"noise": {"family": "gaussian", "sigma": 0.8}, "learning_rate": {"kind": "cosine", "from": 0.7, "over": 15.0}},
    {"noise": {"family": "gaussian", "sigma": 0.3}, "batch": {"size": 16, "rule": "per_sample"}, "privacy": {"noise_multiplier": 1.0}},
]


CLASSIFIERS = [
    {"model": {"kind": "logistic", "flips": 0.1}, "clip": 0.4},
    {"model": {"kind": "logistic"}, "clip": "none", "spectrum": {"kind": "isotropic", "dim": 300}},
    {"model": {"kind": "logistic", "flips": 0.3}, "clip": 0.2, "learning_rate": {"kind": "cosine", "from": 3.0, "over": 10.0}},
]
CLASSIFIER = {
    "teacher": {"kind": "uniform", "norm": 6.0},
    "spectrum": {"kind": "power_law", "dim": 500, "exponent": 0.2},
    "time": 10.0,
    "learning_rate": 2.0,
}


def toml(value) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    return json.dumps(value)


def near(a: float, b: float, error: float) -> bool:
    return math.isclose(a, b, rel_tol=error, abs_tol=1e-300)


@pytest.mark.parametrize("family", NOISES)
def test_factors(desktop, toclip, family):
    page = desktop.open()
    experiment = {**BASE, "noise": {"family": family, **NOISES[family]}}
    for risk in (0.01, 0.18, 3.0):
        for c in (0.05, 0.5, 4.0):
            flags = [part for key, value in NOISES[family].items() for part in (f"--{key}", str(value))]
            command = [toclip, "factors", "--noise", family, *flags, "--risk", str(risk), "--clip", str(c), "--json"]
            native = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
            page_says = page.evaluate(
                "([experiment, risk, c]) => toclip.engine.ask({ ask: 'factors', experiment, risk, thresholds: [c] })",
                [experiment, risk, c],
            )
            for name in ("mu", "m2", "nu", "csc", "ccc"):
                assert near(page_says[name][0], native[name], 1e-12), (risk, c, name)
            verdict = page.evaluate(
                "([experiment, risk]) => toclip.engine.ask({ ask: 'verdict', experiment, risk })", [experiment, risk]
            )
            assert near(verdict["evidence"]["ccc"], native["best"]["ccc"], 1e-9)


def written(folder, experiment: dict):
    file = folder / "e.toml"
    file.write_text("".join(f"{key} = {toml(value)}\n" for key, value in {**experiment, "methods": ["ode", "unclipped"]}.items()))
    return file


def native_rows(toclip, folder, file) -> list[dict]:
    subprocess.run([toclip, "run", str(file), "--quiet", "--out", str(folder)], check=True, capture_output=True)
    with next(path for path in folder.rglob("*.csv")).open() as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


@pytest.mark.parametrize("setting", CLASSIFIERS, ids=["clipped", "unclipped", "cosine"])
def test_classification(desktop, toclip, tmp_path, setting):
    file = written(tmp_path, {**CLASSIFIER, **setting})
    rows = native_rows(toclip, tmp_path, file)
    page = desktop.open(experiment=file.read_text())
    assert desktop.message() == ""
    shown = page.evaluate("toclip.paths")
    for method, name in (("ode", "clipped"), ("unclipped", "unclipped")):
        native = [row for row in rows if row["method"] == method]
        assert len(native) == len(shown[name]["risk"]) == 201
        for k, row in enumerate(native):
            assert near(shown[name]["risk"][k], float(row["loss"]), 1e-8), (method, k)
            assert near(shown[name]["error_rate"][k], float(row["error_rate"]), 1e-8), (method, k)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: "-".join(s["noise"]["family"] if k == "noise" else k for k in s))
def test_risk_curves(desktop, toclip, tmp_path, setting):
    file = written(tmp_path, {**BASE, **setting})
    rows = native_rows(toclip, tmp_path, file)
    page = desktop.open(experiment=file.read_text())
    assert desktop.message() == ""
    shown = page.evaluate("toclip.paths")
    for method, name in (("ode", "clipped"), ("unclipped", "unclipped")):
        native = [float(row["risk"]) for row in rows if row["method"] == method]
        assert len(native) == len(shown[name]["risk"]) > 0 or shown[name]["stop"] is not None
        for a, b in zip(shown[name]["risk"], native):
            assert near(a, b, 1e-8), (method, a, b)
