// A chart from a description, the one that toclip-plot draws as SVG:
//   { title, x: { label, log, range }, y: …, series: [{ label, x, y, low, high, dashed, slot }] }
// uPlot draws it; null is a gap. A handle on the chart can be dragged, or moved by arrow keys.

/* global uPlot */

import { short } from "./numbers.js";

/** Patterns of curves by their slot, so that they differ without colour too. */
const DASHES = [[], [10, 3], [8, 3, 2, 3], [2, 3], [], [10, 3, 2, 3, 2, 3], [6, 2]];
const SHORT_DASH = [5, 4];

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export class Chart {
  /** `box` is an element that gives the width; `height` in pixels. */
  constructor(box, { height = 300, paint = null, grid = true } = {}) {
    this.grid = grid;
    this.height = height;
    this.paint = paint;
    this.legend = element("ul", "legend");
    this.plot = element("div", "plot");
    this.readout = element("p", "readout");
    box.append(this.legend, this.plot, this.readout);
    new ResizeObserver(() => this.resize()).observe(this.plot);
    this.visible = true;
    const watch = new IntersectionObserver(([entry]) => {
      this.visible = entry.isIntersecting;
      if (this.visible && this.late) this.draw(this.description);
    }, { rootMargin: "100px" });
    watch.observe(this.plot);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.description && this.draw(this.description, true));
  }

  /** Shows a sentence instead of the picture. */
  fail(sentence) {
    this.legend.hidden = this.plot.hidden = true;
    this.readout.textContent = sentence;
  }

  draw(description, anew = false) {
    if (this.plot.hidden) {
      this.legend.hidden = this.plot.hidden = false;
      this.readout.textContent = this.hint ?? "";
    }
    this.description = description;
    // What is off the screen is drawn when it comes into view.
    this.late = !!this.u && !this.visible && !anew;
    if (this.late) return;
    const structure = JSON.stringify([
      description.x.label, description.x.log, description.y.label, description.y.log,
      description.series.map((s) => [s.label, !!s.high, !!s.dashed, s.slot]),
    ]);
    const data = columns(description.series);
    if (this.u && !anew && structure === this.structure) {
      this.u.setData(data);
    } else {
      this.u?.destroy();
      this.structure = structure;
      this.u = new uPlot(this.options(description), data, this.plot);
      this.u.root.setAttribute("aria-hidden", "true");
      this.u.root.querySelectorAll("canvas").forEach((canvas) => canvas.setAttribute("tabindex", "-1"));
      this.showLegend(description.series);
    }
    this.placeHandle();
  }

  options({ x, y, series }) {
    const lines = [{}];
    const bands = [];
    for (const s of series) {
      const stroke = s.stroke ?? colour(`c${s.slot}`);
      if (s.high) {
        const edge = { stroke: stroke + "99", width: 1, points: { show: false } };
        bands.push({ series: [lines.length, lines.length + 1], fill: stroke + "38" });
        lines.push({ ...edge, label: `${s.label}, upper` }, { ...edge, label: `${s.label}, lower` });
      }
      const dash = s.dashed ? SHORT_DASH : (DASHES[s.slot] ?? []);
      lines.push({ label: s.label, stroke, dash, width: s.width ?? 2.2, points: { show: false } });
    }
    const side = (spec, vertical) => ({
      label: spec.label,
      labelSize: 20,
      labelGap: 2,
      size: vertical ? 52 : 34,
      gap: 4,
      font: "12px system-ui, sans-serif",
      labelFont: "13px system-ui, sans-serif",
      stroke: colour("muted"),
      grid: { show: this.grid, stroke: colour("grid"), width: 1 },
      ticks: { stroke: colour("frame"), width: 1, size: 4 },
      values: (_, splits) => splits.map((value) => (value === null ? "" : short(value))),
      ...(spec.log && {
        splits: (u) => {
          const { min, max } = u.scales[vertical ? "y" : "x"];
          return logTicks(min, max, vertical ? 6 : this.plot.clientWidth / 70);
        },
        filter: (_, splits) => splits,
      }),
    });
    const scale = (spec, name) => ({
      time: false,
      distr: spec.log ? 3 : 1,
      range: (u, low, high) => this.range(name, low, high),
    });
    return {
      width: Math.max(200, this.plot.clientWidth),
      height: this.height,
      legend: { show: false },
      padding: [8, 12, 0, 0],
      cursor: { drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: scale(x, "x"), y: scale(y, "y") },
      axes: [side(x, false), side(y, true)],
      series: lines,
      bands,
      hooks: {
        drawClear: this.paint ? [(u) => this.paint(u)] : [],
        draw: [() => this.placeHandle()],
        setCursor: [(u) => this.showReadout(u)],
      },
    };
  }

  range(name, low, high) {
    const spec = this.description[name];
    if (spec.range) return spec.range;
    if (low === null || high === null) return spec.log ? [0.1, 10] : [0, 1];
    if (spec.log) {
      const room = Math.max(1.02, (high / low) ** 0.05);
      return name === "x" ? [low, high] : [low / room, high * room];
    }
    return name === "x" ? [low, high] : [Math.min(0, low), high * 1.05 || 1];
  }

  showLegend(series) {
    this.legend.replaceChildren(
      ...series.filter((s) => s.label).map((s) => {
        const dash = s.dashed ? SHORT_DASH : (DASHES[s.slot] ?? []);
        const halo = s.stroke ? `<line x1="0" y1="7" x2="26" y2="7" stroke="#000" stroke-width="6"/>` : "";
        const mark = s.high
          ? `<rect x="0" y="2" width="26" height="10" fill="${colour(`c${s.slot}`)}" opacity="0.35"/>`
          : `${halo}<line x1="0" y1="7" x2="26" y2="7" stroke="${s.stroke ?? colour(`c${s.slot}`)}" stroke-width="2.2"
               stroke-dasharray="${dash.join(" ")}"/>`;
        const item = element("li");
        item.innerHTML = `<svg width="26" height="14" aria-hidden="true">${mark}</svg>`;
        item.append(s.label);
        return item;
      }),
    );
  }

  showReadout(u) {
    const { idx } = u.cursor;
    if (idx === null || idx === undefined || u.cursor.left < 0) {
      this.readout.textContent = this.hint ?? "";
      return;
    }
    const values = u.series.slice(1).map((s, k) => [s.label, u.data[k + 1][idx]]);
    const words = values.filter(([label, y]) => y !== null && y !== undefined && !/, (upper|lower)$/.test(label));
    const name = this.description.x.label.split(",")[0];
    this.readout.textContent =
      `${name} ${short(u.data[0][idx])}: ` + words.map(([label, y]) => `${label} ${short(y)}`).join(" · ");
  }

  resize() {
    if (!this.u || !this.plot.clientWidth || this.plot.clientWidth === this.u.width) return;
    this.u.setSize({ width: this.plot.clientWidth, height: this.height });
    this.placeHandle();
  }

  /** A vertical line to drag: `{ name, at, text, min, max, move }`, where `move` gets the new place. */
  setHandle(handle) {
    if (!this.handle) {
      this.handleBox = element("div", "handle");
      this.handleBox.setAttribute("role", "slider");
      this.handleBox.tabIndex = 0;
      this.handleBox.addEventListener("keydown", (event) => this.key(event));
      this.handleBox.addEventListener("pointerdown", (event) => {
        this.handleBox.setPointerCapture(event.pointerId);
        this.dragging = true;
      });
      this.handleBox.addEventListener("pointermove", (event) => {
        if (!this.dragging) return;
        const left = event.clientX - this.u.over.getBoundingClientRect().left;
        this.moveHandle(this.u.posToVal(left, "x"));
      });
      for (const end of ["pointerup", "pointercancel"]) {
        this.handleBox.addEventListener(end, () => (this.dragging = false));
      }
    }
    this.handle = handle;
    this.placeHandle();
  }

  moveHandle(to) {
    const { min, max } = this.handle;
    this.handle.move(Math.min(max, Math.max(min, to)));
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
    const { min, max, at } = this.handle;
    const ends = { Home: min, End: max };
    if (!step && !(event.key in ends)) return;
    event.preventDefault();
    if (event.key in ends) this.moveHandle(ends[event.key]);
    else if (this.description.x.log) this.moveHandle(at * (max / min) ** (step / 100));
    else this.moveHandle(at + ((max - min) * step) / 100);
  }

  placeHandle() {
    // uPlot lays out its scales after it is made; it draws again then.
    if (!this.handle || !this.u || this.u.scales.x.min === null) return;
    const { name, at, text, min, max } = this.handle;
    const box = this.handleBox;
    if (box.parentElement !== this.u.over) this.u.over.append(box);
    this.u.root.removeAttribute("aria-hidden");
    box.setAttribute("aria-label", name);
    box.setAttribute("aria-valuemin", String(min));
    box.setAttribute("aria-valuemax", String(max));
    box.setAttribute("aria-valuenow", String(at));
    box.setAttribute("aria-valuetext", text);
    box.dataset.text = text;
    const left = this.u.valToPos(Math.min(max, Math.max(min, at)), "x");
    box.style.left = `${left}px`;
    box.classList.toggle("near-end", left > this.u.over.clientWidth * 0.6);
  }
}

function element(tag, name = "") {
  const made = document.createElement(tag);
  made.className = name;
  return made;
}

/** The columns of uPlot: a common x, then upper and lower edge of a band before its middle. */
function columns(series) {
  const tables = series.map((s) => (s.high ? [s.x, s.high, s.low, s.y] : [s.x, s.y]));
  const same = tables.every(([x]) => x === tables[0][0] || x.every((value, k) => value === tables[0][0][k]));
  if (same && tables.length) return [tables[0][0], ...tables.flatMap((table) => table.slice(1))];
  return tables.length ? uPlot.join(tables, tables.map((table) => table.map(() => 1))) : [[], []];
}

/** About `count` ticks from 1, 2, 5 times powers of ten, or finer where the axis is short. */
export function logTicks(min, max, count) {
  const decades = Math.log10(max / min);
  if (!(decades > 0)) return [min];
  const each = [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7], [1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9]];
  const wanted = each.find((steps) => steps.length * decades >= 3) ?? each.at(-1);
  const stride = Math.max(1, Math.ceil((decades * wanted.length) / count));
  const ticks = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power++) {
    if (wanted.length === 1 && power % stride) continue;
    for (const step of wanted) {
      const tick = Number(`${step}e${power}`);
      if (tick >= min * 0.999999 && tick <= max * 1.000001) ticks.push(tick);
    }
  }
  return ticks;
}
