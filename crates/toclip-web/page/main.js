// The page: one state, one way to change it, and the computing and drawing after each change.

/* global WASM, INITIAL */

import { AnswerPanel } from "./panel_answer.js";
import { Background, Latest } from "./background.js";
import { Compare } from "./compare.js";
import { Controls, batchSize } from "./controls.js";
import { DensityPanel } from "./panel_density.js";
import { Dropping } from "./dropping.js";
import { Engine, unpack } from "./engine.js";
import { Exports } from "./exports.js";
import { FactorsPanel } from "./panel_factors.js";
import { MapPanel } from "./panel_map.js";
import { RiskPanel, simulate } from "./panel_risk.js";
import { NO_DENSITY, captions, isClassifier } from "./classification.js";
import { Tour } from "./tour.js";
import { showPresets } from "./presets.js";
import { fixedThreshold, fromFragment, initialState, toFragment } from "./state.js";
import { interpolate } from "./interpolate.js";
import { sentence } from "./words.js";

/** Milliseconds without a change before long computations begin. */
const STILL = 60;
/** Thresholds whose factors a worker is asked for at once. */
const THRESHOLDS_AT_ONCE = 9;

class App {
  static async start() {
    const app = new App();
    const code = await unpack(WASM);
    app.engine = await Engine.start(code);
    app.mapper = new Background(code.slice(0));
    app.runner = new Background(code.slice(0));
    app.slow = new Background(code.slice(0));
    app.judge = new Background(code.slice(0));
    const find = (id) => document.getElementById(id);
    app.message = find("message");
    app.panels = {
      answer: new AnswerPanel(find("answer")),
      risk: new RiskPanel(find("risk-box"), app),
      factors: new FactorsPanel(find("factors-box"), app),
      density: new DensityPanel(find("density-box")),
      map: new MapPanel(find("map-box"), app),
    };
    app.controls = new Controls(find("controls"), app);
    showPresets(find("presets"), app);
    app.compare = new Compare(find("compare"), app);
    app.exports = new Exports(app);
    app.tour = new Tour(find("tour"), app);
    app.dropping = new Dropping(app);
    app.filling = new Latest();
    app.searching = new Latest();
    app.judging = new Latest();
    app.state = initialState();
    app.open(location.hash || INITIAL);
    addEventListener("hashchange", () => location.hash !== app.written && app.open(location.hash));
    return app;
  }

  /** Shows the state of a fragment; one that cannot be read changes nothing. */
  open(fragment) {
    try {
      this.state = fromFragment(fragment, this.engine);
      this.complain("");
    } catch (error) {
      this.complain(error.message);
    }
    this.shown = null;
    this.tour.show(this.state.tour);
    try {
      this.update();
    } catch (error) {
      this.refuse(error);
    }
  }

  /** Changes keys of the state and shows the result. */
  change(changes) {
    this.state = { ...this.state, ...changes };
    try {
      this.complain("");
      this.update();
    } catch (error) {
      this.refuse(error);
    }
  }

  /** Goes back to the state that was shown last; the message says why. */
  refuse(error) {
    this.state = this.good ?? initialState();
    this.update();
    const said = error.message.replace(/\d{16,}(\.0)?/g, (digits) => Number(digits).toExponential());
    // Keys are written as in files.
    this.complain(/^\w+: |^[a-z]+_/.test(said) ? `${said.replace(/\.$/, "")}.` : sentence(said));
  }

  edit(change) {
    this.change({ experiment: change(this.state.experiment) });
  }

  setThreshold(c) {
    this.edit((experiment) => ({ ...experiment, clip: c }));
  }

  complain(sentence) {
    this.message.textContent = sentence;
    this.message.hidden = !sentence;
  }

  /** Shows the state; where that takes longer than a frame, a worker computes it. */
  update() {
    const { experiment } = this.state;
    const key = JSON.stringify(experiment);
    this.controls.show(experiment);
    this.exports.showCode();
    this.remember();
    document.body.classList.toggle("working", key !== this.shown && slow(experiment));
    if (key === this.shown) this.show(this.paths, key);
    else if (slow(experiment)) this.fetchPaths(experiment, key);
    else this.show(this.engine.ask({ ask: "paths", experiment }), key);
  }

  fetchPaths(experiment, key) {
    this.slow.hurry();
    this.searching.start(async (current) => {
      if (!current()) return;
      try {
        const paths = await this.slow.ask({ ask: "paths", experiment });
        if (current()) this.show(paths, key);
      } catch (error) {
        if (current()) this.refuse(error);
      }
    });
  }

  /** Draws everything of the state, whose risk curves are `paths`. */
  show(paths, key) {
    const { experiment, moment } = this.state;
    const moved = key !== this.shown;
    this.paths = paths;
    this.shown = key;
    this.good = this.state;
    document.body.classList.remove("working");
    for (const [id, words] of Object.entries(captions(experiment))) document.getElementById(id).textContent = words;
    if (moved) this.later(experiment, paths);
    this.showOther();
    this.now = this.at(experiment, paths, moment);
    this.panels.risk.draw(this);
    this.drawMoment();
    if (this.panels.map.ready) this.panels.map.chart.u.redraw();
  }

  /** The risk curves of the setting to compare with. */
  showOther() {
    const { compare } = this.state;
    const key = compare && JSON.stringify(compare);
    if (key === this.otherKey) return;
    this.otherKey = key;
    this.other = null;
    if (!compare) return;
    const take = (paths) => {
      if (key !== this.otherKey) return;
      this.other = paths;
      this.panels.risk.draw(this);
      this.compare.draw();
    };
    if (key === this.shown) this.other = this.paths;
    else this.mapper.ask({ ask: "paths", experiment: compare }).then(take, () => {
      // Dropped for a newer setting: asked again with the next one.
      if (key === this.otherKey) this.otherKey = undefined;
    });
  }

  /** Everything about one moment: the risk there, and what clipping does at that risk. */
  at(experiment, paths, moment) {
    const time = moment * paths.times.at(-1);
    const risk = interpolate(paths.times, paths.clipped.risk, time);
    const scale = typicalSize(experiment, paths);
    const thresholds = FactorsPanel.thresholds(scale);
    const batch = experiment.batch?.rule === "per_sample" ? 1 : batchSize(experiment);
    const classifier = isClassifier(experiment);
    const rule = experiment.rule ?? "clip";
    const given = fixedThreshold(experiment) ?? interpolate(paths.times, paths.clipped.c, time);
    const threshold = rule === "optimal" ? null : given;
    const now = { time, risk, scale, thresholds, threshold, batch, rule, isPrivate: "privacy" in experiment, classifier };
    now.kept = classifier ? null : interpolate(paths.times, paths.clipped.mu, time);
    const questions = {
      factors: { ask: "factors", experiment, risk, time, thresholds },
      ...(!classifier && { density: { ask: "density", experiment, risk, reach: threshold ?? 0 } }),
      verdict: { ask: "verdict", experiment, risk, time },
    };
    // Answers of a worker come a moment later; until then the last ones stay.
    const { verdict, factors, density, thresholds: drawn } = this.now ?? {};
    this.fetch(now, slow(experiment) ? questions : { verdict: questions.verdict });
    if (slow(experiment)) {
      const same = this.now?.classifier === classifier;
      const last = same ? { verdict, factors, density, thresholds: drawn ?? thresholds } : {};
      return { ...now, ...last };
    }
    now.verdict = verdict;
    for (const name of ["factors", "density"]) {
      try {
        now[name] = this.engine.ask(questions[name]);
      } catch (error) {
        now[name] = null;
        now.failed = error.message;
      }
    }
    return now;
  }

  /** Asks a worker, and shows the answers as they come. */
  fetch(now, questions) {
    const { verdict, ...pictures } = questions;
    const take = async (worker, name, question, current) => {
      if (!current()) return;
      const asked = name === "factors" ? askInParts(worker, question, current) : worker.ask(question);
      const answer = await asked.catch((error) => {
        if (current()) now.failed = error.message;
        return null;
      });
      if (!current()) return;
      Object.assign(this.now, { [name]: answer, failed: now.failed }, name === "factors" && { thresholds: question.thresholds });
      this.drawMoment();
    };
    this.slow.hurry();
    this.searching.start(async (current) => {
      for (const [name, question] of Object.entries(pictures)) await take(this.slow, name, question, current);
    });
    // The best threshold takes longest, so the pictures do not wait for it, nor share the processor with
    // it while a control moves.
    this.judge.hurry();
    this.judging.start(async (current) => {
      if ("factors" in pictures) await new Promise((resolve) => setTimeout(resolve, STILL));
      await take(this.judge, "verdict", verdict, current);
    });
  }

  /** Waits until everything about the chosen moment is shown. */
  async settled() {
    await this.searching.settled();
    await this.judging.settled();
  }

  /** The pictures and words of the chosen moment. */
  drawMoment() {
    const { now } = this;
    if (now.classifier) this.hide("density", NO_DENSITY);
    for (const name of now.classifier ? ["factors"] : ["factors", "density"]) {
      if (now[name]) this.panels[name].draw(now);
      else if (now[name] !== undefined) this.hide(name, sentence(now.failed ?? "not known here"));
    }
    this.exports.showMenus();
    this.answer();
    this.compare.draw();
  }

  /** Shows a sentence instead of a picture. */
  hide(name, sentence) {
    this.panels[name].description = null;
    this.panels[name].chart.fail(sentence);
  }

  /** Starts the long computations: the best schedule, the map, runs of C-SGD. They begin once the controls
   * have been still for a moment; results that do not depend on the change are kept. */
  later(experiment, paths) {
    const { clip: _, ...unclipped } = experiment;
    const keys = { best: JSON.stringify(unclipped), map: MapPanel.key(experiment) };
    if (keys.best !== this.keys?.best) this.best = undefined;
    // Classification has no such schedule.
    if (isClassifier(experiment)) this.best = null;
    this.band = undefined;
    this.mapper.hurry();
    this.filling.start(async (current) => {
      await new Promise((resolve) => setTimeout(resolve, STILL));
      if (current() && this.best === undefined) {
        const best = await this.mapper.ask({ ask: "best_path", experiment }).catch(() => null);
        if (!current()) return;
        this.best = best?.best ?? null;
        this.panels.risk.draw(this);
        this.answer();
      }
      if (current() && this.panels.map.filled !== keys.map) {
        await this.panels.map.fill({ experiment, scale: typicalSize(experiment, paths), current });
      }
      if (!current()) return;
      await simulate(this, paths, current, (band, words) => {
        this.band = band;
        document.getElementById("runs-note").textContent = words;
        this.panels.risk.draw(this);
      });
    });
    this.keys = keys;
  }

  answer() {
    const { paths, best, now } = this;
    this.panels.answer.draw({ ...now, paths, best });
  }

  /** Writes the state into the URL, not more often than browsers allow. */
  remember() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = null;
      const fragment = toFragment(this.state);
      document.getElementById("link-note").hidden = fragment !== null;
      if (fragment === null) return;
      history.replaceState(null, "", fragment);
      this.written = location.hash;
    }, 200);
  }
}

/** Asks for the factors at a few thresholds at a time: the worker is soon free for a newer setting. */
async function askInParts(worker, question, current) {
  const whole = {};
  for (let from = 0; from < question.thresholds.length && current(); from += THRESHOLDS_AT_ONCE) {
    const thresholds = question.thresholds.slice(from, from + THRESHOLDS_AT_ONCE);
    const part = await worker.ask({ ...question, thresholds });
    for (const [key, value] of Object.entries(part)) {
      whole[key] = Array.isArray(value) ? [...(whole[key] ?? []), ...value] : value;
    }
  }
  return whole;
}

/** Above this time the risk curves take longer than a frame. */
const LONG_TIME = 1e5;

/** Whether the risk curves or factors of an experiment take longer than a frame. */
function slow(experiment) {
  if (isClassifier(experiment) || experiment.time > LONG_TIME) return true;
  const { batch, noise, rule = "clip", clip, learning_rate: rate } = experiment;
  const together = batchSize({ batch }) > 1 && batch.rule !== "per_sample";
  const searched = clip === "max_ccc" || clip?.kind === "max_ccc" || rate === "greedy";
  return together || searched || noise.family === "empirical" || !["clip", "normalise"].includes(rule);
}

/** A typical residual, for the range of axes; that of the start, which does not change with the rate
 * or the threshold. */
function typicalSize(experiment, paths) {
  // Residuals of classification lie between −1 and 1.
  if (isClassifier(experiment)) return 0.25;
  return Math.sqrt(2 * paths.start_risk + spread(experiment.noise) ** 2);
}

/** A typical size of the noise. */
function spread(noise) {
  const { sigma, scale, lambda, half_width: half, rate, stds, weights, values } = noise;
  if (values) return Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length);
  if (stds) return Math.sqrt(stds.reduce((sum, s, k) => sum + weights[k] * s * s, 0));
  return sigma ?? scale ?? lambda ?? half ?? (rate ? Math.SQRT2 / rate : 0);
}

App.start().then(
  (app) => {
    window.toclip = app;
    document.documentElement.dataset.ready = "yes";
  },
  (error) => {
    const message = document.getElementById("message");
    message.textContent = `The page could not start: ${error.message}. It needs a browser from 2023 or later.`;
    message.hidden = false;
  },
);
