"""The Rust part of toclip."""

import os
from collections.abc import Callable, Mapping
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "INFINITE_VARIANCE",
    "Halves",
    "Log",
    "Monitor",
    "Noise",
    "Problem",
    "Schedule",
    "Spectrum",
    "Stream",
    "Sweep",
    "ThresholdRule",
    "__version__",
    "as_array",
    "as_integer",
    "as_number",
    "as_threshold",
    "best_threshold",
    "convergence",
    "experiment",
    "factors",
    "fisher_limit",
    "glm_at",
    "glm_best_clip",
    "glm_best_rate",
    "glm_best_threshold",
    "glm_fixed_point",
    "kappa_bounds",
    "linear_times",
    "log_times",
    "privacy_delta",
    "privacy_epsilon",
    "privacy_noise_multiplier",
]

__version__: str
INFINITE_VARIANCE: str

_Floats = NDArray[np.float64]

@final
class Noise:
    """The distribution of the noise in the targets, of single samples or of batches."""

    def __new__(cls, family: dict[str, Any]) -> Noise: ...
    def to_dict(self) -> dict[str, Any]: ...
    def batched(self, size: int, *, outputs: int = 1, per_sample: bool = False) -> Noise: ...
    def with_rule(self, rule: str) -> Noise: ...
    @property
    def rule(self) -> str: ...
    @property
    def batch_size(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def per_sample(self) -> bool: ...
    @property
    def mean(self) -> float | None: ...
    @property
    def variance(self) -> float: ...
    @property
    def second_moment(self) -> float: ...
    def sample(self, size: int, seed: int = 0) -> _Floats: ...

@final
class Spectrum:
    """The eigenvalues of the features' covariance."""

    def __new__(cls, spec: dict[str, Any]) -> Spectrum: ...
    def to_dict(self) -> dict[str, Any]: ...
    @property
    def intrinsic_dim(self) -> float: ...
    @property
    def ambient_dim(self) -> int: ...
    @property
    def trace(self) -> float: ...
    @property
    def trace_sq(self) -> float: ...
    @property
    def norm(self) -> float: ...
    @property
    def values(self) -> _Floats: ...
    @property
    def multiplicities(self) -> NDArray[np.uint64]: ...

@final
class Schedule:
    """A number that changes with time."""

    def __new__(cls, shape: float | dict[str, Any] | Schedule) -> Schedule: ...
    def at(self, times: ArrayLike) -> _Floats: ...
    def to_dict(self) -> dict[str, Any]: ...

@final
class Problem:
    def __new__(
        cls,
        spectrum: Spectrum,
        start: dict[str, Any],
        noise: Noise,
        learning_rate: Any,
        clip: Any,
        margin: Any = None,
        *,
        rule: Any = None,
        groups: Any = None,
        momentum: Any = None,
        privacy: Any = None,
    ) -> Problem: ...
    @property
    def dim(self) -> float: ...
    @property
    def risk(self) -> float: ...
    @property
    def distance(self) -> float: ...
    def stability_limits(self, c: float | str | None) -> dict[str, float]: ...
    def factors(self, c: float | str | None) -> dict[str, Any]: ...
    def tune_private(self, time: float) -> dict[str, float]: ...
    def predict(
        self,
        times: ArrayLike,
        method: str,
        rtol: float,
        target: float | None,
        compress: float | None,
    ) -> dict[str, Any]: ...
    def simulate(
        self,
        times: ArrayLike,
        runs: int,
        seed: int,
        method: str,
        covariates: dict[str, Any] | None,
        confidence: float,
        threads: int | None,
        progress: Callable[[int, int], object] | None,
    ) -> dict[str, Any]: ...
    def run(
        self, times: ArrayLike, seed: int, index: int, method: str
    ) -> dict[str, Any]: ...
    def tune_kappa(
        self, time: float, compensation: str, compress: float | None
    ) -> dict[str, Any]: ...

@final
class Stream:
    def __new__(
        cls,
        features: ArrayLike,
        targets: ArrayLike,
        start: ArrayLike,
        optimum: ArrayLike,
        covariance: ArrayLike,
        spectrum: Spectrum,
        noise: Noise,
        learning_rate: Any,
        clip: Any,
        in_order: bool,
        *,
        rule: Any = None,
        groups: Any = None,
    ) -> Stream: ...
    @property
    def end(self) -> float: ...
    def simulate(
        self,
        times: ArrayLike,
        runs: int,
        seed: int,
        confidence: float,
        threads: int | None,
        progress: Callable[[int, int], object] | None,
    ) -> dict[str, Any]: ...
    def run(self, times: ArrayLike, seed: int, index: int) -> dict[str, Any]: ...

@final
class Log:
    """A training log in the order of its steps."""

    def __new__(
        cls,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        norm: str | None = None,
        step: str | None = None,
        loss: str | None = None,
        learning_rate: str | None = None,
        unscale: bool = False,
    ) -> Log: ...
    @staticmethod
    def from_arrays(
        norms: ArrayLike,
        *,
        steps: ArrayLike | None = None,
        losses: ArrayLike | None = None,
        learning_rates: ArrayLike | None = None,
        layers: dict[str, ArrayLike] | None = None,
    ) -> Log: ...
    @property
    def steps(self) -> _Floats: ...
    @property
    def norms(self) -> _Floats: ...
    @property
    def losses(self) -> _Floats: ...
    @property
    def learning_rates(self) -> _Floats: ...
    @property
    def non_finite(self) -> dict[str, _Floats]: ...
    @property
    def layers(self) -> dict[str, _Floats]: ...
    @property
    def layer_steps(self) -> _Floats: ...
    @property
    def findings(self) -> list[str]: ...
    @property
    def reading(self) -> dict[str, Any]: ...
    def advise(
        self,
        *,
        clip: float | str | None = None,
        batch_size: float | None = None,
        outputs: float | None = None,
        optimizer: str | None = None,
        framework: str | None = None,
        confidence: float = 0.95,
    ) -> tuple[dict[str, Any], list[dict[str, Any]]]: ...

@final
class Halves:
    """Running means of the gradients of even and of odd steps, each the reference for the other."""

    def __new__(cls, dimension: int, memory: float) -> Halves: ...
    def inner(self, gradient: ArrayLike) -> float | None: ...
    def to_json(self) -> str: ...
    @staticmethod
    def from_json(state: str) -> Halves: ...

@final
class Monitor:
    def __new__(
        cls,
        *,
        components: float | None = None,
        memory: int | None = None,
        scale_memory: float = 200.0,
        fixed_scale: float | None = None,
        watched: float | str | None = None,
        confidence: float = 0.95,
        margin: float = 0.1,
    ) -> Monitor: ...
    def observe(self, norms: ArrayLike) -> None: ...
    def observe_aligned(self, norms: ArrayLike, inners: ArrayLike) -> None: ...
    def observe_vector(self, halves: Halves, gradient: ArrayLike) -> float: ...
    def merge(self, other: Monitor) -> None: ...
    @property
    def steps(self) -> int: ...
    @property
    def scale(self) -> float | None: ...
    @property
    def left_out(self) -> dict[str, int]: ...
    @property
    def settings(self) -> dict[str, Any]: ...
    def threshold(self) -> float: ...
    def advice(self) -> tuple[str, dict[str, Any]]: ...
    def curve(self) -> list[dict[str, Any]]: ...
    def watched(self) -> dict[str, Any] | None: ...
    def tail(self) -> dict[str, Any] | None: ...
    def drift(self) -> dict[str, Any] | None: ...
    def to_json(self) -> str: ...
    @staticmethod
    def from_json(state: str) -> Monitor: ...

@final
class ThresholdRule:
    """A rule that is given the norm of each gradient before clipping and returns a threshold for it."""

    @staticmethod
    def fixed(threshold: float | str | None) -> ThresholdRule: ...
    @staticmethod
    def autoclip(percentile: float = 10.0, window: int | None = None) -> ThresholdRule: ...
    @staticmethod
    def zclip(
        *, alpha: float = 0.97, z: float = 2.5, warmup: int = 25, cap: float | str | None = 1.0
    ) -> ThresholdRule: ...
    @staticmethod
    def huber(kappa: float = 1.345, window: int = 1000, components: float = 1.0) -> ThresholdRule: ...
    @staticmethod
    def empirical_ccc(components: float | None = None) -> ThresholdRule: ...
    @staticmethod
    def skip_above(multiple: float = 4.0, window: int = 100) -> ThresholdRule: ...
    @staticmethod
    def monitored(
        *,
        every: int = 200,
        components: float | None = None,
        memory: int | None = None,
        scale_memory: float = 200.0,
        fixed_scale: float | None = None,
        confidence: float = 0.95,
        margin: float = 0.1,
    ) -> ThresholdRule: ...
    def thresholds(self, norms: ArrayLike) -> _Floats: ...
    def next(self) -> tuple[float, float]: ...
    @property
    def rate_factor(self) -> float: ...
    @property
    def skips(self) -> bool: ...
    @property
    def monitor(self) -> Monitor | None: ...
    def to_json(self) -> str: ...
    @staticmethod
    def from_json(state: str) -> ThresholdRule: ...

def factors(
    noise: Noise, r: ArrayLike, c: ArrayLike
) -> tuple[_Floats, _Floats, tuple[_Floats, _Floats, _Floats] | None]: ...
def best_threshold(noise: Noise, r: ArrayLike) -> dict[str, _Floats]: ...
def fisher_limit(noise: Noise, r: ArrayLike) -> dict[str, _Floats]: ...
def kappa_bounds(
    noise: Noise, risks: ArrayLike, thresholds: ArrayLike
) -> dict[str, tuple[float, float]]: ...
def convergence(
    spectra: list[Spectrum],
    start: dict[str, Any],
    noise: Noise,
    learning_rate: Any,
    clip: Any,
    time: float,
    runs: int,
    seed: int,
    confidence: float,
    threads: int | None,
    progress: Callable[[int, int], object] | None,
) -> dict[str, Any]: ...
def experiment(
    what: Mapping[str, Any] | str | os.PathLike[str],
    *,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, dict[str, Any]]: ...
def as_array(name: str, value: ArrayLike) -> _Floats: ...
def as_integer(name: str, value: int) -> int: ...
def as_number(name: str, value: float) -> float: ...
def as_threshold(name: str, value: float | str | None) -> float: ...
def linear_times(end: float, count: int) -> _Floats: ...
def log_times(first: float, end: float, count: int) -> _Floats: ...
def glm_at(
    model: str | Mapping[str, Any],
    q: float,
    p: float,
    v: float,
    c: float | str | None,
    noise: Noise | None = None,
) -> dict[str, float]: ...
def glm_best_threshold(
    model: str | Mapping[str, Any], q: float, p: float, v: float, noise: Noise | None = None
) -> tuple[float, float]: ...
def glm_fixed_point(
    model: str | Mapping[str, Any], v: float, c: float | str | None, noise: Noise | None = None
) -> float: ...
def glm_best_clip(
    spectrum: Spectrum,
    teacher: Any,
    model: str | Mapping[str, Any],
    time: float,
    shape: str,
    noise: Noise | None = None,
) -> tuple[float, float, float]: ...
def glm_best_rate(
    spectrum: Spectrum,
    teacher: Any,
    model: str | Mapping[str, Any],
    time: float,
    c: float | str | None,
    shape: str,
    noise: Noise | None = None,
) -> tuple[float, float]: ...
def privacy_delta(noise_multiplier: float, epsilon: float) -> float: ...
def privacy_epsilon(noise_multiplier: float, delta: float) -> float: ...
def privacy_noise_multiplier(epsilon: float, delta: float) -> float: ...

@final
class Sweep:
    def __new__(cls, spec: Mapping[str, Any] | str | os.PathLike[str]) -> Sweep: ...
    @staticmethod
    def from_toml(toml: str, folder: str) -> Sweep: ...
    @property
    def toml(self) -> str: ...
    @property
    def folder(self) -> os.PathLike[str]: ...
    @property
    def name(self) -> str: ...
    @property
    def cells(self) -> int: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def keys(self) -> list[str]: ...
    @property
    def model(self) -> bool: ...
    def check(self) -> None: ...
    def settings(self, cell: int) -> dict[str, Any]: ...
    def experiment(self, cell: int) -> dict[str, Any]: ...
    def key_columns(self, cells: list[int]) -> dict[str, Any]: ...
    def run(
        self, cells: list[int], *, parallel: bool = True, progress: Callable[[int, int], object] | None = None
    ) -> list[Any]: ...
