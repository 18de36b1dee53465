"""C-SGD in the eigenbasis as one would write it in NumPy; prints ns per step and dimension."""

import time

import numpy as np

DIM, STEPS, REPETITIONS = 500, 2000, 7
ETA, C, SIGMA, BETA = 0.7, 0.9, 0.5, 0.9


def run(rng, eigenvalues, steps, rule="clip"):
    root = np.sqrt(eigenvalues)
    d = eigenvalues.sum()
    theta = np.full(eigenvalues.size, eigenvalues.size**-0.5)
    buffer = np.zeros_like(theta)
    threshold = C * np.sqrt(d)
    done = 0
    while done < steps:
        # Drawn many at a time: a call for every step would double the time.
        count = min(200, steps - done)
        data = rng.standard_normal((count, eigenvalues.size)) * root
        noise = SIGMA * rng.standard_normal(count)
        lengths = np.sqrt(np.einsum("ij,ij->i", data, data))
        for x, e, length in zip(data, noise, lengths):
            residual = x @ theta - e
            if rule == "by value":
                theta -= (ETA / d) * np.clip(residual * x, -C, C)
                continue
            share = threshold / max(abs(residual) * length, 1e-300)
            factor = float(share >= 1.0) if rule == "skip" else min(1.0, share)
            if rule == "momentum":
                buffer *= BETA
                buffer += ((1.0 - BETA) * factor * residual) * x
                theta -= (ETA / d) * buffer
            else:
                theta -= (ETA / d * factor * residual) * x
        done += count
    return 0.5 * (eigenvalues * theta) @ theta


def run_many(rng, eigenvalues, steps, runs):
    """Many runs side by side, so that Python's own time is shared."""
    root = np.sqrt(eigenvalues)
    d = eigenvalues.sum()
    theta = np.full((runs, eigenvalues.size), eigenvalues.size**-0.5)
    x = np.empty_like(theta)
    threshold = C * np.sqrt(d)
    for _ in range(steps):
        rng.standard_normal(out=x)
        x *= root
        residual = np.einsum("ij,ij->i", x, theta) - SIGMA * rng.standard_normal(runs)
        length = np.sqrt(np.einsum("ij,ij->i", x, x))
        clip = np.minimum(1.0, threshold / np.maximum(np.abs(residual) * length, 1e-300))
        x *= (ETA / d * clip * residual)[:, None]
        theta -= x
    return 0.5 * (theta * theta) @ eigenvalues


def best(function, updates):
    times = []
    for _ in range(REPETITIONS):
        clock = time.perf_counter()
        function()
        times.append(time.perf_counter() - clock)
    return min(times) * 1e9 / updates


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    eigenvalues = np.arange(1, DIM + 1) ** -0.2
    name = f"NumPy {np.__version__} f64"
    ns = best(lambda: run(rng, eigenvalues, STEPS), STEPS * DIM)
    print(f"{ns:8.3f} ns  {name}, one run")
    for rule in ("skip", "by value", "momentum"):
        ns = best(lambda: run(rng, eigenvalues, STEPS, rule), STEPS * DIM)
        print(f"{ns:8.3f} ns  {name}, one run, {rule}")
    ns = best(lambda: run_many(rng, eigenvalues, STEPS // 20, 20), STEPS * DIM)
    print(f"{ns:8.3f} ns  {name}, 20 runs side by side")
