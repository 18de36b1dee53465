// Tries out the plots of a report as a hand would, and sends what it found to the outer page.
"use strict";
addEventListener("load", () => setTimeout(() => {
  const root = document.documentElement, found = { width: innerWidth, plots: Number(root.dataset.plots ?? 0), failed: [] };
  let done = 0;
  const check = (name, holds) => { done += 1; if (!holds) found.failed.push(name); };
  found.overflow = root.scrollWidth - root.clientWidth;
  found.outside = [...document.querySelectorAll("main *, header *")]
    .filter((node) => !node.closest("svg svg, .unseen, .still") && node.getBoundingClientRect().right > innerWidth + 1)
    .map((node) => `${node.tagName}.${node.getAttribute("class")}`).slice(0, 5);
  found.stills = [...document.querySelectorAll(".still")].filter((node) => node.offsetWidth).length;

  found.live = [...document.querySelectorAll(".live")].filter((node) => node.offsetWidth).length;

  const close = (a, b, by = 1e-6) => Math.abs(a - b) <= by * Math.max(Math.abs(a), Math.abs(b), 1e-9);
  const same = (a, b) => ["x", "y"].every((k) => close(a[k][0], b[k][0]) && close(a[k][1], b[k][1]));
  const span = (chart) => chart.view.x[1] - chart.view.x[0];
  const charts = [...document.querySelectorAll("figure.plot")].flatMap((figure) => figure.charts).filter((chart) => chart.plot.clientWidth);
  charts.forEach((chart, n) => {
    const say = (name) => `chart ${n}: ${name}`;
    const fire = (type, x, y, more = {}) => {
      const box = chart.svg.getBoundingClientRect(), { frame } = chart;
      const place = { clientX: box.left + frame.left + x * (frame.right - frame.left), clientY: box.top + frame.bottom - y * (frame.bottom - frame.top) };
      const make = type === "wheel" ? WheelEvent : type === "dblclick" ? MouseEvent : PointerEvent;
      chart.svg.dispatchEvent(new make(type, { bubbles: true, cancelable: true, pointerId: 1, pointerType: "mouse", button: 0, ...place, ...more }));
    };
    const key = (name, more = {}) => chart.svg.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
    const home = chart.home();
    check(say("starts with everything in view"), same(chart.view, home));
    check(say("no bad numbers"), !/NaN|Infinity/.test(chart.svg.outerHTML));

    // Values under the pointer agree with the data.
    const curves = chart.data.series.filter((s) => s.label && s.y.length && s.kind !== "points" && !chart.log.x);
    const share = 0.4, x = chart.view.x[0] + share * span(chart);
    fire("pointermove", share, 0.5);
    for (const series of curves) {
      const row = [...chart.tip.querySelectorAll("tr")].find((r) => r.cells[0].textContent === series.label);
      const i = series.x.reduce((best, v, j) => (Math.abs(v - x) < Math.abs(series.x[best] - x) ? j : best), 0);
      const gap = Math.abs(series.x[i] - x) < span(chart) / 40, there = series.y[i] !== null && (!chart.log.y || series.y[i] > 0);
      if (!gap || !there) continue;
      const text = row ? row.cells[1].textContent.split(",")[0].replace("−", "-") : "none";
      if (/^[-\d.]+$/.test(text)) check(say(`reads ${series.label}: ${text} for ${series.y[i]}`), close(Number(text), series.y[i], 6e-4));
      else check(say(`reads ${series.label}: ${text}`), text.includes("×10"));
    }
    if (curves.length) check(say("shows the readout"), !chart.tip.hidden && chart.svg.querySelector(".cursor"));
    fire("pointerleave", 0.5, 0.5);
    check(say("hides the readout"), chart.tip.hidden);

    fire("wheel", 0.5, 0.5, { deltaY: -100 });
    check(say("the wheel scrolls the page unless the plot has focus"), same(chart.view, home));

    // A box drawn with the mouse becomes the view.
    fire("pointerdown", 0.25, 0.2);
    fire("pointermove", 0.75, 0.8, { buttons: 1 });
    check(say("draws the box"), chart.svg.querySelector(".box"));
    fire("pointerup", 0.75, 0.8);
    const inner = { x: [0, 0], y: [0, 0] };
    for (const k of ["x", "y"]) {
      const [a, b] = k === "x" ? [0.25, 0.75] : [0.2, 0.8], [lo, hi] = home[k];
      inner[k] = [lo + a * (hi - lo), lo + b * (hi - lo)];
    }
    check(say("a box zooms"), same(chart.view, inner) && !chart.svg.querySelector(".box"));
    fire("dblclick", 0.5, 0.5);
    check(say("a double click shows everything"), same(chart.view, home) && chart.buttons.reset.disabled);

    chart.svg.focus();
    // A wheel stands on a whole pixel.
    const pixel = (home.x[1] - home.x[0]) / (chart.frame.right - chart.frame.left);
    fire("wheel", 0.5, 0.5, { deltaY: -100 });
    check(say("the wheel zooms about the pointer"), span(chart) < 0.99 * (home.x[1] - home.x[0])
      && Math.abs(chart.view.x[0] + chart.view.x[1] - home.x[0] - home.x[1]) <= 2 * pixel);
    chart.buttons.reset.click();
    check(say("the button shows everything"), same(chart.view, home));

    // Two fingers from half the width apart to all of it: half the span, about the middle.
    const touch = (id) => ({ pointerType: "touch", pointerId: id });
    fire("pointerdown", 0.25, 0.5, touch(2));
    fire("pointerdown", 0.75, 0.5, touch(3));
    fire("pointermove", 0, 0.5, touch(2));
    fire("pointermove", 1, 0.5, touch(3));
    check(say("two fingers zoom"), close(span(chart), (home.x[1] - home.x[0]) / 2, 1e-3));
    fire("pointerup", 0, 0.5, touch(2));
    fire("pointerup", 1, 0.5, touch(3));
    for (let tap = 0; tap < 2; tap++) {
      fire("pointerdown", 0.5, 0.5, touch(4));
      fire("pointerup", 0.5, 0.5, touch(4));
    }
    check(say("a double tap shows everything"), same(chart.view, home));

    key("ArrowRight");
    if (curves.length) check(say("keys read aloud"), chart.said.textContent.includes(curves[0].label));
    key("+");
    check(say("keys zoom"), close(span(chart), (home.x[1] - home.x[0]) / 1.5, 1e-3));
    const before = chart.view.x[0];
    key("ArrowRight", { shiftKey: true });
    check(say("keys move"), chart.view.x[0] > before);
    key("0");
    check(say("a key shows everything"), same(chart.view, home));

    for (const k of ["x", "y"]) {
      if (chart.buttons[k].disabled) continue;
      const was = chart.log[k];
      chart.buttons[k].click();
      check(say(`log ${k}`), chart.log[k] !== was && chart.buttons[k].getAttribute("aria-pressed") === String(!was)
        && !/NaN|Infinity/.test(chart.svg.outerHTML));
      chart.buttons[k].click();
      check(say(`log ${k} and back`), same(chart.view, home));
    }

    const names = [...chart.legend.querySelectorAll("button")], drawn = () => chart.svg.querySelectorAll(".line, .area, .dot").length;
    if (names.length) {
      const all = drawn();
      names[0].click();
      check(say("a name hides its curve"), drawn() < all && names[0].getAttribute("aria-pressed") === "false");
      names[0].click();
      check(say("and shows it again"), drawn() === all && same(chart.view, home));
    }
    chart.svg.blur();
  });

  const ground = () => getComputedStyle(document.body).backgroundColor, first = ground();
  const still = document.querySelector(".still svg"), colour = () => still && getComputedStyle(still).getPropertyValue("--bg");
  document.getElementById("theme").click();
  const second = ground();
  document.getElementById("theme").click();
  check("the button changes the theme and back", first !== second && ground() === first);
  check("still pictures take the theme of the page", colour() === null || colour() === getComputedStyle(root).getPropertyValue("--bg"));

  found.checks = done;
  found.faults = window.faults;
  parent.postMessage(JSON.stringify(found), "*");
}, 300));
