"""Tuning, bounds, margins, convergence rates, and SGD on data."""

import copy
import json
import math
import os
import pickle
import subprocess

import numpy as np
import pytest

import toclip
from conftest import command


def small(spectrum=None, **change):
    given = {"learning_rate": 0.5, "clip": "none"} | change
    noise = toclip.noise.rademacher(0.2, sigma=0.8)
    return toclip.Problem(spectrum or toclip.power_law(60, 0.3), 1.0, noise, **given)


def test_the_tuned_kappa_is_a_minimum_of_the_predicted_risk():
    tuned = small().tune_kappa(8.0)

    def end(kappa):
        rule = {"kind": "proportional", "kappa": kappa}
        return small(clip=rule).predict([8.0]).risk[0]

    assert math.isclose(end(tuned.kappa), tuned.risk, rel_tol=1e-6)
    assert all(end(tuned.kappa * k) > tuned.risk for k in (0.7, 0.9, 1.1, 1.4))
    assert tuned.clip == {"kind": "proportional", "kappa": tuned.kappa, "compensation": "exact"}
    # Gaussian noise: clipping never helps.
    never = toclip.Problem(toclip.isotropic(50), 1.0, toclip.noise.gaussian(1.0), learning_rate=0.5)
    assert never.tune_kappa(5.0).kappa == math.inf and never.tune_kappa(5.0).clip == "none"
    with pytest.raises(ValueError, match="greedy learning rate"):
        small(learning_rate="greedy").tune_kappa(1.0)
    with pytest.raises(ValueError, match="much"):
        small().tune_kappa(1.0, compensation="much")


def test_tuning_does_not_depend_on_units():
    one = toclip.Problem(toclip.isotropic(40), 2.0, toclip.noise.laplace(sigma=2.0), learning_rate=0.8)
    four = toclip.Problem(
        toclip.blocks([4.0], [40]), 1.0, toclip.noise.laplace(sigma=2.0), learning_rate=0.2
    )
    assert math.isclose(one.tune_kappa(4.0).kappa, four.tune_kappa(4.0).kappa, rel_tol=1e-6)


def test_the_greedy_rate_does_not_depend_on_units():
    # K = 4 I with half the start is the same problem as K = I: the same risk, a quarter of the rate.
    def path(spectrum, norm):
        noise = toclip.noise.laplace(sigma=0.5)
        problem = toclip.Problem(spectrum, norm, noise, learning_rate="greedy", clip="max_ccc")
        return problem.predict([0.5, 2.0])

    one, four = path(toclip.isotropic(40), 2.0), path(toclip.blocks([4.0], [40]), 1.0)
    assert np.allclose(one.risk, four.risk, rtol=1e-9) and np.allclose(one.eta, 4 * four.eta)


def test_bounds_hold_at_every_point_of_the_range():
    noise = toclip.noise.laplace(sigma=1.0)
    bounds = toclip.kappa_bounds(noise, (1e-3, 10.0), [1e-2, 30.0])
    r, c = np.geomspace(1e-3, 10, 30)[:, None], np.geomspace(1e-2, 30, 40)
    at, y = toclip.factors(noise, r, c), c / np.sqrt(2 * r + 1)
    for values, power, (low, high) in ((at.mu, 1, bounds.mu), (at.nu, 2, bounds.nu)):
        ratio = values / np.minimum(1, y**power)
        assert low - 1e-9 <= ratio.min() and ratio.max() <= high + 1e-9
    assert bounds.lower**2 / bounds.upper <= at.ccc.min()
    with pytest.raises(ValueError, match="two ends of a range"):
        toclip.kappa_bounds(noise, 1.0, (0.1, 1.0))


def test_a_margin_keeps_the_risk_falling():
    times = toclip.linear_times(10.0, 51)
    assert small(learning_rate=20.0).predict(times).stop["reason"] == "diverged"
    predicted = {"kind": "predicted", "margin": 0.9, "time": 10.0}
    for margin in (0.9, {"kind": "certified", "margin": 0.9}, predicted):
        risk = small(learning_rate=20.0, margin=margin).predict(times).risk
        assert len(risk) == 51 and (np.diff(risk) <= 0).all()
    # Below half of the limit with an infinite rate: the greedy rate, here of isotropic data.
    half = predicted | {"margin": 0.5}
    same = [
        small(toclip.isotropic(60), learning_rate=rate, margin=margin).predict(times).risk
        for rate, margin in ((math.inf, half), ("greedy", None))
    ]
    assert np.allclose(*same, rtol=1e-3)
    with pytest.raises(ValueError, match="learning_rate is inf; expected a finite number"):
        small(learning_rate=math.inf, margin=0.5)
    with pytest.raises(ValueError, match="margin = 2 is not allowed"):
        small(margin=2.0)


def test_the_rate_has_the_bits_of_the_command():
    words = ["convergence", "--dims", "50,200,800", "--runs", "20", "--seed", "4", "--time", "1"]
    noise = ["--noise", "laplace", "--sigma", "0.5"]
    done = subprocess.run([command(), *words, *noise, "--json"], capture_output=True, check=True)
    said = json.loads(done.stdout)["rate"]
    told = []
    rate = toclip.convergence(
        map(toclip.isotropic, (50, 200, 800)),
        1.0,
        toclip.noise.laplace(sigma=0.5),
        learning_rate=0.7,
        clip=0.9,
        time=1.0,
        runs=20,
        seed=4,
        progress=lambda done, of: told.append((done, of)),
    )
    assert (rate.slope, rate.low, rate.high) == (said["slope"], said["low"], said["high"])
    assert rate.gap.tolist() == [gap["mean"] for gap in said["gaps"]]
    assert told[-1] == (60, 60) and list(rate.to_dict()) == list(rate.columns())
    with pytest.raises(ValueError, match="at least two different dimensions"):
        toclip.convergence([toclip.isotropic(5)], 1.0, toclip.noise.none(), learning_rate=0.1)
    with pytest.raises(ValueError, match="largest eigenvalues of the spectra are 1 and 2"):
        toclip.convergence(
            [toclip.isotropic(5), toclip.blocks([2.0], [9])], 1.0, toclip.noise.none(), learning_rate=0.1
        )


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_ctrl_c_stops_a_measurement(ctrl_c):
    with pytest.raises(KeyboardInterrupt):
        toclip.convergence(
            map(toclip.isotropic, (1000, 10_000)),
            1.0,
            toclip.noise.gaussian(0.5),
            learning_rate=0.5,
            runs=10_000_000,
            progress=lambda done, of: ctrl_c.set(),
        )


def data(rows=300, width=5, norm=1.0):
    rng = np.random.default_rng(3)
    x = math.sqrt(norm) * rng.standard_normal((rows, width)) * np.linspace(1.0, 0.4, width)
    return x, x @ np.arange(1.0, width + 1) / math.sqrt(norm) + rng.standard_t(3, rows)


def by_hand(stream, x, y, eta, c, steps):
    """The iteration as the paper writes it, rows in order."""
    theta, d = np.zeros(x.shape[1]), stream.dim
    for row, target in zip(x[:steps], y[:steps]):
        gradient = (row @ theta - target) * row
        length = np.linalg.norm(gradient)
        theta -= eta / d * min(1.0, c * math.sqrt(d) / length) * gradient
    gap = theta - np.linalg.lstsq(x, y, rcond=None)[0]
    return 0.5 * gap @ (x.T @ x / len(x)) @ gap, gap @ gap


@pytest.mark.parametrize("norm", [1.0, 9.0])
def test_a_stream_is_the_iteration_written_out(norm):
    x, y = data(norm=norm)
    eta, c = 0.3 / norm, 1.5 * math.sqrt(norm)
    stream = toclip.Stream(x, y, learning_rate=eta, clip=c, in_order=True)
    assert math.isclose(stream.end, 300 / stream.dim)
    path = stream.run([0.0, 200 / stream.dim, stream.end + 1])
    assert path.stop == {"reason": "data_ended", "t": stream.end} and len(path.risk) == 2
    for k, steps in enumerate((0, 200)):
        risk, distance = by_hand(stream, x, y, eta, c, steps)
        assert math.isclose(path.risk[k], risk, rel_tol=1e-9)
        assert math.isclose(path.distance[k], distance, rel_tol=1e-9)
    # The theory of it starts in the same place.
    problem = stream.problem()
    assert math.isclose(problem.risk, path.risk[0], rel_tol=1e-9)
    assert math.isclose(problem.distance, path.distance[0], rel_tol=1e-9)


@pytest.mark.parametrize(
    "clip", ["max_ccc", {"kind": "proportional"}, {"kind": "online", "memory": 50}]
)
def test_rules_see_the_residuals_whatever_the_units(clip):
    ends = []
    for norm in (1.0, 16.0):
        x, y = data(norm=norm)
        stream = toclip.Stream(x, y, learning_rate=0.3 / norm, clip=clip)
        ends.append(stream.run([10.0], seed=2).risk[0])
    assert math.isclose(*ends, rel_tol=1e-6)


def test_passes_over_the_data_are_ordered_by_seed_and_index():
    x, y = data()
    stream = toclip.Stream(x, y, learning_rate=0.3, clip=1.5)
    band = stream.simulate([0.0, 20.0], runs=8, seed=5, threads=1)
    alone = [stream.run([0.0, 20.0], seed=5, index=k).risk for k in range(8)]
    assert (np.min(alone, axis=0) == band.risk["min"]).all() and len(set(r[1] for r in alone)) == 8


@pytest.mark.parametrize(
    "change, words",
    [
        ({"features": [[1.0, 2.0]]}, r"shapes \(1, 2\) and \(300,\)"),
        ({"features": data()[0].T}, r"shapes \(5, 300\) and \(300,\)"),
        ({"targets": [math.nan] * 300}, "targets contain numbers that are not finite"),
        ({"start": [0.0]}, "start must be 5 finite numbers"),
        ({"covariance": -np.eye(5)}, "negative eigenvalue, -1"),
        ({"covariance": np.zeros((5, 5))}, "all are zero"),
        ({"noise": toclip.noise.gaussian(1.0).batched(8)}, "one row per step"),
        ({"clip": "often"}, "unknown kind `often`"),
    ],
)
def test_errors_of_streams(change, words):
    x, y = data()
    with pytest.raises(ValueError, match=words):
        toclip.Stream(**{"features": x, "targets": y, "learning_rate": 0.1} | change)


def test_whole_gradients_give_the_inner_products_of_halves():
    rng = np.random.default_rng(7)
    gradients = rng.standard_normal((400, 4)) + [1.0, 0.0, 0.0, 0.0]
    vectors, pairs = toclip.Monitor(watched=2.0), toclip.Monitor(watched=2.0)
    halves, same = toclip.Halves(4, 50.0), toclip.Halves(4, 50.0)
    for gradient in gradients:
        norm = vectors.observe_vector(halves, gradient)
        assert math.isclose(norm, np.linalg.norm(gradient), rel_tol=1e-12)
        inner = same.inner(gradient)
        if inner is not None:
            pairs.observe_aligned(norm, inner)
    assert vectors == pairs and halves == same == pickle.loads(pickle.dumps(halves))
    with pytest.raises(ValueError, match="a gradient of 3 numbers was given to halves of dimension 4"):
        vectors.observe_vector(halves, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("start", [1.0, np.linspace(0.1, 1.0, 50)], ids=["norm", "coordinates"])
def test_problems_survive_pickles_and_copies(start):
    clip = {"kind": "proportional", "kappa": 1.3, "compensation": "exact"}
    made = toclip.Problem(
        toclip.power_law(50, 0.3), start, toclip.noise.student_t(3.0, sigma=1.0).batched(4),
        learning_rate=toclip.Schedule({"kind": "cosine", "from": 0.7, "over": 15.0}), clip=clip,
        margin=0.9,
    )
    clip["kappa"] = 0.1
    path = made.predict([2.0])
    for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert other.predict([2.0]).risk == path.risk
