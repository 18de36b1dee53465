// Values between the times of a curve.

/** The value at a time by straight lines; the last one where the curve ended before. */
export function interpolate(times, values, t) {
  const last = Math.min(times.length, values.length) - 1;
  if (last < 0) return null;
  const after = times.findIndex((time) => time >= t);
  if (after < 0 || after > last) return values[last];
  if (after === 0) return values[0];
  const [before, next] = [values[after - 1], values[after]];
  if (before === null || next === null) return next;
  const share = (t - times[after - 1]) / (times[after] - times[after - 1]);
  return before + share * (next - before);
}
