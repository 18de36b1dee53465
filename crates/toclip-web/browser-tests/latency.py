"""How long the page takes to answer a control, in Chromium on this machine.

    python3 crates/toclip-web/browser-tests/latency.py

Moves every slider through its range, each move an input event of its own, and measures from the event to
the drawn risk curves, factors and density. With batches, rules and classification the limits are for the
risk curves, which come from a worker; how long factors, density and words take is printed beside. Every
option of every select and every preset is chosen too. Exits with 1 if a limit is missed. The numbers mean
something on a machine that does nothing else: the load is printed first.
"""

import os
import sys

from playwright.sync_api import sync_playwright

from conftest import FLAGS, PAGE

# (fragment, limits of the median and the worst)
SINGLE = (16.0, 50.0)
BATCHES = (100.0, 100.0)
CHOICES = (50.0, 250.0)
CLASSIFICATION = (300.0, 600.0)
FAMILIES = ["gaussian", "rademacher", "student_t", "laplace", "uniform", "gaussian_mixture"]

MEASURE = """async ([name, whole]) => {
    const input = document.querySelector(`[name="${name}"]`);
    if (!input || !input.offsetParent) return [];
    const times = [];
    for (let k = 0; k < 24; k++) {
        input.value = String(150 + 25 * k);
        const start = performance.now();
        input.dispatchEvent(new Event("input", { bubbles: true }));
        // uPlot draws in a microtask.
        await Promise.resolve();
        await new Promise((resolve) => queueMicrotask(resolve));
        // With batches the risk curves come from a worker, the rest a moment later.
        while (toclip.shown !== JSON.stringify(toclip.state.experiment)) await new Promise((resolve) => setTimeout(resolve));
        if (whole) await toclip.settled();
        times.push(performance.now() - start);
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    }
    return times;
}"""

# Chooses every option of a select, or clicks every preset where there is no name.
CHOOSE = """async (name) => {
    const shown = async () => {
        while (toclip.shown !== JSON.stringify(toclip.state.experiment)) await new Promise((resolve) => setTimeout(resolve));
    };
    const select = document.querySelector(`select[name="${name}"]`);
    if (name && !select?.offsetParent) return [];
    const acts = name
        ? [...select.options].map(({ value }) => () => {
            select.value = value;
            select.dispatchEvent(new Event("change", { bubbles: true }));
        })
        : [...document.querySelectorAll("#presets button")].map((button) => () => button.click());
    const times = [];
    for (const act of acts) {
        const start = performance.now();
        act();
        await shown();
        times.push(performance.now() - start);
        await toclip.settled();
    }
    return times;
}"""
SELECTS = ["family", "spectrum", "start", "rate-kind", "clip-kind", "rule"]


def verdict(name: str, times: list[float], limits: tuple[float, float], later: list[float] | None = None) -> bool:
    """Prints the times; whether a limit is missed."""
    times = sorted(times)
    median, worst = times[len(times) // 2], times[-1]
    bad = median > limits[0] or worst > limits[1]
    print(
        f"{name}: median {median:.1f} ms, worst {worst:.1f} ms of {len(times)}"
        + (f"; everything: median {sorted(later)[len(later) // 2]:.0f} ms" if later else "")
        + (" (too slow)" if bad else "")
    )
    return bad


def choices(page) -> bool:
    """Selects, presets and the sliders of classification."""
    missed = False
    for name in SELECTS:
        kept = page.evaluate("JSON.stringify(toclip.state.experiment)")
        missed |= verdict(f"select {name}", page.evaluate(CHOOSE, name), CHOICES)
        page.evaluate("(kept) => toclip.change({ experiment: JSON.parse(kept) })", kept)
        page.evaluate("toclip.settled()")
    missed |= verdict("presets", page.evaluate(CHOOSE, ""), CLASSIFICATION)
    page.get_by_role("button", name="Classification").click()
    page.evaluate("toclip.settled()")
    times = [time for name in ("flips", "rate", "clip") for time in page.evaluate(MEASURE, [name, False])]
    missed |= verdict("classification", times, CLASSIFICATION)
    page.get_by_role("button", name="Outliers").click()
    page.evaluate("toclip.settled()")
    return missed


def main() -> None:
    missed = False
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS)
        page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        page.goto(PAGE.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.wait_for_function("toclip.panels.map.took > 0")
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        print(f"map of 40 x 40 cells: {page.evaluate('toclip.panels.map.took'):.0f} ms")
        missed |= choices(page)
        for batch, limits in ((1, SINGLE), (16, BATCHES)):
            for family in FAMILIES:
                page.select_option("select[name=family]", family)
                page.fill("#batch-number", str(batch))
                page.press("#batch-number", "Enter")
                names = page.evaluate("[...document.querySelectorAll('#controls [type=range]')].map((i) => i.name)")
                times: list[float] = []
                later: list[float] = []
                for name in names:
                    # The batch size moves to batches, wherever it starts; privacy and momentum have none.
                    if name in (("batch",) if batch == 1 else ("privacy", "momentum")):
                        continue
                    kept = page.evaluate("JSON.stringify(toclip.state.experiment)")
                    times += page.evaluate(MEASURE, [name, False])
                    if batch > 1:
                        later += page.evaluate(MEASURE, [name, True])
                    page.evaluate("(kept) => toclip.change({ experiment: JSON.parse(kept) })", kept)
                    # Nobody takes hold of another slider within the same tenth of a second.
                    page.evaluate("toclip.settled()")
                missed |= verdict(f"{family}, batch {batch}", times, limits, later)
        browser.close()
    sys.exit(missed)


if __name__ == "__main__":
    main()
