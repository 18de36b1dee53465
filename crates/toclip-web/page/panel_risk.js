// Panel (a): risk over time; clipped, unclipped, the best schedule and runs of C-SGD with their band.

import { HandleChart } from "./handle.js";
import { batchSize } from "./controls.js";
import { short } from "../../toclip-report/page/numbers.js";

/** So many runs, and the share of them in the band. */
const RUNS = 20;
const BAND = [0.1, 0.9];
/** A run of more steps times coordinates than this takes longer than people wait. */
const MOST_WORK = 4e8;

export class RiskPanel {
  constructor(box, app) {
    this.app = app;
    this.chart = new HandleChart(box, { height: 320 });
    this.chart.hint = "Drag the line to choose the moment that the other pictures show.";
  }

  draw({ paths, best, other, band }) {
    this.description = describeRisk({ paths, best, other, band });
    this.chart.draw(this.description);
    const end = paths.times.at(-1);
    const at = this.app.state.moment * end;
    this.chart.setHandle({
      name: "Moment",
      at,
      text: `t = ${short(at)}`,
      min: 0,
      max: end,
      move: (t) => this.app.change({ moment: Math.round((1000 * t) / end) / 1000 }),
    });
  }
}

function describeRisk({ paths, best, other, band }) {
  // The setting may be a newer one, whose curves are still being computed.
  const classifier = "error_rate" in paths.clipped;
  const x = paths.times;
  // Curves that ended early have fewer values than there are times.
  const whole = (values) => x.map((_, k) => (values[k] > 0 && values[k] < 1e6 ? values[k] : null));
  const series = [{ label: classifier ? "cross-entropy, clipped (theory)" : "clipped (theory)", x, y: whole(paths.clipped.risk), slot: 0 }];
  series.push({ label: classifier ? "cross-entropy, unclipped" : "unclipped", x, y: whole(paths.unclipped.risk), slot: 1 });
  // Curves still being computed have their place in the legend: nothing moves when they come.
  if (best !== null) series.push({ label: "best threshold, rate η/μ", x, y: whole(best?.risk ?? []), slot: 2 });
  if (classifier && paths.clipped.error_rate[0] !== null) {
    const part = (values) => x.map((_, k) => values[k] ?? null);
    series.push(
      { label: "error rate, clipped", x, y: part(paths.clipped.error_rate), dashed: true, slot: 0 },
      { label: "error rate, unclipped", x, y: part(paths.unclipped.error_rate), dashed: true, slot: 1 },
    );
  }
  if (other) {
    const [ox, y] = [other.times, other.clipped.risk];
    series.push({ label: "setting B, clipped", x: ox, y: ox.map((_, k) => (y[k] > 0 ? y[k] : null)), dashed: true, slot: 3 });
  }
  if (band !== null) {
    const { low = [], middle = [], high = [] } = band ?? {};
    series.unshift({
      label: `C-SGD, 80% of ${RUNS} runs`, x, y: whole(middle), low: whole(low), high: whole(high), slot: 6, width: 1.2,
    });
  }
  return {
    title: classifier ? "Loss and error rate over time" : "Risk over time",
    x: { label: "time t, one unit is d samples" },
    y: classifier
      ? { label: "cross-entropy (nats), error rate", range: [0, 1.08 * Math.max(...paths.clipped.risk, ...paths.unclipped.risk.filter((v) => v < 3 * paths.start_risk))] }
      : { label: "risk R(t)", log: true, range: riskRange(series, paths) },
    series,
  };
}

/** From the lowest curve to a little above the start; curves that diverge leave at the top. */
function riskRange(series, paths) {
  let [low, high] = [Infinity, paths.start_risk];
  for (const { y, high: upper } of series) {
    for (const value of y) if (value !== null && value < low) low = value;
    for (const values of [y, upper ?? []]) {
      for (const value of values) if (value !== null && value > high) high = value;
    }
  }
  if (!(low < Infinity)) return undefined;
  return [low / 1.15, Math.min(high, 30 * paths.start_risk) * 1.15];
}

/** Quantiles of the runs at each time; a run that diverged counts as infinite. */
export function bandOf(runs, count) {
  const at = (k, share) => {
    const values = runs.map((run) => run[k] ?? Infinity).sort((a, b) => a - b);
    const value = values[Math.round(share * (values.length - 1))];
    return Number.isFinite(value) ? value : null;
  };
  const times = Array.from({ length: count }, (_, k) => k);
  const curve = (share) => times.map((k) => at(k, share));
  return { low: curve(BAND[0]), middle: curve(0.5), high: curve(BAND[1]), count: runs.length };
}

/** Runs C-SGD in a worker and reports the band as it grows. */
export async function simulate(app, paths, current, show) {
  const { experiment } = app.state;
  const work = paths.intrinsic_dim * experiment.time * paths.dim * batchSize(experiment);
  if (work > MOST_WORK) {
    show(null, "C-SGD is not simulated here: this many steps and coordinates would take too long.");
    return;
  }
  const runs = [];
  for (let index = 0; index < RUNS; index++) {
    let run;
    try {
      run = await app.runner.ask({ ask: "run", experiment, seed: 1, index });
    } catch (error) {
      if (current()) show(null, error.message);
      return;
    }
    if (!current()) return;
    runs.push(run.risk);
    // A band of few runs is shown as soon as it means something.
    if (runs.length >= 5 && (runs.length % 5 === 0 || index === RUNS - 1)) show(bandOf(runs, paths.times.length), "");
  }
}
