// Numbers for people: three significant digits.

export function short(x, digits = 3) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "∞";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (size >= 1e-4 && size < 1e6) return String(Number(x.toPrecision(digits)));
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e");
  const raised = [...String(Number(exponent))].map((s) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(s)]);
  return `${Number(mantissa)}·10${raised.join("")}`;
}

/** A share as a percentage; below 1% with a digit. */
export function percent(share) {
  const p = 100 * share;
  if (p === 0 || p >= 10) return `${Math.round(p)}%`;
  return `${Number(p.toPrecision(2))}%`;
}

/** The number, or the nearer end of a range that it lies outside of. */
export const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

export function logSpace(from, to, count) {
  const step = Math.log(to / from) / (count - 1);
  return Array.from({ length: count }, (_, k) => from * Math.exp(step * k));
}
