// Panel (e): the answer in words. Clip or not, where, what it gains, and the limit on any rule.

import { classifierSentences, withoutRepeats } from "./classification.js";
import { farFrom, sentence } from "./words.js";
import { percent, short } from "../../toclip-report/page/numbers.js";

/** A gain below this is not worth a threshold to tune. */
const WORTH = 1.02;

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
  const { verdict, paths, best, risk, threshold, rule, failed, isPrivate, classifier } = shown;
  if (classifier) return classifierSentences(shown);
  if (isPrivate) {
    const why = "It adds noise in proportion to the threshold, which CCC does not count: read the best threshold and rate off the map.";
    return ["Private SGD must clip.", why, outcome(paths, best)];
  }
  const said = verdict ? judge(verdict, risk, threshold, rule) : [failed ? "No single best threshold for this rule." : "…"];
  if (failed) said.push(sentence(failed));
  return [...said, outcome(paths, best), smallerRate(shown) || largerRate(paths, best)].filter((sentence) => sentence);
}

function judge({ c, mu, ccc, limit, reached, infinite_variance: infinite }, risk, threshold, rule) {
  const word = rule === "clip" ? "Clip" : `Use the rule “${rule}”`;
  if (infinite) {
    return [
      `${word}: unclipped SGD has no finite risk under this noise.`,
      c === null
        ? "The rule has no threshold to choose."
        : `At risk ${short(risk)} the best threshold is c = ${short(c)}, which keeps ${percent(mu)} of the descent` +
          (reached === null ? "." : ` and reaches ${percent(reached)} of the Fisher limit, the most that any rule can do.`),
    ];
  }
  const bound = limit === null ? "" : ` ${fisher(limit, reached)}`;
  if (ccc === null || ccc < WORTH) {
    const little = c === null ? "unclipped SGD is best" : `the best threshold, c = ${short(c)}, gains only ${percent(Math.max(0, ccc - 1))}`;
    return [
      rule === "clip" ? "Do not clip." : `The rule “${rule}” does not help.`,
      `At risk ${short(risk)} ${little}: the rule removes as much signal as noise.${bound}`,
    ];
  }
  return [
    c === null ? `${word}: it gains a factor of ${short(ccc)}.` : `${word} at c = ${short(c)}.`,
    `At risk ${short(risk)} that keeps ${percent(mu)} of the descent and is as good as ${short(ccc)} times the samples (CCC).${farFrom(threshold, c)}${bound}`,
  ];
}

/** The limit on the gain of any rule. */
function fisher(limit, reached) {
  if (short(limit) === "1") return "No rule can gain anything.";
  const most = `No rule could gain more than a factor of ${short(limit)} (the Fisher limit)`;
  return limit < WORTH ? `${most}.` : `${most}; the best threshold reaches ${percent(reached)} of that.`;
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
