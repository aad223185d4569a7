// Words that were looked for, marked where they stand.
import { html } from "../html.js";

// mark puts what was searched for into a <mark>.
export function mark(text, find) {
  if (!find) return text;
  const lower = text.toLowerCase();
  const out = [];
  let from = 0;
  for (let at; (at = lower.indexOf(find, from)) >= 0 && out.length < 400; from = at + find.length) out.push(text.slice(from, at), html`<mark>${text.slice(at, at + find.length)}</mark>`);
  return [...out, text.slice(from)];
}

// Marked is a line of text with the first of some words marked.
export const Marked = ({ text, words }) => html`<span dir="auto" title=${text}>${mark(text, words.map((w) => w.toLowerCase()).find((w) => text.toLowerCase().includes(w)))}</span>`;
