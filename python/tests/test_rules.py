"""Rules, groups, momentum and private noise in Python: the numbers and sentences of experiment files."""

import pickle

import numpy as np
import pytest

import toclip
from conftest import compare, messages

RULES = ["clip", "skip", "normalise", "tanh", "root", "optimal"]
STUDENT = toclip.noise.student_t(df=2.5, sigma=1.0)
BASE = {
    "time": 2.0,
    "points": 5,
    "methods": ["ode"],
    "spectrum": {"kind": "power_law", "dim": 60, "exponent": 0.4},
    "start": {"kind": "uniform", "norm": 1.0},
    "noise": {"family": "student_t", "df": 2.5, "sigma": 1.0},
    "learning_rate": 0.3,
    "clip": 0.9,
}
STEPS = [
    {"rule": "skip"},
    {"rule": "tanh", "momentum": 0.9},
    {"rule": "by_value"},
    {"groups": [{"size": 20}, {"size": 40, "ratio": 0.5}]},
    {"momentum": {"kind": "average", "delta": 2.0}},
    {"momentum": {"beta": 0.5, "dampening": 0.2}, "rule": "skip"},
    {"momentum": {"beta": 0.9, "on_skip": "zero_gradient"}, "rule": "skip"},
    {"privacy": {"noise_multiplier": 0.5}},
    {"privacy": {"noise_multiplier": 0.5}, "learning_rate": "greedy", "clip": "max_ccc"},
]


def problem(**step):
    return toclip.Problem(
        toclip.power_law(60, 0.4), 1.0, STUDENT, **{"learning_rate": 0.3, "clip": 0.9} | step
    )


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_step_is_the_same_in_an_experiment_and_in_a_problem(step):
    methods = ["ode", "sgd"] if "by_value" in step.values() or "groups" in step else ["ode", "hsgd", "sgd"]
    curves = toclip.experiment(BASE | step | {"methods": methods, "ensemble": {"runs": 3}})
    same = pickle.loads(pickle.dumps(problem(**step)))
    times = toclip.linear_times(2.0, 5)
    assert (curves["ode"].risk == same.predict(times).risk).all()
    for method in methods[1:]:
        band = same.simulate(times, runs=3, method=method)
        assert (curves[method].risk["mean"] == band.risk["mean"]).all(), method


def test_the_rule_of_the_noise_is_the_rule_of_the_problem():
    times = [0.0, 1.0, 2.0]
    by_noise = toclip.Problem(
        toclip.power_law(60, 0.4), 1.0, STUDENT.with_rule("skip"), learning_rate=0.3, clip=0.9
    )
    assert by_noise.predict(times) == problem(rule="skip").predict(times)
    # What the problem is given counts.
    clipped = toclip.Problem(
        toclip.power_law(60, 0.4), 1.0, STUDENT.with_rule("skip"), learning_rate=0.3, clip=0.9, rule="clip"
    )
    assert clipped.predict(times) == problem().predict(times)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("size", [1, 8])
def test_factors_criteria_and_limits_of_every_radial_rule(rule, size):
    noise = toclip.noise.laplace(sigma=1.0).with_rule(rule)
    if (rule, size) == ("optimal", 8):
        with pytest.raises(ValueError, match="batch of one"):
            noise.batched(size)
        return
    noise = noise.batched(size)
    found = toclip.factors(noise, [0.05, 0.5], 0.9)
    assert np.allclose(found.csc, found.mu / found.nu) and np.allclose(found.ccc, found.mu**2 / found.nu)
    best = toclip.best_threshold(noise, 0.1)
    if rule in ("normalise", "optimal"):  # the same at every threshold
        assert best.ccc == pytest.approx(toclip.factors(noise, 0.1, 0.7).ccc, rel=1e-9)
    elif np.isfinite(best.c) and best.c > 0:
        assert best.ccc == pytest.approx(toclip.factors(noise, 0.1, best.c).ccc, rel=1e-9)
    assert best.ccc >= toclip.factors(noise, 0.1, 0.9).ccc - 1e-12
    limits = toclip.Problem(toclip.isotropic(100), 1.0, noise, learning_rate=0.1, clip=0.9).stability_limits(0.9)
    start = toclip.factors(noise, 0.5, 0.9)
    assert limits["distance"] == pytest.approx(4 * 0.5 * start.mu / start.m2, rel=1e-12)


def test_where_skipping_moves_away_no_rate_is_stable():
    noise = toclip.noise.rademacher(0.4, lam=1.0).with_rule("skip")
    assert toclip.factors(noise, 0.005, 1.0).mu < 0
    stuck = toclip.Problem(toclip.isotropic(100), 0.1, noise, learning_rate=0.1, clip=1.0)
    assert stuck.stability_limits(1.0) == {"risk": 0.0, "distance": 0.0}
    assert toclip.Problem(
        toclip.isotropic(100), 0.1, noise, learning_rate=0.1, clip=1.0, momentum=0.9
    ).stability_limits(1.0)["stable"] == 0.0


def test_factors_of_eigenvalues_and_groups():
    by_value = problem(rule="by_value").factors(0.4)
    assert len(by_value.eigenvalue) == 60 and by_value.group is None
    assert (np.diff(by_value.mu) > 0).all()  # small eigenvalues are hardly clipped
    groups = problem(groups=[{"size": 20}, {"size": 40, "ratio": 0.5}])
    found = groups.factors(0.8)
    assert found.group.tolist() == [0, 1] and found.multiplicity.tolist() == [20, 40]
    assert found.mu.tolist() == toclip.factors(STUDENT, groups.risk, [0.8, 0.4]).mu.tolist()
    # A radial rule has one mu, and m2 in proportion to the eigenvalue.
    plain = problem().factors(0.9)
    known = toclip.factors(STUDENT, problem().risk, 0.9)
    assert plain.effective == pytest.approx((known.mu, known.m2), rel=1e-14)
    assert (plain.mu == known.mu).all() and np.allclose(plain.m2, plain.eigenvalue * known.m2)


@pytest.mark.parametrize("rule", ["clip", "by_value"])
def test_factors_do_not_depend_on_units(rule):
    # x' = 2x: K' = 4K, c' = 2c; m2 of a coordinate is that of a gradient twice as long.
    def made(scale):
        spectrum = toclip.eigenvalues([scale, 0.5 * scale, 0.25 * scale])
        return toclip.Problem(spectrum, scale**-0.5, STUDENT, learning_rate=0.1, rule=rule)

    one, four = made(1.0).factors(0.7), made(4.0).factors(1.4)
    assert np.allclose(one.mu, four.mu, rtol=1e-12) and np.allclose(4 * one.m2, four.m2, rtol=1e-12)
    assert np.allclose(4 * one.eigenvalue, four.eigenvalue)


def test_a_stream_follows_its_rule():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((300, 4)) * [1.0, 0.8, 0.6, 0.4]
    y = x @ np.ones(4) + rng.standard_t(3, 300)
    parts = {"learning_rate": 0.3, "clip": 1.0, "in_order": True}
    dim = toclip.Stream(x, y, **parts).dim
    reshape = {
        "skip": lambda g: g * (np.linalg.norm(g) <= dim**0.5),
        "by_value": lambda g: np.clip(g, -1.0, 1.0),
    }
    for rule, reshaped in reshape.items():
        stream = toclip.Stream(x, y, rule=rule, **parts)
        theta = np.zeros(4)
        for row, target in zip(x, y, strict=True):
            theta -= 0.3 / dim * reshaped((row @ theta - target) * row)
        off = theta - stream.optimum
        risk = 0.5 * off @ (x.T @ x / 300) @ off
        assert stream.run([stream.end]).risk[-1] == pytest.approx(risk, rel=1e-9), rule
    by_noise = toclip.Stream(x, y, noise=STUDENT.with_rule("skip"), **parts)
    assert by_noise.run([9.0]) == toclip.Stream(x, y, rule="skip", **parts).run([9.0])
    groups = toclip.Stream(x, y, groups=[{"size": 1}, {"size": 3}], **parts)
    assert groups.run([9.0]) != by_noise.run([9.0])


def test_kappa_is_tuned_with_momentum():
    plain = problem().tune_kappa(2.0)
    average = problem(momentum={"kind": "average", "delta": 1e5}).tune_kappa(2.0)
    assert average.kappa == pytest.approx(plain.kappa, rel=1e-2)
    again = problem(momentum={"kind": "average", "delta": 2.0})
    tuned = again.tune_kappa(2.0)
    same = problem(momentum={"kind": "average", "delta": 2.0}, clip=tuned.clip)
    assert same.predict([2.0]).risk[0] == pytest.approx(tuned.risk, rel=1e-5)


def test_private_problems_are_tuned_and_limited():
    privacy = {"noise_multiplier": 1.0}
    parts = toclip.isotropic(1000), 1.0, toclip.noise.laplace(sigma=0.5).batched(16, per_sample=True)
    given = toclip.Problem(*parts, learning_rate=0.5, clip=0.9, privacy=privacy)
    best = given.tune_private(5.0)
    greedy = toclip.Problem(*parts, learning_rate="greedy", clip="max_ccc", privacy=privacy)
    assert greedy.predict([5.0]).risk[0] < best.risk < given.predict([5.0]).risk[0]
    # At the largest stable rate the risk neither rises nor falls at the start.
    limit = given.stability_limits(0.9)["risk"]
    for share, falls in ((0.99, True), (1.01, False)):
        at = toclip.Problem(*parts, learning_rate=share * limit, clip=0.9, privacy=privacy)
        start, later = at.predict([0.0, 1e-4]).risk
        assert (later < start) == falls


def test_error_messages():
    calls = [
        "problem(rule='clop')",
        "problem(rule=3)",
        "problem(rule='normalise', clip='none')",
        "problem(rule='by_value', clip='max_ccc')",
        "problem(groups=[])",
        "problem(groups=60)",
        "problem(groups=[{'size': 10}])",
        "problem(groups=[{'size': 60, 'ratio': -1}])",
        "problem(groups=[{'size': 60}], rule='skip')",
        "problem(momentum=1.5)",
        "problem(momentum='fast')",
        "problem(momentum={'kind': 'nesterov', 'beta': 0.9})",
        "problem(momentum={'beta': 0.9, 'delta': 1.0})",
        "problem(momentum=0.9).predict([1.0], method='volterra')",
        "problem(momentum=0.9).simulate([1.0], method='collapsed')",
        "problem(privacy={'noise_multiplier': 1.0}, clip='max_ccc')",
        "problem(momentum=0.9, rule='by_value')",
        "problem(momentum={'beta': 0.9, 'on_skip': 'not_made'})",
        "problem(momentum=0.9, learning_rate='greedy')",
        "problem(momentum=0.9, margin=0.9)",
        "problem().tune_private(1.0)",
        "problem(privacy={'noise_multiplier': 1.0}, momentum=0.9)",
        "problem(privacy={'noise_multiplier': 1.0}, margin=0.9)",
        "problem(privacy=1.0)",
        "problem(privacy={'noise_multiplier': -1})",
        "problem(privacy={'sigma': 1})",
        "problem(privacy={'noise_multiplier': 1.0}, rule='skip')",
        "problem(privacy={'noise_multiplier': 1.0}, groups=[{'size': 60}])",
        "problem(privacy={'noise_multiplier': 1.0}, clip='none').predict([1.0])",
        "toclip.Problem(toclip.isotropic(9), 1.0, STUDENT.batched(8), learning_rate=0.1, clip=1.0, privacy={'noise_multiplier': 1.0})",
        "problem(rule='by_value').stability_limits(1.0)",
        "toclip.factors(STUDENT.with_rule('by_value'), 0.5, 0.9)",
        "toclip.best_threshold(STUDENT.with_rule('by_value'), 0.5)",
        "problem(rule='by_value').simulate([1.0], method='collapsed')",
        "toclip.experiment(BASE | {'momentum': 0.9, 'methods': ['volterra']})",
        "toclip.experiment(BASE | {'momentum': 0.9, 'rule': 'by_value'})",
        "toclip.experiment(BASE | {'momentum': 0.9, 'margin': 0.9})",
        "toclip.experiment(BASE | {'momentum': 1.5})",
        "toclip.experiment(BASE | {'groups': [{'size': 10}]})",
        "toclip.experiment(BASE | {'privacy': {'noise_multiplier': -1}})",
        "toclip.experiment(BASE | {'rule': 'clop'})",
        "STUDENT.with_rule('clop')",
        "STUDENT.with_rule('optimal').batched(4)",
    ]
    compare("errors-rules.txt", messages(calls, {"toclip": toclip, "problem": problem, "STUDENT": STUDENT, "BASE": BASE}))
