// Ways to take a setting along: code, tables and pictures.

import { toPython, toRust, toToml } from "./toml.js";

const METHODS = { methods: ["ode", "unclipped", "sgd"] };

export class Exports {
  constructor(app) {
    this.app = app;
    for (const name of ["risk", "factors", "density", "map"]) this.addMenu(name);
    const code = document.getElementById("code");
    const show = (kind) => {
      const experiment = { ...app.state.experiment, ...METHODS };
      code.textContent = { toml: toToml, python: toPython, rust: toRust }[kind](experiment);
      code.dataset.kind = kind;
    };
    document.getElementById("code-kind").addEventListener("change", (event) => show(event.target.value));
    document.getElementById("code-details").addEventListener("toggle", () => show(document.getElementById("code-kind").value));
    document.getElementById("save-code").addEventListener("click", () => {
      const kind = document.getElementById("code-kind").value;
      show(kind);
      save(`explored.${{ toml: "toml", python: "py", rust: "rs" }[kind]}`, "text/plain", code.textContent);
    });
    document.getElementById("copy-link").addEventListener("click", async (event) => {
      clearTimeout(this.timer);
      const done = await copy(location.href);
      event.target.textContent = done ? "Copied" : "Copy the address of this page";
      this.timer = setTimeout(() => (event.target.textContent = "Copy link"), 2000);
    });
  }

  addMenu(name) {
    const menu = document.createElement("div");
    menu.className = "menu";
    for (const kind of ["SVG", "PNG", "CSV"]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = kind;
      button.setAttribute("aria-label", `Save ${name} as ${kind}`);
      button.addEventListener("click", () => this.save(name, kind));
      menu.append(button);
    }
    document.getElementById(name).append(menu);
  }

  async save(name, kind) {
    const panel = this.app.panels[name];
    if (!panel.description) return;
    if (kind === "CSV") save(`${name}.csv`, "text/csv", name === "map" ? mapTable(panel) : table(panel.description));
    else {
      const svg = panel.svg?.() ?? this.svg(panel.description);
      if (kind === "SVG") save(`${name}.svg`, "image/svg+xml", svg);
      else save(`${name}.png`, "image/png", await raster(svg));
    }
  }

  svg(description) {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const series = description.series.filter((s) => s.label).map(({ label, x, y, low, high, dashed, slot }) => ({
      label, x, y, low, high, dashed, slot,
    }));
    const { title, subtitle, x, y } = description;
    const lines = description.lines?.map(({ at, label }) => ({ x: at, label }));
    return this.app.engine.ask({ ask: "figure", chart: { title, subtitle, x, y, lines, series }, dark });
  }
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
  const link = document.createElement("a");
  link.download = name;
  link.href = URL.createObjectURL(new Blob([content], { type }));
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
