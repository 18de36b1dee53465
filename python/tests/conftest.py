"""Shared by the tests. PyTorch gets one thread, because the tensors are tiny."""

import os
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

ROOT = Path(__file__).parents[2]
EXPECTED = Path(__file__).parent / "expected"


def messages(calls: list[str], names: dict[str, Any]) -> str:
    """Each call with the message of the ValueError that it raises."""
    lines = []
    for call in calls:
        with pytest.raises(ValueError) as error:
            eval(call, names)
        lines.append(f"{call}\n    {error.value}\n")
    return "\n".join(lines)


def compare(name: str, text: str) -> None:
    """Compares with a file in tests/expected; TOCLIP_UPDATE_EXPECTED=1 writes that file first."""
    file = EXPECTED / name
    if os.environ.get("TOCLIP_UPDATE_EXPECTED"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def command() -> str:
    """The path of the command toclip; skips the test if it is not built."""
    built = [ROOT / "target" / kind / "toclip" for kind in ("release", "debug")]
    found = os.environ.get("TOCLIP") or next((str(p) for p in built if p.exists()), None)
    if not (found and shutil.which(found)):
        pytest.skip("the command toclip is not built; run cargo build")
    return found


@pytest.fixture
def ctrl_c():
    """Ctrl-C as in a terminal, even if the tests run in the background, where it is ignored.

    It is an event that presses it. Not by the clock: a signal before the work begins would end the whole
    test run.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    begun, finished = threading.Event(), threading.Event()

    def press() -> None:
        begun.wait()
        if not finished.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    yield begun
    finished.set()
    begun.set()
    thread.join()
    signal.signal(signal.SIGINT, before)
