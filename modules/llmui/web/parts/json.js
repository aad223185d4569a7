// JSON that folds, and opens where a search finds something.
import { html, useState } from "../html.js";
import { bytes, plural } from "../format.js";

const longText = 2000;
const most = 200; // members shown at once

const has = (value, text) => (typeof value === "object" && value !== null ? JSON.stringify(value) : String(value)).toLowerCase().includes(text);

function Scalar({ value, find }) {
  const [all, setAll] = useState(false);
  if (typeof value !== "string") return html`<span class="json-${value === null ? "null" : typeof value}">${String(value)}</span>`;
  const cut = !all && value.length > longText;
  return html`<span class="json-string">${mark(JSON.stringify(cut ? value.slice(0, longText) : value), find)}</span>${cut && html` <button class="quiet" onClick=${() => setAll(true)}>show all ${bytes(value.length)}</button>`}`;
}

// mark puts what was searched for into a <mark>.
function mark(text, find) {
  if (!find) return text;
  const lower = text.toLowerCase();
  const out = [];
  let from = 0;
  for (let at; (at = lower.indexOf(find, from)) >= 0 && out.length < 400; from = at + find.length) out.push(text.slice(from, at), html`<mark>${text.slice(at, at + find.length)}</mark>`);
  return [...out, text.slice(from)];
}

// Json shows a value. Deep and long ones are folded; find is what to look for, in
// lower case.
export function Json({ name, value, find = "", depth = 0 }) {
  const [open, setOpen] = useState(null);
  const [count, setCount] = useState(most);
  const label = name !== undefined && html`<span class="json-key">${mark(String(name), find)}</span>: `;
  if (typeof value !== "object" || value === null) return html`<div class="json">${label}<${Scalar} value=${value} find=${find} /></div>`;
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  const isOpen = open ?? (find ? has(value, find) : depth < 3 && entries.length <= 20);
  return html`<div class="json"><button class="fold" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${isOpen ? "▾" : "▸"} ${label || (list ? "list" : "object")}</button>
    <span class="quiet">${list ? `[${plural(entries.length, "element")}]` : `{${plural(entries.length, "field")}}`}</span>
    ${isOpen && html`<div class="json-members">${entries.slice(0, count).map(([key, member]) => html`<${Json} key=${key} name=${list ? Number(key) : key} value=${member} find=${find} depth=${depth + 1} />`)}
      ${entries.length > count && html`<button class="quiet" onClick=${() => setCount(count + most)}>${entries.length - count} more</button>`}</div>`}</div>`;
}
