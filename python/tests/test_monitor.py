"""The monitor and the threshold rules."""

import math
import pickle

import numpy as np
import pytest

import toclip
from conftest import compare, messages


def norms(count, seed=1):
    rng = np.random.default_rng(seed)
    outlier = rng.random(count) < 0.1
    return np.abs(rng.normal(size=count)) * np.where(outlier, 20.0, 1.0) + 1e-3


def test_one_by_one_is_all_at_once():
    seen = norms(3000)
    one, all_at_once = toclip.Monitor(components=1), toclip.Monitor(components=1)
    for norm in seen:
        one.observe(norm)
    all_at_once.observe(seen)
    assert one == all_at_once and one.steps == 3000
    assert one.advice().kind == "clip" and "clip at" in str(one.advice())


def test_a_monitor_resumes_from_its_state():
    seen = norms(4000)
    whole, first = toclip.Monitor(watched=2.0), toclip.Monitor(watched=2.0)
    whole.observe(seen)
    first.observe(seen[:1500])
    for copy in (toclip.Monitor.from_json(first.to_json()), pickle.loads(pickle.dumps(first))):
        copy.observe(seen[1500:])
        assert copy == whole
    assert 0 < whole.watched()["clip_fraction"]["value"] < 1


def test_workers_are_merged():
    seen = norms(6000)
    settings = dict(components=1, fixed_scale=1.0)
    parts = [toclip.Monitor(**settings) for _ in range(2)]
    whole = toclip.Monitor(**settings)
    whole.observe(seen)
    for k, part in enumerate(parts):
        part.observe(seen[k::2])
    parts[0].merge(parts[1])
    assert parts[0].steps == whole.steps
    assert np.allclose(parts[0].curve()["mu"], whole.curve()["mu"], rtol=1e-12)
    assert np.allclose(parts[0].curve()["ccc"], whole.curve()["ccc"], rtol=1e-12)
    with pytest.raises(ValueError, match="different settings cannot be merged"):
        whole.merge(toclip.Monitor(components=2, fixed_scale=1.0))
    parts[0].merge(parts[0])  # itself, without a deadlock
    assert parts[0].steps == 2 * whole.steps


def test_estimates_agree_with_their_definitions():
    seen = norms(5000)
    monitor = toclip.Monitor(components=1, fixed_scale=1.0)
    monitor.observe(seen)
    curve = monitor.curve()
    assert len(curve) == 64
    k = 30
    tau = curve["threshold"][k]
    assert math.isclose(curve["mu"][k], (seen <= tau).mean(), rel_tol=1e-9)
    nu = np.minimum(seen, tau) ** 2
    assert math.isclose(curve["nu"][k], nu.mean() / (seen**2).mean(), rel_tol=1e-9)
    assert curve["ccc_low"][k] < curve["ccc"][k] < curve["ccc_high"][k]
    assert set(curve.to_dict()) >= {"threshold", "mu", "mu_low", "mu_high", "ccc"}
    assert monitor.tail()["exceedances"] >= 30 and monitor.drift()["p_value"] > 0


def test_inner_products_give_the_direct_form():
    gradient = np.where(np.arange(2000) % 10 == 7, -4.0, 1.0)
    monitor = toclip.Monitor(watched=1.0, fixed_scale=1.0)
    monitor.observe_aligned(np.abs(gradient), gradient * 0.5)
    assert math.isclose(monitor.watched()["direct"]["mu"]["value"], 1.6, rel_tol=1e-12)


def test_invalid_norms_are_counted_separately():
    monitor = toclip.Monitor()
    monitor.observe([1.0, 0.0, math.nan, math.inf, -1.0, 2.0])
    assert monitor.left_out == {"zero": 1, "not_finite": 3}
    assert monitor.advice().reason == "too_few" and monitor.threshold() == math.inf
    monitor.observe([])


def test_rules_answer_norm_by_norm():
    for none in (None, "none", "inf", math.inf):
        assert toclip.ThresholdRule.fixed(none).thresholds(9.0).tolist() == [math.inf]
        toclip.ThresholdRule.zclip(cap=none)
    assert toclip.ThresholdRule.fixed(2.0).thresholds([1.0, 9.0]).tolist() == [2.0, 2.0]
    assert toclip.ThresholdRule.autoclip(50.0).thresholds([2.0, 4.0, 8.0])[-1] == 4.0
    seen = norms(6000)
    rule = toclip.ThresholdRule.monitored(components=1, every=500)
    ahead = []
    for start in range(0, 6000, 100):
        ahead.append(rule.next()[0])
        assert rule.thresholds(seen[start : start + 100])[0] == ahead[-1]
    assert ahead[0] == math.inf and ahead[-1] < 5.0 and rule.rate_factor > 1.0
    copy = toclip.ThresholdRule.from_json(rule.to_json())
    assert copy.next() == rule.next() and copy.monitor == rule.monitor
    skip = toclip.ThresholdRule.skip_above(3.0)
    assert skip.thresholds([2.0, 7.0]).tolist() == [math.inf, 6.0] and skip.skips
    rule = toclip.ThresholdRule.empirical_ccc(1.0)
    rule.thresholds(seen[:500])
    assert 0.0 < rule.next()[0] < math.inf and rule.next()[1] >= 1.0 and not rule.skips
    for rule in (
        toclip.ThresholdRule.zclip(cap=None),
        toclip.ThresholdRule.huber(),
        toclip.ThresholdRule.autoclip(),
        toclip.ThresholdRule.empirical_ccc(),
        skip,
    ):
        rule.thresholds(seen[:500])
        copy = pickle.loads(pickle.dumps(rule))
        assert (copy.thresholds(seen[500:900]) == rule.thresholds(seen[500:900])).all()


ERRORS = [
    "toclip.Monitor(confidence=1.5)",
    "toclip.Monitor(memory=3)",
    "toclip.Monitor(components=0)",
    'toclip.Monitor().observe("high")',
    "toclip.Monitor().observe([[1.0], [2.0]])",
    "toclip.Monitor().observe_aligned([1.0], [1.0, 2.0])",
    'toclip.Monitor.from_json("{}")',
    "toclip.ThresholdRule.monitored(every=0)",
    "toclip.ThresholdRule.autoclip(101.0)",
    "toclip.Monitor(watched=math.nan)",
    'toclip.Monitor(watched="often")',
    "toclip.ThresholdRule.fixed(math.nan)",
    "toclip.ThresholdRule.fixed(-1.0)",
    "toclip.ThresholdRule.zclip(cap=0.0)",
    'toclip.ThresholdRule.from_json("{}")',
    "toclip.ThresholdRule.monitored(confidence=2.0)",
]


def test_error_messages():
    compare("errors-monitor.txt", messages(ERRORS, globals()))
