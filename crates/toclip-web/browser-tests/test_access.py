"""Accessibility, by axe-core: no violations, in any state of the page."""

from axe_playwright_python.sync_playwright import Axe


def violations(page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [f"{v['id']}: {v['help']} {[n['target'] for n in v['nodes']][:3]}" for v in found]


def test_no_violations(explorer):
    page = explorer.open()
    page.wait_for_function("toclip.panels.map.took > 0", timeout=20_000)
    assert violations(page) == []
    page.locator("#keep").click()
    page.click("#code-details summary")
    page.fill("#rate-number", "x")
    page.press("#rate-number", "Enter")
    assert violations(page) == []
    page.click("#start-tour")
    assert violations(page) == []
    page.click("#tour [data-tour=leave]")
    page.locator("select[name=model]").select_option("logistic")
    explorer.settle()
    assert violations(page) == []
