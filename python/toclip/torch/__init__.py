"""toclip for PyTorch: measure clipping in your own network."""

from .curvature import GaussNewton, IntrinsicDimension, intrinsic_dimension
from .factors import Estimate, ReductionFactors, reduction_factors

__all__ = [
    "Estimate",
    "GaussNewton",
    "IntrinsicDimension",
    "ReductionFactors",
    "intrinsic_dimension",
    "reduction_factors",
]
