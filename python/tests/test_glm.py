"""Generalised linear models in Python: the numbers and sentences of experiment files."""

import csv
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import toclip
from conftest import command, compare, messages

NOISY = {"kind": "logistic", "flips": 0.2}
BASE = {
    "model": {"kind": "logistic", "flips": 0.1},
    "teacher": {"kind": "uniform", "norm": 3.0},
    "spectrum": {"kind": "power_law", "dim": 200, "exponent": 0.4},
    "time": 4.0,
    "points": 9,
    "learning_rate": 1.0,
    "clip": 0.4,
    "methods": ["ode", "unclipped", "sgd"],
    "ensemble": {"runs": 30, "seed": 3},
}


def test_an_experiment_has_loss_error_angle_and_calibration():
    curves = toclip.experiment(BASE)
    ode, free, runs = curves["ode"], curves["unclipped"], curves["sgd"]
    assert isinstance(ode, toclip.GlmPath) and isinstance(runs, toclip.GlmBand)
    assert ode.loss[0] == pytest.approx(np.log(2)) and ode.error_rate[0] == 0.5
    assert np.isnan(ode.calibration[0])  # at the start every logit is zero
    assert (np.diff(ode.angle) < 0).all() and ode.stop["reason"] == "finished"
    assert not np.allclose(ode.loss[1:], free.loss[1:])
    # Four standard errors and 3% for the finite dimension, about 80.
    for name in ("loss", "angle"):
        band, theory = getattr(runs, name), getattr(ode, name)
        gap = np.abs(band["mean"] - theory)[1:]
        assert (gap < 4 * band["standard_error"][1:] + 0.03 * theory[1:]).all(), name
    assert set(ode.columns()) == {"t", "loss", "error_rate", "angle", "calibration", "q", "p"}
    assert "loss_median" in runs.columns() and "calibration_low" in runs.columns()


def test_thresholds_above_one_change_nothing():
    free = toclip.experiment(BASE | {"methods": ["ode"], "clip": "none"})["ode"]
    same = toclip.experiment(BASE | {"methods": ["ode"], "clip": 1.0})["ode"]
    np.testing.assert_allclose(same.loss, free.loss, rtol=1e-9)


def test_threads_do_not_change_the_bits():
    runs = [toclip.experiment(BASE | {"methods": ["sgd"]}, threads=n)["sgd"] for n in (1, 2)]
    assert runs[0] == runs[1]


def test_a_state_is_that_of_the_curve():
    ode = toclip.experiment(BASE)["ode"]
    at = toclip.glm.at(BASE["model"], ode.q[-1], ode.p[-1], ode.v, 0.4)
    for name in ("loss", "error_rate", "angle", "calibration"):
        assert getattr(at, name) == pytest.approx(getattr(ode, name)[-1], rel=1e-12)
    assert at.a > 0 > at.b and 0 < at.m2 < 0.4**2


def test_coefficients_against_monte_carlo():
    """Four standard errors of 10⁶ samples: a false alarm in 16,000 for each of two numbers."""
    rng = np.random.default_rng(1)
    q, p, v, c, flips = 4.0, 3.0, 9.0, 0.4, 0.2
    u, w = rng.standard_normal((2, 1_000_000))
    u, t = np.sqrt(q) * u, p / np.sqrt(q) * u + np.sqrt(v - p * p / q) * w
    label = rng.random(t.size) < 1 / (1 + np.exp(-t))
    label ^= rng.random(t.size) < flips
    clipped = np.clip(1 / (1 + np.exp(-u)) - label, -c, c)
    at = toclip.glm.at(NOISY, q, p, v, c)

    def near(samples, exact):
        return abs(samples.mean() - exact) < 4 * samples.std() / np.sqrt(samples.size)

    assert near(clipped**2, at.m2)
    # Stein's lemma: E ψu = aQ + bP.
    assert near(clipped * u, at.a * q + at.b * p)


def test_the_fixed_point_moves_with_flips_and_thresholds():
    assert toclip.glm.fixed_point("logistic", 9.0) == pytest.approx(1.0, abs=1e-9)
    clean, clipped = (toclip.glm.fixed_point(NOISY, 9.0, c) for c in ("none", 0.4))
    assert clean < clipped < 1.0
    slow = BASE | {"model": NOISY, "methods": ["ode"], "learning_rate": 0.02, "time": 20000.0}
    end = toclip.experiment(slow | {"spectrum": {"kind": "isotropic", "dim": 200}})["ode"]
    assert end.p[-1] / end.v == pytest.approx(clipped, rel=0.01)


def test_best_thresholds():
    assert toclip.glm.best_threshold("logistic", 4.0, 5.4, 9.0).c == np.inf
    best = toclip.glm.best_threshold(NOISY, 4.0, 5.4, 9.0)
    ccc = [toclip.glm.at(NOISY, 4.0, 5.4, 9.0, best.c * k).ccc for k in (0.9, 1.0, 1.1)]
    assert ccc[1] == pytest.approx(best.ccc, rel=1e-9) and ccc[1] > max(ccc[0], ccc[2])
    spectrum = toclip.isotropic(400)
    found = toclip.glm.best_clip(spectrum, 3.0, NOISY, 10.0, shape="cosine")
    rate = {"kind": "cosine", "from": found.learning_rate, "over": 10.0}
    parts = {"spectrum": spectrum, "learning_rate": rate, "clip": found.c, "time": 10.0, "model": NOISY}
    again = toclip.experiment(BASE | parts | {"methods": ["ode"]})["ode"]
    assert again.loss[-1] == pytest.approx(found.loss, rel=1e-4)


def test_huber_regression_has_noise():
    noise = toclip.noise.student_t(df=2.5, scale=0.5)
    huber = {"kind": "huber", "delta": 1.0}
    assert toclip.glm.fixed_point(huber, 4.0, noise=noise) == pytest.approx(1.0)
    assert np.isnan(toclip.glm.at(huber, 1.0, 1.0, 4.0, 0.5, noise=noise).error_rate)


def test_the_command_gives_the_same(tmp_path):
    lines = [
        "model = { kind = 'logistic', flips = 0.1 }",
        "teacher = { kind = 'uniform', norm = 3.0 }",
        "spectrum = { kind = 'power_law', dim = 200, exponent = 0.4 }",
        "time = 4.0",
        "points = 9",
        "learning_rate = 1.0",
        "clip = 0.4",
        "methods = ['ode']",
    ]
    file = tmp_path / "e.toml"
    file.write_text("\n".join(lines))
    subprocess.run([command(), "run", file, "--out", tmp_path / "out"], check=True, capture_output=True)
    with next((tmp_path / "out").glob("*.csv")).open() as table:
        rows = list(csv.DictReader(table))
    ode = toclip.experiment(file)["ode"]
    column = next(name for name in rows[0] if "loss" in name or "entropy" in name)
    assert [float(row[column]) for row in rows] == ode.loss.tolist()


def test_error_messages():
    calls = [
        "glm.at('logit', 1, 1, 4)",
        "glm.at({'kind': 'logistic', 'flips': 0.7}, 1, 1, 4)",
        "glm.at('logistic', 1, 3, 4)",
        "glm.at('logistic', -1, 0, 4)",
        "glm.at('logistic', 'x', 0, 4)",
        "glm.at('logistic', 1, 1, 4, -1)",
        "glm.at({'kind': 'huber', 'delta': 1.0}, 1, 1, 4)",
        "glm.at('logistic', 1, 1, 4, noise=toclip.noise.gaussian(1.0))",
        "glm.fixed_point('logistic', -4)",
        "glm.fixed_point('logistic', 4, 0)",
        "glm.best_clip(toclip.isotropic(9), 'x', 'logistic', 1.0)",
        "glm.best_clip(toclip.isotropic(9), 1.0, 'logistic', -1.0)",
        "glm.best_clip(toclip.isotropic(9), 1.0, 'logistic', 1.0, shape='linear')",
        "glm.best_clip(toclip.isotropic(9), 0.0, 'logistic', 1.0)",
        "glm.best_rate(toclip.isotropic(9), 1.0, 'logistic', 1.0, 0)",
        "toclip.experiment(BASE | {'methods': ['volterra']})",
        "toclip.experiment(BASE | {'clip': 'max_ccc'})",
        "toclip.experiment(BASE | {'teacher': None})",
        "toclip.experiment(BASE | {'noise': {'family': 'gaussian', 'sigma': 1.0}})",
    ]
    compare("errors-glm.txt", messages(calls, {"toclip": toclip, "glm": toclip.glm, "BASE": BASE}))


def test_the_script_on_heavy_tails_meets_the_theory_where_there_is_one():
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "experiments"))
    import heavy_features

    flips, model = 0.1, {"kind": "logistic", "flips": 0.1}
    loss = heavy_features.loss_function(math.inf, flips)
    state = toclip.glm.at(model, q=3.0, p=4.0, v=heavy_features.NORM**2)
    assert loss(3.0, 4.0) == pytest.approx(state.loss, abs=2e-5)
    q, p = heavy_features.simulate(math.inf, flips, True, [2.0], [0.4], 150, 1)
    ode = toclip.experiment(
        BASE | {
            "model": model, "teacher": {"kind": "uniform", "norm": heavy_features.NORM},
            "spectrum": {"kind": "isotropic", "dim": heavy_features.DIM}, "time": heavy_features.TIME,
            "learning_rate": {"kind": "cosine", "from": 2.0, "to": 0.0, "over": heavy_features.TIME},
            "clip": 0.4, "methods": ["ode"],
        }
    )["ode"]
    for found, expected in [(q[0], ode.q[-1]), (p[0], ode.p[-1])]:
        assert abs(found.mean() - expected) < 4 * found.std(ddof=1) / math.sqrt(len(found))
    # Features of the same covariance, whatever their tails.
    scales = heavy_features.scales(np.random.default_rng(1), 5.0, 200_000)
    assert (scales**2).mean() == pytest.approx(1.0, abs=0.02)
    nodes, shares = heavy_features.scale_nodes(3.0)
    assert (nodes**2 * shares).sum() == pytest.approx(1.0, abs=2e-4)
