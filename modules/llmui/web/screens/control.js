// Who may call, and who changed that? For keys of the scope admin.
import { html, useMemo } from "../html.js";
import { elsewhere, go, useView } from "../state.js";
import { itemsOf, post, remove, useAll, useAnswer, useCosts } from "../api.js";
import { Answer, Delete, Table, To, useChange, useCursor } from "../parts/basics.js";
import { Export } from "../parts/csv.js";
import { count, moment, plural } from "../format.js";

// People shows the members, with their roles, and the owners of keys.
export const People = () => html`<${Members} /><h2>Owners of keys</h2><${Owners} />`;

const roles = ["reader", "member", "owner"];
const choice = (names) => names.map((name) => html`<option>${name}</option>`);

function Members() {
  const state = useAll("/v1/organization/users");
  const [change, failed] = useChange();
  const path = (m) => "/v1/organization/users/" + m.id;
  const invite = (e) => {
    e.preventDefault();
    change(post("/v1/organization/invites", Object.fromEntries(new FormData(e.target))).then(() => e.target.reset()));
  };
  const columns = [
    { title: "Member", cell: (m) => html`<${To} change=${{ v: "audit", find: m.id }} title=${m.name}>${m.email}<//>` },
    { title: "Role", cell: (m) => html`<select aria-label=${"Role of " + m.email} value=${m.role} onChange=${(e) => change(post(path(m), { role: e.target.value }))}>${choice(roles)}</select>` },
    { title: "Projects", mid: true, cell: (m) => m.projects.data.map((p) => p.name).join(", ") },
    { title: "Last seen", number: true, mid: true, cell: ({ api_key_last_used_at: at }) => (at ? moment(at * 1000) : "never") },
    { title: "Change", cell: (m) => html`<${Delete} onSure=${() => change(remove(path(m)))} />` },
  ];
  return html`<form class="bar-row" onSubmit=${invite}><input name="email" type="email" aria-label="Email" placeholder="email" required /><select name="role" aria-label="Role">${choice(["reader", "owner"])}</select><button class="primary">Invite</button><span class="spring"></span>${state.data?.length > 0 && html`<${Export} name="members" columns=${columns} rows=${state.data} />`}</form>${failed}
    <${Answer} state=${state} empty=${(d) => !d.length} none="No member yet. Whoever is invited by email has a role as soon as they log in.">${(d) => html`<${Table} label="Members" columns=${columns} rows=${d} keyOf=${(m) => m.id} />`}<//>`;
}

function Owners() {
  const state = useAll("/v1/keys"), costs = useCosts(useView(), "key_id");
  const columns = [
    { title: "Person", cell: (p) => html`<span dir="auto" title=${p.name}>${p.name || "(nobody)"}</span>` },
    { title: "Role", cell: (p) => (p.may.has("admin") ? "admin" : p.may.has("query") || p.may.has("write") ? "member" : p.may.has("metrics") ? "viewer" : "caller") },
    { title: "May", mid: true, cell: (p) => [...p.may].join(", ") },
    { title: "Keys", number: true, cell: (p) => html`<${To} change=${{ ...elsewhere, v: "requests", f: [{ field: "key_id", op: "in", value: p.ids.join() }] }}>${count(p.ids.length)}<//>` },
    { title: "Last used", number: true, mid: true, cell: ({ last_used_at: at }) => (at ? moment(at) : "never") },
    { title: "Cost", dollars: (p) => costs && p.ids.reduce((sum, id) => sum + (costs.get(id)?.cost || 0), 0) },
  ];
  return html`<${Answer} state=${state} empty=${(d) => !d.length} none="Nobody owns a key.">${(d) => html`<div class="bar-row"><span class="spring"></span><${Export} name="people" columns=${columns} rows=${peopleOf(d)} /></div>
    <${Table} label="People" columns=${columns} rows=${peopleOf(d)} keyOf=${(p) => p.name} />`}<//>`;
}

// peopleOf are the owners of keys, the last seen first.
function peopleOf(keys) {
  const people = new Map();
  for (const k of keys) {
    const name = k.owner || "", p = people.get(name) || { name, may: new Set(), ids: [], last_used_at: "" };
    people.set(name, p);
    p.ids.push(k.id);
    if (!k.disabled) k.scopes.forEach((s) => p.may.add(s));
    if (k.last_used_at > p.last_used_at) p.last_used_at = k.last_used_at;
  }
  return [...people.values()].sort((a, b) => b.last_used_at.localeCompare(a.last_used_at));
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
  { title: "Time", cell: (e) => moment(e.at) }, { title: "What", cell: (e) => e.action },
  { title: "Object", cell: (e) => html`<${To} change=${{ find: e.object }} title=${e.object}>${(({ name, email, rule, path }) => name || email || rule || (path && e.object === "requests" ? path : ""))(e.after || e.before) || e.object}<//>` },
  { title: "By", mid: true, cell: (e) => html`<span dir="auto" title=${e.actor.key}>${names.get(e.actor.key) || e.actor.key}</span>` }, { title: "From", semi: true, cell: (e) => e.actor.address },
  { title: "Before and after", mid: true, wrap: true, cell: ({ before, after }) => {
    const changed = Object.keys({ ...before, ...after }).filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]));
    return html`<details><summary>${before && after ? changed.join(", ") : plural(changed.length, "field")}</summary><dl class="texts">${changed.map((name) => html`<dt>${name}</dt><dd>${before && html`<del>${JSON.stringify(before[name])}</del> `}${after && html`<ins>${JSON.stringify(after[name])}</ins>`}</dd>`)}</dl></details>`;
  } },
];
