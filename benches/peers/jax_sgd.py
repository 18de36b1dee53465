"""C-SGD in the eigenbasis with jax.lax.scan; prints ns per step and dimension, in f32 and f64."""

import time

import jax
import jax.numpy as jnp

DIM, STEPS, REPETITIONS = 500, 2000, 7
ETA, C, SIGMA = 0.7, 0.9, 0.5


def measure(dtype):
    eigenvalues = jnp.arange(1, DIM + 1, dtype=dtype) ** -0.2
    root, d = jnp.sqrt(eigenvalues), eigenvalues.sum()

    def step(theta, key):
        z = jax.random.normal(key, (DIM + 1,), dtype)
        x = root * z[:DIM]
        residual = x @ theta - SIGMA * z[DIM]
        length = jnp.abs(residual) * jnp.sqrt(x @ x)
        clip = jnp.minimum(1.0, C * jnp.sqrt(d) / length)
        return theta - (ETA / d * clip * residual) * x, None

    @jax.jit
    def run(key):
        theta = jnp.full(DIM, DIM**-0.5, dtype)
        theta, _ = jax.lax.scan(step, theta, jax.random.split(key, STEPS))
        return 0.5 * (eigenvalues * theta) @ theta

    best = float("inf")
    run(jax.random.key(0)).block_until_ready()
    for i in range(REPETITIONS):
        clock = time.perf_counter()
        run(jax.random.key(i)).block_until_ready()
        best = min(best, time.perf_counter() - clock)
    return best * 1e9 / (STEPS * DIM)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    for dtype in (jnp.float32, jnp.float64):
        print(f"{measure(dtype):8.3f} ns  JAX {jax.__version__} {jnp.dtype(dtype).name}")
