"""The rule of the guard, by itself and in Optax."""

import json
import math
import pickle

import numpy as np
import pytest
import toclip
from conftest import compare, messages
from toclip import GuardRule


def norms_with_spikes(steps=400, seed=0):
    rng = np.random.default_rng(seed)
    norms = np.exp(0.3 * rng.normal(size=steps)) * np.linspace(2.0, 0.5, steps)
    norms[rng.random(steps) < 0.03] *= 20.0
    return norms


def test_only_spikes_are_clipped_and_to_the_threshold():
    guard, norms = GuardRule(multiple=3.0), norms_with_spikes()
    made = [guard.step(norm) for norm in norms]
    clipped = np.array([step.clipped for step in made])
    spikes = norms > 5.0
    assert spikes.sum() >= 8 and (clipped[20:] == spikes[20:]).mean() > 0.98
    for step in made:
        assert step.norm * step.factor <= step.threshold * (1 + 1e-12)
        assert step.factor == 1.0 or math.isclose(step.norm * step.factor, step.threshold)
    assert guard.counts == {
        "steps": 400, "clipped": int(clipped.sum()), "skipped": 0, "non_finite": 0,
    }


def test_the_anchor_falls_freely_and_rises_slowly():
    guard = GuardRule(multiple=2.0, window=20, warmup=10, rise=0.001)
    for _ in range(50):
        guard.step(1.0)
    assert guard.anchor == 1.0
    for _ in range(100):
        guard.step(5.0)
    # The median is above 1 from the tenth of them on.
    assert math.isclose(guard.anchor, 1.001**91, rel_tol=1e-9)
    for _ in range(20):
        guard.step(0.1)
    assert guard.anchor == 0.1 and guard.threshold == 0.2


def test_a_threshold_cannot_follow_norms_that_explode():
    """Norms that grow by 5% a step would carry a running median with them."""
    guard = GuardRule()
    for _ in range(100):
        guard.step(1.0)
    for k in range(200):
        made = guard.step(1.05**k)
    assert made.norm > 1e4 and made.norm * made.factor < 2.0 * 1.001**200 * (1 + 1e-9)


def test_non_finite_gradients_are_skipped_counted_and_forgotten():
    guard, other = GuardRule(warmup=5), GuardRule(warmup=5)
    for k, norm in enumerate(norms_with_spikes(60)):
        assert guard.step(norm) == other.step(norm)
        bad = guard.step([math.nan, math.inf, -math.inf][k % 3])
        assert bad.skipped and bad.factor == 0.0
    assert guard.counts["non_finite"] == 60 and guard.counts["skipped"] == 0
    assert guard.anchor == other.anchor and guard.threshold == other.threshold


def test_skipping_ends_if_the_norms_have_changed_for_good():
    guard = GuardRule(action="skip", max_skips=4)
    for _ in range(50):
        guard.step(1.0)
    made = [guard.step(10.0) for _ in range(8)]
    assert [step.skipped for step in made] == [True] * 4 + [False] * 4
    assert all(step.clipped for step in made[4:])
    assert not guard.step(1.0).clipped and guard.step(10.0).skipped


def test_an_additional_fixed_threshold():
    guard = GuardRule(action="skip", multiple=2.0, max_norm=1.5)
    assert guard.step(3.0).factor == 0.5  # during the warm-up
    for _ in range(50):
        guard.step(1.0)
    assert guard.threshold == 2.0
    assert guard.step(1.8).factor == 1.5 / 1.8 and guard.step(2.5).skipped


def test_a_zero_gradient_does_not_change_the_scale():
    guard = GuardRule(warmup=2)
    for norm in (1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0):
        assert guard.step(norm).factor == 1.0
    assert guard.anchor == 1.0


@pytest.mark.parametrize("action", ["clip", "skip"])
def test_saved_and_restored_exactly(action):
    norms = norms_with_spikes()
    norms[[50, 260]] = math.nan
    settings = {"action": action, "multiple": 2.5, "max_norm": 6.0}
    whole = GuardRule(**settings)
    expected = [whole.step(norm) for norm in norms]
    for cut in (0, 7, 150, 399):
        first = GuardRule(**settings)
        for norm in norms[:cut]:
            first.step(norm)
        resumed = GuardRule(**settings)
        resumed.load_state_dict(json.loads(json.dumps(first.state_dict(), allow_nan=False)))
        assert resumed == first == pickle.loads(pickle.dumps(first))
        made = [resumed.step(norm) for norm in norms[cut:]]
        assert [s.factor for s in made] == [s.factor for s in expected[cut:]]
        assert resumed == whole
    assert whole != first
    whole.reset()
    assert whole == GuardRule(**settings)


ERRORS = [
    'GuardRule(action="drop")',
    "GuardRule(multiple=0.0)",
    'GuardRule(multiple="two")',
    "GuardRule(multiple=math.nan)",
    "GuardRule(window=0)",
    "GuardRule(window=2.5)",
    "GuardRule(rise=-0.1)",
    "GuardRule(warmup=0)",
    "GuardRule(window=4)",
    "GuardRule(max_norm=-1.0)",
    "GuardRule(max_skips=-1)",
    "GuardRule().load_state_dict({})",
    "GuardRule().load_state_dict(GuardRule(multiple=3.0).state_dict())",
    'GuardRule().load_state_dict(GuardRule().state_dict() | {"version": 7})',
    'GuardRule().load_state_dict(GuardRule().state_dict() | {"settings": None})',
    'GuardRule().load_state_dict(GuardRule().state_dict() | {"norms": 3})',
    'GuardRule().load_state_dict(GuardRule().state_dict() | {"norms": [1.0, math.nan]})',
    'GuardRule().load_state_dict(GuardRule().state_dict() | {"norms": [1.0] * 101, "anchor": 1.0})',
    'GuardRule().load_state_dict(GuardRule().state_dict() | {"norms": [1.0]})',
    'GuardRule().load_state_dict(GuardRule().state_dict() | {"skips_in_a_row": "two"})',
    'GuardRule().load_state_dict(GuardRule().state_dict() | {"counts": {"steps": 3}})',
]


def test_error_messages():
    compare("errors-guard.txt", messages(ERRORS, globals()))


# Optax.


@pytest.fixture
def optax():
    pytest.importorskip("jax")
    module = pytest.importorskip("optax")
    pytest.importorskip("toclip.optax")
    return module


@pytest.mark.parametrize("action", ["clip", "skip"])
def test_optax_agrees_with_the_rule(optax, action):
    import jax
    import jax.numpy as jnp

    norms = norms_with_spikes(300).astype(np.float32)
    norms[[40, 120]] = math.nan
    norms[200:215] = 50.0
    settings = {"action": action, "window": 50, "max_norm": 30.0, "max_skips": 5}
    rule = GuardRule(**settings)
    optimizer = toclip.optax.guard(optax.sgd(1.0), **settings)
    weights = {"a": jnp.zeros(2), "b": jnp.zeros(())}
    state = optimizer.init(weights)
    update = jax.jit(optimizer.update)
    for norm in norms:
        gradient = {"a": jnp.array([0.6, 0.0]) * norm, "b": jnp.array(0.8) * norm}
        step, state = update(gradient, state, weights)
        made = rule.step(norm)
        assert math.isclose(float(state.factor), made.factor, rel_tol=1e-4)
        expected = 0.0 if made.skipped else -0.8 * made.norm * made.factor
        assert math.isclose(float(step["b"]), expected, rel_tol=1e-4)
    counts = {name: int(getattr(state, name)) for name in rule.counts}
    assert counts == rule.counts and rule.counts["clipped"] > 0
    assert math.isclose(float(state.anchor), rule.anchor, rel_tol=1e-4)


@pytest.mark.parametrize("bad", [math.nan, 1e6])
def test_a_step_skipped_in_optax_changes_nothing(optax, bad):
    """Weights, moments and decay stay as they are, as if the step had not been."""
    import jax
    import jax.numpy as jnp

    optimizer = toclip.optax.guard(optax.adamw(0.1, weight_decay=0.1), action="skip", warmup=3)
    weights = jnp.ones(3)
    state = optimizer.init(weights)
    update = jax.jit(optimizer.update)
    for k in range(30):
        step, state = update(jnp.array([1.0, 0.5, 0.01 * k]), state, weights)
        weights = optax.apply_updates(weights, step)
    step, after = update(jnp.array([1.0, bad, 1.0]), state, weights)
    assert (step == 0.0).all()
    same = jax.tree.map(lambda a, b: bool((a == b).all()), after.inner, state.inner)
    assert all(jax.tree.leaves(same)) and int(after.steps) == 31


def test_optax_passes_on_what_the_optimizer_needs(optax):
    """Extra arguments reach the wrapped optimizer, and gradients in half precision stay so."""
    import jax.numpy as jnp

    optimizer = toclip.optax.guard(optax.contrib.reduce_on_plateau(patience=1))
    weights = jnp.ones(2, jnp.bfloat16)
    state = optimizer.init(weights)
    step, state = optimizer.update(jnp.ones(2, jnp.bfloat16), state, weights, value=1.0)
    assert step.dtype == jnp.bfloat16 and float(state.norm) > 1.4


def test_optax_norms_of_half_precision_do_not_overflow(optax):
    """The squares of numbers above 256 are infinite in float16."""
    import jax.numpy as jnp

    optimizer = toclip.optax.guard(optax.sgd(1.0), multiple=2.0, warmup=3)
    weights = jnp.zeros(4, jnp.float16)
    state = optimizer.init(weights)
    for size in (300.0, 300.0, 300.0, 30_000.0):
        step, state = optimizer.update(jnp.full(4, size, jnp.float16), state, weights)
    assert float(state.norm) == 60_000.0 and int(state.non_finite) == 0 and int(state.clipped) == 1
    assert step.dtype == jnp.float16 and np.allclose(step, -600.0, rtol=1e-3)


def test_optax_wraps_only_optimizers(optax):
    with pytest.raises(ValueError, match="inner must be an optax.GradientTransformation.* not 3"):
        toclip.optax.guard(3)
