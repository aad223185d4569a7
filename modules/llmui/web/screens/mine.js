// What do I spend, what may I spend, what did I call?
import { html } from "../html.js";
import { filter } from "../filter.js";
import { elsewhere, useView } from "../state.js";
import { useAnswer, useMetrics } from "../api.js";
import { Answer, Bar, Tile, To } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { compact, count, date, dollars, percent } from "../format.js";

// Mine is about the key with which the caller logged in.
export function Mine() {
  const v = useView();
  const own = useAnswer("/v1/key");
  const f = own.data?.id ? [{ field: "key_id", op: "equals", value: own.data.id }] : [];
  const state = useMetrics(v, own.data ? { filter: filter({ ...v, f, json: "" }) } : { limit: 0 });
  return html`<${Answer} state=${own}>${(key) => html`
    <p>${key.id ? html`Calls of the key <b dir="auto">${key.name}</b>${key.project && html` in the project <b dir="auto">${key.project}</b>`}${key.expires_at && `, which ends on ${date(key.expires_at)}`}.` : html`You are logged in with a key of the configuration, or as a person: these are the calls of the whole organisation <b>${key.organization}</b>.`}
      ${" "}It may call ${key.models.length ? key.models.join(", ") : "all models"}${key.providers.length ? ` of ${key.providers.join(", ")}` : ""}.</p>
    ${key.budgets.map((b) => b.accounts.map((a) => html`<div class="limit panel" key=${b.name}><b dir="auto">${b.name}</b> <${Bar} share=${(a.spent + a.reserved) / b.limit} tone=${a.spent + a.reserved >= b.limit ? "bad" : a.spent + a.reserved >= 0.8 * b.limit ? "warn" : ""} />
      <span>${b.quantity === "usd" ? `${dollars(a.spent)} of ${dollars(b.limit)}` : `${count(a.spent)} of ${count(b.limit)} ${b.quantity}`} (${percent(a.spent / b.limit)})${b.ends_at ? `, resets on ${date(b.ends_at)}` : ""}</span></div>`))}
    ${!key.budgets.length && html`<p class="quiet">No budget counts these calls.</p>`}
    <${Answer} state=${state}>${(d) => html`<div class="tiles"><${Tile} label="Cost" value=${dollars(d.totals.cost)} /><${Tile} label="Calls" value=${count(d.totals.requests)} to=${{ ...elsewhere, v: "requests", f }} /><${Tile} label="Failed" value=${count(d.totals.errors)} to=${{ ...elsewhere, v: "errors", f }} /><${Tile} label="Tokens" value=${compact(d.totals.total_tokens)} /></div>
      <div class="charts"><${Chart} title="Cost" times=${d.points.map((p) => Date.parse(p.range_start))} format=${dollars} stacked series=${[{ name: "cost", values: d.points.map((p) => p.cost ?? 0) }]} /></div>
      <p><${To} change=${{ ...elsewhere, v: "requests", f }}>All calls<//></p>`}<//>`}<//>`;
}
