"""Attention and recurrent layers with forward-mode derivatives, which the fused kernels do not have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch


@contextlib.contextmanager
def plain_attention() -> Iterator[None]:
    """Inside, attention uses plain operations, with the same values."""
    mha: Any = getattr(torch.backends, "mha", None)  # since PyTorch 2.3
    fast = mha.get_fastpath_enabled() if mha is not None else False
    if mha is not None:
        mha.set_fastpath_enabled(False)
    try:
        with _written_out():
            yield
    finally:
        if mha is not None:
            mha.set_fastpath_enabled(fast)


def _written_out() -> contextlib.AbstractContextManager[Any]:
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
    except ImportError:  # before PyTorch 2.3
        return contextlib.nullcontext()
    return sdpa_kernel(SDPBackend.MATH)


@contextlib.contextmanager
def plain_recurrence(model: torch.nn.Module) -> Iterator[None]:
    """Inside, LSTM, GRU and RNN layers use plain operations, with the same values."""
    if not any(isinstance(module, torch.nn.RNNBase) for module in model.modules()):
        yield
        return
    # torch.backends.mkldnn.flags would set more than this, with a warning.
    fused = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        with torch.backends.cudnn.flags(enabled=False):
            yield
    finally:
        torch._C._set_mkldnn_enabled(fused)
