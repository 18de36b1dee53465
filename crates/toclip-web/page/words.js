// Small helpers for text.

import { short } from "../../toclip-report/page/numbers.js";

/** Text as a sentence: with a capital letter and one period. */
export function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
}

/** Where a threshold is far from the best one, how to change it. */
export function farFrom(threshold, best) {
  if (threshold === null || best === null || (threshold <= 1.5 * best && threshold >= best / 1.5)) return "";
  return ` Yours is ${short(threshold)}, too ${threshold > best ? "large" : "small"}.`;
}

export function escape(text) {
  return String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
