// Panel (b): μ, ν, CSC and CCC against the threshold, at the risk of the chosen moment.

import { HandleChart } from "./handle.js";
import { logSpace, short } from "../../toclip-report/page/numbers.js";

const POINTS = 81;

export class FactorsPanel {
  constructor(box, app) {
    this.app = app;
    this.chart = new HandleChart(box, { height: 300 });
    this.chart.hint = "Drag the line to choose the threshold.";
  }

  /** Thresholds from far below the typical residual to far above it. */
  static thresholds(scale) {
    return logSpace(0.02 * scale, 8 * scale, POINTS);
  }

  draw({ factors, thresholds, risk, threshold, moment }) {
    this.description = describeFactors({ factors, thresholds, risk });
    this.chart.draw(this.description);
    const [min, max] = [thresholds[0], thresholds[thresholds.length - 1]];
    const none = threshold === null;
    this.chart.setHandle({
      name: "Clipping threshold c",
      at: none ? max : threshold,
      text: none ? "no clipping" : `c = ${short(threshold)}`,
      min,
      max,
      move: (c) => this.app.setThreshold(Number(c.toPrecision(3))),
    });
    this.description.subtitle = `at risk ${short(risk)}, t = ${short(moment)}`;
  }
}

function describeFactors({ factors, thresholds, risk }) {
  const curve = (label, y, slot) => ({ label, x: thresholds, y, slot });
  const series = [curve("μ: share of the descent kept", factors.mu, 0)];
  if (!factors.infinite_variance) {
    series.push(
      curve("ν: share of the variance kept", factors.nu, 1),
      curve("CSC = μ/ν: room for a larger rate", factors.csc.map((y) => Math.min(y, 20)), 3),
      curve("CCC = μ²/ν: gain over unclipped SGD", factors.ccc, 2),
      { label: "", x: thresholds, y: thresholds.map(() => 1), dashed: true, width: 1.2, slot: 4 },
    );
  }
  const top = Math.max(1.2, ...series.slice(3, 4).flatMap((s) => s.y.map((y) => y ?? 0)));
  return {
    title: "What clipping keeps",
    x: { label: "threshold c", log: true, range: [thresholds[0], thresholds[thresholds.length - 1]] },
    y: { label: "factor", range: [0, Math.min(12, 1.2 * top)] },
    series,
    risk,
  };
}
