// Two of anything, side by side: requests, values of a field, periods.
import { html, useMemo } from "../html.js";
import { filter, isOf } from "../filter.js";
import { bucket, elsewhere, go, having, range, timeFilter, useView } from "../state.js";
import { cached, useAnswer } from "../api.js";
import { answered, asked, settings } from "../conversation.js";
import { Answer, Outcome, Table, To, failed } from "../parts/basics.js";
import { titles } from "../parts/filters.js";
import { Chart } from "../parts/chart.js";
import { Lists, absent, text } from "../parts/difference.js";
import { change, compact, count, dollars, duration, fullMoment, minuteOf, moment, offset, percent } from "../format.js";

export function Compare() {
  const v = useView();
  if (v.by === "period") return html`<${Periods} v=${v} />`;
  if (v.by) return html`<${Values} v=${v} />`;
  if (v.a && v.b) return html`<${Requests} v=${v} />`;
  return html`<p class="notice">Mark a request, a model, a user or a value with “compare”, then another one.</p>`;
}

const Swap = ({ v }) => html`<button onClick=${() => go({ a: v.b, b: v.a }, true)}>Swap sides</button>`;

// differs is by how much a figure has grown. A share differs by percentage points.
function differs({ share }, now, before) {
  const delta = share ? (now === null || before === null ? null : now - before) : change(now, before);
  return delta === null ? "—" : (delta > 0 ? "+" : "") + (share ? `${(delta * 100).toFixed(1).replace("-", "−")} points` : percent(delta));
}

// Figures shows figures {title, value, format} of two sides, and how they differ.
function Figures({ sides, figures, names }) {
  const columns = [
    { title: "Figure", unseen: true, cell: (f) => f.title }, ...[0, 1].map((i) => ({ title: names[i], number: true, cell: (f) => f.format(f.value(sides[i])) })),
    { title: "Change", number: true, cell: (f) => differs(f, f.value(sides[1]), f.value(sides[0])) },
  ];
  return html`<${Table} label="Figures" keyOf=${(f) => f.title} rows=${figures} columns=${columns} />`;
}

const totals = [
  { title: "Requests", value: (t) => t.requests, format: count }, { title: "Errors", value: (t) => t.errors, format: count }, { title: "Cost", value: (t) => t.cost, format: dollars },
  { title: "Cost of a request", value: (t) => (t.requests && t.cost !== null ? t.cost / t.requests : null), format: dollars },
  { title: "Latency p50", value: (t) => t.latency.p50, format: duration }, { title: "Latency p95", value: (t) => t.latency.p95, format: duration }, { title: "First token p95", value: (t) => t.time_to_first_token.p95, format: duration },
  { title: "Input tokens", value: (t) => t.prompt_tokens, format: compact }, { title: "Output tokens", value: (t) => t.completion_tokens, format: compact },
  { title: "Cached input", value: cached, format: percent, share: true }, { title: "Saved by the cache", value: (t) => t.cache_savings, format: dollars }, { title: "Lost to cache misses", value: (t) => t.cache_loss, format: dollars },
  { title: "Answered from Weir's cache", value: (t) => t.answer_cache_hits, format: count }, { title: "Saved by Weir's cache", value: (t) => t.saved_cost, format: dollars }, { title: "Saved by routing", value: (t) => t.routing_savings, format: dollars },
];

// both are the answers of two questions as one.
const both = (a, b) => ({ data: a.data && b.data && [a.data, b.data], error: a.error || b.error, loading: a.loading || b.loading });

// meansOf are the means of scores by their names, as a Map: callers choose the names.
function meansOf(points) {
  const sums = new Map();
  for (const { score_key: key, score_avg: mean, score_count: n } of points || []) {
    const [sum, all] = sums.get(key) || [0, 0];
    sums.set(key, [sum + mean * n, all + n]);
  }
  return new Map([...sums].map(([key, [sum, n]]) => [key, sum / n]));
}

const day = 864e5, ever = 730 * day;

// useScores asks for the scores of a question, by the day.
function useScores({ filter, timeFilter: t }) {
  const today = Math.ceil(Date.now() / day) * day, iso = (time) => new Date(time).toISOString();
  return meansOf(useAnswer("/v1/dashboard/scores/query", {
    timeFilter: { start: iso(t?.startTimeUnixMs ?? today - ever), end: iso(t?.endTimeUnixMs ?? today) }, userFilter: filter, dbIncrement: "day", timeZoneDifference: offset(),
  }).data);
}

// Totals compares the requests of two questions: {filter, timeFilter}.
function Totals({ v, questions, names }) {
  const [a, b] = questions.map((q) => useAnswer("/v1/metrics/query", { timezoneDifference: offset(), bucket: bucket(v), ...q }));
  const scores = questions.map(useScores);
  const figures = [...totals, ...[...new Set(scores.flatMap((means) => [...means.keys()]))].sort().map((key) => ({ title: key, value: (t) => t.scores.get(key) ?? null, format: (n) => (n === null ? "—" : n.toFixed(2)) }))];
  return html`<${Answer} state=${both(a, b)}>${(d) => html`<${Figures} sides=${d.map((x, i) => ({ ...x.totals, scores: scores[i] }))} figures=${figures} names=${names} /><${Courses} d=${d} names=${names} />`}<//>`;
}

// Values compares two values of a field, such as two models.
function Values({ v }) {
  const field = v.by.replace("property.", "property:"), values = [v.a, v.b];
  const rest = { ...v, f: v.f.filter((c) => c.field !== v.by) };
  return html`<div class="bar-row"><h2>${titles[field] || field.replace("property:", "")}: ${values.map((value, i) => html`${i > 0 && " and "}<${To} change=${having(v.by, value)} dir="auto">${value || "(none)"}<//>`)}</h2><${Swap} v=${v} /></div>
    <${Totals} v=${v} questions=${values.map((value) => ({ filter: filter({ ...rest, f: [...rest.f, isOf(v.by, value)] }), timeFilter: timeFilter(v) }))} names=${values.map((value) => value || "(none)")} />`;
}

// Courses are how two sides went over time.
function Courses({ d, names }) {
  const [times, of] = useMemo(() => {
    const shown = Math.min(...d.map((x) => x.points.length)); // of two periods, one may begin another bucket
    return [d[1].points.slice(0, shown).map((p) => Date.parse(p.range_start)), (value) => d.map((x, i) => ({ name: names[i], values: x.points.slice(0, shown).map(value) }))];
  }, [d]);
  if (!times.length) return null;
  return html`<div class="charts"><${Chart} title="Cost" times=${times} series=${of((p) => (p.requests ? p.cost : 0))} format=${dollars} /><${Chart} title="Latency p95" times=${times} series=${of((p) => p.latency.p95)} format=${duration} /></div>`;
}

// Periods compares the time of the view with as much before it, or with another that the
// address names as its first and last millisecond, as in b=1790000000000-1790086400000.
function Periods({ v }) {
  const now = timeFilter(v) || {};
  const span = range(v).to - range(v).from;
  const [, from, to] = /^(\d{1,15})-(\d{1,15})$/.exec(v.b) || [];
  const before = from ? { startTimeUnixMs: Number(from), endTimeUnixMs: Number(to) } : { startTimeUnixMs: now.startTimeUnixMs - Math.ceil(span / 60e3) * 60e3, endTimeUnixMs: now.startTimeUnixMs - 1 };
  const name = (t) => `${minuteOf(t.startTimeUnixMs)} – ${minuteOf(t.endTimeUnixMs)}`;
  const shift = (ms) => go({ b: `${now.startTimeUnixMs - ms}-${now.endTimeUnixMs - ms}` }, true);
  return html`<div class="bar-row"><h2>Two periods</h2><button onClick=${() => go({ b: "" }, true)}>The period before</button> <button onClick=${() => shift(86400e3)}>A day ago</button> <button onClick=${() => shift(7 * 86400e3)}>A week ago</button></div>
    ${v.from === "all" ? html`<p class="notice">All time has no period before it: choose a time.</p>` : html`<${Totals} v=${v} questions=${[before, now].map((timeFilter) => ({ filter: filter(v), timeFilter }))} names=${[name(before), name(now)]} />`}`;
}

const figures = [
  { title: "Cost", value: (r) => r.cost, format: dollars }, { title: "Latency", value: (r) => r.delay_ms, format: duration }, { title: "First token", value: (r) => r.time_to_first_token, format: duration },
  { title: "Input tokens", value: (r) => r.prompt_tokens, format: count }, { title: "From the cache", value: (r) => r.prompt_cache_read_tokens, format: count }, { title: "Output tokens", value: (r) => r.completion_tokens, format: count },
];

// Requests compares all that two requests have.
function Requests({ v }) {
  const a = useAnswer("/v1/request/" + encodeURIComponent(v.a)), b = useAnswer("/v1/request/" + encodeURIComponent(v.b));
  return html`<div class="bar-row"><h2>Two requests</h2><${Swap} v=${v} /></div><${Answer} state=${both(a, b)}>${(sides) => html`<${Both} sides=${sides} />`}<//>`;
}

function Both({ sides }) {
  const [then, now] = sides.map((r) => {
    const said = asked(r.request_body), { tools, parameters } = settings(r.request_body);
    return { tools, parameters: Object.entries({ model: r.request_model, ...parameters }), system: said.filter((m) => m.role === "system"), messages: said.filter((m) => m.role !== "system"), answer: answered(r.response_body, failed(r)) };
  });
  const names = sides.map((r) => html`<${To} change=${{ ...elsewhere, v: "requests", id: r.request_id }} title=${r.request_id}>${r.model || "unknown model"}, ${moment(r.request_created_at)}<//>`);
  const gone = sides.map((r) => absent(r.request_body, r.request_omitted, `request of ${fullMoment(r.request_created_at)}`)).filter(Boolean);
  const of = (name, noun, key, title, body) => html`<${Lists} name=${name} noun=${noun} then=${then[key]} now=${now[key]} title=${title} body=${body} />`;
  const role = (m) => m.role;
  return html`<${Figures} sides=${sides} figures=${figures} names=${names} />
    <p>${sides.map((r, i) => html`${i > 0 && " and "}<${Outcome} record=${r} />`)}${sides[1].cache_miss_reason && html` · <span class="bad">the cache missed on the right: ${sides[1].cache_miss_reason.replaceAll("_", " ")}${sides[1].cache_miss_at ? ` at ${sides[1].cache_miss_at}` : ""}</span>`}</p>
    ${gone.map((says) => html`<p class="notice">${says}</p>`)}
    <div class="differences panel">${of("Tools", "tool", "tools", (t) => t.name, (t) => JSON.stringify(t, null, 2))}
    ${of("Parameters", "parameter", "parameters", ([name]) => name, ([name, value]) => `${name}: ${JSON.stringify(value)}`)}
    ${of("Instructions", "text", "system", role, text)}
    ${of("Messages", "message", "messages", role, text)}
    ${of("Answer", "message", "answer", role, text)}</div>`;
}
