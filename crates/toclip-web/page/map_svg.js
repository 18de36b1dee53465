// The map as SVG, which has a rectangle for every cell.

import { logTicks } from "../../toclip-report/page/chart.js";
import { short } from "../../toclip-report/page/numbers.js";

const [WIDTH, HEIGHT] = [760, 460];
const FRAME = { left: 70, right: 740, top: 50, bottom: 390 };

export function mapSvg({ thresholds, rates, risks, stable, low, high, quantity }, { shadeOf, diverged, ink, ground }) {
  const along = (values, from, to) => {
    const [first, last] = [Math.log(values[0]), Math.log(values[values.length - 1])];
    return (value) => from + ((Math.log(value) - first) / (last - first)) * (to - from);
  };
  const x = along(thresholds, FRAME.left, FRAME.right);
  const y = along(rates, FRAME.bottom, FRAME.top);
  const half = [(FRAME.right - FRAME.left) / (thresholds.length - 1) / 2, (FRAME.bottom - FRAME.top) / (rates.length - 1) / 2];
  const n = (value) => Number(value.toFixed(2));
  const cells = risks.flatMap((column, i) => (column ?? []).map((risk, j) => {
    const [left, top] = [Math.max(FRAME.left, x(thresholds[i]) - half[0]), Math.max(FRAME.top, y(rates[j]) - half[1])];
    const right = Math.min(FRAME.right, x(thresholds[i]) + half[0]);
    const bottom = Math.min(FRAME.bottom, y(rates[j]) + half[1]);
    const fill = risk === null ? diverged : shadeOf(risk);
    return `<rect x="${n(left)}" y="${n(top)}" width="${n(right - left + 0.3)}" height="${n(bottom - top + 0.3)}" fill="${fill}"/>`;
  }));
  const inside = (eta) => eta !== null && eta >= rates[0] && eta <= rates[rates.length - 1];
  const points = thresholds.flatMap((c, i) => (inside(stable[i]) ? [`${n(x(c))},${n(y(stable[i]))}`] : []));
  const line = (stroke, width) => `<polyline points="${points.join(" ")}" fill="none" stroke="${stroke}" stroke-width="${width}"/>`;
  const ticks = [
    ...logTicks(thresholds[0], thresholds[thresholds.length - 1], 8).map((c) =>
      `<text x="${n(x(c))}" y="${FRAME.bottom + 18}" text-anchor="middle">${short(c)}</text>`),
    ...logTicks(rates[0], rates[rates.length - 1], 6).map((eta) =>
      `<text x="${FRAME.left - 8}" y="${n(y(eta)) + 4}" text-anchor="end">${short(eta)}</text>`),
  ];
  const middle = (FRAME.top + FRAME.bottom) / 2;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${HEIGHT}" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="13" fill="${ink}">
<rect width="${WIDTH}" height="${HEIGHT}" fill="${ground}"/>
<text x="${FRAME.left}" y="24" font-size="16" font-weight="bold">Final ${quantity} by threshold and learning rate</text>
<text x="${FRAME.left}" y="42">from ${short(low)} (dark) to ${short(high)} (light); grey: diverged${points.length ? "; line: stability limit at the start" : ""}</text>
<g shape-rendering="crispEdges">${cells.join("")}</g>
${points.length ? line("#000", 5) + line("#fff", 2.2) : ""}
${ticks.join("\n")}
<text x="${(FRAME.left + FRAME.right) / 2}" y="${FRAME.bottom + 42}" text-anchor="middle">threshold c</text>
<text transform="translate(20 ${middle}) rotate(-90)" text-anchor="middle">learning rate η</text>
</svg>
`;
}
