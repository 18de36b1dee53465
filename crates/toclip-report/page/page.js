// Draws every figure of the page from the JSON beside its still picture. Without this script, and on paper,
// the still picture stands.

import { LiveChart } from "./gestures.js";
import { element } from "./chart.js";

const root = document.documentElement;
const charts = [];

for (const figure of document.querySelectorAll("figure.plot")) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const live = element("div", { class: data.charts.length > 1 ? "live many" : "live" });
  figure.append(live);
  figure.classList.add("drawn");
  const letter = (i) => (data.charts.length > 1 ? `(${i < 26 ? String.fromCharCode(97 + i) : i + 1}) ` : "");
  if (data.title) live.append(element("p", { class: "name" }, data.title));
  figure.charts = data.charts.map((chart, i) => {
    const node = element("div", { class: "chart" });
    live.append(node);
    if (letter(i) || chart.title) node.append(element("p", { class: "title" }, letter(i) + chart.title));
    if (chart.subtitle) node.append(element("p", { class: "sub" }, chart.subtitle));
    const made = new LiveChart(node, chart);
    if (chart.note) node.append(element("p", { class: "sub note" }, chart.note));
    return made;
  });
  charts.push(...figure.charts);
}

/** Charts in a folded part have no width; they are drawn when it opens. */
function drawAll() {
  for (const chart of charts) if (!chart.u && chart.plot.clientWidth) chart.show();
  root.dataset.plots = charts.filter((chart) => chart.u).length;
}
drawAll();
document.querySelectorAll("details").forEach((part) => part.addEventListener("toggle", drawAll));

const systemDark = matchMedia("(prefers-color-scheme: dark)");
const dark = () => (root.dataset.theme ?? (systemDark.matches ? "dark" : "light")) === "dark";
const button = document.getElementById("theme");
const showTheme = () => {
  button.textContent = dark() ? "Light" : "Dark";
};
const choose = (theme) => {
  root.dataset.theme = theme;
  showTheme();
  charts.forEach((chart) => chart.u && chart.show(true));
};
const readHash = () => ["#dark", "#light"].includes(location.hash) && choose(location.hash.slice(1));
button.hidden = false;
button.addEventListener("click", () => choose(dark() ? "light" : "dark"));
systemDark.addEventListener("change", showTheme);
addEventListener("hashchange", readHash);
showTheme();
readHash();
// Folded parts would be missing on paper.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => (part.open = true)));
