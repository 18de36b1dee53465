"""Covariances by their eigenvalues, one function each."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ._toclip import Spectrum

__all__ = ["blocks", "eigenvalues", "isotropic", "marchenko_pastur", "power_law"]


def isotropic(dim: int) -> Spectrum:
    """K = I.

    >>> import toclip
    >>> toclip.isotropic(500).intrinsic_dim
    500.0
    """
    return Spectrum({"kind": "isotropic", "dim": dim})


def power_law(dim: int, exponent: float) -> Spectrum:
    """Eigenvalues j^(-exponent), j = 1, …, dim.

    >>> import toclip
    >>> round(toclip.power_law(500, 0.2).intrinsic_dim, 1)
    179.7
    """
    return Spectrum({"kind": "power_law", "dim": dim, "exponent": float(exponent)})


def eigenvalues(values: Iterable[float]) -> Spectrum:
    """Every eigenvalue given, for instance ``numpy.linalg.eigvalsh(covariance)``.

    >>> import toclip
    >>> toclip.eigenvalues([4.0, 2.0, 2.0]).intrinsic_dim
    2.0
    """
    return Spectrum({"kind": "eigenvalues", "values": np.asarray(values, float).ravel().tolist()})


def blocks(values: Iterable[float], multiplicities: Iterable[int]) -> Spectrum:
    """Distinct eigenvalues, and how often each comes.

    >>> import toclip
    >>> toclip.blocks([1.0, 0.5], [10, 20]).trace
    20.0
    """
    pairs = zip(values, multiplicities, strict=True)
    listed = [{"value": float(v), "multiplicity": int(n)} for v, n in pairs]
    return Spectrum({"kind": "blocks", "blocks": listed})


def marchenko_pastur(dim: int, aspect: float) -> Spectrum:
    """The limit law of a sample covariance, aspect = dim/samples."""
    return Spectrum({"kind": "marchenko_pastur", "dim": dim, "aspect": float(aspect)})
