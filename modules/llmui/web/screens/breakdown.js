// What does each user, model, or value of a property, cost? What does the cache save, and why do calls fail?
import { html } from "../html.js";
import { failures, filter, isOf } from "../filter.js";
import { during, elsewhere, go, timeFilter, useView, view, having, pageOf } from "../state.js";
import { asked, useAnswer, useMetrics, useRequests } from "../api.js";
import { Answer, Spark, Table, To, useCursor, Mark, sorting } from "../parts/basics.js";
import { Exported, pagesOf } from "../parts/csv.js";
import { properties } from "../parts/filters.js";
import { ByGroup, columns, sortOf } from "./overview.js";
import { compact, count, date, dollars, moment, plural, offset } from "../format.js";

export const Models = () => html`<${Breakdown} by="model" title="Model" /><h2>Why the cache missed</h2><${Breakdown} by="cache_miss_reason" title="Reason" missed /><${Misses} />`;

// Misses are the requests of which the cache missed most, and what changed in them.
function Misses() {
  const v = useView();
  const state = useRequests(filter(v, { cache_loss: { gt: 0 } }, ...during(v)), { sort: { cache_loss: "desc" }, limit: 20 });
  return html`<${Answer} state=${state} empty=${(list) => !list.length} none="">${(list) => html`<${Table} label="Worst misses" keyOf=${(r) => r.request_id} rows=${list} columns=${misses} />`}<//>`;
}

const misses = [
  { title: "Worst", cell: (r) => html`<${To} change=${{ ...elsewhere, v: "requests", id: r.request_id }}>${moment(r.request_created_at)}<//>` },
  { title: "Model", cell: (r) => r.model || "—" }, { title: "Reason", cell: (r) => r.cache_miss_reason.replaceAll("_", " ") }, { title: "At", mid: true, cell: (r) => r.cache_miss_at || "—" },
  { title: "Tokens", number: true, wide: true, cell: (r) => compact(r.cache_missed_tokens) }, { title: "Lost", dollars: (r) => r.cache_loss },
];

// Errors are the failed calls by their message, in which numbers and ids do not count.
export function Errors() {
  const v = useView(), sort = v.sort === "-cost" || v.sort === "cost" ? v.sort : "-requests";
  const [page, pager] = useCursor(v, sort);
  const question = { groupBy: "error_group", filter: failures(v), sort: sortOf(sort) };
  const state = useMetrics(v, { ...question, ...page });
  return html`<${Answer} state=${state} empty=${(d) => d.groups.length === 0} none="No call failed in this time. Each message would be listed here once.">${(d) => html`
    <${Exported} label="Errors" columns=${errors} rows=${d.groups} sort=${sort} keyOf=${(g) => g.key ?? "\n"} pages=${pagesOf("/v1/metrics/query", asked(v, { ...question, limit: page.limit }), (d) => d.groups)}><p class="quiet">${plural(d.totals.requests, "call")} failed. Messages that differ by numbers, ids or users alone are one line.</p><//>${pager(state.next)}`}<//>`;
}

// seen is when the part of the time begins that has the first or last call: a minute, or a day.
const seen = (g, find) => {
  const { range_start: start, range_end: end } = g.points[find]((p) => p.requests > 0) || {};
  return start ? html`<span title=${`between ${moment(start)} and ${moment(end)}`}>${Date.parse(end) - Date.parse(start) < 864e5 ? moment(start).slice(0, -3) : date(start)}</span>` : "—";
};

const errors = [
  { title: "Message", wrap: true, cell: (g) => (g.key === null ? plural(g.others, "other message") : html`<${To} change=${{ ...elsewhere, v: "requests", f: [...view().f.filter((c) => !/^(error_group|failed)$/.test(c.field)), { field: "failed", op: "equals", value: "true" }, isOf("error_group", g.key)] }} dir="auto" title=${g.key}>${g.key || "(without a message)"}<//>`) },
  { title: "Calls", key: "requests", number: true, cell: (g) => count(g.totals.requests) },
  { title: "Over time", mid: true, cell: (g) => html`<${Spark} values=${g.points.map((p) => p.requests)} />` },
  { title: "First seen", number: true, mid: true, cell: (g) => seen(g, "find") }, { title: "Last seen", number: true, cell: (g) => seen(g, "findLast") },
  { title: "Cost", key: "cost", dollars: (g) => g.totals.cost, semi: true },
];

// prompts are the fields of prompt templates, which are chosen as properties are.
const prompts = new Map([["@prompt_id", "Prompt"], ["@prompt_version", "Prompt version"]]);
const namesOf = (d) => [...properties(d), ...(d.fields.some((f) => f.field === "prompt_id" && f.values.some((value) => value.value)) ? prompts.keys() : [])];

// Properties lets one of the properties in use be chosen.
export function Properties() {
  const v = useView();
  const state = useAnswer("/v1/facets/query", { filter: filter(v), fields: ["property_key", "prompt_id"], timeFilter: timeFilter(v) });
  return html`<${Answer} state=${state} empty=${(d) => !namesOf(d).length} none="No request has a property. Send headers such as Service-Property-Feature.">${(d) => {
    const name = v.by || namesOf(d)[0], title = prompts.get(name) || name;
    return html`<label class="choose">Property <select value=${name} onChange=${(e) => go({ by: e.target.value }, true)}>${[...new Set([name, ...namesOf(d)])].map((n) => html`<option value=${n}>${prompts.get(n) || n}</option>`)}</select></label>
      <${Breakdown} key=${name} by=${prompts.has(name) ? name.slice(1) : "property:" + name} title=${title} />`;
  }}<//>`;
}

const totals = /^-?(cost|requests|errors|requests_without_cost|latency\.p\d\d|time_to_first_token\.p\d\d|\w+_tokens|cache_savings|cache_loss|answer_cache_hits|saved_cost|routing_savings)$/;

// Breakdown is of all requests, or of those of which the cache missed. The API chooses the
// groups of a page by what they are sorted by.
export function Breakdown({ by, title, missed }) {
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
      <${Exported} label=${title} columns=${columns(title, by, d)} rows=${d.groups} sort=${sort} keyOf=${(g) => g.key ?? "\n"} pages=${pagesOf("/v1/metrics/query", asked(v, { ...question, limit: page.limit }), (d) => d.groups)} />
      ${pager(state.next)}`}<//>`;
}

// userColumn shows a number or a time of a user as a function writes it.
const userColumn = (title, key, format, rest) => ({ title, key, number: true, raw: (u) => u[key], cell: (u) => format(u[key]), ...rest });

const usersBy = (groups) => [
  { title: "User", key: "user_id", cell: (u) => html`<${To} change=${pageOf("user_id", u.user_id)} dir="auto" title=${u.user_id}>${u.user_id}<//>` },
  { title: "Cost", key: "cost", dollars: (u) => u.cost },
  userColumn("Requests", "total_requests", count),
  { title: "Errors", number: true, mid: true, cell: (u) => (!groups.get(u.user_id)?.totals.errors ? count(groups.get(u.user_id)?.totals.errors) : html`<${To} class=${groups.get(u.user_id).totals.errors >= 0.05 * u.total_requests ? "bad" : ""} change=${{ ...having("user_id", u.user_id), f: [...having("user_id", u.user_id).f, { field: "failed", op: "equals", value: "true" }] }}>${count(groups.get(u.user_id).totals.errors)}<//>`) },
  userColumn("Input", "total_prompt_tokens", compact, { semi: true }),
  userColumn("Output", "total_completion_tokens", compact, { semi: true }),
  userColumn("Tokens a request", "average_tokens_per_request", compact, { wide: true }),
  userColumn("Active days", "active_for", count, { wide: true }),
  userColumn("First in this time", "first_active", moment, { vast: true }),
  userColumn("Last call", "last_active", moment, { mid: true }),
  { title: "Over time", wide: true, cell: (u) => groups.has(u.user_id) && html`<${Spark} values=${groups.get(u.user_id).points.map((p) => p.cost)} />` },
  { title: "Compare", unseen: true, mid: true, cell: (u) => html`<${Mark} id=${u.user_id} by="user_id" />` },
];

export function Users() {
  const v = useView();
  const sort = v.sort || "-cost";
  const { key, descending } = sorting(sort);
  const [page, pager] = useCursor(v, sort);
  const { startTimeUnixMs: from, endTimeUnixMs: to } = timeFilter(v) || {};
  const question = {
    filter: filter(v), timeFilter: from === undefined ? undefined : { startTimeUnixSeconds: from / 1000, endTimeUnixSeconds: to / 1000 },
    timeZoneDifferenceMinutes: offset(), sort: { [key]: descending ? "desc" : "asc" }, limit: page.limit,
  };
  const state = useAnswer("/v1/user/metrics/query", { ...question, ...page });
  const series = useMetrics(v, { groupBy: "user_id", limit: 100, sort: { cost: "desc" } });
  const groups = new Map(series.data?.groups.map((g) => [g.key, g]));
  return html`<${Answer} state=${state} empty=${(d) => d.users.length === 0} none="No users in this time. Send the header Service-User-Id to tell them apart.">${(d) => html`<div aria-busy=${!series.data && !series.error} class=${series.loading ? "stale" : ""}><${Exported} label="Users" columns=${usersBy(groups)} rows=${d.users} sort=${sort} keyOf=${(u) => u.user_id} pages=${pagesOf("/v1/user/metrics/query", question, (d) => d.users)}><p class="quiet">${plural(d.count, "user")}</p><//>${pager(state.next)}</div>`}<//>`;
}
