// What does each model, or each value of a property, cost, and what does the
// provider's cache save?
import { html } from "../html.js";
import { filter, go, timeFilter, useView } from "../state.js";
import { useAnswer } from "../api.js";
import { Answer, Bar, List, Spark, sorting } from "../parts/basics.js";
import { properties } from "../parts/filters.js";
import { compact, count, dollars, duration, percent } from "../format.js";
import { ByGroup, Cost, Name, cached, nameOf, useMetrics } from "./overview.js";

export const Models = () => html`<${Breakdown} by="model" field="model" title="model" />`;

// Properties lets one of the properties in use be chosen.
export function Properties() {
  const v = useView();
  const state = useAnswer("/v1/facets/query", { filter: filter(v), fields: ["property_key"], timeFilter: timeFilter(v) });
  return html`<${Answer} state=${state} empty=${(d) => !properties(d).length} none="No request has a property. Send headers such as Service-Property-Feature.">${(d) => {
    const name = properties(d).includes(v.by) ? v.by : properties(d)[0];
    return html`<label class="choose">Property <select value=${name} onChange=${(e) => go({ by: e.target.value }, true)}>${properties(d).map((n) => html`<option value=${n}>${n}</option>`)}</select></label>
      <${Breakdown} key=${name} by=${"property:" + name} field=${"property." + name} title=${name} />`;
  }}<//>`;
}

const keys = {
  name: (g) => nameOf(g), requests: (g) => g.totals.requests, errors: (g) => g.totals.errors, p50: (g) => g.totals.latency.p50, p95: (g) => g.totals.latency.p95,
  input: (g) => g.totals.prompt_tokens, cached: (g) => cached(g.totals), saved: (g) => g.totals.cache_savings, output: (g) => g.totals.completion_tokens, cost: (g) => g.totals.cost, price: (g) => price(g.totals),
};

// price is of a million tokens.
const price = (t) => (t.total_tokens && !t.requests_without_cost ? (t.cost / t.total_tokens) * 1e6 : null);

// sorted puts the largest first, what is unknown last.
function sorted(groups, sort) {
  const { key, descending } = sorting(sort);
  const value = keys[key] || keys.cost;
  const order = (a, b) => (a === null) - (b === null) || (descending ? -1 : 1) * (typeof a === "string" ? a.localeCompare(b) : a - b);
  return [...groups].sort((a, b) => (a.key === null) - (b.key === null) || order(value(a), value(b)));
}

function Breakdown({ by, field, title }) {
  const v = useView();
  const few = useMetrics(v, { groupBy: by, limit: 5 });
  const state = useMetrics(v, { groupBy: by, limit: 100 });
  const sort = v.sort || "-cost";
  const columns = (d) => [
    { title: title[0].toUpperCase() + title.slice(1), key: "name", cell: (g) => html`<${Name} g=${g} field=${field} />` },
    { title: "Requests", key: "requests", number: true, cell: (g) => count(g.totals.requests) },
    { title: "Errors", key: "errors", number: true, mid: true, cell: (g) => html`<span class=${g.totals.errors ? "bad" : ""}>${count(g.totals.errors)}</span>` },
    { title: "p50", key: "p50", number: true, wide: true, cell: (g) => duration(g.totals.latency.p50) },
    { title: "p95", key: "p95", number: true, wide: true, cell: (g) => duration(g.totals.latency.p95) },
    { title: "Input", key: "input", number: true, wide: true, cell: (g) => compact(g.totals.prompt_tokens) },
    { title: "From cache", key: "cached", number: true, cell: (g) => html`<span title=${`${count(g.totals.prompt_cache_read_tokens)} tokens read, ${count(g.totals.prompt_cache_write_tokens)} written`}>${percent(cached(g.totals))}</span>` },
    { title: "Saved", key: "saved", number: true, mid: true, cell: (g) => html`<span class=${g.totals.cache_savings < 0 ? "bad" : ""} title="by the provider's cache">${dollars(g.totals.cache_savings)}</span>` },
    { title: "Output", key: "output", number: true, wide: true, cell: (g) => compact(g.totals.completion_tokens) },
    { title: "1M tokens", key: "price", number: true, wide: true, cell: (g) => dollars(price(g.totals)) },
    { title: "Cost", key: "cost", number: true, cell: (g) => html`<${Cost} totals=${g.totals} />` },
    { title: "Share", wide: true, cell: (g) => html`<${Bar} share=${d.totals.cost ? g.totals.cost / d.totals.cost : 0} />` },
    { title: "Over time", wide: true, cell: (g) => html`<${Spark} values=${g.points.map((p) => p.requests)} />` },
  ];
  return html`<${Answer} state=${few} empty=${(d) => d.groups.length === 0} none="">${(d) => html`<div class="charts">
      <${ByGroup} d=${d} title=${`Cost by ${title}`} format=${dollars} value=${(p) => p.cost} height=${190} />
      <${ByGroup} d=${d} title=${by === "model" ? "Input from the cache" : `Requests by ${title}`} format=${compact} value=${(p) => (by === "model" ? p.prompt_cache_read_tokens : p.requests)} height=${190} /></div>`}<//>
    <${Answer} state=${state} empty=${(d) => d.groups.length === 0} none="No requests in this time.">${(d) => html`<${List} label=${title} columns=${columns(d)} rows=${sorted(d.groups, sort)} sort=${sort} keyOf=${(g) => g.key} />`}<//>`;
}
