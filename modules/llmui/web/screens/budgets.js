// What may calls cost, who is near it, and where does it lead? For keys of the scope admin.
import { html, useMemo, useState } from "../html.js";
import { attributes, isOf, sayOf } from "../filter.js";
import { elsewhere } from "../state.js";
import { post, remove, useAll } from "../api.js";
import { Bar, To } from "../parts/basics.js";
import { Delete, Dialog, FilterText, Form, Per, options, read, useChange, Warnings } from "../parts/form.js";
import { List } from "../parts/list.js";
import { compact, count, date, dollars, dollarsWith, minuteOf, percent, plural, zone } from "../format.js";

// near is the share of a limit from which on a value stands out, unless a stage says another.
const near = 0.8;

const quantities = { usd: "US dollars", tokens: "tokens", input_tokens: "input tokens", output_tokens: "output tokens", uncached_tokens: "tokens not from a cache", requests: "requests", concurrent: "calls at once" };
const windows = { day: "a day", week: "a week", month: "a month", year: "a year", total: "in all", "1m": "a minute", "1h": "an hour", "24h": "any 24 hours" };

// amountOf shows amounts to the cent, and all of their decimals on demand.
const amountOf = (b) => (b.quantity === "usd" ? (n) => html`<span title=${dollars(n)}>${dollarsWith(2)(n)}</span>` : compact);
const taken = (b, a) => (a.spent + a.reserved) / b.limit;
const warns = (b) => Math.min(near, ...b.stages.map((s) => s.at / 100));

// passed is the share of the window that has passed, NaN for one that moves or has no end.
const passed = (b) => (Date.now() - Date.parse(b.begins_at)) / (Date.parse(b.ends_at) - Date.parse(b.begins_at));

// rowsOf has a row for each value of each budget.
const rowsOf = (budgets) =>
  budgets.flatMap((b) => (b.accounts.length ? b.accounts : [{ value: b.per ? "" : null, spent: 0, reserved: 0, remaining: b.limit, unused: true }]).map((a) => ({ b, a, share: taken(b, a) || 0 })));

function Used({ b, share }) {
  const refused = share >= 1 && !b.observe, warned = share >= warns(b);
  return html`<${Bar} share=${share} tone=${refused ? "bad" : warned ? "warn" : ""} /> <span class=${refused ? "bad" : warned ? "warn" : ""}>${refused ? "▲ " : warned ? "△ " : ""}${percent(share)}</span>`;
}

// about says which calls a budget counts, and what it would have refused if it only observes.
const about = (b) => b.warnings?.[0] || sayOf(b.filter) + (b.observe ? `, observes: would have refused ${plural(b.would_refuse.calls, "call")} of ${plural(b.would_refuse.callers, "caller")}` : "");

// callsOf leads to the calls in the window of an account.
const callsOf = (b, a) => ({ ...elsewhere, v: "requests", json: b.filter ? JSON.stringify(b.filter) : "", f: a.value && attributes[b.per] ? [isOf(attributes[b.per], a.value)] : [], from: b.begins_at ? String(Date.parse(b.begins_at)) : /\d/.test(b.window) ? b.window : "all", to: "" });

const columns = (edit, change) => [
  { title: "Budget", key: "name", by: ({ b }) => b.name.toLowerCase(), text: true, cell: ({ b, a }) => html`<${To} change=${callsOf(b, a)} dir="auto"><b>${b.name}</b><//> <span class=${b.warnings ? "bad" : "quiet"} title=${about(b)}>${about(b)}</span>` },
  { title: "Whose", key: "whose", by: ({ a }) => a.value || "", cell: ({ b, a }) => html`<span dir="auto">${a.value === null ? "all together" : a.unused ? `each ${b.per}` : a.value || `calls without a ${b.per}`}</span>` },
  { title: "Used", key: "used", by: ({ share }) => share, cell: ({ b, share }) => html`<${Used} b=${b} share=${share} />` },
  { title: "Spent", key: "spent", by: ({ a }) => a.spent, raw: ({ a }) => a.spent, number: true, semi: true, cell: ({ b, a }) => amountOf(b)(a.spent) },
  { title: "Reserved", number: true, vast: true, cell: ({ b, a }) => amountOf(b)(a.reserved) },
  { title: "Limit", key: "limit", by: ({ b }) => b.limit, number: true, mid: true, cell: ({ b }) => html`${amountOf(b)(b.limit)} <span class="quiet unit">${b.quantity === "usd" ? "" : quantities[b.quantity] + " "}${windows[b.window] || (b.window && `in ${b.window}`)}</span>` },
  { title: "Remaining", key: "remaining", by: ({ a }) => a.remaining, raw: ({ a }) => a.remaining, number: true, semi: true, cell: ({ b, a }) => amountOf(b)(a.remaining) },
  { title: "Forecast", number: true, semi: true, cell: ({ b, a }) => (passed(b) > 0 ? html`<span class=${a.spent / passed(b) > b.limit ? "bad" : ""} title="spent by the end of the window, at the pace so far">${amountOf(b)(a.spent / passed(b))}</span>` : "—") },
  { title: "Resets", key: "resets", by: ({ b }) => b.ends_at || "9", wide: true, cell: ({ b }) => (b.ends_at ? html`<span title=${`${minuteOf(Date.parse(b.ends_at))}; the window is that of ${b.timezone}`}>${date(b.ends_at)}</span>` : b.window === "total" ? "never" : "—") },
  { title: "Change", mid: true, cell: ({ b }) => (b.id ? html`<button class="quiet" onClick=${() => edit(b)}>Edit</button><${To} change=${{ ...elsewhere, v: "audit", find: b.id }}>Audit<//><${Delete} onSure=${() => change(remove("/v1/budgets/" + encodeURIComponent(b.name)))} />` : html`<span class="quiet">in the Caddyfile</span>`) },
];

// Budgets shows what budgets count and where that leads, and creates, changes and deletes them.
export function Budgets() {
  const state = useAll("/v1/budgets?values=200");
  const [edited, edit] = useState(); // a budget, {} for a new one
  const [change, failed] = useChange();
  const [changed, done] = useState();
  const rows = useMemo(() => state.data && rowsOf(state.data), [state.data]), close = rows?.filter(({ b, share }) => share >= warns(b)).length;
  const shown = useMemo(() => columns(edit, change), []);
  return html`${failed}<${Warnings} of=${changed} />
    ${edited && html`<${Dialog} label=${edited.name ? "Edit the budget " + edited.name : "Create a budget"} onClose=${() => edit()}>${(close) => html`<${Settings} b=${edited} close=${close} onDone=${done} />`}<//>`}
    <${List} label="Budgets" noun="budget" thingOf=${({ b }) => b} find="name, project, user…" remark=${html`, ${close ? html`<span class="warn">${count(close)} near the limit</span>` : "none near the limit"}`} columns=${shown} first="-used" state=${state} rows=${rows}
      textOf=${({ b, a }) => [b.name, about(b), a.value].join("\n")} keyOf=${({ b, a }) => b.name + "\n" + (a.value ?? "")}
      none="There is no budget yet. A budget refuses calls before they cost more than its limit: $500 a month for a project, $5 a day for each user."><button class="primary" onClick=${() => edit({})}>Create a budget</button><//>`;
}

// scopeOf is the attribute and the value of a filter that the form can show, else null.
function scopeOf(filter) {
  if (!filter || filter === "all") return ["", ""];
  const [[field, operation]] = Object.entries(filter.request_response_rmt || { "": {} });
  const attribute = Object.keys(attributes).find((a) => attributes[a] === field);
  return attribute && Object.keys(operation).join() === "equals" ? [attribute, operation.equals] : null;
}

// Stages are the parts of a limit at which Weir reports, and may send calls to other models.
function Stages({ stages }) {
  const [list, set] = useState(stages.map((s, key) => ({ ...s, key })));
  return html`<fieldset class="rows"><legend>When a part of the limit is spent</legend>${list.map(({ key, at, use }) => html`<span class="bar-row" key=${key}>at <input name="at" type="number" min="1" max="100" required aria-label="Percent of the limit" defaultValue=${at} /> % report, and call <input name="use" aria-label="Alias to call in place of the model" placeholder="the same models" defaultValue=${use || ""} />
      <button type="button" class="quiet" aria-label="Remove the stage" onClick=${() => set(list.filter((s) => s.key !== key))}>✕</button></span>`)}
    <button type="button" class="quiet" onClick=${() => set([...list, { key: Date.now(), at: "" }])}>Add a stage</button></fieldset>`;
}

// Settings creates a budget, or changes one. The name and the filter say what was counted: a budget
// with other ones begins again at 0.
function Settings({ b, close, onDone }) {
  const [change, failed] = useChange((budget) => (onDone(budget), close()));
  const scope = scopeOf(b.filter);
  const [attribute, setAttribute] = useState(scope ? scope[0] : "other");
  const [quantity, setQuantity] = useState(b.quantity || "usd"), [window, setWindow] = useState(Object.hasOwn(windows, b.window || "month") ? b.window || "month" : "other");
  const settings = (target) => {
    const text = read(target), uses = text.all("use");
    const settings = {
      name: b.name || text("name"), limit: text("limit"), quantity, observe: Boolean(text("observe")), trust: Boolean(text("trust")), cut: Boolean(text("cut")), wait: text("wait"), on_unpriced: text("on_unpriced"), since: text("since"),
      window: quantity === "concurrent" ? "" : text("length") || window, timezone: text("timezone"), per: text.per(),
      filter: attribute === "other" ? text.filter() : attribute && { request_response_rmt: { [attributes[attribute]]: { equals: text("value") } } },
      stages: text.all("at").map((at, i) => ({ at: Number(at), ...(uses[i].trim() && { use: uses[i].trim() }) })),
    };
    return Object.fromEntries(Object.entries(settings).filter(([, value]) => value && value.length !== 0));
  };
  const [trial, setTrial] = useState({}); // {asking}, {error} or what the API answers
  const attempt = ({ target: { form } }) => {
    const { limit, value, days } = form.elements;
    if (!limit.reportValidity() || (value && !value.reportValidity())) return;
    setTrial({ asking: true });
    // Records have no other names than those that calls say of themselves.
    post("/v1/budgets/try", { budget: { ...settings(form), name: "trial", trust: true }, from: new Date(Date.now() - days.value * 864e5).toISOString(), limit: 0 }).then(setTrial, (error) => setTrial({ error: error.message }));
  };
  const save = (e) => {
    e.preventDefault();
    change(() => post("/v1/budgets", settings(e.target)));
  };
  return html`<${Form} title=${b.name || "Create a budget"} action=${b.name ? "Save" : "Create"} close=${close} failed=${failed} onSubmit=${save} onInput=${() => setTrial({})}>
      ${!b.name && html`<label>Name <input name="name" required maxlength="100" autofocus placeholder="search team" /></label>`}
      <label>Limit <span class="bar-row"><input name="limit" required inputmode="decimal" pattern="[0-9]+([.][0-9]+)?" defaultValue=${b.limit ?? ""} placeholder="500" /><select aria-label="What counts" value=${quantity} onChange=${(e) => setQuantity(e.target.value)}>${options(quantities, quantity)}</select>${quantity !== "concurrent" && html`<select aria-label="Window" value=${window} onChange=${(e) => setWindow(e.target.value)}>${options({ ...windows, other: "in another time…" }, window)}</select>${window === "other" && html`<input name="length" required size="6" aria-label="Length of the window" placeholder="12h" defaultValue=${b.window || ""} />`}`}</span></label>
      <label>Counts <span class="bar-row"><select aria-label="Which calls count" value=${attribute} onChange=${(e) => setAttribute(e.target.value)}><option value="">all calls</option>${Object.keys(attributes).map((a) => html`<option value=${a}>calls of one ${a}</option>`)}<option value="other">calls of a filter…</option></select>${attribute && attribute !== "other" && html`<input name="value" required aria-label=${"Which " + attribute} placeholder=${attribute} defaultValue=${scope?.[1] || ""} />`}</span></label>
      ${attribute === "other" && html`<${FilterText} filter=${b.filter} required />`}
      <label>Give each its own limit <${Per} per=${b.per} all="no, all share it" /></label>
      <${Stages} stages=${b.name ? b.stages : [{ at: 80 }]} />
      <label class="bar-row"><input type="checkbox" name="observe" defaultChecked=${b.observe} /> Observe: refuse nothing, and count what it would refuse</label>
      <details open=${Boolean(b.trust || b.cut || b.since || b.on_unpriced === "pass" || (b.wait && b.wait !== "0s"))}><summary>More settings</summary>
      <label class="bar-row"><input type="checkbox" name="trust" defaultChecked=${b.trust} /> Believe the users, sessions and properties that calls name</label>
      <label class="bar-row"><input type="checkbox" name="cut" defaultChecked=${b.cut} /> Cut: let a stream begin that may not fit, and end it at the limit</label>
      <label>A call that does not fit waits <input name="wait" placeholder="0s: it is refused at once" defaultValue=${b.wait && b.wait !== "0s" ? b.wait : ""} /></label>
      <label>A call without a price <select name="on_unpriced">${options({ refuse: "is refused", pass: "passes, and counts nothing" }, b.on_unpriced || "refuse")}</select></label>
      ${quantity !== "concurrent" && /^(day|week|month|year)$/.test(window) && html`<label>Time zone of the window <input name="timezone" defaultValue=${b.timezone || zone} /></label>`}
      <label>Begins with the records since <input name="since" placeholder="it begins at zero; or 2026-11-01" defaultValue=${b.since || ""} /></label></details>
      ${b.name && html`<p class="quiet">If you change which calls count, the budget starts again at zero.</p>`}
      <div class="bar-row"><button type="button" onClick=${attempt} disabled=${trial.asking}>Try it on past calls</button><select name="days" aria-label="Which past calls">${options({ 7: "of 7 days", 30: "of 30 days", 90: "of 90 days" }, "30")}</select></div>
      <${Tried} t=${trial} /><//>`;
}

// Tried says what a budget would have refused.
function Tried({ t }) {
  if (t.asking) return html`<p class="quiet" role="status">Reading the calls…</p>`;
  if (t.error) return html`<p class="notice bad" role="alert">${t.error}</p>`;
  if (t.calls === undefined) return null;
  const amount = (n) => (t.quantity === "usd" ? dollars(n) : `${count(n)} ${quantities[t.quantity]}`);
  return html`<p role="status">Of ${plural(t.calls, "call")}, ${t.refused ? html`<b class="warn">${count(t.refused)} would have been refused</b>, of ${plural(t.callers, "caller")}, the first on ${date(t.first_refused_at)}. ${amount(t.spared)} would have been left out, and ${amount(t.admitted)} counted` : html`<b>none would have been refused</b>. ${amount(t.admitted)} would have counted`}.${t.unpriced > 0 && ` ${plural(t.unpriced, "call")} had no price.`}</p>`;
}
