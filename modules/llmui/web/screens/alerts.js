// What fires, what has fired, and who is told? For keys of the scope admin.
import { html, useEffect, useRef, useState } from "../html.js";
import { useView } from "../state.js";
import { post, remove, useAnswer } from "../api.js";
import { Answer, Delete, Table, useChange, useCursor } from "../parts/basics.js";
import { sayOf } from "../parts/calls.js";
import { count, moment, plural } from "../format.js";

// totals are what a rule compares, with the unit of its threshold.
const totals = {
  cost: ["cost", "dollars"], errors: ["errors", ""], requests: ["calls", ""], "latency.p95": ["latency of 95 in 100 calls", "milliseconds"], total_tokens: ["tokens", ""],
  requests_without_cost: ["calls without a price", ""], budget_percent: ["spent of a budget", "percent"], budget_forecast_percent: ["forecast of a budget", "percent"], key_days_left: ["days until a key ends", "days"], lost_records: ["lost records", ""],
};
const lengths = { "5m": "5 minutes", "15m": "15 minutes", "1h": "an hour", "24h": "a day", "168h": "a week" };
const subjects = { "": "all calls together", user: "each user", session: "each session", project: "each project", key: "each key", model: "each model", provider: "each provider", tree: "each agent run" };

const choice = (all, chosen) => Object.entries(all).map(([value, text]) => html`<option value=${value} selected=${value === chosen}>${text}</option>`);

// Alerts shows what fires and what has fired, the rules and the channels.
export function Alerts() {
  const channels = useAnswer("/v1/alerts/channels"), firing = useAnswer("/v1/alerts?limit=200&state=firing");
  return html`<${Answer} state=${firing} empty=${(d) => !d.items.length} none="Nothing fires.">${(d) => html`<h2 class="bad">${plural(d.items.length, "alert")} firing</h2><${Firings} label="Firing" items=${d.items} />`}<//>
    <${Rules} channels=${channels.data?.items || []} /><${Channels} state=${channels} /><${History} />`;
}

const whose = (f) => (f.per ? `${f.per} ${f.subject ?? "(none)"}` : "all calls");

function Firings({ label, items }) {
  const columns = [
    { title: "Alert", cell: (f) => html`<b dir="auto">${f.rule}</b> <span class="quiet">${f.condition}</span>` },
    { title: "Whose", mid: true, cell: (f) => html`<span dir="auto">${whose(f)}</span>` },
    { title: "Value", number: true, cell: (f) => Number(f.value.toPrecision(4)).toLocaleString() },
    { title: "Since", cell: (f) => moment(f.fired_at) },
    { title: "Until", semi: true, cell: (f) => (f.resolved_at ? moment(f.resolved_at) : html`<span class="bad">now</span>`) },
    { title: "Messages", wrap: true, cell: (f) => html`<${Deliveries} f=${f} />` },
  ];
  return html`<${Table} label=${label} columns=${columns} rows=${items} keyOf=${(f) => f.id} />`;
}

// Deliveries says whether channels took the messages about an alert, and sends them again.
function Deliveries({ f }) {
  const [open, show] = useState(false);
  const state = useAnswer("/v1/alerts/" + encodeURIComponent(f.id), open ? undefined : null);
  const [change, failed] = useChange();
  const list = (open && state.data ? state.data.deliveries : f.deliveries) || [];
  const waiting = list.filter((d) => !d.delivered_at);
  return html`<details onToggle=${(e) => show(e.target.open)}><summary>${waiting.length ? html`<span class="bad">▲ ${count(waiting.length)} not delivered</span>` : list.length ? plural(list.length, "message") : "messages"}</summary>
    <ul class="plain">${list.map((d) => html`<li>${d.state} to <b>${d.channel}</b>: ${d.delivered_at ? `delivered ${moment(d.delivered_at)}` : html`<span class="bad">${d.error || "waits"}</span>`}${d.attempts > 1 && `, ${plural(d.attempts, "attempt")}`}</li>`)}</ul>
    <button class="quiet" onClick=${() => change(post(`/v1/alerts/${encodeURIComponent(f.id)}/redeliver`, {}))}>Send again</button>${failed}</details>`;
}

function History() {
  const [{ limit, after = "" }, pager] = useCursor(useView());
  const state = useAnswer(`/v1/alerts?limit=${limit}&after=${after}`);
  return html`<h2>History</h2><${Answer} state=${state} empty=${(d) => !d.items.length} none="No alert has fired yet.">${(d) => html`<${Firings} label="History" items=${d.items} />${pager(d.next)}`}<//>`;
}

function Channels({ state }) {
  const [told, tell] = useState({});
  const test = (name) => post(`/v1/alerts/channels/${encodeURIComponent(name)}/test`, {}).then((d) => tell({ ...told, [name]: d.error ? html`<span class="bad">${d.error}</span>` : html`<span class="good">taken</span>` }), (e) => tell({ ...told, [name]: html`<span class="bad">${e.message}</span>` }));
  const columns = [
    { title: "Channel", cell: (c) => html`<b dir="auto">${c.name}</b>` }, { title: "Kind", cell: (c) => c.kind },
    { title: "Test", wrap: true, cell: (c) => html`<button class="quiet" onClick=${() => test(c.name)}>Send a test</button> ${told[c.name]}` },
  ];
  return html`<h2>Channels</h2><${Answer} state=${state} empty=${(d) => !d.items.length} none="There is no channel yet. The Caddyfile names them in the block llm, because their addresses are secrets: channel ops slack {env.SLACK_WEBHOOK}">${(d) => html`<${Table} label="Channels" columns=${columns} rows=${d.items} keyOf=${(c) => c.name} />`}<//>`;
}

function Rules({ channels }) {
  const state = useAnswer("/v1/alerts/rules");
  const [making, make] = useState(false);
  const [change, failed] = useChange();
  const columns = [
    { title: "Rule", cell: (r) => html`<b dir="auto">${r.name}</b> <span class="quiet">${r.condition}</span>` },
    { title: "Calls", mid: true, cell: (r) => html`<span dir="auto">${sayOf(r.filter)}</span>` },
    { title: "Whose", mid: true, cell: (r) => subjects[r.per || ""] || "each " + r.per },
    { title: "Tells", cell: (r) => r.to.join(", ") },
    { title: "Change", cell: (r) => (r.id ? html`<${Delete} onSure=${() => change(remove("/v1/alerts/rules/" + encodeURIComponent(r.name)))} />` : html`<span class="quiet" title="A rule of the Caddyfile is changed there">in the Caddyfile</span>`) },
  ];
  return html`<div class="bar-row"><h2>Rules</h2><span class="spring"></span>${channels.length > 0 && html`<button class="primary" onClick=${() => make(true)}>Create a rule</button>`}</div>${failed}
    ${making && html`<${Form} channels=${channels} onClose=${() => make(false)} />`}
    <${Answer} state=${state} empty=${(d) => !d.items.length} none="There is no rule yet. A rule tells a channel when a total passes a number: the cost of a user in a day, the errors of an hour.">${(d) => html`<${Table} label="Rules" columns=${columns} rows=${d.items} keyOf=${(r) => r.name} />`}<//>`;
}

// Form makes a rule.
function Form({ channels, onClose }) {
  const dialog = useRef();
  const [change, failed] = useChange(onClose);
  const [total, setTotal] = useState("cost");
  const windowed = !["budget_percent", "budget_forecast_percent", "key_days_left"].includes(total), ofCalls = windowed && total !== "lost_records";
  useEffect(() => dialog.current.showModal(), []);
  const save = (e) => {
    e.preventDefault();
    const form = new FormData(e.target), text = (name) => (form.get(name) || "").trim();
    change(post("/v1/alerts/rules", {
      name: text("name"), total, operator: text("operator"), threshold: Number(text("threshold")), to: form.getAll("to"),
      ...(windowed && { over: text("over") }), ...(text("per") && { per: text("per") }), ...(form.get("than") && { than: "last_week" }),
    }));
  };
  return html`<dialog ref=${dialog} class="help form" aria-label="Create a rule" onClose=${onClose}><form onSubmit=${save}>
      <h2>Create a rule</h2>
      <label>Name <input name="name" required maxlength="100" autofocus placeholder="dear day" /></label>
      <label>When <span class="bar-row"><select aria-label="What is compared" value=${total} onChange=${(e) => setTotal(e.target.value)}>${Object.entries(totals).map(([value, [text]]) => html`<option value=${value}>${text}</option>`)}</select><select name="operator" aria-label="Comparison">${choice({ ">": "above", ">=": "at least", "<": "below", "<=": "at most" }, total === "key_days_left" ? "<=" : ">")}</select><input name="threshold" required inputmode="decimal" pattern="-?[0-9]+([.][0-9]+)?" aria-label="Threshold" placeholder="100" /> ${totals[total][1]}</span></label>
      ${windowed && html`<label>Over <select name="over">${choice(lengths, "1h")}</select></label>`}
      ${ofCalls && html`<label>Of <select name="per">${choice(subjects, "")}</select></label>
      <label class="bar-row"><input type="checkbox" name="than" /> as many times what it was a week before</label>`}
      <fieldset><legend>Tell</legend>${channels.map((c, i) => html`<label class="bar-row"><input type="checkbox" name="to" value=${c.name} defaultChecked=${i === 0} /> ${c.name} <span class="quiet">${c.kind}</span></label>`)}</fieldset>${failed}
      <p class="bar-row"><button class="primary">Create</button><button type="button" onClick=${() => dialog.current.close()}>Cancel</button></p>
    </form></dialog>`;
}
