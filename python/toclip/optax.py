"""The guard for Optax; needs JAX and Optax. It has to be imported separately."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from .guard import GuardRule

__all__ = ["GuardState", "guard"]


class GuardState(NamedTuple):
    """The state of :func:`guard`: a tree of arrays, saved and restored with the rest of the state.

    ``steps``, ``clipped``, ``skipped`` and ``non_finite`` count steps; ``norm``, ``threshold`` and
    ``factor`` are those of the last step.
    """

    norms: Any
    remembered: Any
    anchor: Any
    skips_in_a_row: Any
    steps: Any
    clipped: Any
    skipped: Any
    non_finite: Any
    norm: Any
    threshold: Any
    factor: Any
    inner: Any


def guard(inner: optax.GradientTransformation, **settings: Any) -> optax.GradientTransformationExtraArgs:
    """Wraps an optimizer so that steps whose gradient norm is far above the running median are clipped,
    or skipped::

        optimizer = toclip.optax.guard(optax.adamw(1e-3))

    Arguments and behaviour are those of :class:`toclip.GuardRule`. It wraps the optimizer instead of
    being chained before it, because a skipped step must not change the optimizer's state or apply
    weight decay. A gradient with NaN or infinite numbers is always skipped.

    Under ``jit`` with sharded arrays the norm is that of the whole gradient; under ``shard_map`` or
    ``pmap`` average the gradients over devices first.

    >>> import jax.numpy as jnp, optax, toclip.optax
    >>> optimizer = toclip.optax.guard(optax.sgd(1.0), multiple=2.0, warmup=3)
    >>> weights = jnp.zeros(1)
    >>> state = optimizer.init(weights)
    >>> for norm in [1.0, 1.0, 1.0, 8.0]:
    ...     step, state = optimizer.update(jnp.array([norm]), state, weights)
    >>> float(step[0]), int(state.clipped)
    (-2.0, 1)
    """
    rule = GuardRule(**settings)  # checks the settings
    if not (hasattr(inner, "init") and hasattr(inner, "update")):
        raise ValueError(f"inner must be an optax.GradientTransformation, such as optax.adam(1e-3), not {inner!r:.60}")
    wrapped = optax.with_extra_args_support(inner)

    def init(params: Any) -> GuardState:
        zero = jnp.zeros((), jnp.int32)
        return GuardState(
            norms=jnp.full((rule.window,), jnp.nan),
            remembered=zero,
            anchor=jnp.array(jnp.inf),
            skips_in_a_row=zero,
            steps=zero,
            clipped=zero,
            skipped=zero,
            non_finite=zero,
            norm=jnp.array(jnp.nan),
            threshold=jnp.array(jnp.inf),
            factor=jnp.array(1.0),
            inner=wrapped.init(params),
        )

    def update(
        gradients: Any, state: GuardState, params: Any = None, **extra: Any
    ) -> tuple[Any, GuardState]:
        # In single precision at least: in half precision the sum of squares overflows.
        wide = jax.tree.map(lambda g: g.astype(jnp.promote_types(g.dtype, jnp.float32)), gradients)
        norm = optax.tree.norm(wide).astype(state.norms.dtype)
        finite = jnp.isfinite(norm)
        acts = state.remembered >= rule.warmup
        threshold = jnp.where(acts, rule.multiple * state.anchor, jnp.inf)
        limit = jnp.minimum(threshold, rule.max_norm) if math.isfinite(rule.max_norm) else threshold
        large = finite & (norm > threshold)
        skip = jnp.array(False)
        if rule.action == "skip":
            skip = large & (state.skips_in_a_row < rule.max_skips)
        clip = finite & ~skip & (norm > limit)
        factor = jnp.where(clip, limit / norm, jnp.where(skip | ~finite, 0.0, 1.0))

        def run(_: Any) -> tuple[Any, Any]:
            scaled = jax.tree.map(lambda g, w: jnp.where(clip, (w * factor).astype(g.dtype), g), gradients, wide)
            updates, inner_state = wrapped.update(scaled, state.inner, params, **extra)
            return updates, inner_state

        def leave(_: Any) -> tuple[Any, Any]:
            nothing = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(run, None)[0])
            return nothing, state.inner

        updates, after = jax.lax.cond(factor > 0.0, run, leave, None)
        counts = state._replace(
            steps=state.steps + 1,
            clipped=state.clipped + clip,
            skipped=state.skipped + skip,
            non_finite=state.non_finite + ~finite,
            skips_in_a_row=jnp.where(
                finite, jnp.where(large, state.skips_in_a_row + skip, 0), state.skips_in_a_row
            ),
            norm=norm,
            threshold=threshold,
            factor=factor,
            inner=after,
        )
        return updates, _remember(counts, norm, finite & (norm > 0.0), rule)

    return optax.GradientTransformationExtraArgs(init, update)


def _remember(state: GuardState, norm: Any, usable: Any, rule: GuardRule) -> GuardState:
    """Adds a norm to the window and moves the anchor."""
    norms = state.norms.at[state.remembered % rule.window].set(norm)
    remembered = state.remembered + 1
    median = jnp.nanmedian(norms)
    free = remembered < rule.warmup
    anchor = jnp.where(free, median, jnp.minimum(median, state.anchor * (1.0 + rule.rise)))
    # The first median has no anchor before it.
    anchor = jnp.where(jnp.isinf(state.anchor), median, anchor)
    return state._replace(
        norms=jnp.where(usable, norms, state.norms),
        remembered=jnp.where(usable, remembered, state.remembered),
        anchor=jnp.where(usable, anchor, state.anchor),
    )
