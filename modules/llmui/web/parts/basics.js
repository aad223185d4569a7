// Small components that several screens use.
import { html } from "../html.js";
import { go, operators, kindOf, view, link } from "../state.js";

// Answer shows what a question came to: an error, a first wait, nothing, or what
// its child makes of the data.
export function Answer({ state, empty, none = "Nothing matches.", children }) {
  if (state.error) return html`<p class="notice bad" role="alert">${state.error.message}</p>`;
  if (state.data === undefined) return html`<p class="notice" aria-busy="true">Loading…</p>`;
  if (empty?.(state.data)) return html`<p class="notice">${none}</p>`;
  return html`<div class=${state.loading ? "stale" : ""}>${children(state.data)}</div>`;
}

// Outcome says how a call ended, in a word and a colour.
export function Outcome({ record }) {
  const { response_status: status, end_state: end } = record;
  const good = status < 400 && end === "complete";
  const text = end === "complete" || status >= 400 ? (status ?? "—") : end.replace("_", " ");
  return html`<span class="outcome ${good ? "good" : "bad"}"><i aria-hidden="true">${good ? "●" : "▲"}</i> ${text}</span>`;
}

// Conditions are the filter of the view, each with a way to drop it.
export function Conditions({ f }) {
  return html`${f.map(
    (c, i) => html`<span class="chip"><b>${c.field.replace("property.", "")}</b> ${operators[kindOf(c.field)][c.op] || c.op} <q>${c.value || "(none)"}</q>
      <button aria-label=${`Remove the condition on ${c.field}`} onClick=${() => go({ f: f.filter((_, j) => j !== i) })}>×</button></span>`,
  )}`;
}

// To is a link to another view, which opens in place.
export function To({ change, children, ...rest }) {
  const follow = (e) => {
    if (e.metaKey || e.ctrlKey || e.shiftKey || e.button) return;
    e.preventDefault();
    go(change);
  };
  return html`<a href=${link(change)} onClick=${follow} ...${rest}>${children}</a>`;
}

// Tabs are the views of one thing.
export function Tabs({ tabs, current }) {
  return html`<div role="tablist" class="tabs">
    ${tabs.map(
      ([key, name]) => html`<button role="tab" aria-selected=${key === current} onClick=${() => go({ ...view(), tab: key }, true)}>${name}</button>`,
    )}
  </div>`;
}

// Copy puts a text on the clipboard.
export const Copy = ({ text, label = "Copy" }) => html`<button class="quiet" onClick=${() => navigator.clipboard.writeText(text)}>${label}</button>`;
