// Is it up, what does it cost, what is growing, what went wrong?
import { html, useMemo } from "../html.js";
import { filter, withCondition } from "../filter.js";
import { elsewhere, having, pageIn, pageOf, pages, timeFilter, useView } from "../state.js";
import { cached, caller, useAnswer, useMetrics } from "../api.js";
import { Answer, Bar, Mark, Spark, Table, Tile, To, sorting } from "../parts/basics.js";
import { Chart, coloursOf } from "../parts/chart.js";
import { compact, count, dollars, duration, midnight, moment, offset, percent, plural } from "../format.js";

const rate = (x) => (x?.requests ? x.errors / x.requests : null);

const sort = { cost: "desc" }; // of groups: those that cost most

// Overview is of all requests, or the page of a user or a model.
export function Overview() {
  const v = useView();
  const one = pageIn(v);
  const models = useMetrics(v, { groupBy: "model", limit: 5, compare: v.from !== "all", sort });
  const users = useMetrics(v, { groupBy: "user_id", limit: 5, bucket: "none", sort });
  const yesterday = useYesterday(v);
  return html`${one && html`<${Heading} one=${one} />`}
  <${Answer} state=${models} empty=${(d) => d.totals.requests === 0 && !d.previous?.requests} none=${html`<${First} />`}>${(d) => html`<${Figures} d=${d} v=${v} before=${yesterday || d.previous || {}} />
    <div class="tops">${one?.field !== "model" && html`<${Top} state=${models} by="model" screen="models" title="Models" />`}${one?.field !== "user_id" && html`<${Top} state=${users} by="user_id" screen="users" title="Users" />`}${one && html`<${Sessions} v=${v} />`}</div>`}<//>`;
}

// Heading names the user or the model that a page is about.
const Heading = ({ one }) => html`<header class="heading bar-row"><h2><span class="quiet">${pages[one.field]}</span> <bdi>${one.value}</bdi></h2>
  <${To} change=${{ ...elsewhere, v: "requests" }}>Requests<//><${To} change=${having("failed", true)}>Errors<//><${To} change=${{ ...elsewhere, v: "sessions", sort: "-total_cost" }}>Sessions<//>${caller.admin && one.field === "user_id" && html`<${To} change=${{ ...elsewhere, v: "privacy", show: "erase" }}>Erase…<//>`}<${Mark} id=${one.value} by=${one.field} /></header>`;

// useYesterday are the totals of yesterday until this time of day, for a view of today.
function useYesterday(v) {
  const today = v.from === "today" && !v.to && timeFilter(v);
  const from = today && midnight(today.startTimeUnixMs - 1);
  const span = today && { startTimeUnixMs: from, endTimeUnixMs: from + today.endTimeUnixMs - today.startTimeUnixMs };
  return useAnswer("/v1/metrics/query", today ? { filter: filter(v), timeFilter: span, bucket: "none" } : null).data?.totals;
}

const First = () => html`No requests in this time. Point a client's base URL at Weir, or fill the page with made-up traffic: <code>weir demo</code>`;

// repeated is what Weir's own cache has answered, beside the provider's.
const repeated = (t) => (t.answer_cache_hits ? html`<${To} change=${having("answer_cache", "hit")}>${count(t.answer_cache_hits)} from Weir's cache<//>${t.saved_cost ? `, ${dollars(t.saved_cost)} saved` : ""}` : "");

function Figures({ d, v, before: b }) {
  const points = d.points;
  const times = useMemo(() => points.map((p) => Date.parse(p.range_start)), [d]);
  const values = (name, f) => ({ name, values: points.map(f) });
  const series = useMemo(() => ({
    requests: [values("answered", (p) => p.requests - p.errors), values("errors", (p) => p.errors)],
    tokens: [values("input", (p) => (p.prompt_tokens || 0) - (p.prompt_cache_read_tokens || 0) - (p.prompt_cache_write_tokens || 0)),
      values("cache read", (p) => p.prompt_cache_read_tokens || 0), values("cache write", (p) => p.prompt_cache_write_tokens || 0),
      values("output", (p) => (p.completion_tokens || 0) - (p.reasoning_tokens || 0)), values("reasoning", (p) => p.reasoning_tokens || 0)],
    latency: [values("p50", (p) => p.latency.p50), values("p95", (p) => p.latency.p95), values("p99", (p) => p.latency.p99), values("first token p50", (p) => p.time_to_first_token.p50)],
  }), [d]);
  const t = d.totals;
  const list = { ...elsewhere, v: "requests" };
  const figure = (label, f, text, rest) => html`<${Tile} label=${label} value=${text(f(t))} now=${f(t)} before=${f(b)} past=${points.map(f)} ...${rest} />`;
  return html`<div class="tiles">
      ${figure("Requests", (x) => x.requests, compact, { to: list })}
      ${figure("Cost", (x) => x.cost, dollars, { growth: "bad", detail: t.requests_without_cost ? html`<${To} change=${{ ...list, f: withCondition(v.f, { field: "cost", op: "is-null", value: "true" }) }}>${count(t.requests_without_cost)} unpriced<//>` : "", to: { ...list, sort: "-cost" } })}
      ${figure("Errors", rate, percent, { share: true, growth: "bad", detail: `${count(t.errors)} failed`, to: having("failed", true) })}
      ${figure("Latency p95", (x) => x.latency?.p95, duration, { growth: "bad", to: { ...list, sort: "-latency" } })}
      ${figure("First token p95", (x) => x.time_to_first_token?.p95, duration, { growth: "bad", to: { ...list, sort: "-time_to_first_token" } })}
      ${figure("Cached input", cached, percent, { share: true, growth: "good", detail: repeated(t), to: { ...elsewhere, v: "models" } })}
      <${Month} v=${v} />
    </div>
    <p class="quiet compare">${v.from === "today" && !v.to && "Beside yesterday until this time. "}${v.from !== "all" && html`<${To} change=${{ ...elsewhere, v: "compare", by: "period" }}>Compare with the period before<//>`}</p>
    <div class="charts">
      <${Chart} title="Requests" times=${times} format=${compact} stacked series=${series.requests} colours=${["c1", "error"]} />
      <${ByGroup} d=${d} title="Cost by model" format=${dollars} value=${(p) => p.cost} />
      <${Chart} title="Tokens" times=${times} format=${compact} stacked series=${series.tokens} />
      <${Chart} title="Latency" times=${times} format=${duration} series=${series.latency} />
    </div>`;
}

const day = 86400e3, basis = 7; // days whose mean the rest of the month is expected to cost

// Month is what the month has cost, and what it will if it goes on like the last days.
// Days before the first request are no basis.
function Month({ v }) {
  const now = Date.now(), begin = midnight(now, 1), today = midnight(now);
  const end = midnight(begin + 32 * day, 1);
  const ask = (from, to) => ({ filter: filter(v), timeFilter: { startTimeUnixMs: from, endTimeUnixMs: to }, timezoneDifference: offset(), bucket: "1d" });
  const first = midnight(today - basis * day + day / 2), early = first < begin; // the month has not all days of the basis
  const month = useAnswer("/v1/metrics/query", ask(begin, Math.ceil(now / 60e3) * 60e3)), week = useAnswer("/v1/metrics/query", early ? ask(first, today - 1) : null);
  if (!month.data || (early && !week.data)) return html`<div class="tile panel" aria-busy="true"><span class="label">This month</span><strong>…</strong></div>`;
  const before = (early ? week : month).data.points.filter((p) => Date.parse(p.range_start) < today - day / 2).slice(-basis);
  const at = before.findIndex((p) => p.requests > 0), used = at < 0 ? [] : before.slice(at), days = used.length;
  const left = Math.round(((end - now) / day) * 10) / 10, spent = month.data.totals.cost, mean = used.reduce((sum, p) => sum + (p.cost || 0), 0) / days;
  const why = `So far ${dollars(spent)}, and ${left.toFixed(1)} more days at ${dollars(mean)}, the mean of ${days === 1 ? "the day" : `the ${days} days`} before today`;
  return html`<${Tile} label="This month" value=${dollars(spent)} detail=${days ? html`<span title=${why}>≈ ${dollars((spent || 0) + mean * left)} in all</span>` : "no forecast yet"} past=${month.data.points.map((p) => p.cost)} to=${{ ...elsewhere, from: "month", to: "" }} />`;
}

// Top is a short table of groups, those that cost most first.
const Top = ({ state, by, title, screen }) => html`<section><h2>${title}</h2>
    <${Answer} state=${state} empty=${(d) => d.groups.length === 0}>${(d) => html`<${Table} label=${title} keyOf=${(g) => g.key} rows=${d.groups} columns=${columns("Name", by, d, screen).filter((c) => /^(Name|Cost|Requests|Errors|p95)$/.test(c.title))} />`}<//></section>`;

// Sessions are the costliest of a user or a model.
function Sessions({ v }) {
  const state = useAnswer("/v1/session/query", { filter: filter(v), timeFilter: timeFilter(v), sort: { total_cost: "desc" }, limit: 5 });
  return html`<section><h2>Sessions</h2><${Answer} state=${state} empty=${(d) => d.length === 0} none="No sessions in this time.">${(d) => html`<${Table} label="Sessions" keyOf=${(s) => s.session_id + "\n" + s.session_name} rows=${d} columns=${sessions} />`}<//></section>`;
}

const sessions = [
  { title: "Name", cell: (s) => html`<${To} change=${{ ...elsewhere, v: "sessions", session: s.session_id, name: s.session_name }} dir="auto">${s.session_name || s.session_id}<//>` },
  { title: "Last call", mid: true, cell: (s) => moment(s.latest_request_created_at) }, { title: "Calls", number: true, cell: (s) => count(s.total_requests) }, { title: "Cost", dollars: (s) => s.total_cost },
];

// nameOf is how a group is shown. Name leads to its page or its requests, or from all
// others to a screen with each of them.
const nameOf = (g, field) => (g.key === null ? plural(g.others, "other") : (field === "cache_miss_reason" ? g.key.replaceAll("_", " ") : g.key) || "(none)");
const Name = ({ g, field, all }) => (g.key !== null ? html`<${To} change=${pageOf(field, g.key)} dir="auto" title=${g.key}>${nameOf(g, field)}<//>` : all ? html`<${To} change=${{ ...elsewhere, v: all, sort: "-cost" }}>${nameOf(g)}<//>` : nameOf(g));

// ByGroup stacks a value of the groups over time.
export function ByGroup({ d, by, title, format, value, height }) {
  const [times, series] = useMemo(() => [
    d.points.map((p) => Date.parse(p.range_start)),
    d.groups.map((g) => ({ name: nameOf(g, by), values: g.points.map((p) => value(p) ?? 0), total: value(g.totals) })),
  ], [d]);
  return html`<${Chart} title=${title} times=${times} format=${format} stacked series=${series} height=${height} colours=${coloursOf(d.groups.map((g) => g.key))} />`;
}

// starred has a star if some requests of the group have no price.
const starred = (text, { totals: t }) => html`${text}${t.requests_without_cost > 0 && html`<span class="quiet star" title=${`${count(t.requests_without_cost)} requests have no price`}>*</span>`}`;

// price is of a million tokens.
const price = (t) => (t.total_tokens && !t.requests_without_cost ? (t.cost / t.total_tokens) * 1e6 : null);

// column shows what a function makes of the totals of a group. key is the total that the
// API sorts by, none for what it does not answer.
const column = (title, key, value, format, rest) => ({ title, key, number: true, raw: (g) => value(g.totals), cell: (g) => format(value(g.totals)), ...rest });
const vast = { vast: true }, wide = { wide: true }, semi = { semi: true };
// many is the share of errors from which on their number stands out.
const many = 0.05;

// columns are those of groups by a field. all is the screen that has each of them.
export const columns = (title, by, d, all) => [
  { title, cell: (g) => html`<${Name} g=${g} field=${by.replace(":", ".")} all=${all} />` },
  { title: "Cost", key: "cost", dollars: ({ totals: t }) => t.cost || (t.requests_without_cost ? null : t.cost), around: starred },
  { title: "Share", semi: true, cell: (g) => html`<${Bar} share=${d.totals.cost ? g.totals.cost / d.totals.cost : 0} />` },
  column("Requests", "requests", (t) => t.requests, count),
  { title: "Errors", key: "errors", number: true, mid: true, raw: (g) => g.totals.errors, cell: ({ totals: t }) => html`<span class=${rate(t) >= many ? "bad" : ""} title=${`${percent(rate(t))} of the requests`}>${count(t.errors)}</span>` },
  { title: "p50", key: "latency.p50", ms: (g) => g.totals.latency.p50, ...wide },
  { title: "p95", key: "latency.p95", ms: (g) => g.totals.latency.p95, ...semi },
  { title: "First token p95", key: "time_to_first_token.p95", ms: (g) => g.totals.time_to_first_token.p95, ...wide },
  column("Input", "prompt_tokens", (t) => t.prompt_tokens, compact, semi),
  column("From cache", "", cached, percent, semi),
  { title: "Saved", key: "cache_savings", dollars: (g) => g.totals.cache_savings, around: (text, g) => html`<span class=${g.totals.cache_savings < 0 ? "bad" : ""}>${text}</span>`, ...wide },
  { title: "Lost", key: "cache_loss", dollars: (g) => g.totals.cache_loss, ...wide },
  { title: "Saved by Weir's cache", key: "saved_cost", dollars: (g) => g.totals.saved_cost, ...vast },
  column("Output", "completion_tokens", (t) => t.completion_tokens, compact, vast),
  { title: "$ per 1M tokens", dollars: (g) => price(g.totals), ...vast },
  { title: "Over time", ...vast, cell: (g) => html`<${Spark} values=${g.points.map((p) => p.cost)} />` },
  { title: "Compare", unseen: true, mid: true, cell: (g) => g.key !== null && html`<${Mark} id=${g.key} by=${by.replace(":", ".")} />` },
];

// sortOf is a sort of the address as the API takes it: `-latency.p95` is
// {"latency": {"p95": "desc"}}.
export function sortOf(text) {
  const { key, descending } = sorting(text);
  return key.split(".").reduceRight((inner, name) => ({ [name]: inner }), descending ? "desc" : "asc");
}
