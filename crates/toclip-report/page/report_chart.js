// A chart of the report: values under the pointer, zoom by mouse, fingers and keys, log axes, curves to hide.

import { Chart, dashOf, element } from "./chart.js";
import { sample } from "./marks.js";
import { clamp, short } from "./numbers.js";
import { styled } from "./figure.js";

/** A position in units of an axis: the value, or its logarithm; null where there is none. */
const units = (log, v) => (typeof v !== "number" || (log && v <= 0) ? null : log ? Math.log10(v) : v);
const value = (log, u) => (log ? 10 ** u : u);
export const AXES = ["x", "y"];
/** Air around the curves. */
const AIR = { x: 0.02, y: 0.05 };

export class ReportChart extends Chart {
  constructor(node, data) {
    super(node, { height: 300 });
    this.data = data;
    this.series = styled(data.series);
    this.log = { x: data.x.scale === "log", y: data.y.scale === "log" };
    this.hidden = new Set();
    this.view = null; // both axes in units, where zoomed
    this.build();
    this.listen();
  }

  build() {
    const button = (text, title, act) => {
      const node = element("button", { type: "button", title }, text);
      node.addEventListener("click", act);
      return node;
    };
    this.buttons = {};
    for (const k of AXES) {
      this.buttons[k] = button(`log ${k}`, `Logarithmic ${k} axis`, () => this.toggleLog(k));
      // An axis without positive values has no logarithm to show.
      this.buttons[k].disabled = !this.points(this.series).some(([x, y]) => (k === "x" ? x : y) > 0);
    }
    this.buttons.reset = button("reset", "Show everything (double click, or 0)", () => this.reset());
    const tools = element("div", { class: "tools", role: "group", "aria-label": "Axes" }, ...Object.values(this.buttons));
    this.tip = element("div", { class: "tip", hidden: "" });
    this.said = element("p", { class: "unseen", "aria-live": "polite" });
    this.readout.replaceWith(tools, this.said);
    const { x, y } = this.data;
    const about = `${y.label} against ${x.label}. Arrow keys read values, plus and minus zoom, shift with arrows `
      + "moves, 0 shows everything.";
    for (const [key, text] of Object.entries({ tabindex: 0, role: "group", "aria-label": about })) this.plot.setAttribute(key, text);
  }

  /** Draws the data with the axes and curves as they are set. */
  show(anew = false) {
    const { data, log } = this;
    const lines = data.lines.map(({ direction, at, label }) => ({ axis: direction === "horizontal" ? "y" : "x", at, label }));
    const series = this.series.map((s, i) => ({ ...s, hidden: this.hidden.has(i) }));
    this.height = clamp(Math.round(this.plot.clientWidth * 0.62), 240, 380);
    const axis = (k) => ({ label: data[k].label, log: log[k] });
    this.draw({ title: data.title, x: axis("x"), y: axis("y"), series, lines }, anew);
    if (this.tip.parentElement !== this.u.over) this.u.over.append(this.tip);
    for (const k of AXES) this.buttons[k].setAttribute("aria-pressed", log[k]);
    this.buttons.reset.disabled = !this.view;
    this.plot.classList.toggle("empty", !this.points(this.shown()).length);
  }

  options(description) {
    const options = super.options(description);
    options.cursor = { drag: { x: true, y: true, uni: 14, setScale: false }, points: { size: 7 } };
    options.hooks.setSelect = [(u) => this.takeSelection(u)];
    return options;
  }

  resize() {
    this.height = clamp(Math.round(this.plot.clientWidth * 0.62), 240, 380);
    super.resize();
  }

  shown() {
    return this.series.filter((_, i) => !this.hidden.has(i));
  }

  /** Pairs that bound the axes. */
  points(series) {
    return series.flatMap((s) => [s.y, s.low, s.high].filter((column) => column?.length)
      .flatMap((column) => s.x.map((x, k) => [x, column[k]]).filter(([, y]) => y !== null)));
  }

  /** The ends of both axes when nothing is zoomed, in units. */
  home() {
    const { data, log } = this;
    const fixed = (k) => (data[k].range ?? [null, null]).map((v) => units(log[k], v));
    const found = { x: [Infinity, -Infinity], y: [Infinity, -Infinity] };
    const include = (k, u) => { found[k] = [Math.min(found[k][0], u), Math.max(found[k][1], u)]; };
    const [from, to] = fixed("x");
    for (const [a, b] of this.points(this.shown())) {
      const [x, y] = [units(log.x, a), units(log.y, b)];
      if (x === null || y === null || (from !== null && x < from) || (to !== null && x > to)) continue;
      include("x", x);
      include("y", y);
    }
    for (const { direction, at } of data.lines) {
      const k = direction === "horizontal" ? "y" : "x", u = units(log[k], at);
      if (u !== null) include(k, u);
    }
    const view = {};
    for (const k of AXES) {
      let [low, high] = found[k][0] <= found[k][1] ? found[k] : [0, 1];
      const [least, most] = fixed(k);
      const air = high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high)) ? AIR[k] * (high - low)
        : log[k] ? 0.5 : 0.1 * Math.abs(low) || 1;
      [low, high] = [least ?? low - air, most ?? high + air];
      view[k] = high > low ? [low, high] : [low, low + 1];
    }
    return view;
  }

  range(name) {
    return (this.view ?? this.home())[name].map((u) => value(this.log[name], u));
  }

  reset() {
    this.look(null);
  }

  /** Shows this part of the axes; null for everything. A part too small or too large is refused. */
  look(view) {
    const home = this.home();
    for (const k of view ? AXES : []) {
      const span = view[k][1] - view[k][0], whole = home[k][1] - home[k][0];
      if (!(span > 1e-6 * whole && span > 1e-11 * Math.max(...view[k].map(Math.abs)) && span < 20 * whole)) return;
    }
    this.view = view;
    this.buttons.reset.disabled = !view;
    this.u.batch(() => {
      for (const k of AXES) {
        const [min, max] = this.range(k);
        this.u.setScale(k, { min, max });
      }
    });
  }

  toggleLog(k) {
    this.log[k] = !this.log[k];
    this.view = null;
    this.show(true);
  }

  toggleSeries(i) {
    this.hidden.has(i) ? this.hidden.delete(i) : this.hidden.add(i);
    this.show(true);
    this.legend.children[this.named().indexOf(i)].firstChild.focus();
  }

  /** The series that have a name, by number. */
  named() {
    return this.series.flatMap((s, i) => (s.label ? [i] : []));
  }

  showLegend() {
    this.legend.replaceChildren(...this.named().map((i) => {
      const pressed = !this.hidden.has(i);
      const node = element("button", { type: "button", title: "Show or hide this curve", "aria-pressed": pressed });
      node.innerHTML = sample(this.series[i], dashOf(this.series[i]));
      node.append(this.series[i].label);
      node.addEventListener("click", () => this.toggleSeries(i));
      return element("li", {}, node);
    }));
  }

  // ---- values under the pointer ----
  /** The value of every curve at x, by straight lines between its points as drawn; of points the nearest. */
  values(x) {
    const { log } = this, at = units(log.x, x), [low, high] = (this.view ?? this.home()).x;
    const read = (s, column) => {
      let best = null, gap = (high - low) / 40;
      for (let k = 0; k < s.x.length; k++) {
        const [a, b] = [units(log.x, s.x[k]), units(log.x, s.x[k + 1])];
        const [p, q] = [units(log.y, column[k]), units(log.y, column[k + 1])];
        if (p === null || a === null) continue;
        if (Math.abs(a - at) <= 1e-12 * Math.abs(at)) return p;
        if (s.mark !== undefined) {
          if (Math.abs(a - at) < gap) [best, gap] = [p, Math.abs(a - at)];
        } else if (b !== null && q !== null && (a - at) * (b - at) <= 0) return p + ((at - a) / (b - a)) * (q - p);
      }
      return best;
    };
    const say = (u) => short(value(log.y, u), 4).replace("-", "−");
    return this.series.flatMap((s, i) => {
      if (this.hidden.has(i) || !s.label) return [];
      const texts = [], y = s.y.length ? read(s, s.y) : null;
      if (y !== null) texts.push(say(y));
      if (s.high) {
        const [from, to] = [read(s, s.low), read(s, s.high)];
        if (to !== null) texts.push(`${from === null ? "≤ 0" : say(from)} … ${say(to)}`);
      }
      return texts.length ? [{ series: s, text: texts.join(", ") }] : [];
    });
  }

  /** The abscissa of the data nearest to x; x itself where the data are sparse. */
  snap(x) {
    const { log } = this, at = units(log.x, x), [low, high] = (this.view ?? this.home()).x;
    let best = x, gap = (high - low) / 40;
    for (const s of this.shown()) for (const v of s.x) {
      const u = units(log.x, v), off = u === null ? Infinity : Math.abs(u - at);
      if (off < gap) [best, gap] = [v, off];
    }
    return best;
  }

  showReadout(u) {
    const { left } = u.cursor;
    this.tip.hidden = true;
    if (left === undefined || left === null || left < 0) return;
    const x = this.snap(u.posToVal(left, "x")), rows = this.values(x);
    if (!rows.length) return;
    const where = `${this.data.x.label || "x"}: ${short(x, 4)}`;
    this.tip.replaceChildren(element("b", {}, where), element("table", {}, ...rows.map(({ series, text }) => {
      const name = element("th");
      name.innerHTML = sample(series, dashOf(series));
      name.append(series.label);
      return element("tr", {}, name, element("td", {}, text));
    })));
    this.tip.hidden = false;
    // On the side away from the pointer, where it hides little.
    const wide = this.tip.offsetWidth, room = u.over.clientWidth;
    this.tip.style.left = `${clamp(left > room / 2 ? left - wide - 14 : left + 14, -40, Math.max(-40, room - wide))}px`;
    this.words = [where, ...rows.map(({ series, text }) => `${series.label}: ${text}`)].join("; ");
  }
}
