"""Everything that people do with the page."""

import csv
import io
import math
import struct
import tomllib

import pytest


def still(page) -> None:
    """Waits until charts that came into view are drawn, which takes a frame or two after scrolling."""
    page.evaluate("""async () => {
        const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
        for (let k = 0; k < 4; k++) await frame();
    }""")


def drag(page, selector: str, dx: float) -> None:
    page.locator(selector).scroll_into_view_if_needed()
    still(page)
    box = page.locator(selector).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.7
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + dx / 2, y, steps=3)
    page.mouse.move(x + dx, y, steps=3)
    page.mouse.up()


def saved(page, button) -> tuple[str, bytes]:
    with page.expect_download() as download:
        button.click()
    with open(download.value.path(), "rb") as file:
        return download.value.suggested_filename, file.read()


def test_the_threshold_is_dragged(explorer):
    page = explorer.open()
    before = explorer.experiment()["clip"]
    drag(page, "#factors .handle", -60)
    after = explorer.experiment()["clip"]
    assert 0 < after < before
    assert float(page.input_value("#clip-number")) == after
    assert page.locator("#factors .handle").get_attribute("aria-valuetext") == f"c = {after:g}"


def test_the_moment_is_dragged_and_other_pictures_follow(explorer):
    page = explorer.open()
    risk = page.evaluate("toclip.now.risk")
    answer = page.inner_text("#answer p")
    drag(page, "#risk .handle", -150)
    assert page.evaluate("toclip.state.moment") < 1
    assert page.evaluate("toclip.now.risk") > risk
    assert page.inner_text("#answer p") != answer


def test_a_number_is_typed(explorer):
    page = explorer.open()
    page.fill("#rate-number", "0.25")
    page.press("#rate-number", "Enter")
    assert explorer.experiment()["learning_rate"] == 0.25
    page.fill("#rate-number", "fast")
    page.press("#rate-number", "Enter")
    assert "“fast” is not a number" in explorer.message()
    assert explorer.experiment()["learning_rate"] == 0.25


def test_a_value_out_of_range_is_refused_with_a_sentence(desktop):
    page = desktop.open()
    before = desktop.experiment()
    page.fill("#noise-p-number", "1.5")
    page.press("#noise-p-number", "Enter")
    assert "p = 1.5 is not allowed" in desktop.message()
    assert desktop.experiment() == before
    page.fill("#noise-p-number", "0.5")
    page.press("#noise-p-number", "Enter")
    assert desktop.message() == "" and desktop.experiment()["noise"]["p"] == 0.5


def test_every_choice_gives_a_picture_or_a_sentence(desktop):
    page = desktop.open()
    for name in ["model", "family", "spectrum", "start", "rate-kind", "clip-kind", "rule", "batch-rule"]:
        select = page.locator(f"select[name={name}]")
        if not select.is_visible():
            continue
        for value in select.locator("option").evaluate_all("all => all.map(o => o.value)"):
            select.select_option(value)
            desktop.settle()
            changed = page.evaluate("JSON.stringify(toclip.state.experiment)")
            assert desktop.message() or value in changed or page.evaluate("toclip.paths.clipped.risk.length") > 1
            assert "\n" not in desktop.message()


def test_the_map_fills_and_is_clicked(explorer):
    page = explorer.open()
    page.wait_for_function("toclip.panels.map.took > 0", timeout=20_000)
    risks = page.evaluate("toclip.panels.map.risks")
    assert len(risks) == 40 and all(len(column) == 40 for column in risks)
    over = page.locator("#map .u-over")
    over.scroll_into_view_if_needed()
    still(page)
    box = over.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.5)
    chosen = explorer.experiment()
    x = page.evaluate("toclip.panels.map.chart.u.posToVal(toclip.panels.map.chart.u.over.clientWidth * 0.25, 'x')")
    assert math.isclose(chosen["clip"], x, rel_tol=0.02)


def test_runs_of_sgd_lie_around_the_theory(desktop):
    page = desktop.open()
    page.wait_for_function("toclip.band && toclip.band.count === 20", timeout=60_000)
    end = page.evaluate("[toclip.band.low.at(-1), toclip.paths.clipped.risk.at(-1), toclip.band.high.at(-1)]")
    assert 0.8 * end[0] < end[1] < 1.2 * end[2]


def test_the_address_shows_the_same_again(explorer):
    page = explorer.open()
    page.get_by_role("button", name="Heavy tails").click()
    page.fill("#clip-number", "0.37")
    page.press("#clip-number", "Enter")
    page.locator("#keep").click()
    page.locator("select[name=rate-kind]").select_option("cosine")
    fragment = explorer.fragment()
    state = page.evaluate("toclip.state")
    risks = page.evaluate("toclip.paths.clipped.risk")
    explorer.open(fragment)
    assert page.evaluate("toclip.state") == state
    assert page.evaluate("toclip.paths.clipped.risk") == risks
    assert "cosine" in page.inner_text("#compare")


@pytest.mark.parametrize(
    "fragment",
    ["#nonsense", "#experiment=%ff%00", "#experiment=noise+%3D+7", "#moment=abc&tour=99", "#experiment=" + "x" * 5000],
)
def test_a_nonsense_address_still_shows_something(desktop, fragment):
    page = desktop.open(fragment)
    assert page.evaluate("toclip.paths.clipped.risk.length") == 201
    assert "\n" not in desktop.message()
    if fragment.startswith("#experiment="):
        assert desktop.message().startswith("The link has no valid experiment: ")


def test_code_is_exported(desktop):
    page = desktop.open()
    page.click("#code-details summary")
    name, text = saved(page, page.locator("#save-code"))
    assert name == "explored.toml"
    exported = tomllib.loads(text.decode())
    shown = desktop.experiment()
    assert {key: exported[key] for key in shown} == shown
    page.select_option("#code-kind", "python")
    name, text = saved(page, page.locator("#save-code"))
    assert name == "explored.py"
    compile(text, name, "exec")
    page.select_option("#code-kind", "rust")
    assert b"toclip_experiment::" in saved(page, page.locator("#save-code"))[1]


def test_pictures_and_tables_are_exported(explorer):
    page = explorer.open()
    page.wait_for_function("toclip.panels.map.took > 0", timeout=20_000)
    for panel in ["risk", "factors", "density", "map"]:
        for kind in ["SVG", "PNG", "CSV"]:
            button = page.get_by_role("button", name=f"Save {panel} as {kind}")
            name, content = saved(page, button)
            assert name == f"{panel}.{kind.lower()}"
            if kind == "SVG":
                assert content.startswith(b"<svg") and b"NaN" not in content
            elif kind == "PNG":
                width, height = struct.unpack(">II", content[16:24])
                assert content[1:4] == b"PNG" and width > 300 and height > 300
            else:
                rows = list(csv.reader(io.StringIO(content.decode())))
                assert len(rows) > 80 and all(len(row) == len(rows[0]) for row in rows)


def test_classification_is_explored(explorer):
    page = explorer.open()
    page.locator("select[name=model]").select_option("logistic")
    explorer.settle()
    assert explorer.message() == ""
    assert explorer.experiment()["model"] == {"kind": "logistic", "flips": 0.1}
    assert "noise" not in explorer.experiment() and not page.is_visible("select[name=family]")
    assert "cross-entropy" in page.inner_text("#answer p") and "times the teacher" in page.inner_text("#answer p")
    assert "nothing to draw for classification" in page.inner_text("#density")
    assert page.inner_text("#risk-title") == "Loss and error rate over time"
    before = page.evaluate("toclip.paths.clipped.risk.at(-1)")
    page.fill("#flips-number", "0.3")
    page.press("#flips-number", "Enter")
    explorer.settle()
    assert page.evaluate("toclip.paths.clipped.risk.at(-1)") > before
    drag(page, "#factors .handle", -60)
    explorer.settle()
    assert explorer.experiment()["clip"] < 0.4
    fragment, state = explorer.fragment(), page.evaluate("toclip.state")
    explorer.open(fragment)
    assert page.evaluate("toclip.state") == state
    # Back to least squares: all pictures are there again.
    page.locator("select[name=model]").select_option("least_squares")
    explorer.settle()
    assert page.is_visible("select[name=family]") and "nothing to draw" not in page.inner_text("#density")
    assert page.inner_text("#risk-title") == "Risk over time"


def test_classification_is_simulated_and_exported(desktop):
    page = desktop.open()
    page.get_by_role("button", name="Classification").click()
    page.wait_for_function("toclip.panels.map.filled && toclip.band && toclip.band.count === 20", timeout=90_000)
    end = page.evaluate("[toclip.band.low.at(-1), toclip.paths.clipped.risk.at(-1), toclip.band.high.at(-1)]")
    assert 0.9 * end[0] < end[1] < 1.1 * end[2]
    page.click("#code-details summary")
    exported = tomllib.loads(saved(page, page.locator("#save-code"))[1].decode())
    assert exported["model"] == {"kind": "logistic", "flips": 0.1} and exported["methods"] == ["ode", "unclipped", "sgd"]
    page.select_option("#code-kind", "python")
    assert b'curves["ode"].loss[-1]' in saved(page, page.locator("#save-code"))[1]
    page.select_option("#code-kind", "rust")
    assert b"run_glm(" in saved(page, page.locator("#save-code"))[1]
    table = saved(page, page.get_by_role("button", name="Save risk as CSV"))[1].decode()
    assert "error rate" in table.splitlines()[0]
    # A file of residuals is for least squares.
    give(page, "r.csv", b"1\n-1\n2\n")
    desktop.settle()
    assert desktop.experiment()["noise"]["values"] == [1, -1, 2] and "model" not in desktop.experiment()


def give(page, name: str, content: bytes) -> None:
    page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": content})
    # The choice is emptied once the file is read.
    page.wait_for_function("document.getElementById('file').value === ''")


def test_files_are_opened(explorer):
    page = explorer.open()
    residuals = "\n".join(str(math.tan(3 * (k / 100 - 0.495))) for k in range(100))
    give(page, "residuals.csv", residuals.encode())
    assert explorer.experiment()["noise"]["family"] == "empirical"
    assert "100 residuals are now the noise" in explorer.message()
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }\n"
    array = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<3d", 1, -2, 3)
    give(page, "residuals.npy", array)
    assert explorer.experiment()["noise"]["values"] == [1, -2, 3]
    give(page, "e.toml", b"spectrum = { kind = 'isotropic', dim = 50 }\nstart = { kind = 'uniform', norm = 1 }\n"
         b"noise = { family = 'laplace', sigma = 0.3 }\ntime = 4\nlearning_rate = 0.2\nclip = 0.9\n")
    assert explorer.experiment()["noise"] == {"family": "laplace", "sigma": 0.3}
    log = "step,loss,grad_norm\n" + "".join(f"{k},{2 - k / 1000},{1 + 0.3 * (k * 0.618 % 1)}\n" for k in range(300))
    give(page, "log.csv", log.encode())
    assert "300 gradient norms" in page.inner_text("#log")


def test_a_file_is_dropped(desktop):
    page = desktop.open()
    page.evaluate("""() => {
        const data = new DataTransfer();
        data.items.add(new File(["1\\n-1\\n2\\n"], "r.csv"));
        dispatchEvent(new DragEvent("drop", { dataTransfer: data, cancelable: true }));
    }""")
    page.wait_for_function("toclip.state.experiment.noise.family === 'empirical'")


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n\0\0", b"hello", b"1,2\n3,4\n", b"\x93NUMPY\x01", b"noise = 3"])
def test_a_bad_file_is_answered_with_a_sentence(desktop, content):
    page = desktop.open()
    before = desktop.experiment()
    give(page, "bad.bin", content)
    assert desktop.message().startswith("bad.bin: ") and "\n" not in desktop.message()
    assert desktop.experiment() == before


def test_the_keyboard_is_enough(explorer):
    page = explorer.open()

    def tab_to(selector: str) -> None:
        for _ in range(80):
            page.keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({selector!r})"):
                return
        raise AssertionError(f"{selector} cannot be reached")

    tab_to("[name=rate]")
    before = explorer.experiment()["learning_rate"]
    page.keyboard.press("ArrowRight")
    assert explorer.experiment()["learning_rate"] > before
    page.evaluate("document.activeElement.blur(); document.body.focus(); scrollTo(0, 0)")
    page.locator("#risk .handle").focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("toclip.state.moment") == 0.99
    tab_to("#factors .handle")
    before = explorer.experiment()["clip"]
    page.keyboard.press("ArrowLeft")
    assert explorer.experiment()["clip"] < before
    page.wait_for_function("toclip.panels.map.ready", timeout=20_000)
    tab_to("#map .plot")
    before = explorer.experiment()["learning_rate"]
    page.keyboard.press("ArrowUp")
    assert explorer.experiment()["learning_rate"] > before
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_the_tour_is_taken(explorer):
    page = explorer.open()
    page.click("#start-tour")
    titles = []
    while page.is_visible("#tour"):
        titles.append(page.inner_text("#tour h2"))
        assert page.locator(".panel:visible").count() == 1
        assert page.inner_text("#tour [data-tour=text]").count(". ") == 1, titles[-1]
        page.click("#tour [data-tour=next]")
    assert len(titles) == 6 == len(set(titles))
    assert page.locator(".panel:visible").count() == 4


def test_nothing_is_wider_than_the_screen(explorer):
    page = explorer.open()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator("#keep").click()
    page.get_by_role("button", name="Private SGD").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
