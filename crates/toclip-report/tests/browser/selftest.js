// Tries out the plots of a report as a hand would, and sends what it found to the outer page.
"use strict";
addEventListener("load", () => setTimeout(() => {
  const root = document.documentElement, found = { width: innerWidth, failed: [] };
  let done = 0;
  const check = (name, holds) => { done += 1; if (!holds) found.failed.push(name); };
  const folded = [...document.querySelectorAll("details:not([open])")];
  check("something is folded", folded.length > 0 || !document.querySelector(".card"));
  // What opens draws its charts; the event comes later.
  folded.forEach((part) => { part.open = true; });
  setTimeout(() => { tryOut(); found.checks = done; found.faults = window.faults; parent.postMessage(JSON.stringify(found), "*"); }, 300);

  function tryOut() {
    found.plots = Number(root.dataset.plots ?? 0);
    found.overflow = root.scrollWidth - root.clientWidth;
    found.outside = [...document.querySelectorAll("main *, header *")]
      .filter((node) => !node.closest("svg svg, .unseen, .still, .tip") && node.getBoundingClientRect().right > innerWidth + 1)
      .map((node) => `${node.tagName}.${node.getAttribute("class")}`).slice(0, 5);
    const seen = (selector) => [...document.querySelectorAll(selector)].filter((node) => node.offsetWidth);
    found.stills = seen(".still").length;
    found.live = seen(".live").length;
    found.formulas = seen("math").length || document.querySelectorAll("math").length;
    [...document.querySelectorAll("figure.plot")].flatMap((figure) => figure.charts ?? []).filter((chart) => chart.u).forEach(tryChart);

    const ground = () => getComputedStyle(document.body).backgroundColor, first = ground();
    const still = document.querySelector(".still svg"), colour = () => still && getComputedStyle(still).getPropertyValue("--bg");
    const theme = document.getElementById("theme");
    theme.click();
    const second = ground();
    theme.click();
    check("the button changes the theme and back", first !== second && ground() === first);
    check("still pictures take the theme of the page", colour() === null || colour() === getComputedStyle(root).getPropertyValue("--bg"));
  }

  function tryChart(chart, n) {
    const say = (name) => `chart ${n}: ${name}`;
    const close = (a, b, by = 1e-6) => Math.abs(a - b) <= by * Math.max(Math.abs(a), Math.abs(b), 1e-9);
    const same = (a, b) => ["x", "y"].every((k) => close(a[k][0], b[k][0]) && close(a[k][1], b[k][1]));
    const view = () => chart.view ?? chart.home(), span = () => view().x[1] - view().x[0];
    /** The scales that uPlot really draws with, in units. */
    const drawn = () => Object.fromEntries(["x", "y"].map((k) => {
      const { min, max } = chart.u.scales[k];
      return [k, [min, max].map((v) => (chart.log[k] ? Math.log10(v) : v))];
    }));
    const ink = () => {
      const { ctx, bbox } = chart.u, { data } = ctx.getImageData(bbox.left, bbox.top, bbox.width, bbox.height);
      let sum = 0;
      for (let k = 0; k < data.length; k += 4) sum += data[k + 3] > 0 ? data[k] + 2 * data[k + 1] + 3 * data[k + 2] + data[k + 3] : 0;
      return sum;
    };
    const place = (x, y) => {
      const box = chart.u.over.getBoundingClientRect();
      return { clientX: box.left + x * box.width, clientY: box.bottom - y * box.height };
    };
    const fire = (type, x, y, more = {}) => {
      const make = type === "wheel" ? WheelEvent : type.startsWith("pointer") ? PointerEvent : MouseEvent;
      chart.u.over.dispatchEvent(new make(type, { bubbles: true, cancelable: true, button: 0, ...place(x, y), ...more }));
    };
    const key = (name, more = {}) => chart.plot.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
    const home = chart.home(), width = home.x[1] - home.x[0];
    const empty = !chart.points(chart.shown()).length;
    check(say("starts with everything in view"), !chart.view && same(drawn(), home));
    if (!empty) check(say("draws something"), ink() > 0);

    // Values under the pointer agree with the data.
    const curves = chart.series.filter((s) => s.label && s.y.length && s.mark === undefined && !chart.log.x && !s.steps);
    chart.u.over.dispatchEvent(new MouseEvent("mouseenter", place(0.4, 0.5)));
    chart.readAt(0.4);
    const x = home.x[0] + 0.4 * width;
    let readings = 0;
    for (const series of curves) {
      const row = [...chart.tip.querySelectorAll("tr")].find((r) => r.cells[0].textContent === series.label);
      const i = series.x.reduce((best, v, j) => (Math.abs(v - x) < Math.abs(series.x[best] - x) ? j : best), 0);
      const there = Math.abs(series.x[i] - x) < width / 40 && series.y[i] !== null && (!chart.log.y || series.y[i] > 0);
      if (!there) continue;
      readings += 1;
      const text = row ? row.cells[1].textContent.split(",")[0].replace("−", "-") : "none";
      if (/^[-\d.]+$/.test(text)) check(say(`reads ${series.label}: ${text} for ${series.y[i]}`), close(Number(text), series.y[i], 6e-4));
      else check(say(`reads ${series.label}: ${text}`), text.includes("·10"));
    }
    if (readings) check(say("shows the readout"), !chart.tip.hidden);
    chart.readAt(null);
    check(say("hides the readout"), chart.tip.hidden);

    fire("wheel", 0.5, 0.5, { deltaY: -100 });
    check(say("the wheel scrolls the page unless the plot has focus"), !chart.view);

    // A box drawn with the mouse becomes the view.
    const box = chart.u.over.getBoundingClientRect(), [w, h] = [box.width, box.height];
    chart.u.setSelect({ left: 0.25 * w, top: 0.2 * h, width: 0.5 * w, height: 0.6 * h });
    const inner = {};
    for (const k of ["x", "y"]) {
      const [a, b] = k === "x" ? [0.25, 0.75] : [0.2, 0.8], [low, high] = home[k];
      inner[k] = [low + a * (high - low), low + b * (high - low)];
    }
    check(say("a box zooms"), chart.view && ["x", "y"].every((k) => [0, 1].every((e) => Math.abs(chart.view[k][e] - inner[k][e]) <= 0.02 * (home[k][1] - home[k][0]))));
    chart.u.batch(() => {});
    fire("dblclick", 0.5, 0.5);
    check(say("a double click shows everything"), !chart.view && chart.buttons.reset.disabled);

    chart.plot.focus();
    fire("wheel", 0.5, 0.5, { deltaY: -100 });
    check(say("the wheel zooms about the pointer"), span() < 0.99 * width && Math.abs(view().x[0] + view().x[1] - home.x[0] - home.x[1]) <= 0.02 * width);
    chart.buttons.reset.click();
    check(say("the button shows everything"), !chart.view);

    // Two fingers from half the width apart to all of it: half the span, about the middle.
    const touch = (id) => ({ pointerType: "touch", pointerId: id });
    fire("pointerdown", 0.25, 0.5, touch(2));
    fire("pointerdown", 0.75, 0.5, touch(3));
    fire("pointermove", 0, 0.5, touch(2));
    fire("pointermove", 1, 0.5, touch(3));
    check(say("two fingers zoom"), close(span(), width / 2, 0.01));
    fire("pointerup", 0, 0.5, touch(2));
    fire("pointerup", 1, 0.5, touch(3));
    for (let tap = 0; tap < 2; tap++) {
      fire("pointerdown", 0.5, 0.5, touch(4));
      fire("pointerup", 0.5, 0.5, touch(4));
    }
    check(say("a double tap shows everything"), !chart.view);

    key("ArrowRight");
    if (readings) check(say("keys read aloud"), chart.said.textContent.includes(curves[0].label));
    key("+");
    check(say("keys zoom"), close(span(), width / 1.5, 1e-3));
    const before = view().x[0];
    key("ArrowRight", { shiftKey: true });
    check(say("keys move"), view().x[0] > before);
    key("0");
    check(say("a key shows everything"), !chart.view);

    for (const k of ["x", "y"]) {
      if (chart.buttons[k].disabled) continue;
      const was = chart.log[k];
      chart.buttons[k].click();
      const { min, max } = chart.u.scales[k];
      check(say(`log ${k}`), chart.log[k] !== was && chart.buttons[k].getAttribute("aria-pressed") === String(!was) && (min === null || (min < max && (was || min > 0))));
      chart.buttons[k].click();
      check(say(`log ${k} and back`), same(chart.home(), home));
    }

    const names = () => [...chart.legend.querySelectorAll("button")];
    if (names().length && !empty) {
      const i = chart.named()[0];
      names()[0].click();
      check(say("a name hides its curve"), chart.hidden.has(i) && names()[0].getAttribute("aria-pressed") === "false" && document.activeElement === names()[0]);
      names()[0].click();
      check(say("and shows it again"), !chart.hidden.size && same(chart.home(), home));
    }
    chart.plot.blur();
  }
}, 300));
