"""Spectra of the covariance, one function per kind."""

from __future__ import annotations

from collections.abc import Iterable

from ._numbers import floats
from ._toclip import Spectrum, as_number, as_integer

__all__ = ["blocks", "eigenvalues", "isotropic", "marchenko_pastur", "power_law"]


def isotropic(dim: int) -> Spectrum:
    """K = I.

    >>> import toclip
    >>> toclip.isotropic(500).intrinsic_dim
    500.0
    """
    return Spectrum({"kind": "isotropic", "dim": as_integer("dim", dim)})


def power_law(dim: int, exponent: float) -> Spectrum:
    """Eigenvalues j^(-exponent), j = 1, …, dim.

    >>> import toclip
    >>> round(toclip.power_law(500, 0.2).intrinsic_dim, 1)
    179.7
    """
    size, exponent = as_integer("dim", dim), as_number("exponent", exponent)
    return Spectrum({"kind": "power_law", "dim": size, "exponent": exponent})


def eigenvalues(values: Iterable[float]) -> Spectrum:
    """All eigenvalues, for instance ``numpy.linalg.eigvalsh(covariance)``.

    >>> import toclip
    >>> toclip.eigenvalues([4.0, 2.0, 2.0]).intrinsic_dim
    2.0
    """
    hint = "expected a list of eigenvalues, such as numpy.linalg.eigvalsh(covariance)"
    return Spectrum({"kind": "eigenvalues", "values": floats("values", values, hint)})


def blocks(values: Iterable[float], multiplicities: Iterable[int]) -> Spectrum:
    """Distinct eigenvalues and their multiplicities.

    >>> import toclip
    >>> toclip.blocks([1.0, 0.5], [10, 20]).trace
    20.0
    """
    sizes = floats("values", values)
    if not isinstance(multiplicities, Iterable):
        raise ValueError(f"multiplicities must be a list of integers, not {multiplicities!r}")
    counts = list(multiplicities)
    if len(sizes) != len(counts):
        raise ValueError(f"there are {len(sizes)} values but {len(counts)} multiplicities")
    pairs = zip(sizes, counts, strict=True)
    listed = [{"value": v, "multiplicity": as_integer("multiplicities", n)} for v, n in pairs]
    return Spectrum({"kind": "blocks", "blocks": listed})


def marchenko_pastur(dim: int, aspect: float) -> Spectrum:
    """The limit of the spectrum of a sample covariance, aspect = dim/samples.

    >>> import toclip
    >>> toclip.marchenko_pastur(400, 0.5).ambient_dim
    400
    """
    size, aspect = as_integer("dim", dim), as_number("aspect", aspect)
    return Spectrum({"kind": "marchenko_pastur", "dim": size, "aspect": aspect})
