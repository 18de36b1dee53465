"""Everything that people do with the page."""

import csv
import io
import math
import struct
import tomllib
from urllib.parse import urlencode

import pytest
from conftest import PAGE, ROOT


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


@pytest.mark.parametrize(
    ("typed", "value"),
    [("0,5", 0.5), ("1,5", 1.5), ("1,000,000", 1e6), ("1,250.5", 1250.5), ("12 500", 12500), ("2e3", 2000)],
)
def test_commas_are_read_as_people_write_them(desktop, typed, value):
    page = desktop.open()
    page.fill("#time-number", typed)
    page.press("#time-number", "Enter")
    assert desktop.experiment()["time"] == value and desktop.message() == ""


@pytest.mark.parametrize("typed", ["1,000", "12,345"])
def test_a_number_that_may_mean_two_is_refused(desktop, typed):
    page = desktop.open()
    page.fill("#time-number", typed)
    page.press("#time-number", "Enter")
    assert f"“{typed}” may mean {typed.replace(',', '')} or " in desktop.message()
    assert desktop.experiment()["time"] == 15


def test_messages_write_keys_and_numbers_as_files_do(desktop):
    page = desktop.open()
    page.fill("#rate-number", "-1")
    page.press("#rate-number", "Enter")
    assert desktop.message().startswith("learning_rate")
    page.fill("#rate-number", "-1e300")
    page.press("#rate-number", "Enter")
    assert "0000" not in desktop.message()
    page = desktop.open(experiment="noise = { family = 'gausian' }")
    assert "did you mean `gaussian`?" in desktop.message()


def test_a_long_time_does_not_block_the_page(desktop):
    page = desktop.page
    experiment = "spectrum={kind='isotropic',dim=50}\nstart={kind='uniform',norm=1}\nnoise={family='gaussian',sigma=0.5}\n"
    experiment += "time=1e9\nlearning_rate=0.4\nclip=0.5"
    page.goto(PAGE.as_uri() + "#" + urlencode({"experiment": experiment}))
    page.wait_for_selector("html[data-ready]", timeout=20_000)
    assert page.evaluate("document.body.classList.contains('working')")
    # A setting whose curves come from the same worker is shown: the long computation is given up.
    page.evaluate("toclip.edit((e) => ({ ...e, time: 5, batch: 16 }))")
    page.wait_for_function("toclip.shown === JSON.stringify(toclip.state.experiment)", timeout=20_000)
    desktop.settle()
    assert desktop.message() == "" and page.evaluate("toclip.paths.times.at(-1)") == 5


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
    # The compiler checks the examples.
    name, text = saved(page, page.locator("#save-code"))
    assert name == "explored.rs" and text == example("explored")


def example(name: str) -> bytes:
    return (ROOT / f"crates/toclip-experiment/examples/{name}.rs").read_bytes()


def test_the_code_follows_the_setting(desktop):
    page = desktop.open()
    page.click("#code-details summary")
    page.wait_for_function("document.getElementById('code').textContent.includes('clip = 0.5')")
    page.fill("#clip-number", "0.75")
    page.press("#clip-number", "Enter")
    assert "clip = 0.75\n" in page.inner_text("#code")


def test_the_link_is_that_of_the_setting(desktop):
    page = desktop.open()
    page.evaluate("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    # The address is written a moment after the change; the link is copied before.
    page.evaluate("""() => {
        toclip.setThreshold(0.123);
        document.getElementById("copy-link").click();
    }""")
    page.wait_for_function("window.copied")
    assert "clip+%3D+0.123" in page.evaluate("copied")
    assert page.inner_text("#copy-link") == "Copied"
    # Many residuals do not fit into a link.
    give(page, "r.csv", "\n".join(str(math.sin(k) * 1.23456789) for k in range(400)).encode())
    page.evaluate("window.copied = null")
    page.click("#copy-link")
    assert page.is_visible("#link-note") and page.evaluate("copied") is None
    assert page.inner_text("#copy-link") == "Too long for a link"


def test_csv_of_factors_has_the_values_of_the_theory(desktop):
    page = desktop.open()
    table = list(csv.DictReader(io.StringIO(saved(page, page.get_by_role("button", name="Save factors as CSV"))[1].decode())))
    names = {name.split(" ")[0].rstrip(":"): name for name in table[0]}
    csc = [float(row[names["CSC"]]) for row in table]
    assert max(csc) > 20
    for row, value in zip(table, csc):
        assert math.isclose(value, float(row[names["μ"]]) / float(row[names["ν"]]), rel_tol=1e-9)


def test_hidden_pictures_are_not_saved(desktop):
    page = desktop.open()
    buttons = {name: page.get_by_role("button", name=f"Save {name} as CSV") for name in ("factors", "density")}
    assert buttons["factors"].is_enabled() and buttons["density"].is_enabled()
    page.locator("select[name=model]").select_option("logistic")
    desktop.settle()
    assert buttons["factors"].is_enabled() and buttons["density"].is_disabled()
    page.locator("select[name=model]").select_option("least_squares")
    desktop.settle()
    assert buttons["density"].is_enabled()
    page.locator("select[name=rule]").select_option("by_value")
    desktop.settle()
    assert buttons["factors"].is_disabled()
    assert "No single best threshold for this rule." == page.inner_text("#answer h2")


def words(page) -> str:
    page.wait_for_function("toclip.best !== undefined", timeout=20_000)
    return page.inner_text("#answer p")


def test_the_answer_explains_what_seems_to_contradict_it(desktop):
    page = desktop.open()
    page.get_by_role("button", name="Gaussian noise").click()
    desktop.settle()
    assert page.inner_text("#answer h2") == "Do not clip."
    assert "No rule has CCC above 1" in words(page)
    assert "a smaller learning rate does the same without clipping" in words(page)
    for preset in ["Heavy tails", "Cauchy (figure 1b)"]:
        page.get_by_role("button", name=preset).click()
        desktop.settle()
        assert "because it also raises the learning rate to η/μ" in words(page), preset
    page.get_by_role("button", name="Outliers").click()
    desktop.settle()
    assert "smaller learning rate" not in words(page) and "because it also" not in words(page)
    assert "which the rate makes up for" in words(page)


def test_a_rule_without_a_threshold_shades_nothing(desktop):
    page = desktop.open()
    assert page.evaluate("toclip.panels.density.threshold") == 0.5
    page.locator("select[name=rule]").select_option("optimal")
    desktop.settle()
    assert page.evaluate("[toclip.panels.density.threshold, toclip.panels.density.description.lines.length]") == [None, 0]
    assert "no threshold" in page.inner_text("#density .readout")


def test_values_under_the_pointer(desktop):
    page = desktop.open()
    page.wait_for_function("toclip.panels.map.took > 0", timeout=20_000)
    for panel, expected in [("factors", "CCC"), ("map", "final risk R(T) 0.")]:
        over = page.locator(f"#{panel} .u-over")
        over.scroll_into_view_if_needed()
        still(page)
        box = over.bounding_box()
        page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.6)
        read = page.inner_text(f"#{panel} .readout")
        assert expected in read and "Value" not in read, read


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
                # The part that is clipped is shaded, as on the screen.
                assert (b">clipped<" in content) == (panel == "density")
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
    assert "Not drawn for classification" in page.inner_text("#density")
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
    assert page.is_visible("select[name=family]") and "Not drawn" not in page.inner_text("#density")
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
    assert saved(page, page.locator("#save-code"))[1] == example("explored_classification")
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
    give(page, "with-mark.csv", b"\xef\xbb\xbf7\n-8\n9\n")
    assert explorer.experiment()["noise"]["values"] == [7, -8, 9]
    give(page, "one.csv", b"2\n")
    assert "1 residual is now the noise" in explorer.message()
    give(page, "residuals.npy", array)
    assert explorer.experiment()["noise"]["values"] == [1, -2, 3]
    give(page, "e.toml", b"spectrum = { kind = 'isotropic', dim = 50 }\nstart = { kind = 'uniform', norm = 1 }\n"
         b"noise = { family = 'laplace', sigma = 0.3 }\ntime = 4\nlearning_rate = 0.2\nclip = 0.9\n")
    assert explorer.experiment()["noise"] == {"family": "laplace", "sigma": 0.3}
    log = "step,loss,grad_norm\n" + "".join(f"{k},{2 - k / 1000},{1 + 0.3 * (k * 0.618 % 1)}\n" for k in range(300))
    give(page, "log.csv", log.encode())
    assert "300 gradient norms" in page.inner_text("#log")
    give(page, "bad.bin", b"hello")
    assert explorer.message().startswith("bad.bin: ")
    give(page, "log.csv", log.encode())
    assert explorer.message() == ""


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
