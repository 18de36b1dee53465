"""How private is private SGD: (ε, δ) from the noise multiplier, and the noise multiplier from them.

Private SGD clips the gradient of every sample and adds Gaussian noise to their sum; the noise
multiplier is the standard deviation of that noise divided by the threshold. Data sets are neighbours
if one has a sample more than the other.

>>> import toclip
>>> round(toclip.privacy.epsilon(1.0, 1e-6), 4)             # one pass
4.8866
>>> sigma = toclip.privacy.noise_multiplier(epsilon=2.0, delta=1e-5, epochs=10)
>>> round(sigma, 3)
6.305

Privacy depends on how often a sample is used, and on whether that is random:

``sampling="shuffled"`` (the default)
    every epoch uses each sample once, in batches of any size, as a ``DataLoader`` does. The result is
    that of ``epochs`` Gaussian mechanisms, a closed form. It is exact for a fixed order and an upper
    bound for a random one: the privacy gained by shuffling is not known exactly and can be small
    (Chua et al. 2024), so it is not counted. A sample that is missing from one data set counts as a
    gradient of zero, so the other batches do not change.
``sampling="poisson"``
    every step uses each sample with probability ``batch_size/samples``, independently of all others,
    as Opacus's loader does. This gives more privacy for the same noise, and does not hold for a
    loader that shuffles. Computed by Google's ``dp-accounting``, which takes seconds:
    ``pip install 'toclip[privacy]'``. The numbers are upper bounds, usually within 1%.
"""

from __future__ import annotations

import math
from typing import Any

from . import _toclip
from ._toclip import as_integer, as_number

__all__ = ["delta", "epsilon", "noise_multiplier"]

# The distance between the points of a privacy loss distribution: that of dp-accounting, and a coarse
# one for the start of a search.
_FINE, _COARSE = 1e-4, 1e-3


def epsilon(
    noise_multiplier: float,
    delta: float,
    *,
    epochs: float = 1,
    batch_size: int | None = None,
    samples: int | None = None,
    sampling: str = "shuffled",
) -> float:
    """ε at this δ. ``batch_size`` and ``samples`` are needed for ``sampling="poisson"`` only.

    >>> import toclip
    >>> one, ten = (toclip.privacy.epsilon(4.0, 1e-5, epochs=epochs) for epochs in (1, 10))
    >>> round(one, 3), round(ten, 3)
    (0.926, 3.341)
    """
    _toclip.privacy_epsilon(noise_multiplier, delta)  # checks both
    poisson = _poisson(epochs, batch_size, samples, sampling)
    if poisson is None:
        return _toclip.privacy_epsilon(_one_pass(noise_multiplier, epochs), delta)
    return float(_accountant(noise_multiplier, poisson).get_epsilon(delta))


def delta(
    noise_multiplier: float,
    epsilon: float,
    *,
    epochs: float = 1,
    batch_size: int | None = None,
    samples: int | None = None,
    sampling: str = "shuffled",
) -> float:
    """δ at this ε; the other arguments are those of :func:`epsilon`.

    >>> import toclip
    >>> round(toclip.privacy.delta(1.0, 1.0), 6)
    0.126937
    """
    _toclip.privacy_delta(noise_multiplier, epsilon)  # checks both
    poisson = _poisson(epochs, batch_size, samples, sampling)
    if poisson is None:
        return _toclip.privacy_delta(_one_pass(noise_multiplier, epochs), epsilon)
    return float(_accountant(noise_multiplier, poisson).get_delta(epsilon))


def noise_multiplier(
    epsilon: float,
    delta: float,
    *,
    epochs: float = 1,
    batch_size: int | None = None,
    samples: int | None = None,
    sampling: str = "shuffled",
) -> float:
    """The smallest noise multiplier that is (ε, δ)-private; the other arguments are those of
    :func:`epsilon`.

    With ``sampling="poisson"`` it is at most 0.1% above the smallest for which dp-accounting's bound
    is met.

    >>> import toclip
    >>> sigma = toclip.privacy.noise_multiplier(1.0, 1e-5)
    >>> abs(toclip.privacy.epsilon(sigma, 1e-5) - 1.0) < 1e-12
    True
    """
    one_pass = _toclip.privacy_noise_multiplier(epsilon, delta)
    poisson = _poisson(epochs, batch_size, samples, sampling)
    if poisson is None:
        return one_pass * math.sqrt(_passes(epochs))
    if epsilon == 0:
        raise ValueError('epsilon = 0 cannot be searched for with sampling="poisson"; expected a positive number')

    def excess(log_sigma: float, interval: float) -> float:
        found = _accountant(math.exp(log_sigma), poisson, interval).get_epsilon(delta)
        return float(found) - epsilon

    # Sampling helps: without it the noise of one step would have to be that of all of them.
    high = math.log(one_pass) + 0.5 * math.log(poisson[1])
    low = high - 1.0
    while excess(low, _COARSE) <= 0:
        low, high = low - 1.0, low
    # The coarse bound is above the fine one, so its solution is enough noise for both.
    high = _root(low, high, lambda at: excess(at, _COARSE)) + 1e-3
    low = high - 0.02
    while excess(low, _FINE) <= 0:
        low, high = low - 0.1, low
    return math.exp(_root(low, high, lambda at: excess(at, _FINE)) + 5e-4)


def _root(low: float, high: float, function: Any) -> float:
    from scipy.optimize import brentq  # comes with dp-accounting

    return float(brentq(function, low, high, xtol=3e-4, rtol=1e-12))


def _passes(epochs: float) -> int:
    """How often a sample is used at most."""
    return math.ceil(epochs)


def _one_pass(sigma: float, epochs: float) -> float:
    """The noise multiplier of one Gaussian mechanism that is as private as ``epochs`` of them."""
    return sigma / math.sqrt(_passes(epochs))


def _poisson(
    epochs: float, batch_size: int | None, samples: int | None, sampling: str
) -> tuple[float, int] | None:
    """The probability of a sample and the number of steps; ``None`` for shuffled batches."""
    number = as_number("epochs", epochs)
    if not 0 < number < math.inf:
        raise ValueError(f"epochs = {epochs!r}; expected a finite number above 0")
    given = {"batch_size": batch_size, "samples": samples}
    sizes = {k: as_integer(k, v) for k, v in given.items() if v is not None}
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} = {size}; expected an integer, at least 1")
    if len(sizes) == 2 and sizes["batch_size"] > sizes["samples"]:
        raise ValueError(f"batch_size = {batch_size} is larger than samples = {samples}")
    if not isinstance(sampling, str) or sampling not in ("shuffled", "poisson"):
        raise ValueError(f'unknown sampling {sampling!r}; expected one of: "shuffled", "poisson"')
    if sampling == "shuffled":
        return None
    missing = [name for name in given if name not in sizes]
    if missing:
        raise ValueError(f'sampling="poisson" needs {" and ".join(missing)}')
    return sizes["batch_size"] / sizes["samples"], math.ceil(
        number * sizes["samples"] / sizes["batch_size"]
    )


def _accountant(sigma: float, poisson: tuple[float, int], interval: float = _FINE) -> Any:
    """The privacy of so many steps, each with samples chosen at random."""
    try:
        import dp_accounting
        from dp_accounting import pld
    except ImportError as error:
        raise ImportError(
            'sampling="poisson" needs the package dp-accounting: pip install \'toclip[privacy]\''
        ) from error
    probability, steps = poisson
    step = dp_accounting.PoissonSampledDpEvent(probability, dp_accounting.GaussianDpEvent(sigma))
    accountant = pld.PLDAccountant(value_discretization_interval=interval)
    return accountant.compose(dp_accounting.SelfComposedDpEvent(step, steps))
