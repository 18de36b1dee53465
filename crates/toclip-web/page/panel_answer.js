// Panel (e): the answer in words. Whether to clip comes from the theory, with its words; the ends of the
// curves are added here.

import { classifierSentences, withoutRepeats } from "./classification.js";
import { judged, sentence } from "./words.js";
import { short } from "../../toclip-report/page/numbers.js";

export class AnswerPanel {
  constructor(box) {
    this.box = box;
  }

  draw(shown) {
    const [headline, ...rest] = sentences(shown);
    this.box.querySelector("h2").textContent = headline;
    this.box.querySelector("p").textContent = rest.join(" ");
  }
}

export function sentences(shown) {
  const { verdict, paths, best, failed, isPrivate, classifier } = shown;
  if (classifier) return classifierSentences(shown);
  if (isPrivate) {
    const why = "It adds noise in proportion to the threshold, which CCC does not count: read the best threshold and rate off the map.";
    return ["Private SGD must clip.", why, outcome(paths, best)];
  }
  const said = verdict ? judged(verdict) : [failed ? "No single best threshold for this rule." : "…"];
  if (failed) said.push(sentence(failed));
  return [...said, outcome(paths, best), smallerRate(shown) || largerRate(paths, best)].filter((sentence) => sentence);
}

/** The risk at the end; null where the curve has none. */
function finalRisk(path) {
  return path.stop === null ? path.risk.at(-1) : null;
}

/** The ends of the curves, in words. */
function outcome(paths, best) {
  const words = (path) =>
    path.stop === null ? `ends at ${short(finalRisk(path))}` : path.stop === "diverged" ? "diverges" : "has no finite risk";
  const said = [`Your setting ${words(paths.clipped)}`, `unclipped SGD ${words(paths.unclipped)}`];
  if (best !== null) said.push(`the best threshold at every moment with the rate η/μ ${best ? words(best) : "…"}`);
  return withoutRepeats(said);
}

/** Why clipping ends lower although it gains nothing at any moment. */
function smallerRate({ paths, best, rule }) {
  const [clipped, plain] = [finalRisk(paths.clipped), finalRisk(paths.unclipped)];
  const never = rule === "clip" && best?.c.every((c) => c === null);
  if (!never || clipped === null || (plain !== null && clipped > 0.995 * plain)) return "";
  return "Clipping ends lower here because it makes the steps smaller: a smaller learning rate does the same without clipping.";
}

/** Why the best threshold ends above the one that was chosen. */
function largerRate({ clipped }, best) {
  if (!best || finalRisk(clipped) === null || (finalRisk(best) !== null && finalRisk(best) < 1.005 * finalRisk(clipped))) return "";
  return "The best threshold ends higher than yours because it also raises the learning rate to η/μ, and η is already large.";
}
