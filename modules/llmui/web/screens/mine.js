// What a caller has: what they spend and may spend, keys of their own, and the lines that connect a client.
import { html, useState, useEffect } from "../html.js";
import { filter } from "../filter.js";
import { elsewhere, useView } from "../state.js";
import { asked, post, remove, useAnswer, beat, caller } from "../api.js";
import { Answer, Bar, Tile, To, Outcome } from "../parts/basics.js";
import { Exported } from "../parts/csv.js";
import { Delete, Dialog, Form, useChange } from "../parts/form.js";
import { Chart } from "../parts/chart.js";
import { Setup } from "../parts/clients.js";
import { Secret, list, scopes, stateOf } from "./keys.js";
import { compact, count, date, dollars, moment, percent } from "../format.js";

// Mine is about the key with which the caller logged in, or the person.
export function Mine() {
  const v = useView();
  const own = useAnswer("/v1/key");
  const f = own.data?.id ? [{ field: "key_id", op: "equals", value: own.data.id }] : own.data?.user ? [{ field: "user_id", op: "equals", value: own.data.user }] : [];
  const state = useAnswer("/v1/metrics/query", own.data ? asked(v, { filter: filter({ ...v, f, json: "" }) }) : null);
  return html`<${Answer} state=${own}>${(key) => html`
    <p>${key.id ? html`Calls of the key <b dir="auto">${key.name}</b>${key.project && html` in the project <b dir="auto">${key.project}</b>`}${key.expires_at && `, which ends on ${date(key.expires_at)}`}.` : key.user ? html`Calls of <b dir="auto">${key.user}</b>.` : html`This login belongs to no person: you see the calls of the whole organisation <b dir="auto">${key.organization}</b>.`}
      ${" "}You may call ${key.models.length ? key.models.join(", ") : "all models"}${key.providers.length ? ` of ${key.providers.join(", ")}` : ""}.</p>
    ${key.budgets.map((b) => b.accounts.map((a) => html`<div class="limit panel" key=${b.name}><b dir="auto">${b.name}</b> <${Bar} share=${(a.spent + a.reserved) / b.limit} tone=${a.spent + a.reserved >= b.limit && !b.observe ? "bad" : a.spent + a.reserved >= 0.8 * b.limit ? "warn" : ""} />
      <span>${b.quantity === "usd" ? `${dollars(a.spent)} of ${dollars(b.limit)}` : `${count(a.spent)} of ${count(b.limit)} ${b.quantity}`} (${percent(a.spent / b.limit)})${b.ends_at ? `, resets on ${date(b.ends_at)}` : ""}</span></div>`))}
    ${!key.budgets.length && html`<p class="quiet">No budget counts these calls.</p>`}
    <${Answer} state=${state}>${(d) => html`<div class="tiles"><${Tile} label="Cost" value=${dollars(d.totals.cost)} /><${Tile} label="Calls" value=${count(d.totals.requests)} to=${{ ...elsewhere, v: "requests", f }} /><${Tile} label="Failed" value=${count(d.totals.errors)} to=${{ ...elsewhere, v: "errors", f }} /><${Tile} label="Tokens" value=${compact(d.totals.total_tokens)} /></div>
      <div class="charts"><${Chart} title="Cost" times=${d.points.map((p) => Date.parse(p.range_start))} format=${dollars} stacked series=${[{ name: "cost", values: d.points.map((p) => p.cost ?? 0) }]} /></div>`}<//>
    <${OwnKeys} own=${key} />`}<//>`;
}

// OwnKeys are the keys that the caller has created, with what creates more where a project allows it.
function OwnKeys({ own }) {
  const state = useAnswer("/v1/key/keys");
  const [creating, create] = useState(false);
  const [secret, show] = useState(); // the key that has just got its secret
  const [change, failed] = useChange((key) => key?.secret && show(key));
  const keys = state.data?.items || [], allowed = own.key_permissions;
  if (!allowed.length && !keys.length) return html`<p class="quiet">Keys of your own: an administrator can allow them for your project.</p>`;
  return html`<h2>Your keys</h2><p class="bar-row"><span class="quiet">They do no more than you may, and count in your budgets.</span><span class="spring"></span>${allowed.length > 0 && html`<button class="primary" onClick=${() => create(true)}>Create a key</button>`}</p>${failed}
    ${keys.length > 0 && html`<${Exported} label="Your keys" rows=${keys} keyOf=${(k) => k.id} columns=${[
      { title: "Key", cell: (k) => html`<${To} change=${{ ...elsewhere, v: "requests", f: [{ field: "key_id", op: "equals", value: k.id }] }} dir="auto" title=${k.id}>${k.name}<//>` }, { title: "Project", cell: (k) => k.project, semi: true },
      { title: "Models", cell: (k) => k.models?.join(", ") || "all of yours", mid: true }, { title: "Last used", number: true, semi: true, cell: (k) => (k.last_used_at ? moment(k.last_used_at) : "never") }, { title: "Ends", number: true, cell: (k) => date(k.expires_at) }, { title: "State", cell: stateOf, mid: true },
      { title: "Change", cell: (k) => html`${allowed.some((p) => p.project === k.project) && html`<button title="The old secret works for another day" onClick=${() => change(post(`/v1/key/keys/${k.id}/rotate`, {}))}>Rotate</button> `}<${Delete} onSure=${() => change(remove("/v1/key/keys/" + k.id))} />` }]} />`}
    ${creating && html`<${Dialog} label="Create a key" onClose=${() => create(false)}>${(close) => html`<${Fields} own=${own} close=${close} onDone=${show} />`}<//>`}
    ${secret && html`<${Secret} k=${secret} onClose=${() => show()} />`}`;
}

function Fields({ own, close, onDone }) {
  const [change, failed] = useChange((key) => (onDone(key), close()));
  const save = (e) => {
    e.preventDefault();
    const form = new FormData(e.target), days = Number(form.get("days"));
    change(post("/v1/key/keys", { name: form.get("name").trim(), project: form.get("project"), scopes: form.getAll("scope"), models: list(form.get("models")), expires_at: days ? new Date(Date.now() + days * 864e5).toISOString() : null }));
  };
  return html`<${Form} title="Create a key" close=${close} failed=${failed} onSubmit=${save}><label>Name <input name="name" required maxlength="256" autofocus placeholder="laptop" /></label>
    <label>Project <select name="project">${own.key_permissions.map((p) => html`<option>${p.project}</option>`)}</select></label>
    <fieldset><legend>May</legend>${own.scopes.filter((s) => s !== "admin").map((s) => html`<label><input type="checkbox" name="scope" value=${s} defaultChecked=${s === "gateway"} /> ${scopes[s]} <code>${s}</code></label>`)}</fieldset>
    <label>Models <input name="models" placeholder=${own.models.join(", ") || "all of yours"} /></label><label>Ends in days <input name="days" type="number" min="1" placeholder="as late as your project allows" /></label><//>`;
}

const opened = new Date().toISOString();

// Connect makes a key on the spot for whoever may. Others paste theirs.
export function Connect() {
  const [key, setKey] = useState();
  const [change, failed] = useChange(setKey);
  const models = useAnswer("/v1/facets/query", { filter: "all", fields: ["model"] }).data?.fields[0].values;
  const since = { request_response_rmt: key ? { key_id: { equals: key.id } } : { request_created_at: { gte: opened } } };
  const calls = useAnswer("/v1/metrics/query", { filter: since, bucket: "none" }).data?.totals.requests;
  const first = useAnswer("/v1/request/query-clickhouse", calls ? { filter: since, includeContent: false, limit: 1 } : null).data?.[0];
  useEffect(() => {
    const timer = setInterval(() => calls || document.hidden || beat(), 2000);
    return () => clearInterval(timer);
  }, [calls]);
  const create = (e) => {
    e.preventDefault();
    change(post("/v1/keys", { name: new FormData(e.target).get("name").trim(), scopes: ["gateway", "log"] }));
  };
  return html`<ol class="steps"><li><h2>A key</h2>${key ? html`<p>The key <b dir="auto">${key.name}</b> is made. Its secret is in the lines below, and is not shown again.</p>` : caller.admin ? html`<form class="bar-row" onSubmit=${create}><input name="name" required aria-label="Name of the key" placeholder="whose, such as Ada's laptop" /><button class="primary">Create a key</button></form>` : html`<p>Put the key that you were given in place of <code>${"<your key>"}</code>.</p>`}${failed}</li>
    <li><h2>A client</h2><${Setup} secret=${key?.secret} model=${models?.[0]?.value} /></li>
    <li><h2>The first call</h2><p role="status" class=${first ? "good" : "quiet"}>${first ? html`● ${moment(first.request_created_at)}: ${first.model || first.request_path} <${Outcome} record=${first} /> <${To} change=${{ ...elsewhere, v: "requests", from: "24h", to: "", id: first.request_id }}>Look at it<//>` : "○ Waiting for the first call…"}</p></li></ol>`;
}
