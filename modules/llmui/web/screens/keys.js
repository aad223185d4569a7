// Which keys are there, whose are they, what may they call, what do they cost? For keys of the
// scope admin.
import { html, useMemo, useState } from "../html.js";
import { attributes, filter } from "../filter.js";
import { elsewhere, go, having, useView } from "../state.js";
import { patch, post, remove, useAll, useAnswer, useCosts, useMetrics } from "../api.js";
import { Bar, Copy, Later, Tile, To } from "../parts/basics.js";
import { Delete, Dialog, Form, Warnings, read, useChange } from "../parts/form.js";
import { List } from "../parts/list.js";
import { Setup } from "../parts/clients.js";
import { count, date, dollars, dollarsWith, minuteOf, moment, percent, timeOf } from "../format.js";

// scopes are what a key may do.
export const scopes = { gateway: "call models", log: "record calls", metrics: "read totals", query: "read calls", write: "rate and report", admin: "administer" };
const overlaps = { 0: "at once", 3600: "after an hour", 86400: "after a day", 604800: "after a week" };
export const list = (text) => text.split(/[,\s]+/).filter(Boolean);

// stateOf is whether a key works.
export const stateOf = (k) => (k.disabled ? "disabled" : k.expires_at && Date.parse(k.expires_at) < Date.now() ? "expired" : "active");

// nearer orders accounts: those first that are nearer to their limit, and have less left.
const nearer = (x, y) => y.share - x.share || x.a.remaining - y.a.remaining;

// placed are the accounts of budgets by what they count alone, a key, a project or a user: the
// account that is nearest to its limit. A budget of one that has counted nothing has all of its limit.
export function placed(budgets) {
  const found = new Map();
  for (const b of budgets) {
    const [[field, operation]] = Object.entries(b.filter?.request_response_rmt || { "": {} });
    const of = Object.keys(attributes).find((name) => attributes[name] === field);
    for (const a of b.accounts.length || b.per ? b.accounts : [{ spent: 0, reserved: 0, remaining: b.limit }]) {
      const at = b.per ? b.per + a.value : "equals" in operation && of + operation.equals;
      found.set(at, [{ b, a, share: (a.spent + a.reserved) / b.limit || 0 }, ...(found.get(at) || [])].sort(nearer).slice(0, 1));
    }
  }
  return found;
}

// budgetOf is the account that is nearest to its limit of those of the key, its project and its user.
const budgetOf = (k, found) => ["key" + k.id, k.project && "project" + k.project, k.user && "user" + k.user].flatMap((at) => found.get(at) || []).sort(nearer)[0];

const amount = (b, n, text = dollars) => (b.quantity === "usd" ? text(n) : count(n)), toCents = dollarsWith(2);

// BudgetLeft is the cell of what is left of a budget.
export const BudgetLeft = ({ of: f, total }) => (f ? html`<span class=${f.share >= 1 ? "bad" : f.share >= 0.8 ? "warn" : ""} title=${`${f.b.name}: ${percent(f.share)} used, ${amount(f.b, f.a.remaining)} left`}>${amount(f.b, f.a.remaining, toCents)}</span>${total && html` <span class="quiet">of ${amount(f.b, f.b.limit, toCents)}</span>`}` : "—");
// leastLeft sorts by it.
export const leastLeft = ({ budget: f }) => -(f?.share ?? -1);

// columns are those of the list, after the one that chooses.
const columns = [
  { title: "Key", key: "name", by: (k) => k.name.toLowerCase(), cell: (k) => html`<${To} change=${{ id: k.id }} dir="auto" title=${k.id}>${k.name}<//>` },
  { title: "Project", key: "project", by: (k) => k.project || "", cell: (k) => k.project || "—", mid: true },
  { title: "Owner", key: "owner", by: (k) => k.owner || "", cell: (k) => html`<span dir="auto">${k.owner || "—"}</span>`, semi: true },
  { title: "Models", key: "models", by: (k) => (k.models || []).join(), cell: (k) => html`<span title=${(k.models || []).join(", ")}>${k.models?.length ? k.models.join(", ") : "all"}</span>`, wide: true },
  { title: "May", key: "scopes", by: (k) => k.scopes.join(), cell: (k) => html`<span title=${k.scopes.map((s) => scopes[s]).join(", ")}>${k.scopes.join(", ")}</span>`, mid: true },
  { title: "Cost", key: "cost", by: (k) => k.cost ?? -1, dollars: (k) => k.cost, around: (text, k) => html`<${To} change=${having("key_id", k.id)}>${text}<//>` },
  { title: "Budget left", key: "budget", by: leastLeft, number: true, mid: true, cell: (k) => html`<${BudgetLeft} of=${k.budget} />` },
  { title: "Last used", key: "used", by: (k) => k.last_used_at || "", raw: (k) => k.last_used_at || "never", number: true, cell: (k) => (k.last_used_at ? moment(k.last_used_at) : "never"), semi: true },
  { title: "Ends", key: "expires", by: (k) => k.expires_at || "9", number: true, cell: (k) => (k.expires_at ? date(k.expires_at) : "never"), wide: true },
  { title: "State", key: "state", by: stateOf, cell: (k) => html`<span class=${stateOf(k) === "active" ? "" : "bad"}>${stateOf(k)}</span>` },
];

// Keys lists all keys; those that are chosen are disabled or deleted together.
export function Keys() {
  const v = useView();
  const keys = useAll("/v1/keys"), budgets = useAll("/v1/budgets?values=200");
  const costs = useCosts(v, "key_id");
  const [chosen, choose] = useState(new Set());
  const [creating, create] = useState(false);
  const [importing, fill] = useState(false);
  const [secret, show] = useState(); // the key that has just got its secret
  const [change, failed] = useChange(() => choose(new Set()));
  const rows = useMemo(() => {
    const accounts = placed(budgets.data || []);
    return keys.data?.map((k) => ({ ...k, cost: costs && (costs.get(k.id)?.cost ?? 0), budget: budgetOf(k, accounts) }));
  }, [keys.data, budgets.data, costs]);
  const shown = useMemo(() => [
    { title: "Choose", unseen: true, cell: (k) => html`<input type="checkbox" aria-label=${"Choose " + k.name} checked=${chosen.has(k.id)} onChange=${() => choose(chosen.has(k.id) ? new Set([...chosen].filter((id) => id !== k.id)) : new Set([...chosen, k.id]))} />` },
    ...columns,
  ], [chosen]);
  const each = (f) => change(Promise.all([...chosen].map(f)));
  const one = v.id && rows?.find((k) => k.id === v.id), opened = secret && html`<${Secret} k=${secret} onClose=${() => show()} />`;
  if (one) return html`<${Key} k=${one} onSecret=${show} />${opened}`;
  return html`${failed}<${List} label="API keys" noun="key" find="name, owner, project, model…" columns=${shown} first="name" state=${keys} rows=${rows} keyOf=${(k) => k.id}
      textOf=${(k) => [k.name, k.id, k.owner, k.project, k.user, stateOf(k), k.models, k.scopes].join("\n")}
      none="There is no key yet. Create one for a person, a team or a service: it says who calls, what they may call, and until when.">
      ${chosen.size > 0 && html`<button onClick=${() => each((id) => patch("/v1/keys/" + id, { disabled: true }))}>Disable ${count(chosen.size)}</button><button onClick=${() => each((id) => patch("/v1/keys/" + id, { disabled: false }))}>Enable</button><${Delete} onSure=${() => each((id) => remove("/v1/keys/" + id))} />`}
      <button onClick=${() => fill(true)}>Import…</button><button class="primary" onClick=${() => create(true)}>Create a key</button><//>
    ${importing && html`<${Later} file="../parts/importkeys" name="ImportKeys" onClose=${() => fill(false)} />`}
    ${creating && html`<${KeyForm} onClose=${() => create(false)} onDone=${show} />`}${opened}`;
}

// Key is the page of one key.
function Key({ k, onSecret }) {
  const v = useView();
  const [editing, edit] = useState(false);
  const [changed, done] = useState();
  const [overlap, setOverlap] = useState(86400);
  const [change, failed] = useChange((key) => key?.secret && onSecret(key));
  const totals = useMetrics(v, { filter: filter({ ...v, f: [{ field: "key_id", op: "equals", value: k.id }], json: "" }), bucket: "none" }).data?.totals;
  const back = { ...elsewhere };
  return html`<header class="heading bar-row"><h2><span class="quiet">Key</span> <bdi>${k.name}</bdi></h2><${To} change=${back}>All keys<//><${To} change=${having("key_id", k.id, [])}>Its calls<//><${To} change=${{ ...elsewhere, v: "audit", find: k.id }}>Its audit<//></header>${failed}<${Warnings} of=${changed} />
    <div class="tiles"><${Tile} label="Cost" value=${dollars(totals?.cost)} /><${Tile} label="Calls" value=${count(totals?.requests)} detail=${totals?.errors ? `${count(totals.errors)} failed` : ""} /><${Tile} label="Last used" value=${k.last_used_at ? moment(k.last_used_at) : "never"} />
      ${k.budget && html`<${Tile} label=${"Left of " + k.budget.b.name} value=${amount(k.budget.b, k.budget.a.remaining)} detail=${html`<${Bar} share=${k.budget.share} tone=${k.budget.share >= 1 ? "bad" : k.budget.share >= 0.8 ? "warn" : ""} />`} />`}</div>
    <dl class="facts panel"><dt>State</dt><dd>${stateOf(k)}</dd><dt>Project</dt><dd>${k.project || "none"}</dd><dt>Owner</dt><dd>${k.owner || "nobody"}</dd><dt>User of its calls</dt><dd>${k.user || "as each call says"}</dd>
      <dt>May</dt><dd>${k.scopes.map((s) => scopes[s] || s).join(", ")}</dd><dt>Models</dt><dd>${k.models?.join(", ") || "all"}</dd><dt>Providers</dt><dd>${k.providers?.join(", ") || "all"}</dd>
      <dt>Properties of its calls</dt><dd>${Object.entries(k.properties || {}).map(([n, value]) => `${n}: ${value}`).join(", ") || "none"}</dd><dt>Calls may set</dt><dd>${k.trust?.join(", ") || "nothing that budgets count by"}</dd><dt>Masked</dt><dd>${masks(k.mask) || "as the organisation's"}</dd>
      <dt>Created</dt><dd>${minuteOf(Date.parse(k.created_at))}</dd><dt>Ends</dt><dd>${k.expires_at ? minuteOf(Date.parse(k.expires_at)) : "never"}</dd>
      <dt>Secrets</dt><dd>${k.secrets.map((s) => `…${s.last4}, since ${date(s.created_at)}${s.ends_at ? `, ends ${moment(s.ends_at)}` : ""}`).join("; ")}</dd></dl>
    <p class="bar-row"><button class="primary" onClick=${() => edit(true)}>Edit</button><button onClick=${() => change(post(`/v1/keys/${k.id}/rotate`, { overlap_seconds: overlap }))}>Rotate</button>
      <label>the old secret ends <select value=${overlap} onChange=${(e) => setOverlap(Number(e.target.value))}>${Object.entries(overlaps).map(([n, text]) => html`<option value=${n}>${text}</option>`)}</select></label><span class="spring"></span>
      <button onClick=${() => change(patch("/v1/keys/" + k.id, { disabled: !k.disabled }))}>${k.disabled ? "Enable" : "Disable"}</button><${Delete} onSure=${() => change(remove("/v1/keys/" + k.id).then(() => go(back, true)))} /></p>
    ${editing && html`<${KeyForm} k=${k} onClose=${() => edit(false)} onDone=${done} />`}`;
}

// Secret shows a secret once, with what to paste where.
export function Secret({ k, onClose }) {
  return html`<${Dialog} label=${"The secret of " + k.name} onClose=${onClose}>${() => html`<h2>${k.name}</h2>
    <p role="status">This is the only time that the secret is shown: <code>${k.secret}</code> <${Copy} text=${() => k.secret} /></p><${Warnings} of=${k} />
    ${k.scopes.includes("gateway") && html`<${Setup} secret=${k.secret} />`}
    <form method="dialog"><button class="primary">Done</button></form>`}<//>`;
}

// Form creates a key, in a project if one is given, or changes all that the API can change of one.
export const KeyForm = ({ k, project, onClose, onDone }) => html`<${Dialog} label=${k ? "Edit " + k.name : "Create a key"} onClose=${onClose}>${(close) => html`<${Fields} k=${k} project=${project} close=${close} onDone=${onDone} />`}<//>`;

// masks are rules as a field takes them: the kinds of a rule that has nothing else, or JSON.
const masks = (rules = []) => (rules.length === 1 && Object.keys(rules[0]).join() === "kinds" ? rules[0].kinds.join(", ") : rules.length ? JSON.stringify(rules) : "");

function Fields({ k, project, close, onDone }) {
  const projects = useAnswer("/v1/organization/projects?limit=100");
  const [change, failed] = useChange((key) => (onDone?.(key), close()));
  const save = (e) => {
    e.preventDefault();
    const text = read(e.target);
    const ends = text("expires_at"), at = e.target.elements.expires_at, time = ends && timeOf(ends);
    at.setCustomValidity(Number.isNaN(time) ? "Write a time as " + minuteOf(Date.now()) : "");
    if (!at.reportValidity()) return;
    const lines = text("properties").split("\n").filter(Boolean).map((line) => line.split("=").map((part) => part.trim()));
    const settings = () => ({
      name: text("name"), owner: text("owner"), project: text("project"), user: text("user"), scopes: text.all("scope"), models: list(text("models")), providers: list(text("providers")),
      properties: Object.fromEntries(lines), mask: text("mask").startsWith("[") ? JSON.parse(text("mask")) : text("mask") ? [{ kinds: list(text("mask")) }] : [], trust: text.all("trust"), expires_at: ends ? new Date(time).toISOString() : null,
    });
    change(() => (k ? patch("/v1/keys/" + k.id, settings()) : post("/v1/keys", settings())));
  };
  const field = (name, label, value, rest) => html`<label>${label} <input name=${name} defaultValue=${value || ""} ...${rest} /></label>`;
  return html`<${Form} title=${k ? k.name : "Create a key"} action=${k ? "Save" : "Create"} close=${close} failed=${failed} onSubmit=${save}>
      ${field("name", "Name", k?.name, { required: true, maxlength: 256, autofocus: true, placeholder: "search team" })}
      ${field("project", "Project", k?.project || project, { list: "projects", placeholder: "whose limits hold for the key" })}<datalist id="projects">${(projects.data || []).map((p) => html`<option value=${p.name}></option>`)}</datalist>
      ${field("owner", "Owner", k?.owner, { placeholder: "who answers for the key" })}
      <fieldset><legend>May</legend>${Object.entries(scopes).map(([s, text]) => html`<label><input type="checkbox" name="scope" value=${s} defaultChecked=${k ? k.scopes.includes(s) : s === "gateway"} /> ${text} <code>${s}</code></label>`)}</fieldset>
      <details open=${Boolean(k)}><summary>Limits and labels</summary>
      ${field("models", "Models", k?.models?.join(", "), { placeholder: "all; or gpt-5, claude-*" })}${field("providers", "Providers", k?.providers?.join(", "), { placeholder: "all" })}
      ${field("expires_at", "Ends", k?.expires_at && minuteOf(Date.parse(k.expires_at)), { placeholder: "never" })}${field("user", "User of its calls", k?.user, { placeholder: "as each call says" })}
      <label>Properties of its calls <textarea name="properties" rows="2" placeholder="Team = search">${Object.entries(k?.properties || {}).map(([n, value]) => `${n} = ${value}`).join("\n")}</textarea></label>
      ${field("mask", "Masked in what is stored", masks(k?.mask), { placeholder: "as the organisation's; or email, card, or rules in JSON" })}
      <fieldset><legend>Calls may set what budgets count by</legend>${["user", "session", "properties"].map((t) => html`<label><input type="checkbox" name="trust" value=${t} defaultChecked=${k?.trust?.includes(t)} /> ${t}</label>`)}</fieldset></details><//>`;
}
