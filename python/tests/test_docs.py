"""Every example in the documentation runs."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import toclip

OPTIONAL = {
    "toclip.optax": "optax",
    "toclip.torch.huggingface": "transformers",
    "toclip.torch.lightning_callback": "lightning",
}
MODULES = ["toclip"] + [m.name for m in pkgutil.walk_packages(toclip.__path__, "toclip.", onerror=str)]


@pytest.mark.parametrize("name", [m for m in MODULES if m != "toclip._toclip"])
def test_docstrings(name):
    if name.startswith("toclip.torch"):
        pytest.importorskip("torch")
    if name in OPTIONAL:
        pytest.importorskip(OPTIONAL[name])
    if name == "toclip.plot":
        pytest.importorskip("matplotlib")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_the_readme(capsys):
    readme = Path(__file__).parents[1] / "README.md"
    blocks = re.findall(r"```python\n(.*?)```", readme.read_text(), re.S)
    assert len(blocks) >= 2
    for block in blocks:
        if "torch" in block:
            pytest.importorskip("torch")
        exec(compile(block, str(readme), "exec"), {})
    assert "clip" in capsys.readouterr().out


def test_torch_is_not_imported_unless_asked():
    import subprocess
    import sys

    code = "import sys, toclip; sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
