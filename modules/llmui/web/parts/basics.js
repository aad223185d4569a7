// Small components that several screens use.
import { html } from "../html.js";
import { go, operators, kindOf, view, link } from "../state.js";
import { change, percent } from "../format.js";

// Answer shows what a question came to: an error, a first wait, nothing, or what
// its child makes of the data.
export function Answer({ state, empty, none = "Nothing matches.", children }) {
  if (state.error) return html`<p class="notice bad" role="alert">${state.error.message}</p>`;
  if (state.data === undefined) return html`<p class="notice" aria-busy="true">Loading…</p>`;
  if (empty?.(state.data)) return html`<p class="notice">${none}</p>`;
  return html`<div class=${state.loading ? "stale" : ""}>${children(state.data)}</div>`;
}

// Tile is one figure with its change against the period before. Growth is bad
// news for some figures and neutral for others.
export function Tile({ label, value, now, before, growth = "neutral", detail, onClick }) {
  const by = change(now, before);
  const tone = by === null || growth === "neutral" || Math.abs(by) < 0.005 ? "" : by > 0 === (growth === "good") ? "good" : "bad";
  const body = html`<span class="label">${label}</span><strong>${value}</strong>
    <span class="delta ${tone}">${by === null ? detail || "" : `${by > 0 ? "▲" : by < 0 ? "▼" : ""} ${percent(Math.abs(by))} vs. before`}</span>`;
  return onClick ? html`<button class="tile" onClick=${onClick}>${body}</button>` : html`<div class="tile">${body}</div>`;
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

// Bar shows a share of a whole.
export const Bar = ({ share }) => html`<span class="bar" aria-hidden="true"><svg viewBox="0 0 100 1" preserveAspectRatio="none"><rect width=${Math.max(0, Math.min(1, share || 0)) * 100} height="1" /></svg></span>`;

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
