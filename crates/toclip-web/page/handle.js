// A chart with a vertical line to drag, or to move with arrow keys.

import { Chart, element } from "../../toclip-report/page/chart.js";
import { clamp } from "../../toclip-report/page/numbers.js";

export class HandleChart extends Chart {
  drawn() {
    this.placeHandle();
  }

  /** A vertical line to drag: `{ name, at, text, min, max, move }`, where `move` gets the new place. */
  setHandle(handle) {
    if (!this.handle) {
      this.handleBox = element("div", { class: "handle", role: "slider", tabindex: 0 });
      this.handleBox.addEventListener("keydown", (event) => this.key(event));
      this.handleBox.addEventListener("pointerdown", (event) => {
        this.handleBox.setPointerCapture(event.pointerId);
        this.dragging = true;
      });
      this.handleBox.addEventListener("pointermove", (event) => {
        if (!this.dragging) return;
        const left = event.clientX - this.u.over.getBoundingClientRect().left;
        this.moveHandle(this.u.posToVal(left, "x"));
      });
      for (const end of ["pointerup", "pointercancel"]) {
        this.handleBox.addEventListener(end, () => (this.dragging = false));
      }
    }
    this.handle = handle;
    this.placeHandle();
  }

  moveHandle(to) {
    const { min, max } = this.handle;
    this.handle.move(clamp(to, min, max));
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 }[event.key];
    const { min, max, at } = this.handle;
    const ends = { Home: min, End: max };
    if (!step && !(event.key in ends)) return;
    event.preventDefault();
    if (event.key in ends) this.moveHandle(ends[event.key]);
    else if (this.description.x.log) this.moveHandle(at * (max / min) ** (step / 100));
    else this.moveHandle(at + ((max - min) * step) / 100);
  }

  placeHandle() {
    // uPlot lays out its scales after it is made; it draws again then.
    if (!this.handle || !this.u || this.u.scales.x.min === null) return;
    const { name, at, text, min, max } = this.handle;
    const box = this.handleBox;
    if (box.parentElement !== this.u.over) this.u.over.append(box);
    this.u.root.removeAttribute("aria-hidden");
    const values = { label: name, valuemin: min, valuemax: max, valuenow: at, valuetext: text };
    for (const [key, value] of Object.entries(values)) box.setAttribute(`aria-${key}`, value);
    box.dataset.text = text;
    const left = this.u.valToPos(clamp(at, min, max), "x");
    box.style.left = `${left}px`;
    box.classList.toggle("near-end", left > this.u.over.clientWidth * 0.6);
  }
}
