// The state of the page: an experiment, one to compare with, a moment, a step of the tour. All of it is in
// the fragment of the URL.

import { toToml } from "./toml.js";

/** Like figure 4b of the paper, with the spectrum of figure 1: one label in five is an outlier. */
export const FIRST = {
  spectrum: { kind: "power_law", dim: 500, exponent: 0.2 },
  start: { kind: "uniform", norm: 1 },
  noise: { family: "rademacher", sigma: 0.8, p: 0.2 },
  time: 15,
  learning_rate: 0.4,
  clip: 0.5,
};

/** Residuals beyond this number make links too long for mail and chat. */
const LONGEST_LINK = 6000;

export function initialState() {
  return { experiment: structuredClone(FIRST), compare: null, moment: 1, tour: 0 };
}

export function toFragment(state) {
  const parts = new URLSearchParams({ experiment: toToml(state.experiment).trim() });
  if (state.compare) parts.set("compare", toToml(state.compare).trim());
  if (state.moment !== 1) parts.set("moment", String(Number(state.moment.toPrecision(4))));
  if (state.tour) parts.set("tour", String(state.tour));
  const fragment = "#" + parts;
  return fragment.length <= LONGEST_LINK ? fragment : null;
}

/** The state of a fragment; throws an Error with a sentence where it cannot be read. */
export function fromFragment(fragment, engine) {
  const state = initialState();
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const read = (name) => {
    if (!parts.has(name)) return null;
    try {
      return engine.ask({ ask: "read", toml: parts.get(name) });
    } catch (error) {
      throw new Error(`The link has no valid ${name}: ${error.message}.`);
    }
  };
  state.experiment = read("experiment") ?? state.experiment;
  state.compare = read("compare");
  const moment = Number(parts.get("moment") ?? 1);
  if (moment >= 0 && moment <= 1) state.moment = moment;
  const tour = Number(parts.get("tour") ?? 0);
  if (Number.isInteger(tour) && tour > 0) state.tour = tour;
  return state;
}

/** The threshold of an experiment where it is one number, else null. */
export function fixedThreshold({ clip }) {
  if (typeof clip === "number") return clip;
  return clip?.kind === "constant" ? clip.value : null;
}

/** The learning rate by which its schedule is named, or null for the greedy one. */
export function namedRate({ learning_rate: rate }) {
  if (typeof rate === "number") return rate;
  return rate?.from ?? rate?.value ?? null;
}

/** The experiment with another such rate. */
export function withRate(experiment, eta) {
  const rate = experiment.learning_rate;
  if (typeof rate !== "object") return { ...experiment, learning_rate: eta };
  const key = "from" in rate && rate.kind !== "warmup" ? "from" : "value";
  return { ...experiment, learning_rate: { ...rate, [key]: eta } };
}
