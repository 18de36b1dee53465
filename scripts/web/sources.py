"""The sources of the page of `toclip explore`, and their hash.

    python3 scripts/web/sources.py    prints the hash
"""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "crates/toclip-web/page"
# The charts of the report, which the page shares.
CHARTS = ROOT / "crates/toclip-report/page"
SHARED = ["chart.js", "marks.js", "numbers.js", "vendor/*"]
BUILT = ROOT / "crates/toclip-cli/src/study/explorer.html"

# The crates that are compiled into the page.
CRATES = [
    "toclip", "toclip-data", "toclip-experiment", "toclip-logs", "toclip-plot", "toclip-web", "toclip-words",
]


def sources() -> list[Path]:
    files = [ROOT / "Cargo.lock", ROOT / "Cargo.toml", ROOT / "scripts/build-web"]
    files += (ROOT / "scripts/web").glob("*.py")
    files += (file for file in PAGE.rglob("*") if file.is_file())
    files += (file for pattern in SHARED for file in CHARTS.glob(pattern))
    for crate in CRATES:
        files += [ROOT / f"crates/{crate}/Cargo.toml"]
        files += (ROOT / f"crates/{crate}/src").rglob("*.rs")
    return sorted(files)


def source_hash() -> str:
    total = hashlib.sha256()
    for file in sources():
        total.update(file.relative_to(ROOT).as_posix().encode() + b"\0")
        total.update(file.read_bytes() + b"\0")
    return total.hexdigest()


if __name__ == "__main__":
    print(source_hash())
