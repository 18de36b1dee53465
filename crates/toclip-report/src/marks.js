// What plots are made of: elements, numbers, ticks, and how series are told apart. Positions are
// kept in axis units: the value, or its log10. This file, chart.js and page.js are joined into
// one script.

// Patterns by order of appearance, as in the still picture.
const LINES = ["", "15 4", "11 3 2.5 3", "2.5 3", "11 3 2.5 3 2.5 3", "7 2"];
const DASHES = ["6 4", "4 3 1.5 3", "3.5 2", "1.5 2"];
const BANDS = ["", "4 2", "1.5 2"];
const REFERENCES = ["5 4", "1.5 3", "9 3 1.5 3"];
const COLOURS = 7, SVG = "http://www.w3.org/2000/svg";

const fill = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
const path = (cls, d, dash) => svg("path", { class: cls, d, "stroke-dasharray": dash || null });
const clamp = (v, lo, hi) => Math.min(Math.max(v, lo), hi);

// ---- numbers -------------------------------------------------------------------------------
const units = (log, v) => {
  if (typeof v !== "number" || Math.abs(v) > 1e300) return NaN;
  return log ? (v > 0 ? Math.log10(v) : NaN) : v;
};
const value = (log, u) => (log ? 10 ** u : u);
const raised = (n) => String(n).replace(/./g, (c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻");
const minus = (text) => text.replace("-", "−");

/** A value for people, to so many significant digits. */
function short(v, digits = 4) {
  if (v === 0) return "0";
  const [lead, e] = v.toExponential(digits - 1).split("e");
  if (e >= -3 && e < 5) return minus(String(Number(Number(v.toPrecision(digits)))));
  return minus(String(Number(lead))) + "×10" + raised(Number(e));
}

/** Ticks of an axis: [position in units, label], an empty label for a minor one. */
function ticks(log, [lo, hi], target) {
  const slack = 1e-9;
  if (log) {
    const [first, last] = [Math.ceil(lo - slack), Math.floor(hi + slack)];
    const inside = (digits) => {
      const all = [];
      for (let e = Math.floor(lo); e <= hi; e++) for (const d of digits) {
        const at = e + Math.log10(d);
        if (at >= lo - slack && at <= hi + slack) all.push([at, short(d * 10 ** e)]);
      }
      return all;
    };
    const minor = inside([2, 3, 4, 5, 6, 7, 8, 9]).map(([at]) => [at, ""]);
    if (last - first >= 2) {
      const stride = [1, 2, 3, 5, 10, 20, 50].find((s) => last - first < s * target) ?? 100;
      const major = [];
      for (let e = Math.ceil(first / stride) * stride; e <= last; e += stride) {
        major.push([e, e >= -3 && e <= 3 ? short(10 ** e) : "10" + raised(e)]);
      }
      return stride === 1 ? [...minor, ...major] : major;
    }
    for (const digits of [[1, 2, 5], [1, 3]]) {
      const major = inside(digits);
      if (major.length >= 3 && major.length <= Math.max(target, 3)) return [...minor, ...major];
    }
    // So little of a decade that it is nearly linear.
    return ticks(false, [10 ** lo, 10 ** hi], target).filter(([v]) => v > 0).map(([v, t]) => [Math.log10(v), t]);
  }
  const raw = (hi - lo) / target, e = Math.floor(Math.log10(raw));
  const digit = [1, 2, 5, 10].find((d) => raw <= d * 10 ** e * (1 + slack)) ?? 10;
  const step = digit * 10 ** e, all = [];
  const first = Math.ceil(lo / step - slack), count = Math.min(Math.floor(hi / step + slack) - first, 40);
  // All labels of an axis share one form, so that their digits line up.
  const largest = Math.max(Math.abs(lo), Math.abs(hi)), places = Math.round(Math.log10(step / digit)) + (digit === 10);
  const plain = largest >= 1e-3 && largest < 1e5 && places > -16;
  const digits = clamp(Math.ceil(Math.log10(largest / step)) + 1, 1, 15);
  for (let i = 0; i <= count; i++) {
    const at = (first + i) * step;
    all.push([at, Math.abs(at) < step / 2 ? "0" : plain ? minus(at.toFixed(Math.max(0, -places))) : short(at, digits)]);
  }
  return all;
}

// ---- how series are told apart --------------------------------------------------------------------
function styles(all) {
  let next = 0;
  const seen = [[], [], [], []];
  const order = (group, slot) => {
    if (!seen[group].includes(slot)) seen[group].push(slot);
    return seen[group].indexOf(slot);
  };
  return all.map((series) => {
    const slot = series.slot ?? next, style = { colour: `c${slot % COLOURS}`, dash: "", edge: "", mark: 0 };
    next = Math.max(next, slot + 1);
    if (series.kind === "dashed") style.dash = DASHES[order(1, slot) % DASHES.length];
    else if (series.kind === "points") style.mark = order(3, slot);
    else {
      if (series.kind.band) style.edge = BANDS[order(2, slot) % BANDS.length];
      if (series.kind === "line" || series.y.length) style.dash = LINES[order(0, slot) % LINES.length];
    }
    return style;
  });
}

function mark(shape, x, y) {
  const [a, b] = [x.toFixed(1), y.toFixed(1)];
  return [
    `M${a} ${b}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0`, `M${a} ${b}m-4-4h8v8h-8z`,
    `M${a} ${b}m0-5l5 9h-10z`, `M${a} ${b}m0-5.5l5.5 5.5-5.5 5.5-5.5-5.5z`,
  ][shape % 4];
}

function sample(series, style) {
  const group = svg("g", { class: style.colour });
  if (series.kind.band) group.append(path("area", "M0 1H26V13H0Z", style.edge));
  if (series.kind === "points") group.append(path("dot", mark(style.mark, 13, 7)));
  else if (!series.kind.band || series.y.length) group.append(path("line", "M0 7H26", style.dash));
  return svg("svg", { class: "toclip-plot key", width: 26, height: 14, "aria-hidden": "true" }, group);
}
