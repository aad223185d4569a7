// Is it up, what does it cost, what is growing, what went wrong?
import { html, useMemo } from "../html.js";
import { filter, range, screen, useView, withCondition } from "../state.js";
import { useAnswer } from "../api.js";
import { Answer, Bar, Tile } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { compact, count, dollars, duration, percent } from "../format.js";

// minute rounds the window, so that a view asks the same question for a minute.
export function timeFilter(v) {
  const { from, to } = range(v);
  return { startTimeUnixMs: Math.floor(from / 60e3) * 60e3, endTimeUnixMs: Math.ceil(to / 60e3) * 60e3 };
}

// useMetrics asks for series of the view.
export const useMetrics = (v, question) =>
  useAnswer("/v1/metrics/query", { filter: filter(v.f), timeFilter: timeFilter(v), timezoneDifference: new Date().getTimezoneOffset(), ...question });

export function Overview() {
  const v = useView();
  const state = useMetrics(v, { compare: true });
  return html`<${Answer} state=${state} empty=${(d) => d.totals.requests === 0 && (d.previous?.requests ?? 0) === 0} none="No requests in this time.">${(d) => html`<${Figures} d=${d} v=${v} />`}<//>`;
}

function Figures({ d, v }) {
  const series = d.groups[0]?.points || [];
  const times = useMemo(() => series.map((p) => Date.parse(p.range_start)), [d]);
  const values = (name, f) => ({ name, values: series.map(f) });
  const t = d.totals, b = d.previous || {};
  const rate = (x) => (x.requests ? x.errors / x.requests : null);
  const cached = (x) => (x.prompt_tokens ? (x.prompt_cache_read_tokens || 0) / x.prompt_tokens : null);
  return html`<div class="tiles">
      <${Tile} label="Requests" value=${compact(t.requests)} now=${t.requests} before=${b.requests} onClick=${() => screen("requests")} />
      <${Tile} label="Cost" value=${dollars(t.cost)} now=${t.cost} before=${b.cost} growth="bad" detail=${t.requests_without_cost ? `${count(t.requests_without_cost)} without a price` : ""} />
      <${Tile} label="Errors" value=${percent(rate(t))} now=${rate(t)} before=${rate(b)} growth="bad" detail=${`${count(t.errors)} requests`} onClick=${() => screen("requests", { f: withCondition(v.f, { field: "status", op: "gte", value: "400" }) })} />
      <${Tile} label="Latency p95" value=${duration(t.latency.p95)} now=${t.latency.p95} before=${b.latency?.p95} growth="bad" />
      <${Tile} label="First token p95" value=${duration(t.time_to_first_token.p95)} now=${t.time_to_first_token.p95} before=${b.time_to_first_token?.p95} growth="bad" />
      <${Tile} label="Input from cache" value=${percent(cached(t))} now=${cached(t)} before=${cached(b)} growth="good" />
    </div>
    <div class="charts">
      <${Chart} title="Requests" times=${times} format=${compact} stacked series=${[values("answered", (p) => p.requests - p.errors), values("errors", (p) => p.errors)]} />
      <${Chart} title="Cost" times=${times} format=${dollars} series=${[values("cost", (p) => p.cost)]} />
      <${Chart} title="Tokens" times=${times} format=${compact} stacked series=${[
        values("input", (p) => (p.prompt_tokens || 0) - (p.prompt_cache_read_tokens || 0) - (p.prompt_cache_write_tokens || 0)),
        values("cache read", (p) => p.prompt_cache_read_tokens || 0), values("cache write", (p) => p.prompt_cache_write_tokens || 0), values("output", (p) => p.completion_tokens || 0)]} />
      <${Chart} title="Latency" times=${times} format=${duration} series=${[values("p50", (p) => p.latency.p50), values("p95", (p) => p.latency.p95), values("p99", (p) => p.latency.p99), values("first token p50", (p) => p.time_to_first_token.p50)]} />
    </div>
    <div class="tops"><${Top} v=${v} by="model" title="Models by cost" /><${Top} v=${v} by="user_id" title="Users by cost" /></div>`;
}

// Top is a short table of the groups that cost most.
export function Top({ v, by, title, limit = 5 }) {
  const state = useMetrics(v, { groupBy: [by], bucket: "none", limit });
  return html`<section class="top"><h2>${title}</h2>
    <${Answer} state=${state} empty=${(d) => d.groups.length === 0}>${(d) => html`<table>
      <thead><tr><th scope="col">${by.replace("property.", "").replace("_id", "")}</th><th scope="col" class="number">Requests</th><th scope="col" class="number">Errors</th><th scope="col" class="number">Tokens</th><th scope="col" class="number">p95</th><th scope="col" class="number">Cost</th><th></th></tr></thead>
      <tbody>${d.groups.map(({ key, totals }) => html`<tr><td><button class="open" onClick=${() => screen("requests", { f: withCondition(v.f, { field: by, op: "equals", value: String(key[0] ?? "") }) })}>${key[0] || "(none)"}</button></td>
        <td class="number">${compact(totals.requests)}</td><td class="number ${totals.errors ? "bad" : ""}">${compact(totals.errors)}</td><td class="number">${compact(totals.total_tokens)}</td>
        <td class="number">${duration(totals.latency.p95)}</td><td class="number">${dollars(totals.cost)}</td><td><${Bar} share=${d.totals.cost ? totals.cost / d.totals.cost : 0} /></td></tr>`)}</tbody></table>`}<//></section>`;
}
