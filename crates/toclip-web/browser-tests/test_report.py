"""The report of `toclip reproduce`, and its links to the explorer."""

import subprocess

import pytest
from conftest import WIDTHS
from test_access import violations


@pytest.fixture(scope="session")
def report(toclip, tmp_path_factory):
    """A small report: paths, curves against the threshold, and a figure that the explorer cannot show."""
    folder = tmp_path_factory.mktemp("report") / "out"
    figures = ["1a", "theorem1", "2b", "3", "4b", "theorem4", "5", "6", "7", "beyond-rules", "beyond-paths"]
    subprocess.run([toclip, "reproduce", *figures, "--quick", "--out", folder], check=True, capture_output=True)
    return folder


@pytest.fixture(params=[(w, s) for w in WIDTHS for s in ("light", "dark")], ids=lambda p: "-".join(p))
def page(request, browser, report):
    width, scheme = request.param
    context = browser.new_context(viewport={"width": WIDTHS[width], "height": 900}, color_scheme=scheme, offline=True)
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.goto((report / "report.html").as_uri())
    yield page
    context.close()
    assert not errors


def test_the_story_comes_before_the_tables(page):
    first = page.locator(".takeaway, .opening, table, .card").evaluate_all("nodes => nodes.map((n) => n.className)")
    assert first[:3] == ["takeaway", "opening", "card"]
    assert page.locator(".takeaway p").count() == 1
    card = page.locator("#figure-4b")
    assert "5 of 6 claims hold" in card.locator(".badge").inner_text()
    assert not card.locator("table.cards").is_visible()
    card.locator("summary", has_text="claims").click()
    assert card.locator("table.cards").is_visible()
    assert page.locator("math").count() > 20
    assert "toclip reproduce 1a theorem1 2b 3 4b theorem4 5 6 7 beyond-rules beyond-paths --quick --seed 1" in page.locator("#reproduce").inner_text()


def test_no_violations(page):
    assert violations(page) == []
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    assert violations(page) == []


def test_nothing_is_wider_than_the_screen(page):
    page.evaluate("document.querySelectorAll('details').forEach((part) => (part.open = true))")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


CROSSED = """() => {
    const inside = (at, from, length) => at > from && at < from + length;
    const found = [];
    for (const figure of document.querySelectorAll(".card figure.plot")) for (const { u, labels, description } of figure.charts) {
        const lines = description.lines.map(({ axis, at }) => [axis, u.valToPos(at, axis, true)]);
        labels.forEach((a, k) => {
            const apart = (b) => a.left >= b.left + b.width || b.left >= a.left + a.width || a.top >= b.top + b.height || b.top >= a.top + a.height;
            const free = lines.every(([axis, at]) => axis === "y" ? !inside(at, a.top, a.height) : !inside(at, a.left, a.width));
            if (!free || !labels.slice(0, k).every(apart)) found.push([figure.closest(".card").id, k]);
        });
    }
    return found;
}"""


def test_labels_of_lines_are_legible(page):
    assert page.evaluate(CROSSED) == []


LONG_LABELS = """() => {
    const ctx = document.createElement("canvas").getContext("2d");
    return [...document.querySelectorAll(".card figure.plot")].flatMap((figure) => figure.charts).flatMap(({ u, height }) =>
        u.axes.filter(({ label, labelFont: [font], side }) => {
            ctx.font = font;
            return label && ctx.measureText(label).width / devicePixelRatio > (side === 3 ? height - 40 : u.width - 60);
        }).map(({ label }) => label));
}"""


def test_labels_of_axes_fit(page):
    assert page.evaluate(LONG_LABELS) == []


def test_without_scripts_still_pictures_are_shown(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((report / "report.html").as_uri())
    assert page.locator(".opening .still > svg").is_visible()
    assert page.locator("#figure-1a .still > svg").is_visible()
    context.close()


def test_links_open_the_explorer_at_the_setting(desktop, report):
    page = desktop.page
    page.goto((report / "report.html").as_uri())
    links = page.locator(".card").evaluate_all(
        "cards => Object.fromEntries(cards.map((card) => [card.id, card.querySelector('.explore a')?.href ?? null]))"
    )
    assert all(links[f"figure-{name}"] is None for name in ["theorem4", "6", "7"])
    page.locator("#figure-4b .explore a").click()
    page.wait_for_selector("html[data-ready]", timeout=20_000)
    desktop.settle()
    assert desktop.message() == ""
    shown = desktop.experiment()
    assert shown["noise"] == {"family": "rademacher", "sigma": 0.8, "p": 0.2}
    assert shown["clip"] == {"kind": "proportional", "kappa": 0.3}
    assert shown["time"] == 15 and shown["learning_rate"] == 0.4 and shown["spectrum"]["dim"] == 500
    for figure, noise, risk in [("1a", "gaussian", None), ("2b", "rademacher", 3), ("5", "student_t", 3), ("3", "rademacher", 10), ("beyond-paths", "student_t", None)]:
        page.goto("about:blank")
        page.goto(links[f"figure-{figure}"])
        page.wait_for_selector("html[data-ready]", timeout=20_000)
        desktop.settle()
        assert desktop.message() == ""
        assert desktop.experiment()["noise"]["family"] == noise
        if risk:
            # The factors are those at the risk of the figure.
            assert abs(page.evaluate("toclip.now.risk") - risk) < 1e-9


def test_what_is_beyond_the_paper_has_its_own_takeaway(desktop, toclip, tmp_path):
    subprocess.run([toclip, "reproduce", "beyond-rules", "--quick", "--out", tmp_path / "out"], check=True, capture_output=True)
    desktop.page.goto((tmp_path / "out/report.html").as_uri())
    assert "Skip outliers that are separate from the rest" in desktop.page.inner_text(".takeaway")
