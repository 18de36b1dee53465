// The guided tour: one picture and two sentences a step.

import { FIRST } from "./state.js";
import { LOGISTIC } from "./classification.js";

const STEPS = [
  {
    title: "Gaussian noise: do not clip",
    text: "With Gaussian noise CCC, the gain over unclipped SGD, stays below 1 at every threshold: clipping removes more signal than noise. Unclipped SGD with a smaller learning rate does at least as well.",
    panel: "factors",
    experiment: { ...FIRST, noise: { family: "gaussian", sigma: 0.8 } },
  },
  {
    title: "Outliers: clip",
    text: "One label in five is wrong by ±1.8. Clipping cuts these samples down to the size of the others, and SGD ends at about a third of the risk without clipping.",
    panel: "risk",
    experiment: { ...FIRST, clip: 0.4 },
  },
  {
    title: "Why the threshold must shrink",
    text: "At the start, when all residuals are large, the best threshold is 0.56: the vertical line. By the end the residuals of good samples have shrunk with the risk and the peak of CCC has moved to 0.2: a fixed threshold misses part of the gain.",
    panel: "factors",
    experiment: { ...FIRST, clip: 0.56 },
  },
  {
    title: "Too small a threshold",
    text: "At c = 0.05 nearly every sample is clipped: the noise is gone, and so is most of the descent. The solid curve, clipped SGD, falls slowly; a larger learning rate, or a larger threshold, would fix it.",
    panel: "risk",
    experiment: { ...FIRST, clip: 0.05 },
  },
  {
    title: "Batches",
    text: "Nearly every batch of 16 samples contains an outlier, so clipping the mean gradient gains little: CCC peaks near 1.2, against 6 for single samples. Clipping each sample before averaging keeps the whole gain.",
    panel: "factors",
    experiment: { ...FIRST, batch: 16 },
  },
  {
    title: "Classification",
    text: "Even with a tenth of the labels flipped, the residuals of logistic regression are never above 1: no sample can do much harm, and clipping at 0.4 hardly changes the loss. It moves the optimum instead; at tuned learning rates the best threshold gains about 1%.",
    panel: "risk",
    experiment: LOGISTIC,
  },
];

export class Tour {
  constructor(box, app) {
    this.box = box;
    this.app = app;
    this.find = (name) => box.querySelector(`[data-tour="${name}"]`);
    document.getElementById("start-tour").addEventListener("click", () => this.go(1));
    this.find("back").addEventListener("click", () => this.go(app.state.tour - 1));
    this.find("next").addEventListener("click", () => this.go(app.state.tour + 1));
    this.find("leave").addEventListener("click", () => this.go(0));
  }

  /** Shows a step with its setting; 0, or one past the last, leaves the tour. */
  go(number) {
    const step = STEPS[number - 1];
    this.show(step ? number : 0);
    this.app.change(step ? { tour: number, experiment: structuredClone(step.experiment), moment: 1, compare: null } : { tour: 0 });
    (step ? this.find("title") : document.getElementById("start-tour")).focus();
  }

  /** Shows the words of a step. */
  show(number) {
    const step = STEPS[number - 1];
    this.box.hidden = !step;
    document.body.classList.toggle("touring", !!step);
    document.querySelectorAll(".panel").forEach((panel) => panel.classList.toggle("shown", step?.panel === panel.id));
    if (!step) return;
    this.find("count").textContent = `${number} of ${STEPS.length}`;
    this.find("title").textContent = step.title;
    this.find("text").textContent = step.text;
    this.find("back").disabled = number === 1;
    this.find("next").textContent = number === STEPS.length ? "Finish" : "Next";
  }
}
