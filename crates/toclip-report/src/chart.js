// One chart that can be read, zoomed and changed, by pointer, touch and keyboard.
class Chart {
  constructor(data, letter) {
    this.data = data;
    this.log = { x: data.x.scale === "log", y: data.y.scale === "log" };
    this.hidden = new Set();
    this.cursor = null; // x in units
    this.pointers = new Map();
    this.styles = styles(data.series);
    this.build(letter);
    this.reset();
    new ResizeObserver(() => this.draw()).observe(this.plot);
    this.listen();
  }

  build(letter) {
    const { data } = this;
    const button = (text, title, act) => {
      const node = html("button", { type: "button", title }, text);
      node.addEventListener("click", act);
      return node;
    };
    this.buttons = {};
    for (const k of ["x", "y"]) {
      this.buttons[k] = button(`log ${k}`, `Logarithmic ${k} axis`, () => this.toggleLog(k));
      // An axis without positive values has no logarithm to show.
      this.buttons[k].disabled = !this.columns(true).some(([x, y]) => (k === "x" ? x : y).some((v) => v > 0));
    }
    this.buttons.reset = button("reset", "Show everything again (double click, or 0)", () => this.reset());
    this.legend = html("ul", { class: "legend" });
    data.series.forEach((series, i) => {
      if (!series.label) return;
      const node = button("", "Show or hide this curve", () => this.toggleSeries(i));
      node.append(sample(series, this.styles[i]), series.label);
      node.setAttribute("aria-pressed", "true");
      this.legend.append(html("li", {}, node));
    });
    const about = `${data.y.label} against ${data.x.label}. Arrow keys read values, plus and minus zoom, `
      + "shift with arrows moves, 0 shows everything.";
    this.svg = svg("svg", { class: "toclip-plot", tabindex: 0, role: "group", "aria-label": about });
    this.tip = html("div", { class: "tip", hidden: "" });
    this.said = html("p", { class: "unseen", "aria-live": "polite" });
    this.plot = html("div", { class: "canvas" }, this.svg, this.tip);
    this.node = html("div", { class: "chart" });
    if (letter || data.title) this.node.append(html("h4", {}, letter + data.title));
    if (data.subtitle) this.node.append(html("p", { class: "sub" }, data.subtitle));
    const tools = html("div", { class: "tools", role: "group", "aria-label": "Axes" },
      this.buttons.x, this.buttons.y, this.buttons.reset);
    this.node.append(this.legend, html("div", { class: "bar" }, html("span", { class: "axis" }, data.y.label), tools),
      this.plot, html("p", { class: "axis mid" }, data.x.label), this.said);
    if (data.note) this.node.append(html("p", { class: "sub" }, data.note));
  }

  /** Pairs of columns that bound the axes. */
  columns(all) {
    return this.data.series.filter((_, i) => all || !this.hidden.has(i)).flatMap((s) => {
      const band = s.kind.band;
      return [...(band ? [band.low, band.high] : []), ...(s.y.length ? [s.y] : [])].map((y) => [s.x, y]);
    });
  }

  /** The ends of both axes when nothing is zoomed. */
  home() {
    const { data, log } = this, pad = { x: 0.02, y: 0.05 }, view = {};
    const fixed = (k) => (data[k].range ?? [null, null]).map((v) => units(log[k], v)).sort((a, b) => a - b);
    const [from, to] = fixed("x"), found = { x: [Infinity, -Infinity], y: [Infinity, -Infinity] };
    const include = (k, u) => { found[k] = [Math.min(found[k][0], u), Math.max(found[k][1], u)]; };
    for (const [xs, ys] of this.columns(false)) {
      for (let i = 0; i < Math.min(xs.length, ys.length); i++) {
        const x = units(log.x, xs[i]), y = units(log.y, ys[i]);
        if (Number.isNaN(x + y) || x < from || x > to) continue;
        include("x", x);
        include("y", y);
      }
    }
    for (const line of data.lines) {
      const k = line.direction === "horizontal" ? "y" : "x", at = units(log[k], line.at);
      if (!Number.isNaN(at)) include(k, at);
    }
    for (const k of ["x", "y"]) {
      let [lo, hi] = found[k][0] <= found[k][1] ? found[k] : [0, 1];
      const ends = fixed(k), air = hi - lo > 1e-12 * Math.max(Math.abs(lo), Math.abs(hi)) ? pad[k] * (hi - lo)
        : log[k] ? 0.5 : 0.1 * Math.abs(lo) || 1;
      lo = Number.isNaN(ends[0]) ? lo - air : ends[0];
      hi = Number.isNaN(ends[1]) ? hi + air : ends[1];
      view[k] = hi > lo ? [lo, hi] : [lo, lo + 1];
    }
    return view;
  }

  reset() {
    this.zoomed = false;
    this.view = this.home();
    this.draw();
  }

  toggleLog(k) {
    this.log[k] = !this.log[k];
    this.cursor = null;
    this.reset();
  }

  toggleSeries(i) {
    this.hidden.has(i) ? this.hidden.delete(i) : this.hidden.add(i);
    this.zoomed ? this.draw() : this.reset();
  }

  look(view) {
    const home = this.home();
    for (const k of ["x", "y"]) {
      const span = view[k][1] - view[k][0], whole = home[k][1] - home[k][0];
      const least = Math.max(1e-6 * whole, 1e-11 * Math.max(...view[k].map(Math.abs)));
      if (!(span > least && span < 20 * whole)) return;
    }
    this.zoomed = true;
    this.view = view;
    this.draw();
  }

  /** Zooms by a factor about a place given as shares of the frame, then moves it by shares. */
  zoom(by, at, from = this.view, move = { x: 0, y: 0 }) {
    const view = {};
    for (const k of ["x", "y"]) {
      const [lo, hi] = from[k], fix = lo + at[k] * (hi - lo), span = (hi - lo) / by;
      view[k] = [fix - (at[k] + move[k]) * span, fix + (1 - at[k] - move[k]) * span];
    }
    this.look(view);
  }

  // ---- drawing -----------------------------------------------------------------------------
  draw() {
    const width = this.plot.clientWidth;
    if (!width) return;
    const height = clamp(Math.round(width * 0.62), 230, 380), { view, log, data } = this;
    const across = ticks(log.x, view.x, clamp(Math.floor(width / 75), 3, 8));
    const up = ticks(log.y, view.y, clamp(Math.floor(height / 50), 4, 7));
    const room = Math.max(...up.map(([, label]) => label.length), 1) * 7.2 + 10;
    const frame = { left: room, right: width - 8, top: 6, bottom: height - 24 };
    this.frame = frame;
    const at = {
      x: (u) => frame.left + (u - view.x[0]) / (view.x[1] - view.x[0]) * (frame.right - frame.left),
      y: (u) => frame.bottom - (u - view.y[0]) / (view.y[1] - view.y[0]) * (frame.bottom - frame.top),
    };
    this.at = at;
    let grid = "", marks = "";
    const labels = [];
    for (const [u, label] of across) {
      const x = at.x(u).toFixed(1);
      marks += `M${x} ${frame.bottom}v${label ? 5 : 3}`;
      if (!label) continue;
      grid += `M${x} ${frame.bottom}V${frame.top}`;
      labels.push(svg("text", { x: clamp(x, frame.left, width - label.length * 3.4), y: height - 6, class: "mid" }, label));
    }
    for (const [u, label] of up) {
      const y = at.y(u).toFixed(1);
      marks += `M${frame.left} ${y}h${label ? -5 : -3}`;
      if (!label) continue;
      grid += `M${frame.left} ${y}H${frame.right}`;
      labels.push(svg("text", { x: frame.left - 8, y: Number(y) + 4, class: "end" }, label));
    }
    const { left, top } = frame, w = frame.right - left, h = frame.bottom - top;
    // An inner svg clips to the frame.
    const inner = svg("svg", { x: left, y: top, width: w, height: h, viewBox: `${left} ${top} ${w} ${h}` });
    const areas = svg("g"), curves = svg("g"), dots = svg("g"), rules = svg("g");
    data.series.forEach((series, i) => {
      if (this.hidden.has(i)) return;
      const style = this.styles[i], put = (layer, ...shapes) => layer.append(svg("g", { class: style.colour }, ...shapes));
      if (series.kind.band) put(areas, path("area", this.area(series), style.edge));
      if (series.kind === "points") put(dots, path("dot", this.marks(series, style.mark)));
      else if (series.y.length) put(curves, path("line", this.line(series), style.dash));
    });
    data.lines.forEach((line, i) => {
      const flat = line.direction === "horizontal", k = flat ? "y" : "x", p = at[k](units(log[k], line.at));
      const seen = flat ? p >= top - 1 && p <= frame.bottom + 1 : p >= left - 1 && p <= frame.right + 1;
      if (!seen) return;
      rules.append(path("ref", flat ? `M${left} ${p}h${w}` : `M${p} ${top}v${h}`, REFERENCES[i % 3]));
      const end = !flat && p < left + w / 2 ? "" : "end ";
      const place = flat ? { x: frame.right - 5, y: p > top + 20 ? p - 5 : p + 14 } : { x: end ? p - 5 : p + 5, y: top + 14 };
      if (line.label) labels.push(svg("text", { ...place, class: `${end}q halo` }, line.label));
    });
    inner.append(areas, rules, curves, dots);
    this.over = svg("g");
    this.svg.replaceChildren(path("grid", grid), path("frame", marks), inner,
      svg("rect", { class: "frame", x: left, y: top, width: w, height: h }), ...labels, this.over);
    fill(this.svg, { width, height, viewBox: `0 0 ${width} ${height}` }, []);
    if (!this.columns(false).length) this.over.append(svg("text", { x: left + w / 2, y: top + h / 4, class: "mid q" }, "no data"));
    for (const k of ["x", "y"]) this.buttons[k].setAttribute("aria-pressed", this.log[k]);
    this.buttons.reset.disabled = !this.zoomed;
    [...this.legend.querySelectorAll("button")].forEach((node, n) => {
      const shown = data.series.map((s, i) => (s.label ? i : -1)).filter((i) => i >= 0);
      node.setAttribute("aria-pressed", !this.hidden.has(shown[n]));
    });
    this.read();
  }

  point(x, y) {
    // Far outside the frame renderers lose digits.
    return `${clamp(x, -1e5, 1e5).toFixed(1)} ${clamp(y, -1e5, 1e5).toFixed(1)}`;
  }

  /** Pixels of a column, NaN where there is nothing to draw. */
  pixels(k, column) {
    return column.map((v) => this.at[k](units(this.log[k], v)));
  }

  line(series) {
    const x = this.pixels("x", series.x), y = this.pixels("y", series.y);
    let d = "", pen = false;
    for (let i = 0; i < Math.min(x.length, y.length); i++) {
      const drawn = !Number.isNaN(x[i] + y[i]);
      if (drawn) d += (pen ? "L" : "M") + this.point(x[i], y[i]);
      pen = drawn;
    }
    return d;
  }

  area(series) {
    const x = this.pixels("x", series.x), high = this.pixels("y", series.kind.band.high);
    // Not positive on a log axis, a band goes down to the axis.
    const low = series.kind.band.low.map((v) => (this.log.y && v <= 0 && v !== null ? this.frame.bottom : this.at.y(units(this.log.y, v))));
    let d = "", upper = [], lower = [];
    const close = () => {
      if (upper.length) d += `M${upper.join("L")}L${lower.reverse().join("L")}Z`;
      [upper, lower] = [[], []];
    };
    for (let i = 0; i < Math.min(x.length, low.length, high.length); i++) {
      if (Number.isNaN(x[i] + low[i] + high[i])) { close(); continue; }
      upper.push(this.point(x[i], high[i]));
      lower.push(this.point(x[i], low[i]));
    }
    close();
    return d;
  }

  marks(series, shape) {
    const x = this.pixels("x", series.x), y = this.pixels("y", series.y);
    return x.map((a, i) => (Number.isNaN(a + y[i]) || i >= y.length ? "" : mark(shape, a, y[i]))).join("");
  }

  // ---- values under the pointer ------------------------------------------------------------
  /** Moves the cursor to a share of the width; null takes it away. */
  point_at(share, aloud = false) {
    const [lo, hi] = this.view.x;
    this.cursor = share === null ? null : lo + clamp(share, 0, 1) * (hi - lo);
    this.read(aloud);
  }

  /** What every curve shows at x, by straight lines between its points as drawn. */
  values(x) {
    const { log } = this, near = (this.view.x[1] - this.view.x[0]) / 40;
    const at = (xs, ys) => {
      let best = NaN, gap = Infinity;
      for (let i = 0; i < Math.min(xs.length, ys.length); i++) {
        const a = units(log.x, xs[i]), b = units(log.x, xs[i + 1]);
        const p = units(log.y, ys[i]), q = units(log.y, ys[i + 1]);
        if (a === x && !Number.isNaN(p)) return p;
        if ((a - x) * (b - x) < 0 && !Number.isNaN(p + q)) [best, gap] = [p + (x - a) / (b - a) * (q - p), 0];
      }
      return best;
    };
    const nearest = (xs, ys) => {
      let best = NaN, gap = near;
      xs.forEach((v, i) => {
        const off = Math.abs(units(log.x, v) - x), y = units(log.y, ys[i]);
        if (off < gap && !Number.isNaN(y)) [best, gap] = [y, off];
      });
      return best;
    };
    const say = (u) => short(value(log.y, u));
    return this.data.series.flatMap((series, i) => {
      if (this.hidden.has(i)) return [];
      const band = series.kind.band, y = (series.kind === "points" ? nearest : at)(series.x, series.y);
      const texts = [], dots = [];
      if (band) {
        const [low, high] = [at(series.x, band.low), at(series.x, band.high)];
        if (!Number.isNaN(high)) {
          texts.push(`${Number.isNaN(low) ? "≤ 0" : say(low)} … ${say(high)}`);
        }
      }
      if (!Number.isNaN(y)) { texts.unshift(say(y)); dots.push(y); }
      return texts.length ? [{ label: series.label, colour: this.styles[i].colour, text: texts.join(", "), dots }] : [];
    });
  }

  read(aloud = false) {
    const old = this.over.querySelector(".cursor");
    if (old) old.remove();
    this.tip.hidden = true;
    if (this.cursor === null) return;
    const x = this.snap(this.cursor), { left, right, top, bottom } = this.frame, px = this.at.x(x);
    const rows = this.values(x);
    if (px < left - 0.5 || px > right + 0.5 || !rows.length) return;
    const group = svg("g", { class: "cursor" }, path("ref", `M${px} ${top}V${bottom}`));
    for (const row of rows) for (const u of row.dots) {
      const py = this.at.y(u);
      if (py >= top && py <= bottom) group.append(svg("g", { class: row.colour }, svg("circle", { class: "dot", r: 4, cx: px, cy: py })));
    }
    this.over.append(group);
    const name = this.data.x.label || "x", where = `${name}: ${short(value(this.log.x, x))}`;
    const lines = rows.map((row) => html("tr", {},
      html("th", {}, svg("svg", { class: "toclip-plot key", width: 9, height: 9 },
        svg("g", { class: row.colour }, svg("circle", { class: "dot", r: 4, cx: 4.5, cy: 4.5 }))), row.label),
      html("td", {}, row.text)));
    this.tip.replaceChildren(html("b", {}, where), html("table", {}, ...lines));
    this.tip.hidden = false;
    // On the side away from the pointer, so that it hides as little as it can.
    const wide = this.tip.offsetWidth, far = px > (left + right) / 2;
    this.tip.style.left = `${clamp(far ? px - wide - 14 : px + 14, 0, Math.max(0, this.plot.clientWidth - wide))}px`;
    if (aloud) this.said.textContent = [where, ...rows.map((row) => `${row.label}: ${row.text}`)].join("; ");
  }

  /** The abscissa of the data nearest to x; x itself where the data are sparse. */
  snap(x) {
    let best = x, gap = (this.view.x[1] - this.view.x[0]) / 40;
    for (const [xs] of this.columns(false)) for (const v of xs) {
      const u = units(this.log.x, v), off = Math.abs(u - x);
      if (off < gap) [best, gap] = [u, off];
    }
    return best;
  }

  // ---- hands -------------------------------------------------------------------------------
  /** Where an event is, as shares of the frame from its lower left corner. */
  share(event) {
    const box = this.svg.getBoundingClientRect(), { left, right, top, bottom } = this.frame;
    return { x: (event.clientX - box.left - left) / (right - left), y: (bottom - event.clientY + box.top) / (bottom - top) };
  }

  listen() {
    const on = (name, act) => this.svg.addEventListener(name, act, { passive: false });
    let drag = null, pinch = null, tap = 0;
    on("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button !== 0) return;
      this.svg.focus({ preventScroll: true });
      try { this.svg.setPointerCapture(event.pointerId); } catch { /* a made-up event has no pointer */ }
      const at = this.share(event);
      this.pointers.set(event.pointerId, at);
      drag = event.pointerType === "touch" ? null : at;
      if (this.pointers.size === 2) pinch = { view: this.view, from: [...this.pointers.values()] };
      else this.point_at(at.x);
    });
    on("pointermove", (event) => {
      const at = this.share(event);
      if (this.pointers.has(event.pointerId)) this.pointers.set(event.pointerId, at);
      if (pinch && this.pointers.size === 2) this.pinch(pinch);
      else if (drag) this.box(drag, at);
      else this.point_at(at.x);
    });
    const end = (event) => {
      const was = this.pointers.get(event.pointerId);
      this.pointers.delete(event.pointerId);
      if (drag && event.type === "pointerup") this.take(drag, this.share(event));
      if (event.pointerType === "touch" && event.type === "pointerup" && was && !pinch) {
        if (event.timeStamp - tap < 350) this.reset();
        tap = event.timeStamp;
      }
      if (this.pointers.size < 2) pinch = null;
      if (drag) this.read();
      drag = null;
      this.over.querySelector(".box")?.remove();
    };
    on("pointerup", end);
    on("pointercancel", end);
    on("pointerleave", (event) => { if (event.pointerType === "mouse" && !drag) this.point_at(null); });
    on("dblclick", () => this.reset());
    // A page that scrolls must not stop at every plot: the wheel zooms once a plot has focus.
    on("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== this.svg) return;
      event.preventDefault();
      this.zoom(Math.exp(-clamp(event.deltaY, -200, 200) * (event.ctrlKey ? 0.01 : 0.002)), this.share(event));
    });
    on("blur", () => this.point_at(null));
    on("keydown", (event) => this.key(event));
  }

  pinch({ view, from }) {
    const now = [...this.pointers.values()], { left, right, top, bottom } = this.frame;
    const middle = ([a, b]) => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
    const apart = ([a, b]) => Math.hypot((a.x - b.x) * (right - left), (a.y - b.y) * (bottom - top));
    const start = middle(from), end = middle(now);
    this.cursor = null;
    this.zoom(clamp(apart(now) / Math.max(apart(from), 1), 0.05, 20), start, view, { x: end.x - start.x, y: end.y - start.y });
  }

  /** The part of the frame between two places; along one axis only if the drag is thin. */
  chosen(a, b) {
    const { left, right, top, bottom } = this.frame, part = {};
    const size = { x: Math.abs(a.x - b.x) * (right - left), y: Math.abs(a.y - b.y) * (bottom - top) };
    if (Math.max(size.x, size.y) < 10) return null;
    for (const k of ["x", "y"]) {
      const thin = size[k] < 14;
      part[k] = thin ? [0, 1] : [clamp(Math.min(a[k], b[k]), 0, 1), clamp(Math.max(a[k], b[k]), 0, 1)];
    }
    return part;
  }

  box(a, b) {
    this.point_at(b.x);
    this.over.querySelector(".box")?.remove();
    const part = this.chosen(a, b), { left, right, top, bottom } = this.frame;
    if (!part) return;
    this.over.append(svg("rect", {
      class: "box", x: left + part.x[0] * (right - left), width: (part.x[1] - part.x[0]) * (right - left),
      y: bottom - part.y[1] * (bottom - top), height: (part.y[1] - part.y[0]) * (bottom - top),
    }));
  }

  take(a, b) {
    const part = this.chosen(a, b);
    if (!part) return;
    const view = {};
    for (const k of ["x", "y"]) {
      const [lo, hi] = this.view[k];
      view[k] = part[k].map((s) => lo + s * (hi - lo));
    }
    this.look(view);
  }

  key(event) {
    const [lo, hi] = this.view.x, share = this.cursor === null ? 0.5 : (this.cursor - lo) / (hi - lo);
    const arrows = { ArrowLeft: { x: -1, y: 0 }, ArrowRight: { x: 1, y: 0 }, ArrowUp: { x: 0, y: 1 }, ArrowDown: { x: 0, y: -1 } };
    const arrow = arrows[event.key], about = { x: clamp(share, 0, 1), y: 0.5 };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (arrow && event.shiftKey) this.zoom(1, about, this.view, { x: -arrow.x / 10, y: -arrow.y / 10 });
    else if (arrow && arrow.x) this.point_at(this.cursor === null ? 0.5 : share + arrow.x / 50, true);
    else if (event.key === "Home" || event.key === "End") this.point_at(event.key === "End" ? 1 : 0, true);
    else if (event.key === "+" || event.key === "=") this.zoom(1.5, about);
    else if (event.key === "-") this.zoom(1 / 1.5, about);
    else if (event.key === "0" || event.key === "Escape") this.reset();
    else return;
    event.preventDefault();
  }
}
