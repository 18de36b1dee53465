// A chart of toclip-plot, as its JSON in the page, becomes a description for `Chart`. Patterns go by order
// among what they are to be told from, as in the still picture.

const LINES = [[], [15, 4], [11, 3, 2.5, 3], [2.5, 3], [11, 3, 2.5, 3, 2.5, 3], [7, 2]];
const SHORT_LINES = [[6, 4], [4, 3, 1.5, 3], [3.5, 2], [1.5, 2]];
const EDGES = [[], [4, 2], [1.5, 2]];
const COLOURS = 7;
/** Differences of larger values overflow. */
const LARGEST = 1e300;

/** The series of a chart with their looks; points that cannot be drawn are null. */
export function styled(all) {
  let next = 0;
  const seen = {};
  const order = (group, slot) => {
    const slots = (seen[group] ??= []);
    if (!slots.includes(slot)) slots.push(slot);
    return slots.indexOf(slot);
  };
  return all.map((series) => {
    const slot = series.slot ?? next;
    next = Math.max(next, slot + 1);
    const found = { label: series.label, slot: slot % COLOURS, dash: [], ...cleaned(series) };
    if (series.kind === "dashed") found.dash = SHORT_LINES[order("dashed", slot) % SHORT_LINES.length];
    else if (series.kind === "points") found.mark = order("points", slot);
    else if (series.kind === "line" || series.y.length) found.dash = LINES[order("line", slot) % LINES.length];
    if (found.high) {
      found.hatch = found.steps ? 0 : order("band", slot);
      found.edge = EDGES[order("band", slot) % EDGES.length];
    }
    return found;
  });
}

/** The columns of a series in order of x, without places that are no number. */
function cleaned({ x, y, kind }) {
  const drawable = (v) => (typeof v === "number" && Math.abs(v) <= LARGEST ? v : null);
  const columns = kind.band ? { y, low: kind.band.low, high: kind.band.high } : { y };
  const rows = x.map((v, k) => [drawable(v), k]).filter(([v]) => v !== null);
  // Bars of a histogram have two values at one place, in this order.
  rows.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let steps = false;
  const places = rows.map(([v]) => v);
  for (let k = 1; k < places.length; k++) {
    if (places[k] > places[k - 1]) continue;
    steps = true;
    places[k] = places[k - 1] + Math.max(Math.abs(places[k - 1]) * 1e-12, Number.MIN_VALUE);
  }
  const found = { x: places, steps };
  for (const [name, column] of Object.entries(columns)) {
    found[name] = column.length ? rows.map(([, k]) => drawable(column[k])) : column;
  }
  // A band without a line through it has no middle to draw.
  if (found.high && !found.y.length) found.y = [];
  return found;
}
