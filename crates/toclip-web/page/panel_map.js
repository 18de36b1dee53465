// Panel (c): the final risk over learning rate and threshold, filled column by column in a worker.

import { Chart, colour } from "./chart.js";
import { fixedThreshold, namedRate, withRate } from "./state.js";
import { logSpace, short } from "./numbers.js";

const CELLS = 40;

export class MapPanel {
  constructor(box, app) {
    this.app = app;
    this.chart = new Chart(box, { height: 320, grid: false, paint: (u) => this.cells(u) });
    this.bar = document.createElement("div");
    this.bar.className = "colour-bar";
    box.append(this.bar);
    const plot = this.chart.plot;
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    plot.setAttribute("aria-label", "Map of the final risk. Arrow keys change threshold and learning rate.");
    plot.addEventListener("click", (event) => this.choose(event));
    plot.addEventListener("keydown", (event) => this.key(event));
    this.risks = [];
  }

  /** Fills the map anew; `scale` is the typical size of a residual. */
  async fill({ experiment, scale, current }) {
    const rate = namedRate(experiment) ?? 0.5;
    const [low, high] = [Math.min(0.02, rate / 2), Math.max(4, rate * 2)];
    const rates = logSpace(low, high, CELLS);
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
      Object.assign(this, { rates, thresholds, risks, stable });
      if (performance.now() - (this.shown ?? 0) > 60) this.draw();
    }
    this.took = performance.now() - started;
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
      title: "Final risk by threshold and learning rate",
      x: { label: "threshold c", log: true, range: [thresholds[0], thresholds[CELLS - 1]] },
      y: { label: "learning rate η", log: true, range: [bottom, top] },
      series: [
        { label: "", x: thresholds, y: limit, stroke: "#000", width: 5 },
        { label: "stability limit: above it the risk grows at the start", x: thresholds, y: limit, stroke: "#fff" },
      ],
    };
    this.chart.hint = "Click to choose a threshold and a learning rate.";
    this.chart.draw(this.description);
    this.showBar();
    this.ready = true;
  }

  cells(u) {
    const { ctx, bbox } = u;
    const { rates, thresholds, risks } = this;
    if (!rates) return;
    const edges = (values, axis) => {
      const ratio = Math.sqrt(values[1] / values[0]);
      return [...values.map((v) => v / ratio), values[values.length - 1] * ratio].map((v) => u.valToPos(v, axis, true));
    };
    const [xs, ys] = [edges(thresholds, "x"), edges(rates, "y")];
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    risks.forEach((column, i) => {
      column?.forEach((risk, j) => {
        ctx.fillStyle = risk === null ? colour("diverged") : shade(this.place(risk));
        ctx.fillRect(xs[i], ys[j + 1], xs[i + 1] - xs[i] + 0.6, ys[j] - ys[j + 1] + 0.6);
      });
    });
    const { experiment } = this.app.state;
    const [c, eta] = [fixedThreshold(experiment), namedRate(experiment)];
    if (c !== null && eta !== null) cross(ctx, u.valToPos(c, "x", true), u.valToPos(eta, "y", true));
    ctx.restore();
  }

  /** From 0, the lowest risk, to 1, the highest. */
  place(risk) {
    const span = Math.log(this.high / this.low) || 1;
    return Math.min(1, Math.max(0, Math.log(risk / this.low) / span));
  }

  showBar() {
    const stops = Array.from({ length: 9 }, (_, k) => shade(k / 8));
    this.bar.innerHTML =
      `<span>${short(this.low)}</span><i style="background:linear-gradient(90deg,${stops.join(",")})"></i>` +
      `<span>${short(this.high)} final risk R(T)</span><b></b><span>diverged</span>`;
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

/** 0 … count − 1 so that the first few already cover the whole. */
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
