"""Every argument of every public function with wrong values."""

import contextlib
import math
import os
import re
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import toclip

NOISE = toclip.noise.laplace(sigma=0.5)
SPECTRUM = toclip.power_law(12, 0.3)
X = np.random.default_rng(0).standard_normal((40, 3))
Y = X @ [1.0, -1.0, 0.5] + 0.1
EXPERIMENT = {
    "time": 1.0,
    "methods": ["ode", "sgd"],
    "spectrum": {"kind": "isotropic", "dim": 10},
    "start": {"kind": "uniform", "norm": 1.0},
    "noise": {"family": "gaussian", "sigma": 0.5},
    "learning_rate": 0.5,
    "clip": 0.9,
    "ensemble": {"runs": 2},
}


def problem(**change):
    given = {"learning_rate": 0.5, "clip": 0.9} | change
    return toclip.Problem(SPECTRUM, 1.0, NOISE, **given)


def make(**given):
    parts = {"spectrum": SPECTRUM, "start": 1.0, "noise": NOISE, "learning_rate": 0.5} | given
    return toclip.Problem(**parts)


def stream(**change):
    given = {"features": X, "targets": Y, "learning_rate": 0.1, "clip": 1.0} | change
    return toclip.Stream(**given)


# name: (function, valid arguments)
CALLS = {
    "gaussian": (toclip.noise.gaussian, {"sigma": 1.0}),
    "rademacher": (toclip.noise.rademacher, {"p": 0.2, "lam": 1.0}),
    "uniform": (toclip.noise.uniform, {"half_width": 1.0}),
    "laplace": (toclip.noise.laplace, {"rate": 1.0}),
    "student_t": (toclip.noise.student_t, {"df": 2.5, "scale": 1.0}),
    "gaussian_mixture": (
        toclip.noise.gaussian_mixture,
        {"weights": [0.5, 0.5], "means": [0.0, 1.0], "stds": [1.0, 2.0]},
    ),
    "empirical": (toclip.noise.empirical, {"values": [1.0, -1.0]}),
    "Noise": (toclip.Noise, {"family": {"family": "gaussian", "sigma": 1.0}}),
    "batched": (NOISE.batched, {"size": 4, "outputs": 2, "per_sample": False}),
    "sample": (NOISE.sample, {"size": 3, "seed": 1}),
    "isotropic": (toclip.isotropic, {"dim": 5}),
    "power_law": (toclip.power_law, {"dim": 5, "exponent": 0.5}),
    "eigenvalues": (toclip.eigenvalues, {"values": [1.0, 0.5]}),
    "blocks": (toclip.blocks, {"values": [1.0, 0.5], "multiplicities": [2, 3]}),
    "marchenko_pastur": (toclip.marchenko_pastur, {"dim": 20, "aspect": 0.5}),
    "Spectrum": (toclip.Spectrum, {"spec": {"kind": "isotropic", "dim": 4}}),
    "Schedule": (toclip.Schedule, {"shape": 0.5}),
    "at": (toclip.Schedule(0.5).at, {"times": [0.0, 1.0]}),
    "linear_times": (toclip.linear_times, {"end": 1.0, "count": 3}),
    "log_times": (toclip.log_times, {"first": 0.1, "end": 1.0, "count": 3}),
    "factors": (toclip.factors, {"noise": NOISE, "r": 0.5, "c": 0.9}),
    "best_threshold": (toclip.best_threshold, {"noise": NOISE, "r": 0.5}),
    "verdict": (toclip.verdict, {"noise": NOISE, "r": 0.5}),
    "fisher_limit": (toclip.fisher_limit, {"noise": NOISE, "r": 0.5}),
    "kappa_bounds": (
        toclip.kappa_bounds,
        {"noise": NOISE, "risks": (0.1, 1.0), "thresholds": (0.1, 1.0)},
    ),
    "Problem": (
        make,
        {"spectrum": SPECTRUM, "start": 1.0, "noise": NOISE, "learning_rate": 0.5, "clip": 0.9}
        | {"margin": 0.9},
    ),
    "Problem with a rule": (make, {"rule": "skip", "momentum": 0.9}),
    "Problem with groups": (make, {"groups": [{"size": 12}]}),
    "Problem with privacy": (make, {"clip": 0.9, "privacy": {"noise_multiplier": 1.0}}),
    "with_rule": (NOISE.with_rule, {"rule": "skip"}),
    "Problem.factors": (problem().factors, {"c": 1.0}),
    "tune_private": (problem(privacy={"noise_multiplier": 1.0}).tune_private, {"time": 1.0}),
    "privacy.epsilon": (
        toclip.privacy.epsilon,
        {"noise_multiplier": 1.0, "delta": 1e-5, "epochs": 2, "batch_size": 5, "samples": 50}
        | {"sampling": "shuffled"},
    ),
    "privacy.delta": (toclip.privacy.delta, {"noise_multiplier": 1.0, "epsilon": 1.0}),
    "privacy.noise_multiplier": (toclip.privacy.noise_multiplier, {"epsilon": 1.0, "delta": 1e-5}),
    "stability_limits": (problem().stability_limits, {"c": 1.0}),
    "predict": (
        problem().predict,
        {"times": [0.0, 1.0], "method": "ode", "rtol": 1e-6, "target": 0.1, "compress": 1e-6},
    ),
    "simulate": (
        problem().simulate,
        {"times": [0.0, 1.0], "runs": 2, "seed": 1, "method": "sgd", "confidence": 0.8}
        | {"covariates": None, "threads": 1, "progress": False},
    ),
    "run": (problem().run, {"times": [0.5, 1.0], "seed": 1, "index": 0, "method": "sgd"}),
    "tune_kappa": (problem().tune_kappa, {"time": 1.0, "compensation": "exact", "compress": None}),
    "Stream": (
        stream,
        {"features": X, "targets": Y, "learning_rate": 0.1, "clip": 1.0, "start": None}
        | {"optimum": None, "covariance": None, "noise": None, "in_order": False}
        | {"rule": "skip"},
    ),
    "Stream.simulate": (
        stream().simulate,
        {"times": [0.0, 2.0], "runs": 2, "seed": 1, "confidence": 0.8, "threads": 1}
        | {"progress": False},
    ),
    "Stream.run": (stream().run, {"times": [0.0, 2.0], "seed": 1, "index": 0}),
    "convergence": (
        lambda **given: toclip.convergence(**given),
        {"spectra": [toclip.isotropic(4), toclip.isotropic(9)], "start": 1.0, "noise": NOISE}
        | {"learning_rate": 0.5, "clip": 0.9, "time": 1.0, "runs": 3, "seed": 1}
        | {"confidence": 0.9, "threads": 1, "progress": False},
    ),
    "Monitor": (
        toclip.Monitor,
        {"components": 1, "memory": 1000, "scale_memory": 200.0, "fixed_scale": 1.0}
        | {"watched": 1.0, "confidence": 0.95, "margin": 0.1},
    ),
    "observe": (toclip.Monitor().observe, {"norms": [1.0, 2.0]}),
    "observe_aligned": (
        toclip.Monitor().observe_aligned,
        {"norms": [1.0, 2.0], "inners": [0.5, 0.1]},
    ),
    "observe_vector": (
        toclip.Monitor().observe_vector,
        {"halves": toclip.Halves(2, 10.0), "gradient": [1.0, 2.0]},
    ),
    "merge": (toclip.Monitor().merge, {"other": toclip.Monitor()}),
    "Monitor.from_json": (toclip.Monitor.from_json, {"state": toclip.Monitor().to_json()}),
    "Halves": (toclip.Halves, {"dimension": 2, "memory": 10.0}),
    "Halves.inner": (toclip.Halves(2, 10.0).inner, {"gradient": [1.0, 2.0]}),
    "Halves.from_json": (toclip.Halves.from_json, {"state": toclip.Halves(1, 1.0).to_json()}),
    "fixed": (toclip.ThresholdRule.fixed, {"threshold": 1.0}),
    "autoclip": (toclip.ThresholdRule.autoclip, {"percentile": 10.0, "window": 5}),
    "zclip": (toclip.ThresholdRule.zclip, {"alpha": 0.97, "z": 2.5, "warmup": 25, "cap": 1.0}),
    "huber": (toclip.ThresholdRule.huber, {"kappa": 1.345, "window": 10, "components": 1.0}),
    "empirical_ccc": (toclip.ThresholdRule.empirical_ccc, {"components": 8.0}),
    "skip_above": (toclip.ThresholdRule.skip_above, {"multiple": 4.0, "window": 10}),
    "monitored": (
        toclip.ThresholdRule.monitored,
        {"every": 200, "components": None, "memory": 1000, "scale_memory": 200.0}
        | {"fixed_scale": None, "confidence": 0.95, "margin": 0.1},
    ),
    "thresholds": (toclip.ThresholdRule.autoclip().thresholds, {"norms": [1.0, 2.0]}),
    "ThresholdRule.from_json": (toclip.ThresholdRule.from_json, {"state": toclip.ThresholdRule.huber().to_json()}),
    "experiment": (
        toclip.experiment,
        {"what": EXPERIMENT, "threads": 1, "progress": False},
    ),
    "read_log": (
        toclip.read_log,
        {"path": os.devnull, "format": None, "norm": None, "step": None, "loss": None}
        | {"learning_rate": None, "unscale": False},
    ),
    "advise": (
        toclip.advise,
        {"log": os.devnull, "clip": None, "batch_size": None, "outputs": None}
        | {"optimizer": None, "framework": None, "confidence": 0.95},
    ),
    "from_arrays": (
        toclip.Log.from_arrays,
        {"norms": [1.0, 2.0], "steps": [1, 2], "losses": [0.5, 0.4], "learning_rates": [0.1, 0.1]},
    ),
}
ENDLESS: list = []
ENDLESS.append(ENDLESS)
STRANGE = {
    "None": None,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "zero": 0,
    "negative": -1,
    "huge": 10**400,
    "2**64": 2**64,
    "half": 0.5,
    "true": True,
    "text": "many",
    "empty text": "",
    "digits": "1.0",
    "lone surrogate": "\ud800",
    "bytes": b"\xff",
    "complex": 1 + 2j,
    "empty": [],
    "empty array": np.empty((0, 3)),
    "texts": ["1.0", "2.0"],
    "nones": [None, 1.0],
    "ragged": [[1.0], [1.0, 2.0]],
    "matrix": [[1.0, 2.0], [3.0, 4.0]],
    "cube": np.zeros((2, 2, 2)),
    "nans": [math.nan, 1.0],
    "decreasing": [2.0, 1.0],
    "complex array": np.array([1 + 2j]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "records": np.zeros(2, dtype=[("a", float)]),
    "fraction": Fraction(1, 3),
    "float16": np.array([0.5, 1.0], np.float16),
    "dict": {},
    "other dict": {"kind": "flat", 3: None},
    "set": {1.0},
    "object": object(),
    "type": int,
    "function": print,
    "endless": ENDLESS,
    "generator": (x for x in [1.0, 2.0]),
}
SIMULATED = ("simulate", "run", "convergence", "Stream.simulate", "Stream.run")
CASES = [(name, key) for name, (_, given) in CALLS.items() for key in given]


def test_valid_calls_work():
    for name, (call, given) in CALLS.items():
        refused = pytest.raises(ValueError) if name in ("read_log", "advise") else None
        with refused or contextlib.nullcontext():
            call(**given)


@pytest.mark.parametrize("name, key", CASES, ids=[f"{name}({key})" for name, key in CASES])
def test_no_argument_panics(name, key):
    call, given = CALLS[name]
    for strange, value in STRANGE.items():
        if (strange, key) == ("type", "progress"):
            continue  # int is a function too, and what a function raises is its own
        if (strange, key) in (("2**64", "times"), ("2**64", "time")) and name not in SIMULATED:
            continue  # a sentence too, after the two million steps that the ODE is given
        try:
            call(**given | {key: value})
        except (ValueError, OSError) as error:
            # Without addresses: one in a hundred processes has an object at 0x7f64….
            said = re.sub("0x[0-9a-f]+", "", str(error))
            # A sentence in the user's terms, not of Rust, serde or PyO3.
            assert len(said) > 10, (strange, said)
            for word in ("PyString", "PyAny", "u64", "f64", "usize", "enum", "cannot be cast"):
                assert word not in said, (strange, said)
        # Whatever else is raised, a panic above all, is a mistake.


FORKED = """
import os, signal, numpy as np, toclip

def work():
    problem = toclip.Problem(
        toclip.isotropic(50), 1.0, toclip.noise.gaussian(0.5), learning_rate=0.5, clip=0.9)
    noise = toclip.noise.student_t(3.0, sigma=1.0)
    return [
        problem.simulate([1.0], runs=8).risk["mean"][0],
        toclip.factors(noise, np.linspace(0.1, 1.0, 5000), 1.0).mu.sum(),
        toclip.best_threshold(noise, np.linspace(0.1, 1.0, 20)).c.sum(),
    ]

before = work()
child = os.fork()
if child == 0:
    signal.alarm(300)  # ends a call that hangs
    os._exit(0 if work() == before else 1)
raise SystemExit(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_process_computes():
    # As multiprocessing starts its workers: the threads of the parent are not there.
    assert subprocess.run([sys.executable, "-c", FORKED], timeout=600).returncode == 0


def test_a_covariance_is_not_taken_for_its_eigenvalues():
    for covariance in (np.eye(3), [[1.0, 0.0], [0.0, 1.0]]):
        with pytest.raises(ValueError, match="eigvalsh"):
            toclip.eigenvalues(covariance)
    with pytest.raises(ValueError, match=r"the shape \(2, 2\); expected one list"):
        toclip.noise.empirical([[1.0, -1.0], [2.0, -2.0]])
    # A column is a list of numbers all the same.
    assert toclip.eigenvalues(np.ones((3, 1))).intrinsic_dim == 3.0


def test_one_dimension_twice_has_no_slope():
    with pytest.raises(ValueError, match="two different dimensions"):
        toclip.convergence([toclip.isotropic(50)] * 2, 1.0, NOISE, learning_rate=0.5)


def test_too_many_threads_are_an_error():
    with pytest.raises(ValueError, match="threads = 1000000"):
        problem().simulate([1.0], runs=1, threads=10**6)
