// Panel (e): the answer in words. Clip or not, where, what it gains, and the limit on any rule.

import { classifierSentences } from "./classification.js";
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
  const said = verdict ? judge(verdict, risk, threshold, rule) : [failed ? "There is no single threshold here." : "…"];
  if (failed) said.push(`${capital(failed)}.`);
  return [...said, outcome(paths, best)];
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
  const bound = limit === null
    ? ""
    : limit < WORTH
      ? ` No rule of any kind could gain more than ${short(limit)} times.`
      : ` No rule of any kind gains more than ${short(limit)} times (the Fisher limit); the best threshold reaches ${percent(reached)} of that.`;
  if (ccc === null || ccc < WORTH) {
    const little = c === null ? "unclipped SGD is best" : `the best threshold, c = ${short(c)}, gains only ${percent(Math.max(0, ccc - 1))}`;
    return [
      rule === "clip" ? "Do not clip." : `The rule “${rule}” does not help.`,
      `At risk ${short(risk)} ${little}: clipping removes as much signal as noise.${bound}`,
    ];
  }
  const now = threshold !== null && c !== null && (threshold > 1.5 * c || threshold < c / 1.5)
    ? ` Yours is ${short(threshold)}, too ${threshold > c ? "large" : "small"}.`
    : "";
  return [
    c === null ? `${word}: it gains a factor of ${short(ccc)}.` : `${word} at c = ${short(c)}.`,
    `At risk ${short(risk)} that keeps ${percent(mu)} of the descent and is worth ${short(ccc)} times the samples (CCC).${now}${bound}`,
  ];
}

/** What the curves end with. */
function outcome(paths, best) {
  const end = (path) => (path.stop === null ? path.risk[path.risk.length - 1] : null);
  const [clipped, plain] = [end(paths.clipped), end(paths.unclipped)];
  const words = (risk, path) =>
    risk !== null ? `at ${short(risk)}` : path.stop === "diverged" ? "in divergence" : "without a finite risk";
  let text = `Your setting ends ${words(clipped, paths.clipped)}, unclipped SGD ${words(plain, paths.unclipped)}`;
  if (best !== null) text += `, the best threshold at every moment with the rate η/μ ${best ? words(end(best), best) : "…"}`;
  return text + ".";
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1).replace(/\.$/, "");
}
