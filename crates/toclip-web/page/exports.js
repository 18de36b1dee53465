// Ways to take a setting along: code, tables and pictures.

import { toFragment } from "./state.js";
import { element } from "../../toclip-report/page/chart.js";
import { toPython, toRust, toToml } from "./toml.js";

const METHODS = { methods: ["ode", "unclipped", "sgd"] };

export class Exports {
  constructor(app) {
    this.app = app;
    this.menus = Object.fromEntries(["risk", "factors", "density", "map"].map((name) => [name, this.addMenu(name)]));
    this.kind = document.getElementById("code-kind");
    this.details = document.getElementById("code-details");
    this.kind.addEventListener("change", () => this.showCode());
    this.details.addEventListener("toggle", () => this.showCode());
    document.getElementById("save-code").addEventListener("click", () => {
      const ending = { toml: "toml", python: "py", rust: "rs" }[this.kind.value];
      save(`explored.${ending}`, "text/plain", this.code());
    });
    const button = document.getElementById("copy-link");
    button.addEventListener("click", async () => {
      clearTimeout(this.timer);
      const fragment = toFragment(app.state);
      document.getElementById("link-note").hidden = fragment !== null;
      // The address of the page may still be that of an earlier setting.
      const done = fragment !== null && (await copy(new URL(fragment, location.href).href));
      button.textContent = done ? "Copied" : fragment === null ? "Too long for a link" : "Copy the address of this page";
      this.timer = setTimeout(() => (button.textContent = "Copy link"), 2000);
    });
  }

  /** The setting as code in the chosen format. */
  code() {
    const write = { toml: toToml, python: toPython, rust: toRust }[this.kind.value];
    return write({ ...this.app.state.experiment, ...METHODS });
  }

  /** Shows the code of the setting where it is open. */
  showCode() {
    if (this.details.open) document.getElementById("code").textContent = this.code();
  }

  /** A picture that is not there cannot be saved. */
  showMenus() {
    for (const [name, menu] of Object.entries(this.menus)) {
      for (const button of menu.children) button.disabled = !this.app.panels[name].description;
    }
  }

  addMenu(name) {
    const menu = element("div", { class: "menu" });
    for (const kind of ["SVG", "PNG", "CSV"]) {
      const button = element("button", { type: "button", "aria-label": `Save ${name} as ${kind}` }, kind);
      button.addEventListener("click", () => this.save(name, kind));
      menu.append(button);
    }
    document.getElementById(name).append(menu);
    return menu;
  }

  async save(name, kind) {
    const panel = this.app.panels[name];
    if (!panel.description) return;
    if (kind === "CSV") save(`${name}.csv`, "text/csv", name === "map" ? mapTable(panel) : table(panel.description));
    else {
      const svg = this.svg(panel.description);
      if (kind === "SVG") save(`${name}.svg`, "image/svg+xml", svg);
      else save(`${name}.png`, "image/png", await raster(svg));
    }
  }

  svg(description) {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    return this.app.engine.ask({ ask: "figure", chart: plotChart(description), dark });
  }
}

/** The description of a chart on the screen as a chart of toclip-plot, which draws pictures to keep. */
function plotChart({ title, subtitle, x, y, series, shaded = [], lines = [], heat }) {
  const axis = ({ label, log, range }) => ({ label, scale: log ? "log" : "linear", range });
  const kind = ({ low, high, dashed }) => (high ? { band: { low, high } } : dashed ? "dashed" : "line");
  // Pictures to keep give out their patterns by order, the screen by slot.
  const named = series.filter((s) => s.label).sort((a, b) => a.slot - b.slot);
  return {
    title, subtitle, heat, x: axis(x), y: axis(y),
    series: [...named, ...shaded].map((s) => ({ label: s.label, x: s.x, y: s.y, slot: s.slot, kind: kind(s) })),
    lines: lines.map(({ axis, at, label }) => ({ direction: axis === "y" ? "horizontal" : "vertical", at, label })),
  };
}

/** Every series with its own abscissae: series may have different ones. */
export function table({ x, series }) {
  const named = series.filter((s) => s.label);
  const same = named.every((s) => s.x === named[0].x || s.x.every((v, k) => v === named[0].x[k]));
  const columns = [];
  named.forEach((s, k) => {
    if (k === 0 || !same) columns.push([x.label.split(",")[0], s.x]);
    columns.push([s.label, s.y]);
    if (s.high) columns.push([`${s.label}: lower`, s.low], [`${s.label}: upper`, s.high]);
  });
  const rows = Math.max(...columns.map(([, values]) => values.length));
  const cell = (text) => (/[",]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text);
  const lines = [columns.map(([name]) => cell(name)).join(",")];
  for (let k = 0; k < rows; k++) lines.push(columns.map(([, values]) => values[k] ?? "").join(","));
  return lines.join("\n") + "\n";
}

function mapTable({ rates, thresholds, risks }) {
  const lines = ["c,eta,final_risk"];
  risks.forEach((column, i) => column?.forEach((risk, j) => lines.push(`${thresholds[i]},${rates[j]},${risk ?? "inf"}`)));
  return lines.join("\n") + "\n";
}

async function raster(svg) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

function save(name, type, content) {
  const link = element("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
