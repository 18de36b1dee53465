"""Every public result type has one interface, as the README says."""

import copy
import dataclasses
import importlib.util
import json
import pickle

import numpy as np
import pytest

import toclip
from toclip.results import Table


def theory():
    noise = toclip.noise.student_t(df=3.0, sigma=1.0)
    parts = toclip.isotropic(10), 1.0
    problem = toclip.Problem(*parts, noise, learning_rate=0.5, clip=1.0)
    groups = [{"size": 4}, {"size": 6, "ratio": 0.5}]
    private = {"noise_multiplier": 0.5}
    classification = toclip.experiment(
        {
            "model": "logistic",
            "teacher": {"kind": "uniform", "norm": 2.0},
            "spectrum": {"kind": "isotropic", "dim": 10},
            "time": 1.0,
            "points": 3,
            "learning_rate": 0.5,
            "clip": 0.5,
            "methods": ["ode", "sgd"],
            "ensemble": {"runs": 3},
        }
    )
    grid = toclip.Sweep(
        {
            "spectrum": {"kind": "isotropic", "dim": 10},
            "start": {"kind": "uniform", "norm": 1.0},
            "noise": {"family": "gaussian", "sigma": 0.5},
            "time": 1.0,
            "learning_rate": 0.5,
            "vary": {"clip": [0.5, 1.0]},
        }
    )
    samples = np.random.default_rng(1).normal(size=(50, 4))
    return {
        "SweepResult": grid.run(),
        "SweepCell": next(grid.as_completed()),
        "LinearFit": toclip.Moments(samples[:, :3], samples[:, 3]).fit(),
        "Path": problem.predict([0.0, 1.0]),
        "Path of a run": problem.run([0.0, 1.0]),
        "Band": problem.simulate([0.0, 1.0], runs=3, seed=1),
        "Factors": toclip.factors(noise, [0.1, 0.2], 1.0),
        "Factors at a point": toclip.factors(noise, 0.1, 1.0),
        "Factors without variance": toclip.factors(toclip.noise.student_t(1.0, scale=1.0), 0.1, [1.0, 2.0]),
        "BestThreshold": toclip.best_threshold(noise, [0.1, 0.2]),
        "FisherLimit": toclip.fisher_limit(noise, [0.1, 0.2]),
        "KappaBounds": toclip.kappa_bounds(noise, [0.1, 0.2], [0.5, 1.0]),
        "StateFactors": toclip.Problem(*parts, noise, learning_rate=0.5, rule="by_value").factors(0.5),
        "StateFactors of groups": toclip.Problem(*parts, noise, learning_rate=0.5, groups=groups).factors(0.5),
        "Tuned": problem.tune_kappa(1.0),
        "TunedPrivate": toclip.Problem(
            *parts, noise, learning_rate=0.5, clip=1.0, privacy=private
        ).tune_private(1.0),
        "GlmPath": classification["ode"],
        "GlmBand": classification["sgd"],
        "GlmState": toclip.glm.at("logistic", 1.0, 1.0, 4.0, 0.5),
        "GlmThreshold": toclip.glm.best_threshold({"kind": "logistic", "flips": 0.2}, 4.0, 5.4, 9.0),
        "BestClip": toclip.glm.best_clip(toclip.isotropic(10), 1.0, "logistic", 1.0),
        "Rate": toclip.convergence(
            [toclip.isotropic(d) for d in (5, 20)], 1.0, noise, learning_rate=0.5, clip=1.0, time=0.5, runs=3
        ),
    }


def training():
    monitor = toclip.Monitor(components=1)
    k = np.arange(3000)
    u = (k * 0.618033988749895) % 1
    monitor.observe(np.where(k % 10 == 3, 20 + u, 1.5 * u + 0.01))
    undecided = toclip.Monitor()
    log = toclip.Log.from_arrays(np.linspace(0.5, 2.0, 300), losses=np.linspace(3.0, 2.0, 300))
    return {
        "Estimates": monitor.curve(),
        "Advice": monitor.advice(),
        "Advice to stay": undecided.advice(),
        "Log": log,
        "LogAdvice": toclip.advise(log, clip="none", optimizer="adam"),
        "GuardStep": toclip.GuardRule().step(1.5),
    }


def measured():
    if importlib.util.find_spec("torch") is None:
        return {}
    import torch

    import toclip.torch

    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    batches = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(16)]
    loss = torch.nn.functional.mse_loss
    factors = toclip.torch.reduction_factors(model, loss, batches, [0.5, 1.0])
    return {
        "ReductionFactors": factors,
        "Row": factors.rows[0],
        "Estimate": factors.rows[0].nu,
        "IntrinsicDimension": toclip.torch.intrinsic_dimension(model, loss, batches, probes=4),
    }


RESULTS = theory() | training() | measured()


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_has_one_interface(name):
    result = RESULTS[name]
    assert pickle.loads(pickle.dumps(result)) == result == copy.deepcopy(result) and result != 3
    assert all(result != other for key, other in RESULTS.items() if key != name)
    assert json.loads(json.dumps(result.to_dict()))
    assert len(repr(result)) < 400 and "\n" not in repr(result) and " at 0x" not in repr(result)
    assert type(result).__name__ in repr(result)
    assert result._repr_html_().startswith(("<table>", "<pre>"))
    empty = name == "Advice to stay"  # a decision without numbers
    for library in ("pandas", "polars"):
        if importlib.util.find_spec(library):
            assert (len(getattr(result, f"to_{library}")()) > 0) != empty
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert bool(result.plot().lines) != empty
    matplotlib.pyplot.close("all")


def test_no_public_result_is_left_out():
    modules = [toclip] + ([toclip.torch] if measured() else [])
    public = {
        kind
        for module in modules
        for kind in (getattr(module, name) for name in module.__all__)
        if isinstance(kind, type) and (issubclass(kind, Table) or dataclasses.is_dataclass(kind))
    }
    assert {kind.__name__ for kind in public} <= {type(result).__name__ for result in RESULTS.values()}


OBJECTS = {
    "Noise": toclip.noise.laplace(sigma=1.0).batched(4).with_rule("skip"),
    "Spectrum": toclip.power_law(10, 0.5),
    "Schedule": toclip.Schedule({"kind": "cosine", "from": 0.7, "over": 15.0}),
    "ThresholdRule": toclip.ThresholdRule.huber(),
    "Halves": toclip.Halves(2, 10.0),
    "Monitor": toclip.Monitor(components=1),
    "GuardRule": toclip.GuardRule(action="skip"),
    "Problem": toclip.Problem(toclip.isotropic(10), 1.0, toclip.noise.none(), learning_rate=0.5, momentum=0.5),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_inputs_of_results_survive_pickles(name):
    it = OBJECTS[name]
    assert pickle.loads(pickle.dumps(it)) == it == copy.deepcopy(it) and it != 3
    assert name in repr(it) and " at 0x" not in repr(it) and len(repr(it)) < 400, repr(it)
