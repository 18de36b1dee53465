"""What the tests share. One thread for PyTorch: the tensors are tiny, and threads that wait are slow."""

import os
import shutil
import signal
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

ROOT = Path(__file__).parents[2]


def command() -> str:
    """The command `toclip`, if it is built."""
    built = [ROOT / "target" / kind / "toclip" for kind in ("release", "debug")]
    found = os.environ.get("TOCLIP") or next((str(p) for p in built if p.exists()), None)
    if not (found and shutil.which(found)):
        pytest.skip("the command toclip is not built: cargo build")
    return found


@pytest.fixture
def ctrl_c():
    """Ctrl-C as in a terminal, also where tests are run in the background and it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
