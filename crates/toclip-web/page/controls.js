// The controls: each changes one key of the experiment, in the grammar of files for `toclip run`.

import { FIRST, fixedThreshold, namedRate, withRate } from "./state.js";
import { LOGISTIC, isClassifier } from "./classification.js";
import { element } from "../../toclip-report/page/chart.js";
import { short } from "../../toclip-report/page/numbers.js";

/** Numbers of a noise: words, and the range of the slider. */
const NOISE_NUMBERS = {
  sigma: ["standard deviation σ", 0.05, 5],
  lambda: ["size of an outlier λ", 0.05, 10],
  p: ["share of outliers p", 0.005, 1],
  half_width: ["half width", 0.05, 10],
  rate: ["rate", 0.1, 20],
  df: ["degrees of freedom", 0.6, 60],
  scale: ["scale", 0.05, 5],
};

const FAMILIES = {
  gaussian: ["Gaussian", { sigma: 0.8 }],
  rademacher: ["outliers (± λ)", { sigma: 0.8, p: 0.2 }],
  student_t: ["Student-t", { df: 2.5, scale: 0.5 }],
  laplace: ["Laplace", { sigma: 0.8 }],
  uniform: ["uniform", { sigma: 0.8 }],
  gaussian_mixture: ["Gaussian mixture", { weights: [0.9, 0.1], means: [0, 0], stds: [0.3, 2.5] }],
  none: ["none", {}],
};

const RULES = {
  clip: "clip", skip: "skip", normalise: "normalise", tanh: "tanh (smooth)", root: "root (smooth)",
  optimal: "optimal (score)", by_value: "clip by value",
};

export class Controls {
  constructor(form, app) {
    this.form = form;
    this.app = app;
    this.section("Model", [
      this.choice("model", "model", models, (e) => e.model?.kind ?? "least_squares", setModel),
      this.slider("flips", "share of flipped labels", [0, 0.5], (e) => (isClassifier(e) ? (e.model.flips ?? 0) : undefined), (e, flips) => part(e, "model", { flips })),
      this.slider("teacher", "norm of the teacher ‖θ*‖", [0.2, 20], (e) => e.teacher?.norm, (e, norm) => part(e, "teacher", { norm })),
    ]);
    this.noise = this.section("Noise in the labels", [
      this.choice("family", "distribution", families, (e) => e.noise?.family, setFamily),
      this.box("noise-numbers"),
    ]);
    this.section("Data and start", [
      this.choice("spectrum", "eigenvalues of K", spectra, (e) => e.spectrum.kind, setSpectrum),
      this.slider("dim", "dimension", [10, 2000], (e) => e.spectrum.dim, (e, dim) => part(e, "spectrum", { dim: Math.round(dim) })),
      this.slider("exponent", "exponent of the power law", [0.01, 2], (e) => e.spectrum.exponent, (e, exponent) => part(e, "spectrum", { exponent })),
      this.slider("aspect", "dimension / samples", [0.05, 0.95], (e) => e.spectrum.aspect, (e, aspect) => part(e, "spectrum", { aspect })),
      this.choice("start", "θ₀ − θ*", starts, (e) => e.start?.kind, setStart),
      this.slider("norm", "distance at the start ‖θ₀ − θ*‖", [0.05, 5], (e) => e.start?.norm, (e, norm) => part(e, "start", { norm })),
      this.slider("time", "time T", [1, 100], (e) => e.time, setTime),
    ]);
    this.section("Steps", [
      this.choice("rate-kind", "learning rate", rateKinds, rateKind, setRateKind),
      this.slider("rate", "η", [0.01, 5], namedRate, withRate),
      this.choice("clip-kind", "threshold", clipKinds, clipKind, setClipKind),
      this.slider("clip", "c", [0.02, 10], fixedThreshold, (e, clip) => ({ ...e, clip })),
      this.slider("kappa", "κ, in standard deviations", [0.05, 5], (e) => e.clip?.kappa, (e, kappa) => part(e, "clip", { kappa })),
      this.choice("rule", "rule", () => RULES, (e) => (isClassifier(e) ? undefined : (e.rule ?? "clip")), (e, rule) => without(e, "rule", rule === "clip" ? null : rule)),
      this.slider("batch", "batch size", [1, 256], (e) => (isClassifier(e) && !e.batch ? undefined : batchSize(e)), setBatch, true),
      this.choice("batch-rule", "clip in a batch", () => ({ mean: "the mean gradient", per_sample: "each sample" }), (e) => (batchSize(e) > 1 ? (e.batch.rule ?? "mean") : undefined), (e, rule) => ({ ...e, batch: { size: batchSize(e), rule } })),
      this.slider("momentum", "momentum β", [0, 0.99], (e) => (typeof e.momentum === "object" || isClassifier(e) ? undefined : (e.momentum ?? 0)), (e, beta) => without(e, "momentum", beta > 0 ? beta : null)),
      this.slider("privacy", "noise multiplier of private SGD", [0, 4], (e) => (isClassifier(e) ? undefined : (e.privacy?.noise_multiplier ?? 0)), (e, x) => without(e, "privacy", x > 0 ? { noise_multiplier: x } : null)),
    ]);
  }

  section(title, fields) {
    const set = element("fieldset", {}, element("legend", {}, title), ...fields.map((field) => field.root));
    this.form.append(set);
    this.fields = [...(this.fields ?? []), ...fields];
    return set;
  }

  box(name) {
    const root = element("div", { class: name });
    this.numbers = root;
    return { root, show: (experiment) => this.showNoise(experiment) };
  }

  choice(name, label, options, get, set) {
    const root = element("label", { class: "field choice" });
    root.innerHTML = `<span>${label}</span><select name="${name}"></select>`;
    const select = root.querySelector("select");
    select.addEventListener("change", () => this.app.edit((e) => set(e, select.value)));
    return {
      root,
      show: (experiment) => {
        const value = get(experiment);
        root.hidden = value === undefined;
        const known = options(experiment);
        const names = value === undefined || value in known ? known : { ...known, [value]: `as given (${value})` };
        const html = Object.entries(names).map(([key, words]) => `<option value="${key}">${words}</option>`).join("");
        if (select.dataset.html !== html) select.innerHTML = select.dataset.html = html;
        select.value = value ?? "";
      },
    };
  }

  /** A slider, logarithmic where its range begins above zero, with a field for exact numbers. */
  slider(name, label, [min, max], get, set, whole = false) {
    const root = element("div", { class: "field number" });
    root.innerHTML =
      `<label for="${name}-number">${label}</label><input type="text" inputmode="decimal" autocomplete="off"
       id="${name}-number" name="${name}-number"><input type="range" name="${name}" min="0" max="1000" aria-label="${label}">`;
    const [text, range] = root.querySelectorAll("input");
    const scale = {
      to: (x) => (min > 0 ? (1000 * Math.log(x / min)) / Math.log(max / min) : (1000 * (x - min)) / (max - min)),
      from: (k) => {
        const x = min > 0 ? min * (max / min) ** (k / 1000) : min + ((max - min) * k) / 1000;
        return whole || min >= 10 ? Math.round(x) : Number(x.toPrecision(3));
      },
    };
    range.addEventListener("input", () => this.app.edit((e) => set(e, scale.from(Number(range.value)))));
    text.addEventListener("change", () => {
      const { value, why } = readNumber(text.value);
      text.setAttribute("aria-invalid", String(!!why));
      if (why) this.app.complain(`“${text.value}” ${why}: ${label} expects one such as ${short(min || max)}.`);
      else this.app.edit((e) => set(e, whole ? Math.round(value) : value));
    });
    const show = (experiment) => {
      const value = get(experiment);
      root.hidden = typeof value !== "number";
      if (root.hidden) return;
      range.value = String(scale.to(value));
      range.setAttribute("aria-valuetext", short(value));
      if (document.activeElement !== text) text.value = String(value);
      text.setAttribute("aria-invalid", "false");
    };
    return { root, show };
  }

  showNoise({ noise }) {
    this.noise.hidden = !noise;
    if (!noise) return;
    const keys = Object.keys(NOISE_NUMBERS).filter((key) => key in noise);
    const shape = `${noise.family} ${keys}`;
    if (this.shape !== shape) {
      this.shape = shape;
      this.noiseFields = keys.map((key) => {
        const [label, min, max] = NOISE_NUMBERS[key];
        return this.slider(`noise-${key}`, label, [min, max], (e) => e.noise[key], (e, x) => part(e, "noise", { [key]: x }));
      });
      if (noise.family === "gaussian_mixture" && noise.weights.length === 2) this.noiseFields = this.mixture();
      this.numbers.replaceChildren(...this.noiseFields.map((field) => field.root));
    }
    this.noiseFields.forEach((field) => field.show({ noise }));
  }

  mixture() {
    const std = (k) => (e, x) => part(e, "noise", { stds: e.noise.stds.map((s, i) => (i === k ? x : s)) });
    return [
      this.slider("noise-share", "share of outliers", [0.005, 0.5], (e) => e.noise.weights[1], (e, w) => part(e, "noise", { weights: [Number((1 - w).toPrecision(12)), w] })),
      this.slider("noise-std0", "std of most", [0.05, 5], (e) => e.noise.stds[0], std(0)),
      this.slider("noise-std1", "std of outliers", [0.05, 10], (e) => e.noise.stds[1], std(1)),
    ];
  }

  show(experiment) {
    this.fields.forEach((field) => field.show(experiment));
  }
}

/** A number as people type it, with a decimal comma or thousands separators; what may mean two numbers is
 * refused. */
export function readNumber(typed) {
  const text = typed.trim();
  if (/^[+-]?[1-9]\d{0,2},\d{3}$/.test(text)) {
    return { why: `may mean ${text.replace(",", "")} or ${Number(text.replace(",", "."))}; write a number without a comma` };
  }
  const grouped = /^[+-]?\d{1,3}((,\d{3}){2,}|(,\d{3})+\.\d+|([\s'_]\d{3})+(\.\d+)?)$/.test(text);
  const value = Number(grouped ? text.replace(/[,\s'_]/g, "") : text.replace(",", "."));
  return text === "" || !Number.isFinite(value) ? { why: "is not a number" } : { value };
}

function part(experiment, key, values) {
  return { ...experiment, [key]: { ...experiment[key], ...values } };
}

function without(experiment, key, value) {
  const { [key]: _, ...rest } = experiment;
  return value === null ? rest : { ...rest, [key]: value };
}

function models() {
  return { least_squares: "least squares", logistic: "logistic regression" };
}

/** Another model, with the data and the time that are shown. */
function setModel(experiment, kind) {
  const { spectrum, time } = experiment;
  const { noise, start, learning_rate: rate, clip } = FIRST;
  return kind === "logistic" ? { ...LOGISTIC, spectrum, time } : { spectrum, start, noise, time, learning_rate: rate, clip };
}

function families({ noise }) {
  if (!noise) return {};
  const names = Object.fromEntries(Object.entries(FAMILIES).map(([key, [words]]) => [key, words]));
  return noise.family === "empirical" ? { ...names, empirical: `your residuals (${noise.values.length})` } : names;
}

function setFamily(experiment, family) {
  return { ...experiment, noise: { family, ...(FAMILIES[family]?.[1] ?? {}) } };
}

function spectra() {
  return { isotropic: "all equal", power_law: "power law", marchenko_pastur: "Marchenko–Pastur" };
}

function setSpectrum(experiment, kind) {
  const dim = experiment.spectrum.dim ?? 500;
  const own = { isotropic: {}, power_law: { exponent: 0.2 }, marchenko_pastur: { aspect: 0.5 } }[kind];
  return { ...experiment, spectrum: { kind, dim, ...own } };
}

function starts() {
  return { uniform: "equal coordinates", power_law: "power law", random: "random" };
}

function setStart(experiment, kind) {
  const norm = experiment.start.norm ?? 1;
  const own = { uniform: {}, power_law: { exponent: 1 }, random: { seed: 1 } }[kind];
  return { ...experiment, start: { kind, norm, ...own } };
}

/** Schedules that last as long as the run keep doing so. */
function setTime(experiment, time) {
  const longer = (value) => (value?.over === experiment.time ? { ...value, over: time } : value);
  const { learning_rate: rate, clip } = experiment;
  return { ...experiment, time, learning_rate: longer(rate), clip: longer(clip) };
}

function rateKinds(experiment) {
  const all = { constant: "constant", cosine: "cosine to 0", polynomial: "linear to 0", warmup: "warm-up", greedy: "fastest descent" };
  const { greedy: _, ...others } = all;
  return isClassifier(experiment) ? others : all;
}

function rateKind({ learning_rate: rate }) {
  if (typeof rate === "number") return "constant";
  return typeof rate === "string" ? rate : rate.kind;
}

function setRateKind(experiment, kind) {
  const eta = namedRate(experiment) ?? 0.4;
  const over = experiment.time;
  const rate = {
    constant: eta, greedy: "greedy", cosine: { kind, from: eta, over }, polynomial: { kind, from: eta, over },
    warmup: { kind, value: eta, over: Number((over / 10).toPrecision(3)) },
  }[kind];
  const fits = kind !== "greedy" || ["none", "max_ccc"].includes(clipKind(experiment));
  return { ...experiment, learning_rate: rate, clip: fits ? experiment.clip : "max_ccc" };
}

function clipKinds(experiment) {
  if (isClassifier(experiment)) return { constant: "fixed", none: "no clipping" };
  return { constant: "fixed", proportional: "follows the residual", max_ccc: "best at every moment", none: "no clipping" };
}

function clipKind({ clip }) {
  if (typeof clip === "number") return "constant";
  if (clip === "inf") return "none";
  return typeof clip === "string" ? clip : clip.kind;
}

function setClipKind(experiment, kind) {
  const clip = { constant: fixedThreshold(experiment) ?? 0.5, proportional: { kind, kappa: 1.345 }, max_ccc: kind, none: kind }[kind];
  const greedy = experiment.learning_rate === "greedy" && !["none", "max_ccc"].includes(kind);
  return { ...experiment, clip, learning_rate: greedy ? 0.4 : experiment.learning_rate };
}

export function batchSize({ batch }) {
  return typeof batch === "object" ? batch.size : (batch ?? 1);
}

function setBatch(experiment, size) {
  const rule = experiment.batch?.rule;
  return without(experiment, "batch", size <= 1 ? null : rule ? { size, rule } : size);
}
