"""The same numbers as Rust, shapes, data frames, pickles, progress."""

import csv
import json
import math
import os
import pickle
import subprocess

import numpy as np
import pytest

import toclip
from conftest import ROOT, command, compare, messages

DATA = ROOT / "crates/toclip/tests/data"

NOISES = [
    {"family": "none"},
    {"family": "gaussian", "sigma": 0.7},
    {"family": "rademacher", "lambda": 2.0, "p": 0.3},
    {"family": "uniform", "half_width": 1.5},
    {"family": "laplace", "sigma": 0.9},
    {"family": "student_t", "df": 2.5, "scale": 0.5},
    {"family": "gaussian_mixture", "weights": [0.7, 0.3], "means": [0.0, 1.0], "stds": [0.5, 3.0]},
    {"family": "empirical", "values": [-2.0, -0.1, 0.3, 7.0]},
]


def asked(*args):
    done = subprocess.run([command(), *args], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("noise", NOISES, ids=lambda n: n["family"])
def test_the_same_bits_as_the_command(noise):
    parameters = {k: v for k, v in noise.items() if k != "family"}
    for r, c in [(0.5, 0.9), (1e-3, 3.25), (2.0, 0.05)]:
        words = ["factors", "--noise", noise["family"], "--params", json.dumps(parameters)]
        said = asked(*words, "-r", str(r), "-c", str(c), "--json")
        at, best = toclip.factors(noise, r, c), toclip.best_threshold(noise, r)
        for name in ("mu", "m2", "nu", "csc", "ccc"):
            assert getattr(at, name) == said[name], name
        for name in ("c", "mu", "ccc"):
            assert getattr(best, name) == float(said["best"][name]), name  # "inf" is a word in JSON
        if said.get("fisher") and noise["family"] != "none":
            limit = toclip.fisher_limit(noise, r)
            assert (limit.information, limit.reached) == (
                said["fisher"]["information"],
                said["fisher"]["reached"],
            )


def test_a_compressed_spectrum_gives_the_same_path():
    problem = toclip.Problem(
        toclip.power_law(3000, 0.5), 1.0, toclip.noise.laplace(sigma=0.5), learning_rate=0.5, clip=1.0
    )
    whole, few = problem.predict([1.0, 5.0]), problem.predict([1.0, 5.0], compress=1e-10)
    assert np.allclose(whole.risk, few.risk, rtol=1e-7) and not (whole.risk == few.risk).all()


def test_other_features_than_gaussian_ones():
    sees = {"kind": "student_t", "df": 3.0}
    plain, heavy = (small().simulate([1.0], runs=4, covariates=law) for law in (None, sees))
    assert plain.risk["mean"] != heavy.risk["mean"]
    with pytest.raises(ValueError, match="only method \"sgd\" supports"):
        small().simulate([1.0], method="hsgd", covariates=sees)


def test_factors_agree_with_the_reference_values():
    with open(DATA / "reduction_factors.csv") as table:
        rows = list(csv.DictReader(table))[::7]
    assert len(rows) > 100
    for row in rows:
        noise = {"family": row["family"], **json.loads(row["params"])}
        at = toclip.factors(noise, float(row["r"]), float(row["c"]))
        assert math.isclose(at.mu, float(row["mu"]), rel_tol=1e-9)
        assert math.isclose(at.m2, float(row["m2"]), rel_tol=1e-9)


def test_batch_factors_agree_with_the_reference_values():
    with open(DATA / "batch_factors.csv") as table:
        rows = [r for r in csv.DictReader(table) if r["family"] in ("gaussian", "rademacher")][::9]
    assert len(rows) > 10
    for row in rows:
        noise = toclip.Noise({"family": row["family"], **json.loads(row["params"])})
        at = toclip.factors(noise.batched(int(row["batch"])), float(row["r"]), float(row["c"]))
        assert math.isclose(at.mu, float(row["mu"]), rel_tol=1e-6)
        assert math.isclose(at.nu, float(row["nu"]), rel_tol=1e-6)


def test_many_points_equal_single_points():
    noise = toclip.noise.student_t(3.0, scale=0.5)
    r, c = np.geomspace(1e-3, 10, 40)[:, None], np.geomspace(0.1, 10, 30)
    grid = toclip.factors(noise, r, c)
    assert grid.mu.shape == (40, 30) and grid.r.shape == (40, 30)
    for i, j in [(0, 0), (17, 29), (39, 3)]:
        at = toclip.factors(noise, r[i, 0], c[j])
        assert isinstance(at.ccc, float)
        assert (at.mu, at.m2, at.ccc) == (grid.mu[i, j], grid.m2[i, j], grid.ccc[i, j])
    # Any strides, and integers.
    assert (toclip.factors(noise, 1, c[::-1]).mu == toclip.factors(noise, 1.0, c).mu[::-1]).all()
    assert toclip.factors(noise, np.empty((0, 3)), 1.0).mu.shape == (0, 3)


def test_without_a_variance_mu_is_known_and_nu_is_refused():
    at = toclip.factors(toclip.noise.student_t(1.0, scale=0.5), 0.1, [0.5, 1.0])
    assert (at.mu < 1).all() and "nu" not in at.to_dict()
    with pytest.raises(ValueError, match=r"nu, CSC and CCC divide by E\[X\^2\]"):
        _ = at.ccc


@pytest.mark.parametrize("noise", NOISES, ids=lambda n: n["family"])
def test_noises_survive_dictionaries_and_pickles(noise):
    made = toclip.Noise(noise)
    assert toclip.Noise(made.to_dict()) == made == pickle.loads(pickle.dumps(made))
    assert (made.sample(5, seed=3) == made.sample(5, seed=3)).all()
    if math.isfinite(made.second_moment):
        batched = made.batched(4, outputs=2)
        assert pickle.loads(pickle.dumps(batched)) == batched != made


def small(**change):
    given = dict(learning_rate=0.5, clip=0.9) | change
    return toclip.Problem(toclip.power_law(60, 0.3), 1.0, toclip.noise.laplace(sigma=0.5), **given)


def test_two_solvers_and_the_simulation_agree():
    times = toclip.linear_times(4.0, 9)
    ode, volterra = small().predict(times), small().predict(times, method="volterra")
    assert np.allclose(ode.risk, volterra.risk, rtol=1e-6)
    assert ode.stop == {"reason": "finished"} and (volterra.flow <= volterra.risk * 1.000001).all()
    band = small().simulate(times, runs=400, seed=2)
    # d = 27: corrections of a few percent beside four standard errors.
    error = np.abs(band.risk["mean"] - ode.risk)
    assert (error < 4 * band.risk["standard_error"] + 0.05 * ode.risk).all()


def test_simulations_depend_on_the_seed_only():
    times = [0.0, 0.5, 1.0]
    one = small().simulate(times, runs=20, seed=5, threads=1)
    two = small().simulate(times, runs=20, seed=5, threads=2)
    other = small().simulate(times, runs=20, seed=6)
    assert (one.risk["mean"] == two.risk["mean"]).all()
    assert not (one.risk["mean"] == other.risk["mean"]).all()
    alone = [small().run(times, seed=5, index=k).risk for k in range(20)]
    assert (np.min(alone, axis=0) == one.risk["min"]).all()


def test_every_kind_of_learning_rate_and_threshold_is_understood():
    times = [1.0, 2.0]
    cosine = {"kind": "cosine", "from": 0.5, "over": 3.0}
    kinds = [
        dict(learning_rate=cosine, clip="none"),
        *(dict(learning_rate=toclip.Schedule(cosine), clip=none) for none in (None, "inf", math.inf)),
        dict(clip="max_ccc"),
        dict(clip={"kind": "proportional", "kappa": 1.0, "compensation": "none"}),
        dict(clip={"kind": "table", "times": [0.0, 2.0], "values": [1.0, 0.5]}),
        dict(learning_rate="greedy", clip="max_ccc"),
        dict(learning_rate="greedy", clip="none"),
    ]
    risks = [small(**kind).predict(times).risk[-1] for kind in kinds]
    assert len(set(risks[:4])) == 1 and len(set(risks)) == len(risks) - 3
    # The greedy rate with the best threshold is best, by construction.
    assert min(risks) == risks[7]
    online = small(clip={"kind": "online", "memory": 100})
    assert online.simulate(times, runs=3).risk["mean"].shape == (2,)


def test_units_are_those_of_the_user():
    def path(scale):
        problem = toclip.Problem(
            toclip.eigenvalues(scale * np.array([1.0, 0.5, 0.25])),
            2.0 / math.sqrt(scale),
            toclip.noise.gaussian(0.5),
            learning_rate=0.4 / scale,
            clip=0.9 * math.sqrt(scale),
        )
        return problem.predict(toclip.linear_times(3.0, 5))

    unit, scaled = path(1.0), path(4.0)
    assert np.allclose(unit.risk, scaled.risk, rtol=1e-9)
    assert np.allclose(unit.distance, 4 * scaled.distance, rtol=1e-9)
    assert np.allclose(scaled.eta, 0.1) and np.allclose(scaled.c, 1.8)


def test_progress_is_told_and_may_stop_the_work():
    told = []
    problem = small()
    problem.simulate([20.0], runs=200, progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (200, 200) and told == sorted(told)

    def enough(done, of):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        problem.simulate([300.0], runs=1000, progress=enough)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_stops_an_ensemble(ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        small().simulate([1000.0], runs=100_000, progress=lambda done, of: ctrl_c.set())


def test_results_turn_into_frames():
    best = toclip.best_threshold(toclip.noise.rademacher(0.2, sigma=5.0), [0.1, 1.0])
    band = small().simulate([0.5, 1.0], runs=5)
    assert list(best.to_dict()) == ["r", "c", "mu", "m2", "ccc", "efficiency"]
    pandas = pytest.importorskip("pandas")
    assert isinstance(band.to_pandas(), pandas.DataFrame)
    assert list(band.to_pandas()["risk_median"]) == band.risk["median"].tolist()
    assert small().predict([0.5, 1.0]).to_pandas().shape == (2, 7)
    polars = pytest.importorskip("polars")
    assert isinstance(best.to_polars(), polars.DataFrame) and best.to_polars().height == 2


def test_figures_are_drawn():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    times = toclip.linear_times(3.0, 20)
    axes = small().predict(times).plot(label="ODE")
    small().simulate(times, runs=20).plot(axes, label="C-SGD")
    assert len(axes.lines) == 2 and axes.get_yscale() == "log"


ERRORS = [
    "toclip.noise.gaussian(-1.0)",
    "toclip.noise.gaussian(math.nan)",
    'toclip.Noise({"family": "gauss"})',
    'toclip.Noise({"family": "cauchy"})',
    'toclip.Noise({"sigma": 1.0})',
    'toclip.Noise({"family": "gaussian"})',
    "toclip.noise.gaussian(1.0).batched(0)",
    "toclip.noise.empirical([])",
    "toclip.factors(toclip.noise.none(), math.nan, 1.0)",
    "toclip.factors(toclip.noise.none(), 1.0, [1.0, -2.0])",
    "toclip.factors(toclip.noise.none(), [1.0, 2.0], [1.0] * 3)",
    'toclip.factors(toclip.noise.none(), "x", 1.0)',
    "toclip.power_law(0, 1.0)",
    "toclip.eigenvalues([1.0, -1.0])",
    'small(clip="often")',
    "small(clip=-0.5)",
    "small(clip=0.0)",
    "small(clip=math.nan)",
    "small(clip=[1.0])",
    'small(clip={"kind": "proportional", "kapa": 1.0})',
    'small(clip={"kind": "proportional", "kappa": "large"})',
    'small(clip={"kind": "online"})',
    'small(clip={"kind": "online", "memory": 3})',
    'small(clip={"kind": "cosine", "from": 1.0, "over": 1.0}).predict([1.0])',
    "small(learning_rate=-1.0)",
    "small(learning_rate=math.inf)",
    'small(learning_rate="gredy")',
    'small(learning_rate="greedy", clip=0.5)',
    "small(margin=2.0)",
    'small(margin={"kind": "predicted", "margin": 0.5})',
    'small(margin={"kind": "certain", "margin": 0.5})',
    "small().predict([])",
    "small().predict([1.0, 0.5])",
    "small().predict([[1.0, 2.0]])",
    'small().predict([1.0], method="magic")',
    "small().predict([1.0], rtol=1.0)",
    "small().simulate([1.0], runs=0)",
    "small().simulate([1.0], confidence=2.0)",
    'small().simulate([1.0], method="magic")',
    "toclip.linear_times(-1.0, 5)",
    "toclip.factors(toclip.noise.none(), 1.0, math.nan)",
    'toclip.factors(toclip.noise.none(), 1.0, "often")',
    "small().stability_limits(math.nan)",
    'small().stability_limits("often")',
    "small().simulate([1.0], runs=-1)",
    'small().simulate([1.0], runs="many")',
    "small().simulate([1.0], runs=2**64)",
    "small().predict([1.0], method=3)",
    "toclip.noise.gaussian(10**400)",
    "toclip.blocks([1.0], [1, 2])",
    "toclip.blocks([1.0], [0.5])",
    "toclip.Spectrum(3)",
    'toclip.Schedule("fast")',
    "toclip.Schedule(0.5).at([-1.0])",
]


def test_error_messages():
    compare("errors-core.txt", messages(ERRORS, globals()))
