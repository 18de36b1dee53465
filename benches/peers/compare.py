"""Runs toclip and its peers by turns on this machine and prints ns per step and dimension of C-SGD.

    python3 benches/peers/compare.py [ROUNDS]

The best of all rounds counts, and the ratio to toclip with its best instructions: machines are
noisy, ratios measured side by side less so. A peer that is not installed is skipped with a message.
"""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BENCH = ["cargo", "bench", "--quiet", "-p", "toclip", "--bench", "sgd"]
PEERS = {"numpy": "numpy_sgd.py", "jax": "jax_sgd.py"}


def lines(command):
    """(name, ns) of every line "1.234 ns  name" that the command prints."""
    done = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    for line in done.stdout.splitlines():
        value, found, name = line.partition(" ns  ")
        if found:
            yield name.strip(), float(value)


def installed(module):
    command = [sys.executable, "-c", f"import {module}"]
    return subprocess.run(command, capture_output=True).returncode == 0


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    peers = {}
    for module, script in PEERS.items():
        if installed(module):
            peers[module] = [sys.executable, str(HERE / script)]
        else:
            print(f"{module} is not installed: left out")
    best = {}
    for _ in range(rounds):
        for name, ns in lines(BENCH):
            name = f"toclip, {name}"
            best[name] = min(ns, best.get(name, ns))
        for command in peers.values():
            for name, ns in lines(command):
                best[name] = min(ns, best.get(name, ns))
    unit = next(iter(best.values()))
    print("ns per step and dimension, and as a multiple of the first:")
    for name, ns in best.items():
        print(f"{ns:9.3f} {ns / unit:7.1f}x  {name}")


if __name__ == "__main__":
    main()
