"""The page of `toclip explore` in Chromium.

    pip install pytest==9.2.0 playwright==1.65.0 axe-playwright-python==0.1.8
    pytest crates/toclip-web/browser-tests

Needs Chromium (as `chromium`, or named by CHROMIUM) and the command `toclip` (target/release/toclip, or
named by TOCLIP). TOCLIP_PAGE names another page than the one in the repository.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[3]
PAGE = Path(os.environ.get("TOCLIP_PAGE", ROOT / "crates/toclip-cli/src/study/explorer.html"))
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WIDTHS = {"phone": 390, "desktop": 1400}


@pytest.fixture(scope="session")
def toclip() -> str:
    """The command line."""
    return os.environ.get("TOCLIP", str(ROOT / "target/release/toclip"))


@pytest.fixture(scope="session")
def browser():
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        # Playwright makes a new user data folder for every launch.
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Explorer:
    """The page, opened from its file without a network."""

    def __init__(self, browser: Browser, width: int, scheme: str):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            offline=True,
            accept_downloads=True,
        )
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(8_000)
        self.errors: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self.refuse_requests)

    def refuse_requests(self, request) -> None:
        if request.url.split(":")[0] not in ("file", "data", "blob"):
            self.errors.append(f"the page asked for {request.url}")

    def open(self, fragment: str = "", **parts: str) -> Page:
        fragment = fragment or ("#" + urlencode(parts) if parts else "")
        self.page.goto("about:blank")
        self.page.goto(PAGE.as_uri() + fragment)
        self.page.wait_for_selector("html[data-ready]", timeout=20_000)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Waits for the answers of the workers."""
        self.page.evaluate("toclip.settled()")

    def fragment(self) -> str:
        """The address of the setting, once it is written."""
        self.page.wait_for_function("toclip.timer === null")
        return self.page.evaluate("location.hash")

    def experiment(self) -> dict:
        return self.page.evaluate("toclip.state.experiment")

    def message(self) -> str:
        return self.page.inner_text("#message") if self.page.is_visible("#message") else ""


@pytest.fixture(params=[(w, s) for w in WIDTHS for s in ("light", "dark")], ids=lambda p: "-".join(p))
def explorer(request, browser):
    """The page at each width and in each theme."""
    width, scheme = request.param
    explorer = Explorer(browser, WIDTHS[width], scheme)
    yield explorer
    explorer.context.close()
    assert not explorer.errors


@pytest.fixture
def desktop(browser):
    """The page on a wide light screen, for what does not depend on that."""
    explorer = Explorer(browser, WIDTHS["desktop"], "light")
    yield explorer
    explorer.context.close()
    assert not explorer.errors
