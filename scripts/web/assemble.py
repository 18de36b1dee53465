"""Puts the page of `toclip explore` together: one HTML file with styles, scripts and WebAssembly.

    python3 scripts/web/assemble.py target/web/wasm32-unknown-unknown/web/toclip_web.wasm [page.html]
"""

import base64
import gzip
import json
import re
import sys
import tomllib
from pathlib import Path

from sources import BUILT, CHARTS, PAGE, ROOT, source_hash

LARGEST = 1_500_000


def modules(first: Path) -> list[Path]:
    """A module after everything that it imports."""
    order: list[Path] = []

    def add(file: Path) -> None:
        if file in order:
            return
        for imported in re.findall(r'^import .* from "([./\w-]+\.js)";$', file.read_text(), re.MULTILINE):
            add((file.parent / imported).resolve())
        order.append(file)

    add(first)
    return order


def text(name: str) -> str:
    return (PAGE / name).read_text()


def vendored(name: str) -> str:
    """A file of uPlot, which the report shares."""
    return (CHARTS / "vendor" / name).read_text()


def script(first: str) -> str:
    """The modules as one script: no name is exported by two of them."""
    parts = (re.sub(r"^import .*\n", "", file.read_text(), flags=re.MULTILINE) for file in modules(PAGE / first))
    whole = "\n".join(re.sub(r"^export ", "", part, flags=re.MULTILINE) for part in parts)
    names = re.findall(r"^(?:async )?(?:function|class|const|let) (\w+)", whole, re.MULTILINE)
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        sys.exit(f"two modules of the page define {', '.join(sorted(twice))}")
    return whole


def main() -> None:
    wasm = Path(sys.argv[1]).read_bytes()
    packed = base64.b64encode(gzip.compress(wasm, 9, mtime=0)).decode()
    uplot = f"/*\n{vendored('uPlot-LICENSE')}*/\n{vendored('uPlot.iife.min.js')}"
    constants = (
        f"const WASM = {json.dumps(packed)};\n"
        f"const WORKER_SOURCE = {json.dumps(script('worker.js'))};\n"
        'const INITIAL = "";\n'
    )
    whole = f'{uplot}\n(() => {{\n"use strict";\n{constants}{script("main.js")}\n}})();\n'
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    page = text("index.html")
    for name, value in [
        ("HASH", source_hash()),
        ("VERSION", version),
        ("STYLE", vendored("uPlot.min.css") + text("style.css")),
        # "</script" within the script would end it.
        ("SCRIPT", whole.replace("</script", r"<\/script")),
    ]:
        marker = "{{" + name + "}}"
        if marker not in page:
            sys.exit(f"index.html has no {marker}")
        page = page.replace(marker, value)
    if len(page.encode()) > LARGEST:
        sys.exit(f"the page has {len(page.encode())} bytes; at most {LARGEST} are allowed")
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else BUILT
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page)
    print(f"wrote {out}: {len(page.encode())} bytes")


if __name__ == "__main__":
    main()
