// Zooming and reading a chart of the report with mouse, fingers and keys.

import { AXES, ReportChart } from "./report_chart.js";
import { clamp } from "./numbers.js";

/** Milliseconds between two taps that count as one double tap. */
const DOUBLE_TAP = 350;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

export class LiveChart extends ReportChart {
  /** Zooms by a factor about a place given as shares of the frame, then moves it by shares. */
  zoom(by, at, from = this.view ?? this.home(), move = { x: 0, y: 0 }) {
    const view = {};
    for (const k of AXES) {
      const [low, high] = from[k], fix = low + at[k] * (high - low), span = (high - low) / by;
      view[k] = [fix - (at[k] + move[k]) * span, fix + (1 - at[k] - move[k]) * span];
    }
    this.look(view);
  }

  /** A box drawn with the mouse becomes the view. */
  takeSelection(u) {
    const { left, top, width, height } = u.select;
    const { clientWidth: w, clientHeight: h } = u.over;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    if (Math.max(width < w ? width : 0, height < h ? height : 0) < 10) return;
    const from = this.view ?? this.home(), view = {};
    const part = { x: [left / w, (left + width) / w], y: [1 - (top + height) / h, 1 - top / h] };
    for (const k of AXES) view[k] = part[k].map((share) => from[k][0] + clamp(share, 0, 1) * (from[k][1] - from[k][0]));
    this.look(view);
  }

  /** Where an event is, as shares of the frame from its lower left corner. */
  share(event) {
    const box = this.u.over.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: (box.bottom - event.clientY) / box.height };
  }

  /** Reads values at a share of the width; null takes the readout away. */
  readAt(share, aloud = false) {
    this.cursor = share === null ? null : clamp(share, 0, 1);
    const { clientWidth: w, clientHeight: h } = this.u.over;
    this.u.setCursor(share === null ? { left: -10, top: -10 } : { left: this.cursor * w, top: h / 2 });
    if (aloud && this.words) this.said.textContent = this.words;
  }

  listen() {
    const on = (name, act) => this.plot.addEventListener(name, act, { passive: false });
    const fingers = new Map();
    let pinch = null, tap = -Infinity;
    on("pointerdown", (event) => {
      if (event.pointerType !== "touch") return;
      fingers.set(event.pointerId, this.share(event));
      if (fingers.size === 2) pinch = { view: this.view ?? this.home(), from: [...fingers.values()] };
    });
    on("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      fingers.set(event.pointerId, this.share(event));
      if (pinch && fingers.size === 2) this.pinch(pinch, [...fingers.values()]);
      else this.readAt(this.share(event).x);
    });
    const end = (event) => {
      if (!fingers.delete(event.pointerId)) return;
      if (!pinch && event.type === "pointerup") {
        if (event.timeStamp - tap < DOUBLE_TAP) this.reset();
        tap = event.timeStamp;
      }
      if (fingers.size < 2) pinch = null;
    };
    on("pointerup", end);
    on("pointercancel", end);
    on("dblclick", () => this.reset());
    // A page that scrolls must not stop at every plot: the wheel zooms once a plot has focus.
    on("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.plot) return;
      event.preventDefault();
      this.zoom(Math.exp(-clamp(event.deltaY, -200, 200) * (event.ctrlKey ? 0.01 : 0.002)), this.share(event));
    });
    on("blur", () => this.readAt(null));
    on("keydown", (event) => this.key(event));
  }

  pinch({ view, from }, now) {
    const { clientWidth: w, clientHeight: h } = this.u.over;
    const middle = ([a, b]) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
    const apart = ([a, b]) => Math.hypot((a.x - b.x) * w, (a.y - b.y) * h);
    const [start, end] = [middle(from), middle(now)];
    this.zoom(clamp(apart(now) / Math.max(apart(from), 1), 0.05, 20), start, view, { x: end.x - start.x, y: end.y - start.y });
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.plot) return;
    const share = this.cursor ?? 0.5, about = { x: share, y: 0.5 };
    const [dx, dy] = ARROWS[event.key] ?? [0, 0];
    const ends = { Home: 0, End: 1 };
    if (event.shiftKey && (dx || dy)) this.zoom(1, about, undefined, { x: -dx / 10, y: -dy / 10 });
    else if (dx) this.readAt(this.cursor === null || this.cursor === undefined ? 0.5 : share + dx / 50, true);
    else if (event.key in ends) this.readAt(ends[event.key], true);
    else if (event.key === "+" || event.key === "=") this.zoom(1.5, about);
    else if (event.key === "-") this.zoom(1 / 1.5, about);
    else if (event.key === "0" || event.key === "Escape") this.reset();
    else return;
    event.preventDefault();
  }
}
