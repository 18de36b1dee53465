// Panel (d): the density of the residual, and the part that the threshold cuts off.

import { Chart } from "../../toclip-report/page/chart.js";
import { colour, faded } from "../../toclip-report/page/marks.js";
import { percent, short } from "../../toclip-report/page/numbers.js";

export class DensityPanel {
  constructor(box) {
    this.chart = new Chart(box, { height: 300, paint: (u) => this.shade(u) });
  }

  draw({ density, threshold, risk, batch, kept, rule }) {
    // These rules act on every residual.
    this.threshold = ["optimal", "normalise"].includes(rule) ? null : threshold;
    const curve = { label: "density of the residual of one sample", x: density.x, y: density.density, slot: 0 };
    this.description = {
      title: "Which residuals are clipped",
      subtitle: `at risk ${short(risk)}`,
      x: { label: "residual X = √(2R) z − ε, in units of the labels" },
      y: { label: "density", range: [0, 1.08 * peak(density.density)] },
      series: [curve],
      shaded: this.threshold === null ? [] : [clippedPart(density, this.threshold)],
      lines: threshold === null ? [] : [{ axis: "x", at: -threshold, label: "" }, { axis: "x", at: threshold, label: "c" }],
    };
    this.chart.hint = hint({ threshold, batch, kept, rule });
    this.chart.draw(this.description);
    this.chart.readout.textContent = this.chart.hint;
  }

  /** Fills the density beyond the threshold. */
  shade(u) {
    const { ctx, bbox } = u;
    if (this.threshold === null || this.threshold === undefined) return;
    const { x, y } = this.description.series[0];
    const at = (value, axis) => u.valToPos(value, axis, true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = faded(colour("c1"), 0.33);
    for (const inside of [(v) => v <= -this.threshold, (v) => v >= this.threshold]) {
      ctx.beginPath();
      const part = x.map((v, k) => [v, y[k]]).filter(([v]) => inside(v));
      if (!part.length) continue;
      ctx.moveTo(at(part[0][0], "x"), at(0, "y"));
      for (const [v, f] of part) ctx.lineTo(at(v, "x"), at(f, "y"));
      ctx.lineTo(at(part.at(-1)[0], "x"), at(0, "y"));
      ctx.fill();
    }
    ctx.restore();
  }
}

/** The density beyond the threshold, for pictures to keep. */
function clippedPart({ x, density }, threshold) {
  const high = x.map((v, k) => (Math.abs(v) >= threshold ? density[k] : null));
  return { label: "clipped", x, y: [], low: x.map(() => 0), high, slot: 1 };
}

/** The highest value that is not a spike: an atom blurred by a tiny risk would flatten the rest. */
function peak(density) {
  const sorted = [...density].sort((a, b) => a - b);
  return Math.min(sorted.at(-1), 12 * sorted[Math.floor(0.8 * sorted.length)]) || 1;
}

function hint({ threshold, batch, kept, rule }) {
  if (rule === "optimal") return "This rule has no threshold: it replaces every residual by its score.";
  if (threshold === null) return "Nothing is clipped.";
  if (rule === "normalise") return `Every gradient is scaled to the length of the threshold, c = ${short(threshold)}.`;
  if (batch > 1) return `The threshold applies to the mean gradient of ${batch} samples, not to each of them.`;
  if (rule !== "clip") return `Shaded: residuals beyond ±${short(threshold)}, on which the rule “${rule}” acts most.`;
  return `Shaded: residuals beyond ±${short(threshold)}, ${percent(1 - kept)} of the samples, are clipped.`;
}
