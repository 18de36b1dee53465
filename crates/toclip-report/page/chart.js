// A chart of the report and of the explorer, from a description:
//   { title, x: { label, log, range }, y: …,
//     series: [{ label, x, y, low, high, slot, dashed, dash, hatch, mark, stroke, width }],
//     lines: [{ axis, at, label }] }
// uPlot draws it; null is a gap. `slot` is the colour; `low` and `high` make a band, hatched by `hatch`;
// `mark` draws points instead of a line.

/* global uPlot */

import { colour, faded, hatched, mark, sample } from "./marks.js";
import { clamp, short } from "./numbers.js";

/** Patterns of curves by their slot, to tell them apart without colour. */
const DASHES = [[], [10, 3], [8, 3, 2, 3], [2, 3], [], [10, 3, 2, 3, 2, 3], [6, 2]];
const SHORT_DASH = [5, 4];
/** Patterns of reference lines, by order. */
const REFERENCES = [[5, 4], [1.5, 3], [9, 3, 1.5, 3]];
/** Pixels along an axis that its label cannot use. */
const ROOM = { x: 70, y: 46 };
/** Replaces values that are not positive in the lower edge of a band on a log axis: far below the frame. */
const BELOW = 1e-300;

export const dashOf = (s) => s.dash ?? (s.dashed ? SHORT_DASH : (DASHES[s.slot] ?? []));

export class Chart {
  /** `box` is an element that gives the width; `height` in pixels. */
  constructor(box, { height = 300, paint = null, grid = true } = {}) {
    this.grid = grid;
    this.height = height;
    this.paint = paint;
    this.legend = element("ul", { class: "legend" });
    this.plot = element("div", { class: "plot" });
    this.readout = element("p", { class: "readout" });
    box.append(this.legend, this.plot, this.readout);
    new ResizeObserver(() => this.resize()).observe(this.plot);
    this.visible = true;
    const watch = new IntersectionObserver(([entry]) => {
      this.visible = entry.isIntersecting;
      if (this.visible && this.late) this.draw(this.description);
    }, { rootMargin: "100px" });
    watch.observe(this.plot);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", () => this.description && !this.plot.hidden && this.draw(this.description, true));
  }

  /** Shows a sentence instead of the picture. */
  fail(sentence) {
    this.legend.hidden = this.plot.hidden = true;
    this.late = false;
    this.readout.textContent = sentence;
  }

  draw(description, anew = false) {
    if (this.plot.hidden) {
      this.legend.hidden = this.plot.hidden = false;
      this.readout.textContent = this.hint ?? "";
    }
    this.description = description;
    // A chart off the screen is drawn when it comes into view.
    this.late = !!this.u && !this.visible && !anew;
    if (this.late) return;
    const structure = JSON.stringify([
      description.x.label, description.x.log, description.y.label, description.y.log, description.lines,
      description.series.map((s) => [s.label, !!s.high, !!s.dashed, s.slot, s.hidden]),
    ]);
    const data = columns(description);
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
    this.drawn();
  }

  /** Called after every drawing. */
  drawn() {}

  options({ x, y, series }) {
    const lines = [{}];
    const bands = [];
    const strokeOf = (s) => s.stroke ?? colour(`c${s.slot}`);
    // Bands lie below all curves. Without pxAlign 0, uPlot rounds to pixels and slow curves look like stairs.
    for (const s of series.filter((s) => s.high)) {
      const stroke = strokeOf(s);
      const edge = { show: !s.hidden, points: { show: false }, pxAlign: 0, stroke: faded(stroke, 0.6), width: 1, dash: s.edge };
      bands.push({ series: [lines.length, lines.length + 1], fill: hatched(stroke, s.hatch ?? 0) });
      lines.push({ ...edge, label: `${s.label}, upper` }, { ...edge, label: `${s.label}, lower` });
    }
    for (const s of series) {
      const stroke = strokeOf(s);
      const common = { show: !s.hidden, points: { show: false }, pxAlign: 0 };
      const paths = s.mark === undefined ? {} : { paths: () => null };
      lines.push({ ...common, ...paths, label: s.label, stroke, dash: dashOf(s), width: s.width ?? 2.2 });
    }
    const width = Math.max(200, this.plot.clientWidth);
    const side = (spec, vertical) => ({
      label: spec.label,
      labelSize: 20,
      labelGap: 2,
      size: vertical ? 52 : 34,
      gap: 4,
      font: "12px system-ui, sans-serif",
      labelFont: labelFont(spec.label, vertical ? this.height - ROOM.y : width - ROOM.x),
      stroke: colour("muted"),
      grid: { show: this.grid, stroke: colour("grid"), width: 1 },
      ticks: { stroke: colour("frame"), width: 1, size: 4 },
      values: (_, splits, axis, room, step) => tickLabels(splits, spec.log ? null : step),
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
      width,
      height: this.height,
      legend: { show: false },
      padding: [10, 20, 0, 0],
      cursor: { drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: scale(x, "x"), y: scale(y, "y") },
      axes: [side(x, false), side(y, true)],
      series: lines,
      bands,
      hooks: {
        drawClear: this.paint ? [(u) => this.paint(u)] : [],
        drawAxes: [(u) => this.drawLines(u)],
        drawSeries: [(u, index) => this.drawMarks(u, index)],
        draw: [() => this.drawn()],
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

  /** Reference lines, below the curves. */
  drawLines(u) {
    const { ctx, bbox } = u;
    const scale = devicePixelRatio;
    const [right, bottom] = [bbox.left + bbox.width, bbox.top + bbox.height];
    const inside = ({ axis, at }) => {
      const place = u.valToPos(at, axis, true);
      const [low, high] = axis === "y" ? [bbox.top, bottom] : [bbox.left, right];
      return place >= low - 1 && place <= high + 1 ? place : null;
    };
    const lines = (this.description.lines ?? []).map((line, k) => ({ ...line, k, place: inside(line) })).filter((line) => line.place !== null);
    ctx.save();
    ctx.font = `${12 * scale}px system-ui, sans-serif`;
    ctx.strokeStyle = ctx.fillStyle = colour("muted");
    ctx.lineWidth = 1.4 * scale;
    for (const { axis, place, k } of lines) {
      const flat = axis === "y";
      ctx.setLineDash(REFERENCES[k % REFERENCES.length].map((v) => v * scale));
      ctx.beginPath();
      ctx.moveTo(flat ? bbox.left : place, flat ? place : bbox.top);
      ctx.lineTo(flat ? right : place, flat ? place : bottom);
      ctx.stroke();
    }
    [ctx.textAlign, ctx.textBaseline] = ["left", "alphabetic"];
    this.labels = [];
    for (const line of lines.filter(({ label }) => label)) {
      const box = { width: ctx.measureText(line.label).width, height: 15 * scale };
      const frame = { left: bbox.left, right, top: bbox.top, bottom };
      const places = labelPlaces(line, box, frame, 5 * scale);
      const free = places.find((place) => !this.labels.some((other) => overlap(place, other)) && !lines.some((other) => crosses(place, other)));
      const { left, top } = free ?? places[0];
      this.labels.push({ ...box, left, top });
      ctx.fillText(line.label, left, top + 12 * scale);
    }
    ctx.restore();
  }

  drawMarks(u, index) {
    const { series } = this.description;
    const found = series[index - 1 - 2 * series.filter((s) => s.high).length];
    if (found?.mark === undefined || found.hidden) return;
    const { ctx } = u;
    ctx.save();
    ctx.fillStyle = found.stroke ?? colour(`c${found.slot}`);
    ctx.strokeStyle = colour("bg");
    u.data[index].forEach((value, k) => {
      if (value === null || value === undefined) return;
      mark(ctx, found.mark, u.valToPos(u.data[0][k], "x", true), u.valToPos(value, "y", true), devicePixelRatio);
    });
    ctx.restore();
  }

  showLegend(series) {
    this.legend.replaceChildren(
      ...series.filter((s) => s.label).map((s) => {
        const item = element("li");
        item.innerHTML = sample(s, dashOf(s));
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
    const named = new Set(this.description.series.map((s) => s.label));
    const values = u.series.slice(1).map((s, k) => [s.label, u.data[k + 1][idx]]);
    const words = values.filter(([label, y]) => y !== null && y !== undefined && named.has(label));
    const name = this.description.x.label.split(",")[0];
    this.readout.textContent =
      `${name} ${short(u.data[0][idx])}: ` + words.map(([label, y]) => `${label} ${short(y)}`).join(" · ");
  }

  resize() {
    if (!this.u || !this.plot.clientWidth || this.plot.clientWidth === this.u.width) return;
    this.u.setSize({ width: this.plot.clientWidth, height: this.height });
    this.drawn();
  }
}

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** The columns of uPlot: a common x, upper and lower edge of each band, then the curves. */
function columns({ x, y, series }) {
  const above = (values) => (y.log ? values.map((v) => (v > 0 ? v : null)) : values);
  const lower = (values) => (y.log ? values.map((v) => (v === null ? null : Math.max(v, BELOW))) : values);
  const edges = series.filter((s) => s.high).map((s) => [s.x, above(s.high), lower(s.low)]);
  const tables = [...edges, ...series.map((s) => [s.x, s.y.length ? above(s.y) : s.x.map(() => null)])];
  if (!tables.length) return [[], []];
  const [[first]] = tables;
  const same = tables.every(([x]) => x === first || (x.length === first.length && x.every((v, k) => v === first[k])));
  const whole = same ? [first, ...tables.flatMap((table) => table.slice(1))] : uPlot.join(tables, tables.map((t) => t.map(() => 1)));
  if (!x.log || whole[0][0] > 0) return whole;
  const from = whole[0].findIndex((v) => v > 0);
  return whole.map((column) => (from < 0 ? [] : column.slice(from)));
}

/** The font of an axis label, smaller where the label is longer than the room. */
function labelFont(label, room) {
  const font = (size) => `${size}px system-ui, sans-serif`;
  const ctx = (labelFont.ctx ??= document.createElement("canvas").getContext("2d"));
  ctx.font = font(13);
  const wanted = ctx.measureText(label ?? "").width;
  return font(wanted > room ? Math.max(9, Math.floor((130 * room) / wanted) / 10) : 13);
}

/** Where the label of a reference line may stand, the best first: at the right or left end of a horizontal
 * line, on either side of a vertical one, there also further down. */
function labelPlaces({ axis, place }, { width, height }, frame, gap) {
  const at = (left, top) => ({ left, top, width, height });
  // Above the frame there is some room.
  const fits = (box) => box.top >= frame.top - 2 * gap && box.top + height <= frame.bottom + 1 && box.left >= frame.left && box.left + width <= frame.right;
  let places;
  if (axis === "y") {
    const sides = [place - height - gap / 4, place + gap / 2];
    places = [frame.right - width - gap, frame.left + gap].flatMap((left) => sides.map((top) => at(left, top)));
  } else {
    const sides = [place + gap, place - gap - width];
    if (place > (frame.left + frame.right) / 2) sides.reverse();
    const tops = Array.from({ length: 12 }, (_, k) => frame.top + gap / 2 + k * height);
    places = tops.flatMap((top) => sides.map((left) => at(left, top)));
  }
  const fitting = places.filter(fits);
  return fitting.length ? fitting : places;
}

function overlap(a, b) {
  return a.left < b.left + b.width && b.left < a.left + a.width && a.top < b.top + b.height && b.top < a.top + a.height;
}

/** Whether a reference line runs through a box. */
function crosses({ left, top, width, height }, { axis, place }) {
  return axis === "y" ? place > top && place < top + height : place > left && place < left + width;
}

/** Labels of ticks; with as many digits as tell neighbours `step` apart. */
function tickLabels(splits, step) {
  const largest = Math.max(...splits.map((value) => Math.abs(value ?? 0)));
  const digits = step ? clamp(Math.ceil(Math.log10(largest / step)) + 1, 3, 12) : 3;
  return splits.map((value) => (value === null ? "" : short(value, digits).replace("-", "−")));
}

/** About `count` ticks from 1, 2, 5 times powers of ten, or finer where the axis is short. */
function logTicks(min, max, count) {
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
