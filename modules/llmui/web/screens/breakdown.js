// What does each model, or value of a property, cost? What does the cache save?
import { html } from "../html.js";
import { filter } from "../filter.js";
import { during, elsewhere, go, timeFilter, useView } from "../state.js";
import { cached, useAnswer, useMetrics } from "../api.js";
import { Answer, Bar, List, Mark, Spark, To, Unseen, sorting, useCursor } from "../parts/basics.js";
import { properties } from "../parts/filters.js";
import { compact, count, dollars, duration, moment, percent } from "../format.js";
import { ByGroup, Cost, Name } from "./overview.js";

export const Models = () => html`<${Breakdown} by="model" title="Model" /><h2>Why the cache missed</h2><${Breakdown} by="cache_miss_reason" title="Reason" missed /><${Misses} />`;

// Misses are the requests of which the cache missed most, and what changed in them.
function Misses() {
  const v = useView();
  const state = useAnswer("/v1/request/query-clickhouse", { filter: filter(v, { cache_loss: { gt: 0 } }, ...during(v)), sort: { cache_loss: "desc" }, limit: 20, includeContent: false });
  return html`<${Answer} state=${state} empty=${(list) => !list.length} none="">${(list) => html`<${List} label="Worst misses" keyOf=${(r) => r.request_id} rows=${list} columns=${misses} />`}<//>`;
}

const misses = [
  { title: "Worst", cell: (r) => html`<${To} change=${{ ...elsewhere, v: "requests", id: r.request_id }}>${moment(r.request_created_at)}<//>` },
  { title: "Model", cell: (r) => r.model || "—" }, { title: "Reason", cell: (r) => r.cache_miss_reason.replaceAll("_", " ") }, { title: "At", mid: true, cell: (r) => r.cache_miss_at || "—" },
  { title: "Tokens", number: true, wide: true, cell: (r) => compact(r.cache_missed_tokens) }, { title: "Lost", number: true, cell: (r) => dollars(r.cache_loss) },
];

// Properties lets one of the properties in use be chosen.
export function Properties() {
  const v = useView();
  const state = useAnswer("/v1/facets/query", { filter: filter(v), fields: ["property_key"], timeFilter: timeFilter(v) });
  return html`<${Answer} state=${state} empty=${(d) => !properties(d).length} none="No request has a property. Send headers such as Service-Property-Feature.">${(d) => {
    const name = v.by || properties(d)[0];
    return html`<label class="choose">Property <select value=${name} onChange=${(e) => go({ by: e.target.value }, true)}>${[...new Set([name, ...properties(d)])].map((n) => html`<option value=${n}>${n}</option>`)}</select></label>
      <${Breakdown} key=${name} by=${"property:" + name} title=${name} />`;
  }}<//>`;
}

// price is of a million tokens.
const price = (t) => (t.total_tokens && !t.requests_without_cost ? (t.cost / t.total_tokens) * 1e6 : null);

// column shows what a function makes of the totals of a group. key is the total that the
// API sorts by, none for what it does not answer.
const column = (title, key, value, format, rest) => ({ title, key, number: true, cell: (g) => format(value(g.totals)), ...rest });
const wide = { wide: true }, semi = { semi: true };

const columns = (title, by, d) => [
  { title, cell: (g) => html`<${Name} g=${g} field=${by.replace(":", ".")} />` },
  { title: "Cost", key: "cost", number: true, cell: (g) => html`<${Cost} totals=${g.totals} />` },
  { title: "Share", semi: true, cell: (g) => html`<${Bar} share=${d.totals.cost ? g.totals.cost / d.totals.cost : 0} />` },
  column("Requests", "requests", (t) => t.requests, count),
  column("Errors", "errors", (t) => t.errors, (n) => html`<span class=${n ? "bad" : ""}>${count(n)}</span>`, { mid: true }),
  column("p50", "latency.p50", (t) => t.latency.p50, duration, wide),
  column("p95", "latency.p95", (t) => t.latency.p95, duration, semi),
  column("Input", "prompt_tokens", (t) => t.prompt_tokens, compact, semi),
  column("From cache", "", cached, percent, semi),
  column("Saved", "cache_savings", (t) => t.cache_savings, (n) => html`<span class=${n < 0 ? "bad" : ""} title="by the provider's cache">${dollars(n)}</span>`, wide),
  column("Lost", "cache_loss", (t) => t.cache_loss, dollars, wide),
  column("Output", "completion_tokens", (t) => t.completion_tokens, compact, wide),
  column("$ per 1M tokens", "", price, dollars, wide),
  { title: "Over time", wide: true, cell: (g) => html`<${Spark} values=${g.points.map((p) => p.cost)} />` },
  { title: html`<${Unseen}>Compare<//>`, mid: true, cell: (g) => g.key !== null && html`<${Mark} id=${g.key} by=${by.replace(":", ".")} />` },
];

// sortOf is a sort of the address as the API takes it: `-latency.p95` is
// {"latency": {"p95": "desc"}}.
export function sortOf(text) {
  const { key, descending } = sorting(text);
  return key.split(".").reduceRight((inner, name) => ({ [name]: inner }), descending ? "desc" : "asc");
}

const totals = /^-?(cost|requests|errors|requests_without_cost|latency\.p\d\d|time_to_first_token\.p\d\d|\w+_tokens|cache_savings|cache_loss)$/;

// Breakdown is of all requests, or of those of which the cache missed. The API chooses the
// groups of a page by what they are sorted by.
function Breakdown({ by, title, missed }) {
  const v = useView();
  const sort = totals.test(v.sort) ? v.sort : missed ? "-cache_loss" : "-cost";
  const [page, pager] = useCursor(v, by, sort);
  const question = { groupBy: by, sort: sortOf(sort), ...(missed && { filter: filter(v, { cache_miss_reason: { "not-equals": "" } }) }) };
  const few = useMetrics(v, { ...question, limit: 5 });
  const state = useMetrics(v, { ...question, ...page });
  return html`<${Answer} state=${few} empty=${(d) => d.groups.length === 0} none="">${(d) => html`<div class="charts">
      <${ByGroup} d=${d} by=${by} title=${`${missed ? "Lost" : "Cost"} by ${title.toLowerCase()}`} format=${dollars} value=${(p) => (missed ? p.cache_loss : p.cost)} height=${190} />
      <${ByGroup} d=${d} by=${by} title=${by === "model" ? "Input tokens from the cache" : `Requests by ${title.toLowerCase()}`} format=${compact} value=${(p) => (by === "model" ? p.prompt_cache_read_tokens : p.requests)} height=${190} /></div>`}<//>
    <${Answer} state=${state} empty=${(d) => d.groups.length === 0} none=${`No ${missed ? "miss" : "requests"} in this time.`}>${(d) => html`
      <${List} label=${title} columns=${columns(title, by, d)} rows=${d.groups} sort=${sort} keyOf=${(g) => g.key ?? "\n"} />
      ${pager(state.next)}`}<//>`;
}
