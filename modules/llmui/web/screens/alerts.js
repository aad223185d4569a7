// What fires, what has fired, and who is told? For keys of the scope admin.
import { html, useState } from "../html.js";
import { sayOf } from "../filter.js";
import { useView } from "../state.js";
import { post, remove, useAnswer } from "../api.js";
import { Answer, Delete, Table, useChange, useCursor } from "../parts/basics.js";
import { Rule, subjects } from "../parts/rule.js";
import { count, moment, plural } from "../format.js";

// Alerts shows what fires and what has fired, the rules and the channels.
export function Alerts() {
  const channels = useAnswer("/v1/alerts/channels"), firing = useAnswer("/v1/alerts?limit=200&state=firing");
  return html`<${Answer} state=${firing} empty=${(d) => !d.items.length} none="No alert is firing.">${(d) => html`<h2 class="bad">${plural(d.items.length, "alert")} firing</h2><${Firings} label="Firing" items=${d.items} />`}<//>
    <${Rules} /><${Channels} state=${channels} /><${History} />`;
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
  return html`<details onToggle=${(e) => show(e.target.open)}><summary>${waiting.length ? html`<span class="bad">▲ ${count(waiting.length)} not delivered</span>` : plural(list.length, "message")}</summary>
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
  return html`<h2>Channels</h2><${Answer} state=${state} empty=${(d) => !d.items.length} none=${html`There is no channel yet. The Caddyfile names them in the block llm, because their addresses are secrets: <code>channel ops slack {env.SLACK_URL}</code>`}>${(d) => html`<${Table} label="Channels" columns=${columns} rows=${d.items} keyOf=${(c) => c.name} />`}<//>`;
}

function Rules() {
  const state = useAnswer("/v1/alerts/rules");
  const [edited, edit] = useState(); // a rule, {} for a new one
  const [change, failed] = useChange();
  const columns = [
    { title: "Rule", cell: (r) => html`<b dir="auto">${r.name}</b> <span class="quiet">${r.condition}</span>` },
    { title: "Calls", mid: true, cell: (r) => html`<span dir="auto">${sayOf(r.filter)}</span>` },
    { title: "Whose", mid: true, cell: (r) => subjects[r.per || ""] || "each " + r.per },
    { title: "Tells", cell: (r) => r.to.join(", ") },
    { title: "Change", cell: (r) => (r.id ? html`<button class="quiet" onClick=${() => edit(r)}>Edit</button><${Delete} onSure=${() => change(remove("/v1/alerts/rules/" + encodeURIComponent(r.name)))} />` : html`<span class="quiet">in the Caddyfile</span>`) },
  ];
  return html`<div class="bar-row"><h2>Rules</h2><span class="spring"></span><button class="primary" onClick=${() => edit({})}>Create a rule</button></div>${failed}
    ${edited && html`<${Rule} r=${edited.name && edited} v=${{ f: [] }} onClose=${() => edit()} />`}
    <${Answer} state=${state} empty=${(d) => !d.items.length} none="There is no rule yet. A rule tells a channel when a total passes a number: the cost of a user in a day, the errors of an hour.">${(d) => html`<${Table} label="Rules" columns=${columns} rows=${d.items} keyOf=${(r) => r.name} />`}<//>`;
}
