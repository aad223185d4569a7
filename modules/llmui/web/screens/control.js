// Who may call, in which projects, and who changed that? For keys of the scope admin.
import { html, useMemo, useState } from "../html.js";
import { elsewhere, go, useView, having } from "../state.js";
import { itemsOf, post, remove, useAll, useAnswer, useCosts } from "../api.js";
import { Answer, Table, To, useCursor, Tile } from "../parts/basics.js";
import { Delete, Dialog, Form, options, useChange } from "../parts/form.js";
import { Export, Exported } from "../parts/csv.js";
import { List } from "../parts/list.js";
import { BudgetLeft, KeyForm, Secret, leastLeft, list, placed, scopes } from "./keys.js";
import { count, moment, plural, date, dollars } from "../format.js";

const roles = ["reader", "member", "owner"];
const choice = (names) => names.map((name) => html`<option>${name}</option>`);

// peopleOf are the members and the owners of keys by their name, which is a member's email.
function peopleOf(members, keys, costs) {
  const people = new Map();
  const person = (name) => people.get(name) || people.set(name, { name, may: new Set(), ids: [], used: "" }).get(name);
  for (const m of members) Object.assign(person(m.email), { member: m, used: m.api_key_last_used_at ? new Date(m.api_key_last_used_at * 1000).toISOString() : "" });
  for (const k of keys) {
    const p = person(k.owner || "");
    p.ids.push(k.id);
    if (!k.disabled) k.scopes.forEach((s) => p.may.add(s));
    if (k.last_used_at > p.used) p.used = k.last_used_at;
  }
  return [...people.values()].map((p) => ({ ...p, may: Object.keys(scopes).filter((s) => p.may.has(s)).join(", "), cost: costs && p.ids.reduce((sum, id) => sum + (costs.get(id)?.cost || 0), 0) }));
}

// People lists the members, with their roles, and the owners of keys, with what all of their keys may do.
export function People() {
  const members = useAll("/v1/organization/users"), keys = useAll("/v1/keys"), costs = useCosts(useView(), "key_id");
  const [inviting, invite] = useState(false);
  const [change, failed] = useChange(() => invite(false));
  const rows = useMemo(() => members.data && keys.data && peopleOf(members.data, keys.data, costs), [members.data, keys.data, costs]);
  const path = (m) => "/v1/organization/users/" + m.id;
  const columns = useMemo(() => [
    { title: "Person", key: "name", by: (p) => p.name.toLowerCase(), cell: ({ name, member: m }) => (m ? html`<${To} change=${{ v: "audit", find: m.id }} title=${m.name}>${name}<//>` : html`<span dir="auto" title=${name}>${name || "(nobody)"}</span>`) },
    { title: "Role", key: "role", by: (p) => roles.indexOf(p.member?.role), raw: (p) => p.member?.role || "not a member", cell: ({ member: m }) => (m ? html`<select aria-label=${"Role of " + m.email} value=${m.role} onChange=${(e) => change(post(path(m), { role: e.target.value }))}>${choice(roles)}</select>` : html`<span class="quiet">not a member</span>`) },
    { title: "Projects", semi: true, cell: (p) => p.member?.projects.data.map(({ name }) => name).join(", ") },
    { title: "Keys", key: "keys", by: (p) => p.ids.length, number: true, cell: (p) => html`<${To} change=${{ ...elsewhere, v: "keys", find: p.name }}>${count(p.ids.length)}<//>` },
    { title: "Keys may", key: "may", by: (p) => p.may, semi: true, cell: (p) => p.may },
    { title: "Last seen", key: "used", by: (p) => p.used, raw: (p) => p.used || "never", number: true, mid: true, cell: (p) => (p.used ? moment(p.used) : "never") },
    { title: "Cost", key: "cost", by: (p) => p.cost ?? -1, dollars: (p) => p.cost, around: (text, p) => html`<${To} change=${{ ...elsewhere, v: "requests", f: [{ field: "key_id", op: "in", value: p.ids.join() }] }}>${text}<//>` },
    { title: "Change", cell: ({ member: m }) => m && html`<${Delete} onSure=${() => change(remove(path(m)))} />` },
  ], []);
  return html`${failed}<${List} label="People" noun="person" nouns="people" find="name, project, role…" columns=${columns} first="-used" state=${keys.data ? members : keys} rows=${rows} keyOf=${(p) => p.name} textOf=${(p) => [p.name, p.member?.name, p.member?.role, p.member?.projects.data.map(({ name }) => name), p.may].join("\n")}
      none="Nobody owns a key, and nobody is a member yet."><button class="primary" onClick=${() => invite(true)}>Invite</button><//>
    ${inviting && html`<${Dialog} label="Invite a person" onClose=${() => invite(false)}>${(close) => html`<${Form} title="Invite a person" action="Invite" close=${close} failed=${failed} onSubmit=${(e) => (e.preventDefault(), change(post("/v1/organization/invites", Object.fromEntries(new FormData(e.target)))))}>
      <label>Email <input name="email" type="email" required autofocus placeholder="ada@example.com" /></label><label>Role <select name="role">${choice(["reader", "owner"])}</select></label>
      <p class="quiet">They have the role as soon as they log in.</p><//>`}<//>`}`;
}

// Audit lists changes of objects, or reads of content.
export function Audit() {
  const v = useView();
  const [{ limit, after = "" }, pager] = useCursor(v, v.find, v.show), question = `/v1/audit?key=${encodeURIComponent(v.find)}&reads=${v.show === "reads"}`;
  const state = useAnswer(`${question}&limit=${limit}&before=${after}`);
  const keys = useAll("/v1/keys").data, members = useAll("/v1/organization/users").data;
  const events = useMemo(() => eventsBy(new Map([...(keys || []), ...(members || [])].map((o) => [o.id, o.email || o.name]))), [keys, members]);
  return html`<div class="bar-row"><select aria-label="Events" value=${v.show} onChange=${(e) => go({ show: e.target.value })}><option value="">Changes</option><option value="reads">Reads of content</option></select><label class="choose">Object <input value=${v.find} placeholder="id of a key, a call…" onChange=${(e) => go({ find: e.target.value.trim() })} /></label><span class="spring"></span><${Export} name="audit" columns=${events} pages=${() => itemsOf(question, "before")} /></div>
    <${Answer} state=${state} empty=${(d) => !d.items.length} none="Nothing yet.">${(d) => html`<${Table} label="Audit" columns=${events} rows=${d.items} keyOf=${(e) => e.id} />${pager(d.next)}`}<//>`;
}

// eventsBy are the columns of events. names are those of keys and people, by their ids.
const eventsBy = (names) => [
  { title: "Time", raw: (e) => e.at, cell: (e) => moment(e.at) }, { title: "What", cell: (e) => e.action },
  { title: "Object", cell: (e) => html`<${To} change=${{ find: e.object }} title=${e.object}>${(({ name, email, rule, path }) => name || email || rule || (path && e.object === "requests" ? path : ""))(e.after || e.before) || e.object}<//>` },
  { title: "By", mid: true, cell: (e) => html`<span dir="auto" title=${e.actor.key}>${names.get(e.actor.key) || e.actor.key}</span>` }, { title: "From", semi: true, cell: (e) => e.actor.address },
  { title: "Before and after", mid: true, wrap: true, raw: ({ before, after }) => JSON.stringify({ before, after }), cell: ({ before, after }) => {
    const changed = Object.keys({ ...before, ...after }).filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]));
    return html`<details><summary>${before && after ? changed.join(", ") || "nothing" : plural(changed.length, "field")}</summary><dl class="texts">${changed.map((name) => html`<dt>${name}</dt><dd>${before && html`<del>${JSON.stringify(before[name])}</del> `}${after && html`<ins>${JSON.stringify(after[name])}</ins>`}</dd>`)}</dl></details>`;
  } },
];

const projectPath = (p) => "/v1/organization/projects/" + p.id;

// limit sets what a project may spend in a month, in cents.
const limit = (p, cents) => post(projectPath(p) + "/spend_limit", { threshold_amount: cents, currency: "USD", interval: "month" });
const amounts = "[0-9]*([.][0-9]{1,2})?"; // dollars
const centsOf = (text) => Math.round(Number(text) * 100);

const creators = { members: "members", owners: "owners", keys: "its keys" };

// Projects lists the projects with what each has cost, and what is left of its budget, or shows one.
export function Projects() {
  const v = useView();
  const projects = useAll("/v1/organization/projects"), keys = useAll("/v1/keys"), budgets = useAll("/v1/budgets?values=200");
  const costs = useCosts(v, "project");
  const [creating, create] = useState(false);
  const [change, failed] = useChange(() => create(false));
  const rows = useMemo(() => {
    const accounts = placed(budgets.data || []);
    return projects.data?.map((p) => ({ ...p, calls: costs && (costs.get(p.name)?.requests ?? 0), cost: costs && (costs.get(p.name)?.cost ?? 0), budget: accounts.get("project" + p.name)?.[0], keys: keys.data?.filter((k) => k.project === p.name).length }));
  }, [projects.data, keys.data, budgets.data, costs]);
  const one = v.id && rows?.find((p) => p.id === v.id);
  if (one) return html`<${Project} p=${one} />`;
  const save = (e) => {
    e.preventDefault();
    const form = new FormData(e.target), cents = centsOf(form.get("amount"));
    const each = async () => {
      for (const name of form.get("name").split(",").map((n) => n.trim()).filter(Boolean)) {
        const made = await post("/v1/organization/projects", { name });
        if (cents) await limit(made, cents);
      }
    };
    change(each());
  };
  return html`<${List} label="Projects" noun="project" find="name" columns=${projectColumns} first="name" state=${projects} rows=${rows} keyOf=${(p) => p.id} textOf=${(p) => p.name}
      none="There is no project yet. A project has members, keys, and a limit of its own: one for each team is usual."><button class="primary" onClick=${() => create(true)}>Create projects</button><//>
    ${creating && html`<${Dialog} label="Create projects" onClose=${() => create(false)}>${(close) => html`<${Form} title="Create projects" close=${close} failed=${failed} onSubmit=${save}>
      <label>Names, with commas between them <input name="name" required autofocus placeholder="search, billing" /></label><label>Limit a month for each, in dollars <input name="amount" inputmode="decimal" pattern=${amounts} placeholder="none" /></label><//>`}<//>`}`;
}

const projectColumns = [
  { title: "Project", key: "name", by: (p) => p.name.toLowerCase(), cell: (p) => html`<${To} change=${{ id: p.id }} dir="auto">${p.name}<//>` },
  { title: "Keys", key: "keys", by: (p) => p.keys, number: true, mid: true, cell: (p) => html`<${To} change=${{ ...elsewhere, v: "keys", find: p.name }}>${count(p.keys)}<//>` },
  { title: "Calls", key: "calls", by: (p) => p.calls, number: true, mid: true, cell: (p) => count(p.calls) },
  { title: "Cost", key: "cost", by: (p) => p.cost ?? -1, dollars: (p) => p.cost, around: (text, p) => html`<${To} change=${having("project", p.name)}>${text}<//>` },
  { title: "Budget left", key: "budget", by: leastLeft, number: true, cell: (p) => html`<${BudgetLeft} of=${p.budget} total />` },
  { title: "Since", key: "since", by: (p) => p.created_at, number: true, semi: true, cell: (p) => date(p.created_at * 1000) },
];

// Project is the page of one project: its limit, its members, its keys.
function Project({ p }) {
  const members = useAll(projectPath(p) + "/users"), people = useAll("/v1/organization/users");
  const spending = useAnswer(projectPath(p) + "/spend_limit"), permissions = useAnswer(projectPath(p) + "/key_permissions");
  const models = useAnswer(projectPath(p) + "/model_permissions");
  const [change, failed] = useChange();
  const [amount, setAmount] = useState();
  const [creating, create] = useState(false);
  const [secret, show] = useState(); // the key that has just got its secret
  const cents = spending.error ? null : spending.data?.threshold_amount;
  const act = (f) => (e) => (e.preventDefault(), f(Object.fromEntries(new FormData(e.target)), e.target));
  const setLimit = act(({ amount }) => change(amount ? limit(p, centsOf(amount)).then(() => setAmount(centsOf(amount))) : remove(projectPath(p) + "/spend_limit").then(() => setAmount(null))));
  const shown = amount === undefined ? cents : amount;
  return html`<header class="heading bar-row"><h2><span class="quiet">Project</span> <bdi>${p.name}</bdi></h2><${To} change=${{ ...elsewhere }}>All projects<//><${To} change=${having("project", p.name, [])}>Its calls<//><${To} change=${{ ...elsewhere, v: "keys", find: p.name }}>Its keys<//><span class="spring"></span><button class="primary" onClick=${() => create(true)}>Create a key</button></header>${failed}
    ${creating && html`<${KeyForm} project=${p.name} onClose=${() => create(false)} onDone=${show} />`}${secret && html`<${Secret} k=${secret} onClose=${() => show()} />`}
    <div class="tiles"><${Tile} label="Cost" value=${dollars(p.cost)} /><${Tile} label="Calls" value=${count(p.calls)} /><${Tile} label="Limit a month" value=${shown ? dollars(shown / 100) : "none"} /><${Tile} label="Keys" value=${count(p.keys)} /></div>
    <dl class="facts panel"><dt>Name</dt><dd><form class="bar-row" onSubmit=${act(({ name }) => change(post(projectPath(p), { name })))}><input name="name" required maxlength="256" aria-label="Name" defaultValue=${p.name} key=${p.name} /><button>Save</button></form></dd>
    ${models.data && html`<dt>Models</dt><dd><form class="bar-row" key=${JSON.stringify(models.data)} onSubmit=${act(({ mode, ids }) => change(mode === "allow_list" || list(ids).length ? post(projectPath(p) + "/model_permissions", { mode, model_ids: list(ids) }) : remove(projectPath(p) + "/model_permissions")))}><select name="mode" aria-label="Which models">${options({ allow_list: "only", deny_list: "all but" }, models.data.mode)}</select><input name="ids" size="28" aria-label="Models" placeholder="none; or gpt-5-mini, anthropic/*" defaultValue=${models.data.model_ids.join(", ")} /><button>Save</button></form></dd>`}
    <dt>Limit a month</dt><dd><form class="bar-row" onSubmit=${setLimit}><label>$ <input name="amount" size="8" inputmode="decimal" pattern=${amounts} placeholder="no limit" defaultValue=${cents ? cents / 100 : ""} key=${cents} /></label><button>Save</button></form></dd>
    ${permissions.data && html`<dt>Keys of their own</dt><dd><form class="bar-row" key=${JSON.stringify(permissions.data)} onSubmit=${act(({ max, days }, form) => {
      const creators = new FormData(form).getAll("creator");
      change(creators.length ? post(projectPath(p) + "/key_permissions", { creators, max_keys: Number(max), max_lifetime_seconds: Number(days) * 86400 }) : remove(projectPath(p) + "/key_permissions"));
    })}><span role="group" class="bar-row" aria-label="Who creates keys of their own">${Object.entries(creators).map(([c, text]) => html`<label><input type="checkbox" name="creator" value=${c} defaultChecked=${permissions.data.creators.includes(c)} /> ${text}</label>`)}
      <label>each up to <input name="max" type="number" min="1" max="1000" required defaultValue=${permissions.data.max_keys || 10} /></label><label>for <input name="days" type="number" min="1" max="36500" required defaultValue=${Math.floor(permissions.data.max_lifetime_seconds / 86400) || 90} /> days</label></span><button>Save</button></form></dd>`}</dl>
    <h2>Members</h2><form class="bar-row" onSubmit=${act(({ user, role }, form) => change(post(projectPath(p) + "/users", { user_id: user, role }).then(() => form.reset())))}>
      <select name="user" required aria-label="Person"><option value="">choose a person…</option>${(people.data || []).filter((m) => !members.data?.some((x) => x.id === m.id)).map((m) => html`<option value=${m.id}>${m.email}</option>`)}</select><select name="role" aria-label="Role"><option value="member">member</option><option value="owner">owner</option></select><button>Add</button></form>
    <${Answer} state=${members} empty=${(d) => !d.length} none="Nobody is in the project yet. People are invited on the screen People.">${(d) => html`<${Exported} label="Members" rows=${d} keyOf=${(m) => m.id} columns=${[
      { title: "Person", cell: (m) => html`<span title=${m.name}>${m.email}</span>` },
      { title: "Role", raw: (m) => m.role, cell: (m) => html`<select aria-label=${"Role of " + m.email} value=${m.role} onChange=${(e) => change(post(`${projectPath(p)}/users/${m.id}`, { role: e.target.value }))}><option>member</option><option>owner</option></select>` },
      { title: "Change", cell: (m) => html`<${Delete} onSure=${() => change(remove(`${projectPath(p)}/users/${m.id}`))} />` }]} />`}<//>
    <p class="bar-row"><span class="quiet">${plural(p.keys, "key")} in this project. An archived project's keys open nothing.</span><span class="spring"></span><${Delete} onSure=${() => change(post(projectPath(p) + "/archive", {}).then(() => go({ ...elsewhere }, true)))} what="Archive" /></p>`;
}
