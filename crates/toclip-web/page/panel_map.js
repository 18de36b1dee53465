// Panel (c): the final risk over learning rate and threshold, filled column by column in a worker.

import { Chart, element } from "../../toclip-report/page/chart.js";
import { colour } from "../../toclip-report/page/marks.js";
import { fixedThreshold, namedRate, withRate } from "./state.js";
import { isClassifier } from "./classification.js";
import { clamp, logSpace, short } from "../../toclip-report/page/numbers.js";

const CELLS = 40;

export class MapPanel {
  constructor(box, app) {
    this.app = app;
    this.chart = new Chart(box, { height: 320, grid: false, paint: (u) => this.cells(u) });
    this.chart.showReadout = (u) => this.showCell(u);
    this.bar = element("div", { class: "colour-bar" });
    box.append(this.bar);
    const plot = this.chart.plot;
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", "Map of the final risk. Arrow keys change threshold and learning rate.");
    plot.addEventListener("click", (event) => this.choose(event));
    plot.addEventListener("keydown", (event) => this.key(event));
    this.risks = [];
  }

  /** All that the map depends on: not the threshold and the rate, which are its axes. */
  static key(experiment) {
    const { clip: _, ...rest } = namedRate(experiment) === null ? experiment : withRate(experiment, 1);
    return JSON.stringify([rest, rateRange(experiment)]);
  }

  /** Fills the map again; `scale` is the typical size of a residual. */
  async fill({ experiment, scale, current }) {
    const classifier = isClassifier(experiment);
    const quantity = classifier ? "cross-entropy" : "risk R(T)";
    const rates = logSpace(...rateRange(experiment), CELLS);
    const thresholds = logSpace(0.05 * scale, 6 * scale, CELLS);
    const risks = thresholds.map(() => null);
    const stable = thresholds.map(() => null);
    const started = performance.now();
    for (const k of scattered(CELLS)) {
      const question = { ask: "map_column", experiment, threshold: thresholds[k], rates };
      let column;
      try {
        column = await this.app.mapper.ask(question);
      } catch (error) {
        if (current()) this.say(error.message);
        return;
      }
      if (!current()) return;
      risks[k] = column.risk;
      stable[k] = column.stable;
      Object.assign(this, { rates, thresholds, risks, stable, quantity, classifier });
      if (performance.now() - (this.shown ?? 0) > 60) this.draw();
    }
    this.took = performance.now() - started;
    this.filled = MapPanel.key(experiment);
    this.draw();
  }

  say(sentence) {
    this.chart.readout.textContent = sentence;
  }

  draw() {
    this.shown = performance.now();
    const { rates, thresholds, stable } = this;
    const known = this.risks.flatMap((column) => column ?? []).filter((risk) => risk !== null);
    this.low = Math.min(...known);
    this.high = Math.min(Math.max(...known), 1000 * this.low);
    const [bottom, top] = [rates[0], rates[CELLS - 1]];
    const limit = stable.map((eta) => (eta !== null && eta >= bottom && eta <= top ? eta : null));
    this.description = {
      title: `Final ${this.quantity} by threshold and learning rate`,
      x: { label: "threshold c", log: true, range: [thresholds[0], thresholds[CELLS - 1]] },
      y: { label: "learning rate η", log: true, range: [bottom, top] },
      subtitle: this.risks.some((column) => column?.includes(null)) ? "grey: diverged" : "",
      series: [
        { label: "", x: thresholds, y: limit, stroke: "#000", width: 5 },
        { label: "stability limit: above it the risk grows at the start", x: thresholds, y: limit, stroke: "#fff", dash: [], slot: 1 },
      ].filter(() => !this.classifier),
      heat: { label: `final ${this.quantity}`, x: thresholds, y: rates, values: this.rows(), scale: "log" },
    };
    this.paintCells();
    this.chart.hint = "Click to choose a threshold and a learning rate.";
    this.chart.draw(this.description);
    this.showBar();
    this.ready = true;
    this.app.exports.showMenus();
  }

  /** The final risk of the cell below the pointer. */
  showCell(u) {
    const { left, top } = u.cursor;
    if (!(left >= 0 && top >= 0) || !this.rates) return this.say(this.chart.hint ?? "");
    const nearest = (values, value) => {
      const step = Math.log(values[CELLS - 1] / values[0]) / (CELLS - 1);
      return clamp(Math.round(Math.log(value / values[0]) / step), 0, CELLS - 1);
    };
    const [i, j] = [nearest(this.thresholds, u.posToVal(left, "x")), nearest(this.rates, u.posToVal(top, "y"))];
    const risk = this.risks[i]?.[j];
    const words = risk === undefined ? "…" : risk === null ? "diverges" : `final ${this.quantity} ${short(risk)}`;
    this.say(`threshold c ${short(this.thresholds[i])}, learning rate η ${short(this.rates[j])}: ${words}`);
  }

  /** The colours of all cells, one pixel each. */
  paintCells() {
    this.image ??= Object.assign(document.createElement("canvas"), { width: CELLS, height: CELLS });
    const ctx = this.image.getContext("2d");
    const diverged = colour("diverged");
    ctx.clearRect(0, 0, CELLS, CELLS);
    this.risks.forEach((column, i) => {
      column?.forEach((risk, j) => {
        ctx.fillStyle = risk === null ? diverged : shade(this.place(risk));
        ctx.fillRect(i, CELLS - 1 - j, 1, 1);
      });
    });
  }

  /** Draws the cells: equally wide on logarithmic axes, their image is only stretched. */
  cells(u) {
    const { ctx, bbox } = u;
    if (!this.image) return;
    const [width, height] = [bbox.width / (CELLS - 1), bbox.height / (CELLS - 1)];
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(this.image, bbox.left - width / 2, bbox.top - height / 2, bbox.width + width, bbox.height + height);
    const { experiment } = this.app.state;
    const [c, eta] = [fixedThreshold(experiment), namedRate(experiment)];
    if (c !== null && eta !== null) cross(ctx, u.valToPos(c, "x", true), u.valToPos(eta, "y", true));
    ctx.restore();
  }

  /** From 0, the lowest risk, to 1, the highest. */
  place(risk) {
    const span = Math.log(this.high / this.low) || 1;
    return clamp(Math.log(risk / this.low) / span, 0, 1);
  }

  /** The final risks by learning rate, none above the end of the colours. */
  rows() {
    const cell = (risk) => (risk === null || risk === undefined ? null : Math.min(risk, this.high));
    return this.rates.map((_, j) => this.risks.map((column) => cell(column?.[j])));
  }

  showBar() {
    const stops = Array.from({ length: 9 }, (_, k) => shade(k / 8));
    this.bar.innerHTML =
      `<span>${short(this.low)}</span><i style="background:linear-gradient(90deg,${stops.join(",")})"></i>` +
      `<span>${short(this.high)} final ${this.quantity}</span><b></b><span>diverged</span>`;
  }

  choose(event) {
    const { u } = this.chart;
    const box = u.over.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (x < 0 || y < 0 || x > box.width || y > box.height) return;
    this.set(u.posToVal(x, "x"), u.posToVal(y, "y"));
  }

  set(c, eta) {
    const experiment = withRate(this.app.state.experiment, Number(eta.toPrecision(3)));
    this.app.change({ experiment: { ...experiment, clip: Number(c.toPrecision(3)) } });
  }

  key(event) {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!move || !this.thresholds) return;
    event.preventDefault();
    const { experiment } = this.app.state;
    const c = fixedThreshold(experiment) ?? this.thresholds[CELLS / 2];
    const eta = namedRate(experiment) ?? this.rates[CELLS / 2];
    this.set(c * 1.1 ** move[0], eta * 1.1 ** move[1]);
  }
}

/** Learning rates of the map; a factor of ten more where the one of the experiment is beyond. */
function rateRange(experiment) {
  const rate = namedRate(experiment) ?? 0.5;
  return [rate > 0.02 ? 0.02 : rate / 10, rate < 4 ? 4 : rate * 10];
}

/** 0 … count − 1 in an order in which the first few already cover the whole. */
function scattered(count) {
  const order = [];
  for (let stride = 8; stride >= 1; stride /= 2) {
    for (let k = 0; k < count; k += stride) if (!order.includes(k)) order.push(k);
  }
  return order;
}

/** Viridis, which the colour-blind read and which prints in grey: dark is a low risk. */
const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function shade(place) {
  const at = place * (VIRIDIS.length - 1);
  const k = Math.min(VIRIDIS.length - 2, Math.floor(at));
  const mix = VIRIDIS[k].map((from, i) => Math.round(from + (at - k) * (VIRIDIS[k + 1][i] - from)));
  return `rgb(${mix.join(",")})`;
}

function cross(ctx, x, y) {
  const size = 9 * devicePixelRatio;
  for (const [width, ink] of [[5, "#000"], [2.4, "#fff"]]) {
    ctx.strokeStyle = ink;
    ctx.lineWidth = width * devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x - size, y);
    ctx.lineTo(x + size, y);
    ctx.moveTo(x, y - size);
    ctx.lineTo(x, y + size);
    ctx.stroke();
  }
}
