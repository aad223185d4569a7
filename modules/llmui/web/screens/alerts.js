// What fires, what has fired, and who is told? The form of a rule is opened by other screens, too. For
// keys of the scope admin.
import { html, useState } from "../html.js";
import { sayOf, filter } from "../filter.js";
import { useView } from "../state.js";
import { itemsOf, post, remove, useAnswer } from "../api.js";
import { Answer, useCursor } from "../parts/basics.js";
import { Exported } from "../parts/csv.js";
import { Delete, FilterText, Per, useChange, Dialog, Form, options, read, subjects } from "../parts/form.js";
import { count, moment, plural, dollars, duration } from "../format.js";

// Alerts shows what fires and what has fired, the rules and the channels.
export function Alerts() {
  const channels = useAnswer("/v1/alerts/channels"), firing = useAnswer("/v1/alerts?limit=200&state=firing");
  return html`<${Answer} state=${firing} empty=${(d) => !d.items.length} none="No alert is firing.">${(d) => html`<h2 class="bad">${plural(d.items.length, "alert")} firing</h2><${Firings} label="Firing" items=${d.items} />`}<//>
    <${Rules} /><${Channels} state=${channels} /><${History} />`;
}

const whose = (f) => (f.per ? `${f.per} ${f.subject ?? "(none)"}` : "all calls");

function Firings({ label, items, pages }) {
  const columns = [
    { title: "Alert", cell: (f) => html`<b dir="auto">${f.rule}</b> <span class="quiet">${f.condition}</span>` },
    { title: "Whose", mid: true, cell: (f) => html`<span dir="auto">${whose(f)}</span>` },
    { title: "Value", number: true, cell: (f) => Number(f.value.toPrecision(4)).toLocaleString() },
    { title: "Since", raw: (f) => f.fired_at, cell: (f) => moment(f.fired_at) },
    { title: "Until", semi: true, raw: (f) => f.resolved_at, cell: (f) => (f.resolved_at ? moment(f.resolved_at) : html`<span class="bad">now</span>`) },
    { title: "Messages", wrap: true, raw: (f) => f.deliveries?.map((d) => d.state + " to " + d.channel).join(), cell: (f) => html`<${Deliveries} f=${f} />` },
  ];
  return html`<${Exported} label=${label} pages=${pages} columns=${columns} rows=${items} keyOf=${(f) => f.id} />`;
}

// Deliveries says whether channels took the messages about an alert, and sends them again.
function Deliveries({ f }) {
  const [open, show] = useState(false);
  const state = useAnswer("/v1/alerts/" + encodeURIComponent(f.id), open ? undefined : null);
  const [change, failed] = useChange();
  const list = (open && state.data ? state.data.deliveries : f.deliveries) || [];
  const waiting = list.filter((d) => !d.delivered_at);
  return html`<details onToggle=${(e) => show(e.target.open)}><summary>${waiting.length ? html`<span class="bad">▲ ${count(waiting.length)} not delivered</span>` : plural(list.length, "message")}</summary>
    <ul class="plain">${list.map((d) => html`<li>${d.state} to <b>${d.channel}</b>: ${d.delivered_at ? `delivered ${moment(d.delivered_at)}` : html`<span class="bad">${d.error || "waits"}</span>`}${d.attempts > 1 && `, ${plural(d.attempts, "attempt")}`}</li>`)}</ul>
    <button class="quiet" onClick=${() => change(post(`/v1/alerts/${encodeURIComponent(f.id)}/redeliver`, {}))}>Send again</button>${failed}</details>`;
}

function History() {
  const [{ limit, after = "" }, pager] = useCursor(useView());
  const state = useAnswer(`/v1/alerts?limit=${limit}&after=${after}`);
  return html`<h2>History</h2><${Answer} state=${state} empty=${(d) => !d.items.length} none="No alert has fired yet.">${(d) => html`<${Firings} label="History" items=${d.items} pages=${() => itemsOf("/v1/alerts")} />${pager(d.next)}`}<//>`;
}

function Channels({ state }) {
  const [told, tell] = useState({});
  const test = (name) => post(`/v1/alerts/channels/${encodeURIComponent(name)}/test`, {}).then((d) => tell({ ...told, [name]: d.error ? html`<span class="bad">${d.error}</span>` : html`<span class="good">taken</span>` }), (e) => tell({ ...told, [name]: html`<span class="bad">${e.message}</span>` }));
  const columns = [
    { title: "Channel", cell: (c) => html`<b dir="auto">${c.name}</b>` }, { title: "Kind", cell: (c) => c.kind },
    { title: "Test", wrap: true, cell: (c) => html`<button class="quiet" onClick=${() => test(c.name)}>Send a test</button> ${told[c.name]}` },
  ];
  return html`<h2>Channels</h2><${Answer} state=${state} empty=${(d) => !d.items.length} none=${html`There is no channel yet. The Caddyfile names them in the block llm, because their addresses are secrets: <code>channel ops slack {env.SLACK_URL}</code>`}>${(d) => html`<${Exported} label="Channels" columns=${columns} rows=${d.items} keyOf=${(c) => c.name} />`}<//>`;
}

function Rules() {
  const state = useAnswer("/v1/alerts/rules");
  const [edited, edit] = useState(); // a rule, {} for a new one
  const [change, failed] = useChange();
  const columns = [
    { title: "Rule", cell: (r) => html`<b dir="auto">${r.name}</b> <span class="quiet">${r.condition}</span>` },
    { title: "Calls", mid: true, cell: (r) => html`<span dir="auto">${sayOf(r.filter)}</span>` },
    { title: "Whose", mid: true, cell: (r) => (r.per ? subjects[r.per] || "each " + r.per : "all calls together") },
    { title: "Tells", cell: (r) => r.to.join(", ") },
    { title: "Change", cell: (r) => (r.id ? html`<button class="quiet" onClick=${() => edit(r)}>Edit</button><${Delete} onSure=${() => change(remove("/v1/alerts/rules/" + encodeURIComponent(r.name)))} />` : html`<span class="quiet">in the Caddyfile</span>`) },
  ];
  return html`<div class="bar-row"><h2>Rules</h2><span class="spring"></span><button class="primary" onClick=${() => edit({})}>Create a rule</button></div>${failed}
    ${edited && html`<${Rule} r=${edited.name && edited} v=${{ f: [] }} onClose=${() => edit()} />`}
    <${Answer} state=${state} empty=${(d) => !d.items.length} none="There is no rule yet. A rule tells a channel when a total passes a number: the cost of a user in a day.">${(d) => html`<${Exported} label="Rules" columns=${columns} rows=${d.items} keyOf=${(r) => r.name} />`}<//>`;
}

// totals are what a rule compares, with the unit of its threshold.
const totals = {
  cost: ["cost", "dollars"], errors: ["errors", ""], requests: ["calls", ""], "latency.p95": ["latency p95", "milliseconds"], "time_to_first_token.p95": ["first token p95", "milliseconds"], total_tokens: ["tokens", ""],
  requests_without_cost: ["calls without a price", ""], budget_percent: ["spent of a budget", "percent"], budget_forecast_percent: ["forecast of a budget", "percent"], key_days_left: ["days until a key ends", "days"], lost_records: ["lost records", ""], bill_differences: ["differences of a bill", ""], bill_difference_cost: ["differences of a bill", "dollars"],
};
// minutes are those of a rule's window, such as 1h30m.
const minutes = (over) => [...over.matchAll(/(\d+)([dhm])/g)].reduce((sum, [, n, unit]) => sum + n * { d: 1440, h: 60, m: 1 }[unit], 0);
const lengths = { 5: "5 minutes", 15: "15 minutes", 60: "an hour", 1440: "a day", 10080: "a week" };
const days = { 1440: "a day", 10080: "a week", 40320: "4 weeks" }; // of bills

// withOne are choices, with one that a rule has and they have not.
const withOne = (all, one, text) => (Object.hasOwn(all, one) ? all : { ...all, [one]: text });

// suggested is the rule that a view is most likely about.
function suggested(v) {
  const per = { users: "user", sessions: "session", models: "model", properties: v.by && "property." + v.by }[v.v] || "";
  const total = v.v === "errors" ? "errors" : v.v === "requests" ? "requests" : /latency|time_to_first/.test(v.sort) ? v.sort.replace("-", "").replace(/^(latency|time_to_first_token)$/, "$1.p95") : "cost";
  return { total: Object.hasOwn(totals, total) ? total : "cost", per, filter: filter(v) };
}

// Rule makes a rule about the calls of the view v, or changes r.
export function Rule({ r, v, onClose }) {
  const { data, error } = useAnswer("/v1/alerts/channels");
  if (!data && !error) return html`<span aria-busy="true"></span>`;
  return html`<${Dialog} label=${r ? "Edit the rule " + r.name : "Create a rule"} onClose=${onClose}>${(close) => html`${data?.items.length ? html`<${Settings} r=${r || suggested(v)} channels=${data.items} close=${close} />`
      : html`<h2>Tell me when…</h2><p class="notice">${error?.message || html`There is no channel to tell yet. The Caddyfile names them in the block llm, because their addresses are secrets: <code>channel ops slack {env.SLACK_URL}</code>`}</p><form method="dialog"><button>Close</button></form>`}`}<//>`;
}

function Settings({ r, channels, close }) {
  const [change, failed] = useChange(close);
  const [total, setTotal] = useState(r.total);
  const [over, setOver] = useState(r.over ? minutes(r.over) : 60), [other, setOther] = useState(false);
  const [than, setThan] = useState(Boolean(r.than));
  const windowed = !["budget_percent", "budget_forecast_percent", "key_days_left"].includes(total), ofBill = /^bill_/.test(total), ofCalls = windowed && !ofBill && total !== "lost_records";
  const save = (e) => {
    e.preventDefault();
    const text = read(e.target);
    change(() => post("/v1/alerts/rules", {
      name: r.name || text("name"), total, operator: text("operator"), threshold: Number(text("threshold")), to: text.all("to"),
      ...(windowed && { over: text("length") || (ofBill && over % 1440 ? 1440 : over) + "m" }), ...(ofCalls && { per: text.per(), ...(than && { than: "last_week" }), filter: text.filter() }),
    }));
  };
  return html`<${Form} title=${r.name || "Tell me when…"} action=${r.name ? "Save" : "Create"} close=${close} failed=${failed} onSubmit=${save}>
      ${!r.name && html`<label>Name <input name="name" required maxlength="100" autofocus placeholder="dear day" /></label>`}
      <label>When <span class="bar-row"><select aria-label="What is compared" value=${total} onChange=${(e) => setTotal(e.target.value)}>${options(withOne(Object.fromEntries(Object.entries(totals).map(([key, [text]]) => [key, text])), r.total, r.total), total)}</select><select name="operator" aria-label="Comparison">${options({ ">": "above", ">=": "at least", "<": "below", "<=": "at most" }, r.operator || (total === "key_days_left" ? "<=" : ">"))}</select><input name="threshold" required inputmode="decimal" pattern="-?[0-9]+([.][0-9]+)?" aria-label="Threshold" placeholder="100" defaultValue=${r.threshold ?? ""} /> ${than ? "times as much" : totals[total]?.[1]}</span></label>
      ${windowed && html`<label>Over <span class="bar-row"><select value=${other ? "other" : over} onChange=${(e) => (setOther(e.target.value === "other"), e.target.value === "other" || setOver(Number(e.target.value)))}>${options({ ...(ofBill ? (over % 1440 ? days : withOne(days, over, over / 1440 + " days")) : withOne(lengths, over, over + " minutes")), other: "another time…" }, other ? "other" : over)}</select>${other && html`<input name="length" required size="6" aria-label="Length of the window" placeholder="6h" />`}</span></label>`}
      ${ofCalls && html`<${FilterText} filter=${r.filter} /><label>Of <${Per} per=${r.per} all="all calls together" /></label>
      <p><label class="bar-row"><input type="checkbox" checked=${than} onChange=${(e) => setThan(e.target.checked)} /> compared with the same time a week before</label></p>
      <${Now} total=${total} over=${over} of=${r.filter || "all"} />`}
      <fieldset><legend>Tell</legend>${channels.map((c, i) => html`<label class="bar-row"><input type="checkbox" name="to" value=${c.name} defaultChecked=${r.to ? r.to.includes(c.name) : i === 0} /> ${c.name} <span class="quiet">${c.kind}</span></label>`)}</fieldset><//>`;
}

const written = (total) => (/cost$|savings$|loss$/.test(total) && total !== "requests_without_cost" ? dollars : /^(latency|time_to)/.test(total) ? duration : count);

// Now says what the total of all these calls is in the window that ends now: a threshold is
// found beside it.
function Now({ total, over, of }) {
  const end = Math.floor(Date.now() / 60e3) * 60e3;
  const found = useAnswer("/v1/metrics/query", { filter: of, timeFilter: { startTimeUnixMs: end - over * 60e3, endTimeUnixMs: end }, bucket: "none" }).data?.totals;
  return found ? html`<p class="quiet" role="status">All together in the last ${(lengths[over] || over + " minutes").replace(/^an? /, "")}: ${written(total)(total.split(".").reduce((t, key) => t?.[key], found))}</p>` : null;
}
