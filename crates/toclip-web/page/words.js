// Small helpers for text.

/** Text as a sentence: with a capital letter and one period. */
export function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}.`;
}

/** The words of a verdict, which come with it. */
export function judged({ headline, reason, limit }) {
  return [headline, reason, limit ? sentence(limit) : ""];
}

export function escape(text) {
  return String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
