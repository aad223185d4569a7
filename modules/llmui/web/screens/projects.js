// Which projects are there, who is in them, what may they spend? For keys of the scope admin.
import { html, useState } from "../html.js";
import { elsewhere, go, having, useView } from "../state.js";
import { post, remove, useAll, useAnswer, useCosts } from "../api.js";
import { Form, Secret } from "./keys.js";
import { Answer, Delete, Table, Tile, To, useChange } from "../parts/basics.js";
import { Export } from "../parts/csv.js";
import { count, date, dollars, plural } from "../format.js";

const path = (p) => "/v1/organization/projects/" + p.id;

// limit sets what a project may spend in a month, in cents.
const limit = (p, cents) => post(path(p) + "/spend_limit", { threshold_amount: cents, currency: "USD", interval: "month" });
const amounts = "[0-9]*([.][0-9]{1,2})?"; // dollars
const centsOf = (text) => Math.round(Number(text) * 100);

const creators = { members: "members", owners: "owners", keys: "its keys" };

// Projects lists the projects with what each has cost, or shows one.
export function Projects() {
  const v = useView();
  const projects = useAll("/v1/organization/projects");
  const costs = useCosts(v, "project");
  const [change, failed] = useChange();
  const one = v.id && projects.data?.find((p) => p.id === v.id);
  const totals = (p) => costs && (costs.get(p.name) || { requests: 0, cost: 0 });
  if (one) return html`<${Project} p=${one} totals=${totals(one)} />`;
  const create = (e) => {
    e.preventDefault();
    const form = new FormData(e.target), cents = centsOf(form.get("amount"));
    const each = async () => {
      for (const name of form.get("name").split(",").map((n) => n.trim()).filter(Boolean)) {
        const made = await post("/v1/organization/projects", { name });
        if (cents) await limit(made, cents);
      }
      e.target.reset();
    };
    change(each());
  };
  const columns = [
    { title: "Project", cell: (p) => html`<${To} change=${{ id: p.id }} dir="auto">${p.name}<//>` },
    { title: "Calls", number: true, mid: true, cell: (p) => count(totals(p)?.requests) }, { title: "Cost", dollars: (p) => totals(p)?.cost, around: (text, p) => html`<${To} change=${having("project", p.name)}>${text}<//>` },
    { title: "Since", number: true, semi: true, cell: (p) => date(p.created_at * 1000) },
  ];
  return html`<form class="bar-row" onSubmit=${create}><input name="name" required aria-label="Names, with commas between them" placeholder="search, billing" /><label>Limit a month $ <input name="amount" size="6" inputmode="decimal" pattern=${amounts} placeholder="none" /></label><button class="primary">Create</button><span class="spring"></span>${projects.data && html`<${Export} name="projects" columns=${columns} rows=${projects.data} />`}</form>${failed}
    <${Answer} state=${projects} empty=${(d) => !d.length} none="There is no project yet. A project has members, keys, and a limit of its own: one for each team is usual.">${(d) => html`<${Table} label="Projects" columns=${columns} rows=${d} keyOf=${(p) => p.id} />`}<//>`;
}

// Project is the page of one project: its limit, its members, its keys.
function Project({ p, totals }) {
  const members = useAll(path(p) + "/users"), keys = useAll("/v1/keys?project=" + encodeURIComponent(p.name)), people = useAll("/v1/organization/users");
  const spending = useAnswer(path(p) + "/spend_limit"), permissions = useAnswer(path(p) + "/key_permissions");
  const [change, failed] = useChange();
  const [amount, setAmount] = useState();
  const [creating, create] = useState(false);
  const [secret, show] = useState(); // the key that has just got its secret
  const cents = spending.error ? null : spending.data?.threshold_amount;
  const act = (f) => (e) => (e.preventDefault(), f(Object.fromEntries(new FormData(e.target)), e.target));
  const setLimit = act(({ amount }) => change(amount ? limit(p, centsOf(amount)).then(() => setAmount(centsOf(amount))) : remove(path(p) + "/spend_limit").then(() => setAmount(null))));
  const shown = amount === undefined ? cents : amount;
  return html`<header class="heading bar-row"><h2><span class="quiet">Project</span> <bdi>${p.name}</bdi></h2><${To} change=${{ ...elsewhere }}>All projects<//><${To} change=${having("project", p.name, [])}>Its calls<//><${To} change=${{ ...elsewhere, v: "keys", find: p.name }}>Its keys<//><span class="spring"></span><button class="primary" onClick=${() => create(true)}>Create a key</button></header>${failed}
    ${creating && html`<${Form} project=${p.name} onClose=${() => create(false)} onDone=${show} />`}${secret && html`<${Secret} k=${secret} onClose=${() => show()} />`}
    <div class="tiles"><${Tile} label="Cost" value=${dollars(totals?.cost)} /><${Tile} label="Calls" value=${count(totals?.requests)} /><${Tile} label="Limit a month" value=${shown ? dollars(shown / 100) : "none"} /><${Tile} label="Keys" value=${count(keys.data?.length)} /></div>
    <form class="bar-row" onSubmit=${setLimit}><label>Limit a month, in dollars <input name="amount" inputmode="decimal" pattern=${amounts} placeholder="no limit" defaultValue=${cents ? cents / 100 : ""} key=${cents} /></label><button>Save</button></form>
    ${permissions.data && html`<form class="bar-row" key=${JSON.stringify(permissions.data)} onSubmit=${act(({ max, days }, form) => {
      const creators = new FormData(form).getAll("creator");
      change(creators.length ? post(path(p) + "/key_permissions", { creators, max_keys: Number(max), max_lifetime_seconds: Number(days) * 86400 }) : remove(path(p) + "/key_permissions"));
    })}><span role="group" class="bar-row" aria-label="Who creates keys of their own">Who creates keys of their own: ${Object.entries(creators).map(([c, text]) => html`<label><input type="checkbox" name="creator" value=${c} defaultChecked=${permissions.data.creators.includes(c)} /> ${text}</label>`)}
      <label>at most <input name="max" type="number" min="1" max="1000" required defaultValue=${permissions.data.max_keys || 10} /> each</label><label>for <input name="days" type="number" min="1" max="36500" required defaultValue=${Math.floor(permissions.data.max_lifetime_seconds / 86400) || 90} /> days</label></span><button>Save</button></form>`}
    <h2>Members</h2><form class="bar-row" onSubmit=${act(({ user, role }, form) => change(post(path(p) + "/users", { user_id: user, role }).then(() => form.reset())))}>
      <select name="user" required aria-label="Person"><option value="">choose a person…</option>${(people.data || []).filter((m) => !members.data?.some((x) => x.id === m.id)).map((m) => html`<option value=${m.id}>${m.email}</option>`)}</select><select name="role" aria-label="Role"><option value="member">member</option><option value="owner">owner</option></select><button>Add</button></form>
    <${Answer} state=${members} empty=${(d) => !d.length} none="Nobody is in the project yet. People are invited on the screen People.">${(d) => html`<${Table} label="Members" rows=${d} keyOf=${(m) => m.id} columns=${[
      { title: "Person", cell: (m) => html`<span title=${m.name}>${m.email}</span>` },
      { title: "Role", cell: (m) => html`<select aria-label=${"Role of " + m.email} value=${m.role} onChange=${(e) => change(post(`${path(p)}/users/${m.id}`, { role: e.target.value }))}><option>member</option><option>owner</option></select>` },
      { title: "Change", cell: (m) => html`<${Delete} onSure=${() => change(remove(`${path(p)}/users/${m.id}`))} />` }]} />`}<//>
    <p class="bar-row"><span class="quiet">${keys.data && plural(keys.data.length, "key")} in this project. An archived project's keys open nothing.</span><span class="spring"></span><${Delete} onSure=${() => change(post(path(p) + "/archive", {}).then(() => go({ ...elsewhere }, true)))} what="Archive" /></p>`;
}
