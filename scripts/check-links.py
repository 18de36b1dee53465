#!/usr/bin/env python3
"""Check the links between the Markdown files of the repository, and between the pages of the book.

    python3 scripts/check-links.py [BOOK]

Every relative link must lead to a file, and every `#anchor` to a heading. A page of `docs/` may link
only to other files in `docs/`, so that the link works in the book too, and must be listed in
`docs/SUMMARY.md`. With BOOK, the folder of a built book, the links of its HTML pages are checked as
well. Addresses on the web are not visited.
"""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*\s*$", re.MULTILINE)


def prose(text: str) -> str:
    """The text without code, with as many lines as before."""
    blank = lambda match: "\n" * match.group().count("\n")
    text = re.sub(r"^```.*?^```", blank, text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", blank, text)


def anchors(text: str) -> set[str]:
    """The anchors that a forge and mdBook give to the headings."""
    found: set[str] = set()
    for heading in HEADING.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


def check_markdown() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")
    docs = ROOT / "docs"
    summary = (docs / "SUMMARY.md").read_text(encoding="utf-8")
    in_summary = {docs / target for target in LINK.findall(summary)}
    wrong = []
    for path in (ROOT / name for name in listed if name):
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        if docs in path.parents and path.name != "SUMMARY.md" and path not in in_summary:
            wrong.append(f"{path.relative_to(ROOT)}: not listed in docs/SUMMARY.md")
        body = prose(text)
        for match in LINK.finditer(body):
            link = urlsplit(match.group(1))
            where = f"{path.relative_to(ROOT)}:{body[: match.start()].count(chr(10)) + 1}"
            if link.scheme or link.netloc:
                continue
            target = (path.parent / unquote(link.path)).resolve() if link.path else path
            if not target.exists():
                wrong.append(f"{where}: no such file: {match.group(1)}")
            elif docs in path.parents and docs not in target.parents:
                wrong.append(f"{where}: leaves docs/, so it is dead in the book: {match.group(1)}")
            elif link.fragment and target.suffix == ".md":
                if link.fragment not in anchors(target.read_text(encoding="utf-8")):
                    wrong.append(f"{where}: no such heading: {match.group(1)}")
    return wrong


class Page(HTMLParser):
    """The links and the anchors of an HTML page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name == "id" and value:
                self.ids.add(value)


def check_book(book: Path) -> list[str]:
    pages: dict[Path, Page] = {}
    for path in book.rglob("*.html"):
        # The page for lost visitors has the address of the published book as its base.
        if path.name in ("404.html", "toc.html"):
            continue
        pages[path.resolve()] = page = Page()
        page.feed(path.read_text(encoding="utf-8"))
    wrong = []
    for path, page in pages.items():
        for address in page.links:
            link = urlsplit(address)
            if link.scheme or link.netloc:
                continue
            target = (path.parent / unquote(link.path)).resolve() if link.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                wrong.append(f"book, {path.name}: no such file: {address}")
            elif link.fragment and target in pages and link.fragment not in pages[target].ids:
                wrong.append(f"book, {path.name}: no such heading: {address}")
    if not pages:
        wrong.append(f"no pages in {book}")
    return wrong


def main() -> int:
    wrong = check_markdown()
    header = (ROOT / "crates/toclip/docs/katex-header.html").read_bytes()
    if header != (ROOT / "docs/theme/head.hbs").read_bytes():
        wrong.append("docs/theme/head.hbs and crates/toclip/docs/katex-header.html differ")
    if len(sys.argv) > 1:
        wrong += check_book(Path(sys.argv[1]))
    print("\n".join(wrong) or "all links lead somewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
