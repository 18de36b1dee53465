"""Should you clip gradients, at which threshold, and how will the loss evolve?

The theory of clipped SGD in high dimensions, computed in Rust:

>>> import toclip
>>> noise = toclip.noise.student_t(df=2.5, sigma=1.0)
>>> best = toclip.best_threshold(noise, r=0.1)
>>> bool(best.c < 1.0 and best.ccc > 1.9)           # clip: nearly twice the efficiency
True

`toclip.torch` measures clipping in a PyTorch model. It has to be imported separately.
"""

from . import _pickle, glm, noise, privacy
from ._toclip import (
    Halves,
    Noise,
    Schedule,
    Spectrum,
    ThresholdRule,
    __version__,
    linear_times,
    log_times,
)
from .convergence import convergence
from .criteria import best_threshold, factors, fisher_limit, kappa_bounds, verdict
from .experiment import experiment
from .guard import GuardRule, GuardStep
from .logs import Log, LogAdvice, advise, read_log
from .moments import LinearFit, Moments, Residuals, fit
from .monitor import Advice, Monitor
from .problem import Problem
from .results import (
    Band,
    BestClip,
    BestThreshold,
    Estimates,
    Factors,
    FisherLimit,
    GlmBand,
    GlmPath,
    GlmState,
    GlmThreshold,
    KappaBounds,
    Path,
    Rate,
    StateFactors,
    Tuned,
    TunedPrivate,
)
from .spectra import blocks, eigenvalues, isotropic, marchenko_pastur, power_law
from .stream import Stream
from .sweeps import Sweep, SweepCell, SweepResult, sweep

__all__ = [
    "Advice",
    "Band",
    "BestClip",
    "BestThreshold",
    "Estimates",
    "Factors",
    "FisherLimit",
    "GlmBand",
    "GlmPath",
    "GlmState",
    "GlmThreshold",
    "GuardRule",
    "GuardStep",
    "Halves",
    "KappaBounds",
    "LinearFit",
    "Log",
    "LogAdvice",
    "Moments",
    "Monitor",
    "Noise",
    "Path",
    "Problem",
    "Rate",
    "Residuals",
    "Schedule",
    "Spectrum",
    "StateFactors",
    "Stream",
    "Sweep",
    "SweepCell",
    "SweepResult",
    "ThresholdRule",
    "Tuned",
    "TunedPrivate",
    "__version__",
    "advise",
    "best_threshold",
    "blocks",
    "convergence",
    "eigenvalues",
    "experiment",
    "factors",
    "fisher_limit",
    "fit",
    "glm",
    "isotropic",
    "kappa_bounds",
    "linear_times",
    "log_times",
    "marchenko_pastur",
    "noise",
    "power_law",
    "privacy",
    "read_log",
    "sweep",
    "verdict",
]

_pickle.register()
