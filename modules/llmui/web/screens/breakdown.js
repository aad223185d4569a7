// What does each model, or value of a property, cost? What does the cache save?
import { html } from "../html.js";
import { during, elsewhere, filter, go, timeFilter, useView } from "../state.js";
import { useAnswer } from "../api.js";
import { Answer, Bar, List, Spark, To, sorting } from "../parts/basics.js";
import { properties } from "../parts/filters.js";
import { compact, count, dollars, duration, moment, percent } from "../format.js";
import { ByGroup, Cost, Name, cached, nameOf, useMetrics } from "./overview.js";

export const Models = () => html`<${Breakdown} by="model" title="Model" /><h2>Why the cache missed</h2><${Breakdown} by="cache_miss_reason" title="Reason" missed /><${Misses} />`;

// Misses are the requests of which the cache missed most, and what changed in them.
function Misses() {
  const v = useView();
  const state = useAnswer("/v1/request/query-clickhouse", { filter: filter(v, { cache_loss: { gt: 0 } }, ...during(v)), sort: { cache_loss: "desc" }, limit: 20, includeContent: false });
  return html`<${Answer} state=${state} empty=${(list) => !list.length} none="">${(list) => html`<${List} label="Worst misses" keyOf=${(r) => r.request_id} rows=${list} columns=${misses} />`}<//>`;
}

const misses = [
  { title: "Worst", cell: (r) => html`<${To} change=${{ ...elsewhere, v: "requests", id: r.request_id }}>${moment(r.request_created_at)}<//>` },
  { title: "Model", cell: (r) => r.model || "—" }, { title: "Reason", cell: (r) => r.cache_miss_reason }, { title: "At", mid: true, cell: (r) => r.cache_miss_at || "—" },
  { title: "Tokens", number: true, wide: true, cell: (r) => compact(r.cache_missed_tokens) }, { title: "Lost", number: true, cell: (r) => dollars(r.cache_loss) },
];

// Properties lets one of the properties in use be chosen.
export function Properties() {
  const v = useView();
  const state = useAnswer("/v1/facets/query", { filter: filter(v), fields: ["property_key"], timeFilter: timeFilter(v) });
  return html`<${Answer} state=${state} empty=${(d) => !properties(d).length} none="No request has a property. Send headers such as Service-Property-Feature.">${(d) => {
    const name = properties(d).includes(v.by) ? v.by : properties(d)[0];
    return html`<label class="choose">Property <select value=${name} onChange=${(e) => go({ by: e.target.value }, true)}>${properties(d).map((n) => html`<option value=${n}>${n}</option>`)}</select></label>
      <${Breakdown} key=${name} by=${"property:" + name} title=${name} />`;
  }}<//>`;
}

// price is of a million tokens.
const price = (t) => (t.total_tokens && !t.requests_without_cost ? (t.cost / t.total_tokens) * 1e6 : null);

// column shows what a function makes of the totals of a group, and sorts by it.
const column = (title, key, value, format, rest) => ({ title, key, number: true, value: (g) => value(g.totals), cell: (g) => format(value(g.totals)), ...rest });
const wide = { wide: true };

const columns = (title, by, d) => [
  { title, key: "name", value: nameOf, cell: (g) => html`<${Name} g=${g} field=${by.replace(":", ".")} />` },
  column("Requests", "requests", (t) => t.requests, count),
  column("Errors", "errors", (t) => t.errors, (n) => html`<span class=${n ? "bad" : ""}>${count(n)}</span>`, { mid: true }),
  column("p50", "p50", (t) => t.latency.p50, duration, wide),
  column("p95", "p95", (t) => t.latency.p95, duration, wide),
  column("Input", "input", (t) => t.prompt_tokens, compact, wide),
  column("From cache", "cached", cached, percent),
  column("Saved", "saved", (t) => t.cache_savings, (n) => html`<span class=${n < 0 ? "bad" : ""} title="by the provider's cache">${dollars(n)}</span>`, { mid: true }),
  column("Lost", "lost", (t) => t.cache_loss, dollars, wide),
  column("Output", "output", (t) => t.completion_tokens, compact, wide),
  column("1M tokens", "price", price, dollars, wide),
  column("Cost", "cost", (t) => t.cost, null, { cell: (g) => html`<${Cost} totals=${g.totals} />` }),
  { title: "Share", wide: true, cell: (g) => html`<${Bar} share=${d.totals.cost ? g.totals.cost / d.totals.cost : 0} />` },
  { title: "Over time", wide: true, cell: (g) => html`<${Spark} values=${g.points.map((p) => p.requests)} />` },
];

// sorted puts the largest first, what is unknown last.
function sorted(groups, columns, sort) {
  const { key, descending } = sorting(sort);
  const { value } = columns.find((c) => c.key === key) || columns.find((c) => c.key === "cost");
  const order = (a, b) => (a === null) - (b === null) || (descending ? -1 : 1) * (typeof a === "string" ? a.localeCompare(b) : a - b);
  return [...groups].sort((a, b) => (a.key === null) - (b.key === null) || order(value(a), value(b)));
}

// Breakdown is of all requests, or of those of which the cache missed.
function Breakdown({ by, title, missed }) {
  const v = useView();
  const question = { groupBy: by, ...(missed && { filter: filter(v, { cache_miss_reason: { "not-equals": "" } }) }) };
  const few = useMetrics(v, { ...question, limit: 5 });
  const state = useMetrics(v, { ...question, limit: 100 });
  const sort = v.sort || "-cost";
  return html`<${Answer} state=${few} empty=${(d) => d.groups.length === 0} none="">${(d) => html`<div class="charts">
      <${ByGroup} d=${d} title=${`${missed ? "Lost" : "Cost"} by ${title}`} format=${dollars} value=${(p) => (missed ? p.cache_loss : p.cost)} height=${190} />
      <${ByGroup} d=${d} title=${by === "model" ? "Input from the cache" : `Requests by ${title}`} format=${compact} value=${(p) => (by === "model" ? p.prompt_cache_read_tokens : p.requests)} height=${190} /></div>`}<//>
    <${Answer} state=${state} empty=${(d) => d.groups.length === 0} none=${`No ${missed ? "miss" : "requests"} in this time.`}>${(d) => {
      const shown = columns(title, by, d);
      return html`<${List} label=${title} columns=${shown} rows=${sorted(d.groups, shown, sort)} sort=${sort} keyOf=${(g) => g.key} />`;
    }}<//>`;
}
