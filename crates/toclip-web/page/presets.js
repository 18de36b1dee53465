// Settings to start from.

import { FIRST } from "./state.js";
import { LOGISTIC } from "./classification.js";
import { element } from "../../toclip-report/page/chart.js";

const withNoise = (noise, more = {}) => ({ ...FIRST, noise, ...more });

export const PRESETS = {
  "Gaussian noise": withNoise({ family: "gaussian", sigma: 0.8 }),
  "Outliers": FIRST,
  "Heavy tails": withNoise({ family: "student_t", df: 2.5, scale: 0.4 }),
  "Cauchy (figure 1b)": withNoise({ family: "student_t", df: 1, scale: 0.5 }, { learning_rate: 0.6, clip: 0.4 }),
  "Momentum": withNoise(FIRST.noise, { momentum: 0.9, learning_rate: 0.04 }),
  "Classification": LOGISTIC,
  "Private SGD": withNoise({ family: "gaussian", sigma: 0.3 }, {
    spectrum: { kind: "power_law", dim: 200, exponent: 0.5 }, learning_rate: 0.3, clip: 0.3,
    batch: { size: 16, rule: "per_sample" }, privacy: { noise_multiplier: 1 },
  }),
};

export function showPresets(box, app) {
  for (const [name, experiment] of Object.entries(PRESETS)) {
    const button = element("button", { type: "button" }, name);
    button.addEventListener("click", () => app.change({ experiment: structuredClone(experiment) }));
    box.append(button);
  }
}
