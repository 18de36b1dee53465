"""toclip for PyTorch: monitor clipping in training, and measure it at fixed weights.

The callbacks for the Trainers of Hugging Face and Lightning are in ``toclip.torch.huggingface`` and
``toclip.torch.lightning_callback``, which have to be imported separately.
"""

from .curvature import GaussNewton, IntrinsicDimension, intrinsic_dimension
from .factors import Estimate, ReductionFactors, reduction_factors
from .guard import Guard
from .monitor import Monitor

__all__ = [
    "Estimate",
    "GaussNewton",
    "Guard",
    "IntrinsicDimension",
    "Monitor",
    "ReductionFactors",
    "intrinsic_dimension",
    "reduction_factors",
]
