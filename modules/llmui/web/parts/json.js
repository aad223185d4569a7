// JSON that folds, and opens where a search finds something.
import { html, useState } from "../html.js";
import { bytes, plural } from "../format.js";
import { mark } from "./basics.js";

const longText = 2000;
const most = 200; // members shown at once

const has = (value, text) => (typeof value === "object" && value !== null ? JSON.stringify(value) : String(value)).toLowerCase().includes(text);

function Scalar({ value, find }) {
  const [all, setAll] = useState(false);
  if (typeof value !== "string") return html`<span class="json-${value === null ? "null" : typeof value}">${String(value)}</span>`;
  const cut = !all && value.length > longText;
  const at = cut && find ? Math.max(0, value.toLowerCase().indexOf(find) - longText / 2) : 0; // what is found is in sight
  return html`<span class="json-string">${at > 0 && "…"}${mark(JSON.stringify(cut ? value.slice(at, at + longText) : value), find)}</span>${cut && html` <button class="quiet" onClick=${() => setAll(true)}>show all ${bytes(value.length)}</button>`}`;
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
  // A search shows the members in which it finds something, wherever they are.
  const found = find ? entries.filter(([key, member]) => key.toLowerCase().includes(find) || has(member, find)) : entries;
  const isOpen = open ?? (find ? found.length > 0 : depth < 3 && entries.length <= 20);
  return html`<div class="json"><button class="fold" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${isOpen ? "▾" : "▸"} ${label || (list ? "list" : "object")}</button>
    <span class="quiet">${list ? `[${plural(entries.length, "element")}]` : `{${plural(entries.length, "field")}}`}</span>
    ${isOpen && html`<div class="json-members">${found.slice(0, count).map(([key, member]) => html`<${Json} key=${key} name=${list ? Number(key) : key} value=${member} find=${find} depth=${depth + 1} />`)}
      ${found.length > count && html`<button class="quiet" onClick=${() => setCount(count + most)}>${found.length - count} more</button>`}</div>`}</div>`;
}
