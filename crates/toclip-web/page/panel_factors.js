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

  draw({ factors, thresholds, risk, threshold, time, classifier, rule }) {
    this.description = describeFactors({ factors, thresholds, risk, classifier });
    this.chart.draw(this.description);
    const [min, max] = [thresholds[0], thresholds.at(-1)];
    const none = threshold === null;
    this.chart.setHandle({
      name: "Clipping threshold c",
      at: none ? max : threshold,
      text: none ? (rule === "optimal" ? "no threshold" : "no clipping") : `c = ${short(threshold)}`,
      min,
      max,
      move: (c) => this.app.setThreshold(Number(c.toPrecision(3))),
    });
    this.description.subtitle = `at ${classifier ? "cross-entropy" : "risk"} ${short(risk)}, t = ${short(time)}`;
  }
}

/** The words for least squares, and for classification. */
const NAMES = [
  ["μ: share of the descent kept", "ν: share of the variance kept", "CSC = μ/ν: room for a larger rate", "CCC = μ²/ν: gain over unclipped SGD"],
  ["b: share of the progress towards the teacher's direction kept", "m2: share of the noise kept", null, "CCC = b²/m2: gain in learning the direction"],
];

function describeFactors({ factors, thresholds, risk, classifier }) {
  const [mu, nu, csc, ccc] = NAMES[classifier ? 1 : 0];
  const curve = (label, y, slot) => ({ label, x: thresholds, y, slot });
  const series = [curve(mu, factors.mu, 0)];
  if (!factors.infinite_variance) {
    series.push(
      curve(nu, factors.nu, 1),
      ...(csc ? [curve(csc, factors.csc, 3)] : []),
      curve(ccc, factors.ccc, 2),
    );
  }
  const top = Math.max(1.2, ...factors.ccc.map((y) => y ?? 0));
  return {
    title: "What clipping keeps",
    x: { label: "threshold c", log: true, range: [thresholds[0], thresholds.at(-1)] },
    y: { label: "factor", range: [0, Math.min(12, 1.2 * top)] },
    series,
    lines: factors.infinite_variance ? [] : [{ axis: "y", at: 1, label: "" }],
    risk,
  };
}
