// Two settings side by side: the one that is shown, and one that was kept.

import { interpolate } from "./interpolate.js";
import { isClassifier } from "./classification.js";
import { percent, short } from "../../toclip-report/page/numbers.js";
import { escape } from "./words.js";
import { toToml } from "./toml.js";

export class Compare {
  constructor(box, app) {
    this.box = box;
    this.app = app;
    document.getElementById("keep").addEventListener("click", () => {
      app.change({ compare: structuredClone(app.state.experiment) });
    });
    document.getElementById("swap").addEventListener("click", () => {
      const { experiment, compare } = app.state;
      app.change({ experiment: compare, compare: experiment });
    });
    document.getElementById("drop-kept").addEventListener("click", () => app.change({ compare: null }));
  }

  draw() {
    const { app } = this;
    const { experiment, compare, moment } = app.state;
    this.box.hidden = !compare;
    if (!compare || !app.other) return;
    const quantity = [experiment, compare].every(isClassifier) ? "cross-entropy" : [experiment, compare].some(isClassifier) ? "risk or cross-entropy" : "risk";
    const rows = [
      ["", "Setting A (shown)", "Setting B (kept)"],
      ...differences(experiment, compare),
      [`final ${quantity}, clipped`, end(app.paths.clipped), end(app.other.clipped)],
      [`final ${quantity}, unclipped`, end(app.paths.unclipped), end(app.other.unclipped)],
      [`${quantity} at the chosen moment`, at(app.paths, moment), at(app.other, moment)],
      ["best threshold there", ...this.verdicts(({ evidence: v }) => (v.c === null ? "no clipping" : short(v.c)))],
      ["gain (CCC)", ...this.verdicts(({ evidence: v }) => short(v.ccc))],
      ["Fisher limit", ...this.verdicts(({ evidence: v }) => (v.fisher?.limit == null ? "—" : short(v.fisher.limit)))],
      ["share of the limit", ...this.verdicts(({ evidence: v }) => (v.fisher === null ? "—" : percent(v.fisher.reached)))],
    ];
    const html = rows.map(([name, a, b], k) => {
      const cell = k === 0 ? ["th scope='col'", "th"] : ["td", "td"];
      const first = k === 0 ? "<td></td>" : `<th scope="row">${escape(name)}</th>`;
      return `<tr>${first}<${cell[0]}>${escape(a)}</${cell[1]}><${cell[0]}>${escape(b)}</${cell[1]}></tr>`;
    });
    this.box.querySelector("table").innerHTML = html.join("");
  }

  verdicts(words) {
    const { app } = this;
    const mine = app.now?.verdict;
    const key = JSON.stringify([app.state.compare, app.state.moment]);
    if (this.key !== key) {
      this.key = key;
      this.verdict = null;
      const time = app.state.moment * app.state.compare.time;
      const risk = interpolate(app.other.times, app.other.clipped.risk, time);
      app.slow.ask({ ask: "verdict", experiment: app.state.compare, risk, time }).then(
        (verdict) => {
          this.verdict = verdict;
          this.draw();
        },
        () => {},
      );
    }
    return [mine ? words(mine) : "…", this.verdict ? words(this.verdict) : "…"];
  }
}

/** The keys in which two experiments differ, as they are written in a file. */
function differences(a, b) {
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  const words = (e, key) => (key in e ? toToml({ x: e[key] }).slice(4).trim().slice(0, 90) : "—");
  return keys.filter((key) => words(a, key) !== words(b, key)).map((key) => [key, words(a, key), words(b, key)]);
}

function end(path) {
  return path.stop === null ? short(path.risk.at(-1)) : path.stop;
}

function at(paths, moment) {
  return short(interpolate(paths.times, paths.clipped.risk, moment * paths.times.at(-1)));
}
