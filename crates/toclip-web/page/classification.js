// Classification: logistic regression in place of least squares, and what the page says of it. What the
// page calls risk is the cross-entropy then.

import { percent, short } from "../../toclip-report/page/numbers.js";

/** A tenth of the labels flipped; the teacher separates the classes well. */
export const LOGISTIC = {
  model: { kind: "logistic", flips: 0.1 },
  teacher: { kind: "uniform", norm: 6 },
  spectrum: { kind: "power_law", dim: 500, exponent: 0.2 },
  time: 10,
  learning_rate: 2,
  clip: 0.4,
};

export const isClassifier = (experiment) => "model" in experiment;

/** A gain in samples below this is not worth a threshold to tune. */
const GAIN = 1.05;

export const NO_DENSITY =
  "There is nothing to draw for classification: a residual lies between −1 and 1, and a threshold of 1 or more changes nothing.";

/** The words of the pictures. */
export function captions(experiment) {
  const classifier = isClassifier(experiment);
  return {
    "risk-title": classifier ? "Loss and error rate over time" : "Risk over time",
    "risk-caption": classifier
      ? "The cross-entropy of the labels as drawn, and the share of wrong signs against labels before they were flipped. The band is C-SGD itself, simulated in the background."
      : "How far the model is from the best one, as SGD sees more samples. The band is C-SGD itself, simulated in the background. The best schedule follows the peak of CCC and raises the rate to η/μ, to make up for the descent that clipping removes.",
    "factors-caption": classifier
      ? "Where CCC is above 1, the direction of the teacher is learnt faster with the threshold than at any learning rate without."
      : "Where CCC is above 1, clipping beats unclipped SGD at every learning rate.",
    "map-caption": classifier
      ? "The cross-entropy at the end of training. Click, or use the arrow keys, to choose."
      : "The risk at the end of training. Click, or use the arrow keys, to choose.",
  };
}

/** The answer in words, for classification. */
export function classifierSentences({ verdict, paths, threshold, failed }) {
  const [kept, open] = paths.fixed_points;
  const bias = kept === null || open === null ? "" : threshold === null
    ? `At small rates SGD ends at ${short(open)} times the teacher.`
    : `Clipping moves the optimum: at small rates SGD ends at ${short(kept)} times the teacher, without clipping at ${short(open)} times.`;
  return [...judgeDirection(verdict, threshold, failed), bias, ends(paths)].filter((sentence) => sentence);
}

function judgeDirection(verdict, threshold, failed) {
  if (!verdict) return failed ? ["No threshold is better than another here.", `${failed.charAt(0).toUpperCase()}${failed.slice(1)}.`] : ["…"];
  const { c, mu, ccc } = verdict;
  if (c === null || ccc < GAIN) {
    const little = c === null ? "no threshold learns the direction faster than a smaller learning rate" : `the best threshold, c = ${short(c)}, gains only ${percent(ccc - 1)}`;
    return ["Clipping hardly helps here.", `At this moment ${little}.`];
  }
  const far = threshold !== null && (threshold > 1.5 * c || threshold < c / 1.5);
  const yours = far ? ` Yours is ${short(threshold)}, too ${threshold > c ? "large" : "small"} for that.` : "";
  return [
    `Clip at c = ${short(c)} to learn the direction faster.`,
    `At this moment that keeps ${percent(mu)} of the progress towards the teacher's direction and is as good as ${short(ccc)} times the samples (CCC).${yours}`,
  ];
}

function ends({ clipped, unclipped }) {
  const last = (path) => path.risk[path.risk.length - 1];
  const wrong = (path) => path.error_rate[path.error_rate.length - 1];
  const words = (path) => {
    if (path.stop !== null) return "diverges";
    return `ends at a cross-entropy of ${short(last(path))}${wrong(path) === null ? "" : ` and ${percent(wrong(path))} errors`}`;
  };
  return withoutRepeats([`Your setting ${words(clipped)}`, `unclipped SGD ${words(unclipped)}`]);
}

/** One sentence of several clauses; "ends" is said once as long as all end somewhere. */
export function withoutRepeats(clauses) {
  const ends = (clause) => clause?.includes(" ends at ");
  return `${clauses.map((clause, k) => (ends(clauses[k - 1]) ? clause.replace(" ends at ", " at ") : clause)).join(", ")}.`;
}
