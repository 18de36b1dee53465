// What charts are made of: colours of the theme, hatches, marks, and samples for legends. Patterns are those
// of the still pictures, which toclip-plot draws.

const HATCH = 9;

const resolved = new Map();

/** A colour of the theme, resolved: canvases know no variables. */
export function colour(name) {
  const key = [name, document.documentElement.dataset.theme, matchMedia("(prefers-color-scheme: dark)").matches].join();
  if (!resolved.has(key)) resolved.set(key, resolve(name));
  return resolved.get(key);
}

function resolve(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** The same colour, partly transparent. */
export function faded(from, alpha) {
  const [r, g, b] = from.match(/[\d.]+/g);
  return `rgb(${r} ${g} ${b} / ${alpha})`;
}

/** Lines of a hatch in a square of the given size: none, rising, falling, upright. */
const hatchLines = (order, size) => {
  const [rising, falling] = [[[0, size, size, 0]], [[0, 0, size, size]]];
  return [[], rising, falling, [[size / 2, 0, size / 2, size]]][order % 4];
};

/** The fill of a band. */
export function hatched(stroke, order) {
  const pale = faded(stroke, 0.18);
  if (!(order % 4)) return pale;
  const tile = document.createElement("canvas");
  const size = Math.round(HATCH * devicePixelRatio);
  tile.width = tile.height = size;
  const ctx = tile.getContext("2d");
  ctx.fillStyle = pale;
  ctx.fillRect(0, 0, size, size);
  ctx.strokeStyle = faded(stroke, 0.55);
  ctx.lineWidth = devicePixelRatio;
  for (const [x0, y0, x1, y1] of hatchLines(order, size)) {
    // A diagonal goes on in the next tile; the part that sticks out over a corner is drawn there too.
    for (const shift of x0 === x1 ? [0] : [-size, 0, size]) {
      ctx.beginPath();
      ctx.moveTo(x0 + shift, y0);
      ctx.lineTo(x1 + shift, y1);
      ctx.stroke();
    }
  }
  return () => ctx.createPattern(tile, "repeat");
}

/** A mark on a canvas: circle, square, triangle, diamond. */
export function mark(ctx, shape, x, y, scale) {
  const corners = [
    null,
    [[-3.5, -3.5], [3.5, -3.5], [3.5, 3.5], [-3.5, 3.5]],
    [[0, -4.6], [4.3, 3.1], [-4.3, 3.1]],
    [[0, -4.9], [4.9, 0], [0, 4.9], [-4.9, 0]],
  ][shape % 4];
  ctx.beginPath();
  if (corners) corners.forEach(([dx, dy], k) => ctx[k ? "lineTo" : "moveTo"](x + dx * scale, y + dy * scale));
  else ctx.arc(x, y, 3.8 * scale, 0, 2 * Math.PI);
  ctx.closePath();
  ctx.fill();
  ctx.stroke();
}

/** How a series looks, as SVG for a legend. */
export function sample({ slot, stroke, high, hatch = 0, y, mark: shape }, dash) {
  const paint = stroke ?? `var(--c${slot})`;
  const line = `<line x1="0" y1="7" x2="26" y2="7" stroke="${paint}" stroke-width="2.2" stroke-dasharray="${dash.join(" ")}"/>`;
  const halo = stroke ? `<line x1="0" y1="7" x2="26" y2="7" stroke="#000" stroke-width="6"/>` : "";
  let inside = halo + line;
  if (shape !== undefined) {
    const points = ["", "-3.5,-3.5 3.5,-3.5 3.5,3.5 -3.5,3.5", "0,-4.6 4.3,3.1 -4.3,3.1", "0,-4.9 4.9,0 0,4.9 -4.9,0"][shape % 4];
    inside = points ? `<polygon points="${points}" transform="translate(13 7)" fill="${paint}"/>` : `<circle cx="13" cy="7" r="3.8" fill="${paint}"/>`;
  } else if (high) {
    const tiles = [0, 9, 18].flatMap((left) => hatchLines(hatch, 9).map(([a, b, c, d]) => `M${left + a} ${b + 2}L${left + c} ${d + 2}`));
    inside = `<rect y="1.5" width="26" height="11" fill="${paint}" fill-opacity="0.22"/><path d="${tiles.join("")}" stroke="${paint}"/>`;
    if (y.length) inside += line;
  }
  return `<svg class="key" width="26" height="14" aria-hidden="true">${inside}</svg>`;
}
