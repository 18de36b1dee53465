"""The privacy of private SGD: closed forms, the reference table, and Google's accountant."""

import csv
import math

import pytest

import toclip
from conftest import ROOT, compare, messages
from toclip.privacy import delta, epsilon, noise_multiplier

POISSON = {"sampling": "poisson", "batch_size": 100, "samples": 10_000}


def table() -> list[dict[str, float]]:
    file = ROOT / "crates" / "toclip" / "tests" / "data" / "privacy.csv"
    with open(file, encoding="utf-8") as lines:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(lines)]


def test_one_pass_agrees_with_the_reference_values():
    rows = table()
    assert len(rows) > 50
    for row in rows:
        found = delta(row["noise_multiplier"], row["epsilon"])
        assert found == pytest.approx(row["delta"], rel=1e-12), row
        if row["epsilon"] > 0:
            assert epsilon(row["noise_multiplier"], row["delta"]) == pytest.approx(
                row["epsilon"], rel=1e-9
            ), row


def test_the_three_functions_are_inverse():
    for epochs in (1, 7):
        for eps, d in ((0.1, 1e-5), (1.0, 1e-6), (8.0, 1e-9)):
            sigma = noise_multiplier(eps, d, epochs=epochs)
            assert epsilon(sigma, d, epochs=epochs) == pytest.approx(eps, rel=1e-11)
            assert delta(sigma, eps, epochs=epochs) == pytest.approx(d, rel=1e-10)


def test_limits():
    assert epsilon(1e6, 1e-5) == 0.0  # δ(0) is below δ already
    assert epsilon(0.01, 1e-5) > 4000  # hardly any noise
    assert delta(1.0, 0.0) == pytest.approx(math.erf(0.5 / math.sqrt(2)), rel=1e-14)
    # k passes are one pass with 1/sqrt(k) of the noise, and a part of a pass may use a sample.
    assert epsilon(2.0, 1e-5, epochs=4) == epsilon(1.0, 1e-5)
    assert epsilon(2.0, 1e-5, epochs=3.5) == epsilon(1.0, 1e-5)
    # Nothing is claimed for shuffled batches: their size does not matter.
    assert epsilon(2.0, 1e-5, batch_size=32, samples=1000) == epsilon(2.0, 1e-5)


@pytest.mark.parametrize("sigma, passes", [(0.7, 1), (1.0, 1), (3.0, 1), (5.0, 12)])
def test_shuffled_batches_agree_with_the_accountant_of_gaussian_mechanisms(sigma, passes):
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting import pld

    accountant = pld.PLDAccountant()
    accountant.compose(accounting.GaussianDpEvent(sigma), passes)
    theirs = accountant.get_epsilon(1e-5)
    ours = epsilon(sigma, 1e-5, epochs=passes)
    # Theirs is an upper bound.
    assert ours == pytest.approx(theirs, rel=1e-4) and ours <= theirs * (1 + 1e-9)
    assert delta(sigma, 1.0, epochs=passes) == pytest.approx(accountant.get_delta(1.0), rel=1e-3)


def test_poisson_sampling_with_every_sample_in_every_step_is_one_mechanism():
    pytest.importorskip("dp_accounting")
    every = {"sampling": "poisson", "batch_size": 50, "samples": 50}
    assert epsilon(2.0, 1e-5, epochs=3, **every) == pytest.approx(
        epsilon(2.0, 1e-5, epochs=3), rel=1e-4
    )


def test_poisson_sampling_gives_more_privacy_and_inverts():
    pytest.importorskip("dp_accounting")
    bound = epsilon(1.0, 1e-5, epochs=10, **POISSON)
    # The value that dp-accounting prints for 1000 steps at q = 0.01 and σ = 1.
    assert bound == pytest.approx(1.8282, rel=1e-4)
    assert bound < epsilon(1.0, 1e-5, epochs=10) / 5
    assert delta(1.0, bound, epochs=10, **POISSON) == pytest.approx(1e-5, rel=1e-3)
    sigma = noise_multiplier(bound, 1e-5, epochs=10, **POISSON)
    assert 1.0 <= sigma < 1.002


def test_without_the_accountant_the_error_names_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r"pip install 'toclip\[privacy\]'"):
        epsilon(1.0, 1e-5, **POISSON)
    assert epsilon(1.0, 1e-5) > 0  # one pass does not need it


def test_error_messages():
    calls = [
        "epsilon(0, 1e-5)",
        "epsilon(-1.0, 1e-5)",
        "epsilon('much', 1e-5)",
        "epsilon(1.0, 0)",
        "epsilon(1.0, 1.5)",
        "delta(1.0, -1)",
        "delta(1.0, float('nan'))",
        "noise_multiplier(1.0, None)",
        "noise_multiplier(-1.0, 1e-5)",
        "epsilon(1.0, 1e-5, epochs=0)",
        "epsilon(1.0, 1e-5, epochs=float('inf'))",
        "epsilon(1.0, 1e-5, epochs='ten')",
        "epsilon(1.0, 1e-5, batch_size=0)",
        "epsilon(1.0, 1e-5, batch_size=2.5)",
        "epsilon(1.0, 1e-5, batch_size=20, samples=10)",
        "epsilon(1.0, 1e-5, sampling='uniform')",
        "epsilon(1.0, 1e-5, sampling='poisson')",
        "epsilon(1.0, 1e-5, sampling='poisson', batch_size=10)",
        "noise_multiplier(0, 1e-5, sampling='poisson', batch_size=10, samples=100)",
    ]
    names = {"epsilon": epsilon, "delta": delta, "noise_multiplier": noise_multiplier}
    compare("errors-privacy.txt", messages(calls, names))


def test_the_theory_of_the_same_noise():
    sigma = noise_multiplier(4.0, 1e-5)
    noise = toclip.noise.gaussian(0.5).batched(16, per_sample=True)
    parts = {"learning_rate": 0.4, "clip": 0.8}
    risks = [
        toclip.Problem(toclip.isotropic(400), 1.0, noise, **parts, privacy=privacy)
        .predict([0.0, 6.0])
        .risk[-1]
        for privacy in ({"noise_multiplier": sigma}, {"noise_multiplier": 0.0}, None)
    ]
    assert risks[0] > risks[1] == risks[2]
