// The page: one state, one way to change it, and what is computed and drawn after each change.

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
import { Tour } from "./tour.js";
import { showPresets } from "./presets.js";
import { fixedThreshold, fromFragment, initialState, toFragment } from "./state.js";
import { interpolate } from "./interpolate.js";

class App {
  static async start() {
    const app = new App();
    const code = await unpack(WASM);
    app.engine = await Engine.start(code);
    app.mapper = new Background(code.slice(0));
    app.runner = new Background(code.slice(0));
    app.slow = new Background(code.slice(0));
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
    app.state = initialState();
    app.open(location.hash || INITIAL);
    addEventListener("hashchange", () => location.hash !== app.written && app.open(location.hash));
    document.documentElement.dataset.ready = "yes";
    return app;
  }

  /** Shows the state of a fragment; a fragment that cannot be read leaves what was there. */
  open(fragment) {
    try {
      this.state = fromFragment(fragment, this.engine);
      this.complain("");
    } catch (error) {
      this.complain(error.message);
    }
    this.shown = null;
    this.tour.show(this.state.tour);
    this.update();
  }

  /** Changes keys of the state and shows the result. */
  change(changes) {
    const before = this.state;
    this.state = { ...before, ...changes };
    try {
      this.update();
      this.complain("");
    } catch (error) {
      // What was shown stays; the sentence says what cannot be.
      this.state = before;
      this.controls.show(before.experiment);
      this.complain(`${error.message.charAt(0).toUpperCase()}${error.message.slice(1).replace(/\.$/, "")}.`);
    }
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

  update() {
    const { experiment, compare, moment } = this.state;
    const key = JSON.stringify(experiment);
    const moved = key !== this.shown;
    const paths = moved ? this.engine.ask({ ask: "paths", experiment }) : this.paths;
    const now = this.at(experiment, paths, moment);
    this.paths = paths;
    this.shown = key;
    this.other = compare ? this.engine.ask({ ask: "paths", experiment: compare }) : null;
    if (moved) {
      // Not there yet; null for what there is not.
      this.best = this.band = undefined;
      this.later(experiment, paths, now);
    }
    this.now = now;
    this.controls.show(experiment);
    this.panels.risk.draw(this);
    if (now.factors) this.panels.factors.draw(now);
    if (now.density) this.panels.density.draw(now);
    if (this.panels.map.ready) this.panels.map.chart.u.redraw();
    this.answer();
    this.compare.draw();
    this.remember();
  }

  /** Everything about one moment: the risk there, and what clipping does at that risk. */
  at(experiment, paths, moment) {
    const time = moment * paths.times[paths.times.length - 1];
    const risk = interpolate(paths.times, paths.clipped.risk, time);
    const scale = Math.sqrt(2 * risk + spread(experiment.noise) ** 2);
    const thresholds = FactorsPanel.thresholds(scale);
    const threshold = fixedThreshold(experiment) ?? interpolate(paths.times, paths.clipped.c, time);
    const batch = batchSize(experiment);
    const now = { time, moment: time, risk, scale, thresholds, threshold, batch, rule: experiment.rule ?? "clip" };
    now.kept = interpolate(paths.times, paths.clipped.mu, time);
    const ask = (question) => {
      try {
        return this.engine.ask({ ...question, experiment, risk });
      } catch (error) {
        now.failed = error.message;
        return null;
      }
    };
    now.factors = ask({ ask: "factors", thresholds });
    now.density = ask({ ask: "density", reach: threshold ?? 0 });
    if (batch === 1 && experiment.noise.family !== "empirical") now.verdict = ask({ ask: "verdict" });
    else if (!now.failed) this.search(experiment, risk);
    return now;
  }

  /** The best threshold where finding it takes longer than a frame. */
  search(experiment, risk) {
    this.searching.start(async (current) => {
      const verdict = await this.slow.ask({ ask: "verdict", experiment, risk }).catch(() => null);
      if (!current() || !verdict) return;
      this.now.verdict = verdict;
      this.answer();
      this.compare.draw();
    });
  }

  /** What takes longer than a frame: the best schedule, the map, runs of C-SGD. */
  later(experiment, paths, now) {
    this.filling.start(async (current) => {
      const best = await this.mapper.ask({ ask: "best_path", experiment }).catch(() => null);
      if (!current()) return;
      this.best = best?.best ?? null;
      this.panels.risk.draw(this);
      this.answer();
      await this.panels.map.fill({ experiment, scale: now.scale, current });
      if (!current()) return;
      await simulate(this, paths, current, (band, words) => {
        this.band = band;
        document.getElementById("runs-note").textContent = words;
        this.panels.risk.draw(this);
      });
    });
  }

  answer() {
    const { paths, best, now } = this;
    this.panels.answer.draw({ ...now, paths, best });
  }

  /** Writes the state into the URL, not more often than browsers allow. */
  remember() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const fragment = toFragment(this.state);
      document.getElementById("link-note").hidden = fragment !== null;
      if (fragment === null) return;
      history.replaceState(null, "", fragment);
      this.written = location.hash;
    }, 200);
  }
}

/** A typical size of the noise, for the range of the axes. */
function spread(noise) {
  const { sigma, scale, lambda, half_width: half, rate, stds, weights, values } = noise;
  if (values) return Math.sqrt(values.reduce((sum, x) => sum + x * x, 0) / values.length);
  if (stds) return Math.sqrt(stds.reduce((sum, s, k) => sum + weights[k] * s * s, 0));
  return sigma ?? scale ?? lambda ?? half ?? (rate ? Math.SQRT2 / rate : 0);
}

App.start().then(
  (app) => (window.toclip = app),
  (error) => {
    const message = document.getElementById("message");
    message.textContent = `The page could not start: ${error.message}. It needs a browser from 2023 or later.`;
    message.hidden = false;
  },
);
