// Is quality falling, and which answers are the worst?
import { html, useMemo, useState } from "../html.js";
import { filter } from "../filter.js";
import { during, go, timeFilter, useView } from "../state.js";
import { useAnswer, useRequests } from "../api.js";
import { Answer, Bar, Drawer } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { Exported, pagesOf } from "../parts/csv.js";
import { count, moment, offset, plural } from "../format.js";

const increments = [[2 * 3600e3, "min", 60e3], [8 * 86400e3, "hour", 3600e3], [Infinity, "day", 86400e3]];
const increment = ({ startTimeUnixMs: from, endTimeUnixMs: to }) => increments.find(([width]) => to - from <= width);
// bounds are those of the view; all time is the last two years.
const bounds = (v) => timeFilter(v.from === "all" ? { from: "730d", to: "" } : v);
const score = (n) => (n === null || n === undefined ? "—" : n.toFixed(2));

export function Scores() {
  const v = useView();
  const { startTimeUnixMs: from, endTimeUnixMs: to } = bounds(v);
  const state = useAnswer("/v1/dashboard/scores/query", {
    timeFilter: { start: new Date(from).toISOString(), end: new Date(to).toISOString() },
    userFilter: filter(v), dbIncrement: increment(bounds(v))[1], timeZoneDifference: offset(),
  });
  return html`<${Answer} state=${state} empty=${(d) => d.length === 0} none="No scores in this time. Send them to POST /v1/request/{id}/score.">${(points) =>
    [...new Set(points.map((p) => p.score_key))].sort().map((key) => html`<${Score} key=${key} v=${v} name=${key} points=${points.filter((p) => p.score_key === key)} />`)}<//>
    <${Drawer} v=${v} />`;
}

const shown = 8; // examples
const sample = 500; // newest scored requests, of which the distribution is

function Score({ v, name, points }) {
  const [high, setHigh] = useState(false); // whether more is worse is the score's to say
  // The API answers the times that have scores; a chart has all between them.
  const [times, series] = useMemo(() => {
    const width = increment(bounds(v))[2], first = Date.parse(points[0].created_at_trunc), values = [];
    for (const p of points) values[Math.round((Date.parse(p.created_at_trunc) - first) / width)] = p.score_avg;
    return [Array.from(values, (_, i) => first + i * width), [{ name: "mean", values: Array.from(values) }]];
  }, [points]);
  const n = points.reduce((sum, p) => sum + p.score_count, 0);
  const scored = filter(v, { scores: { [name]: { "is-null": false } } }, ...during(v));
  const sort = { scores: { [name]: high ? "desc" : "asc" } };
  const newest = useRequests(scored, { limit: sample }), extreme = useRequests(scored, { sort, limit: shown });
  return html`<section class="score"><h2>${name}</h2><div class="charts"><${Chart} title=${`Mean of ${plural(n, "score")}`} times=${times} series=${series} format=${score} />
    <${Answer} state=${newest} empty=${(d) => d.length === 0} none="">${(list) => html`<${Distribution} values=${list.map((r) => r.scores[name])} />`}<//></div>
    <${Answer} state=${extreme}>${(list) => html`<${Exported} label=${`${high ? "Highest" : "Lowest"} by ${name}`} keyOf=${(r) => r.request_id} selected=${v.id} onOpen=${(r) => go({ id: r.request_id })} rows=${list} columns=${columns(name)}
      pages=${pagesOf("/v1/request/query-clickhouse", { filter: scored, sort, includeContent: false, limit: 1000 })}><label class="choose"><span class="quiet">Order</span> <select value=${high ? "desc" : "asc"} onChange=${(e) => setHigh(e.target.value === "desc")}><option value="asc">the lowest first</option><option value="desc">the highest first</option></select></label><//>`}<//></section>`;
}

const columns = (name) => [
  { title: "Request", raw: (r) => r.request_created_at, cell: (r) => moment(r.request_created_at) },
  { title: name, number: true, raw: (r) => r.scores[name], cell: (r) => score(r.scores[name]) }, { title: "Model", cell: (r) => r.model || "—" }, { title: "User", mid: true, cell: (r) => r.request_user_id || "—" },
  { title: "Cost", wide: true, dollars: (r) => r.cost },
];

// Distribution counts values in ten ranges of the same width.
function Distribution({ values }) {
  const low = Math.min(0, ...values), high = Math.max(1, ...values);
  const bins = Array(10).fill(0);
  for (const value of values) bins[Math.min(9, Math.floor(((value - low) / (high - low)) * 10))]++;
  const top = Math.max(...bins);
  const edge = (i) => score(low + ((high - low) * i) / 10);
  return html`<figure class="chart panel"><figcaption>Distribution of the newest ${count(values.length)}</figcaption>
    <ol class="bins">${bins.map((n, i) => html`<li><span>${edge(i)}–${edge(i + 1)}</span><${Bar} share=${n / top} /><b>${count(n)}</b></li>`)}</ol></figure>`;
}
