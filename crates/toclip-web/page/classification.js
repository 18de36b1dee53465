// Classification: logistic regression in place of least squares, and the sentences of the page about it. The
// risk is the cross-entropy here.

import { judged, sentence } from "./words.js";
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

export const NO_DENSITY =
  "Not drawn for classification: residuals lie between −1 and 1, so a threshold of 1 or more changes nothing.";

/** The words of the pictures. */
export function captions(experiment) {
  const classifier = isClassifier(experiment);
  return {
    "risk-title": classifier ? "Loss and error rate over time" : "Risk over time",
    "risk-caption": classifier
      ? "The cross-entropy of the labels as drawn, and the share of wrong signs against labels before they were flipped. The band is C-SGD itself, simulated in the background."
      : "How far the model is from the best one, as SGD sees more samples. The band is C-SGD itself, simulated in the background. The best schedule follows the peak of CCC and raises the rate to η/μ, to make up for the descent that clipping removes.",
    "factors-caption": classifier
      ? "Where CCC is above 1, SGD learns the teacher's direction with less noise at equal speed than without clipping."
      : "Where CCC is above 1, clipping with the learning rate raised to η/μ beats unclipped SGD.",
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
  return [...judgeDirection(verdict, failed), bias, ends(paths)].filter((sentence) => sentence);
}

function judgeDirection(verdict, failed) {
  if (!verdict) return failed ? ["No threshold is better than another here.", sentence(failed)] : ["…"];
  return judged(verdict);
}

function ends({ clipped, unclipped }) {
  const words = ({ stop, risk, error_rate: wrong }) => {
    if (stop !== null) return "diverges";
    return `ends at a cross-entropy of ${short(risk.at(-1))}${wrong.at(-1) === null ? "" : ` and ${percent(wrong.at(-1))} errors`}`;
  };
  return withoutRepeats([`Your setting ${words(clipped)}`, `unclipped SGD ${words(unclipped)}`]);
}

/** One sentence of several clauses; "ends" is said once as long as all end somewhere. */
export function withoutRepeats(clauses) {
  const ends = (clause) => clause?.includes(" ends at ");
  return `${clauses.map((clause, k) => (ends(clauses[k - 1]) ? clause.replace(" ends at ", " at ") : clause)).join(", ")}.`;
}
