// Draws every figure of the page from the JSON beside its still picture. Without this script, and
// on paper, the still picture stands.
const root = document.documentElement;
for (const figure of document.querySelectorAll("figure.plot")) {
  const data = JSON.parse(figure.querySelector("script").textContent);
  const live = html("div", { class: data.charts.length > 1 ? "live many" : "live" });
  figure.append(live);
  const letter = (i) => (data.charts.length > 1 ? `(${i < 26 ? String.fromCharCode(97 + i) : i + 1}) ` : "");
  if (data.title) live.append(html("h3", {}, data.title));
  // Charts are placed before they are drawn: their width is the room they find.
  figure.charts = data.charts.map((chart, i) => {
    const made = new Chart(chart, letter(i));
    live.append(made.node);
    return made;
  });
  figure.classList.add("drawn");
  figure.charts.forEach((chart) => chart.draw());
  root.dataset.plots = Number(root.dataset.plots ?? 0) + figure.charts.length;
}

const dark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const themes = document.getElementById("theme"), label = () => { themes.textContent = dark() ? "Light" : "Dark"; };
const hash = () => { if (["#dark", "#light"].includes(location.hash)) root.dataset.theme = location.hash.slice(1); label(); };
themes.hidden = false;
themes.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; label(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", label);
addEventListener("hashchange", hash);
hash();
// What is folded away would be missing on paper.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
