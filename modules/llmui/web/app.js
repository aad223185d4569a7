// The frame: login, navigation, time and filter, and the screen of the view.
import { html, render, useEffect, useRef, useState } from "./html.js";
import { elsewhere, go, range, screen, useView, view } from "./state.js";
import { logout, session, whenLoggedOut } from "./api.js";
import { Conditions, Menu, To, typing } from "./parts/basics.js";
import { offset, utc, zone } from "./format.js";

// screens are loaded when they are first shown.
const screens = {
  overview: ["Overview", "o", async () => (await import("./screens/overview.js")).Overview],
  requests: ["Requests", "r", async () => (await import("./screens/requests.js")).Requests],
  sessions: ["Sessions", "s", async () => (await import("./screens/sessions.js")).Sessions],
  users: ["Users", "u", async () => (await import("./screens/users.js")).Users],
  models: ["Models & cache", "m", async () => (await import("./screens/breakdown.js")).Models],
  properties: ["Properties", "p", async () => (await import("./screens/breakdown.js")).Properties],
  scores: ["Scores", "c", async () => (await import("./screens/scores.js")).Scores],
  system: ["System", "y", async () => (await import("./screens/system.js")).System],
};

const times = { "15m": "15 minutes", "1h": "hour", "24h": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days" };

const keys = [
  ["/", "filter"], ["j  k", "next, previous request"], ["Enter", "open"], ["Esc", "close"], ["[  ]", "previous, next tab"], ["t", "live"], ["e", "export"],
  ...Object.values(screens).map(([name, key]) => [`g ${key}`, name]), ["?", "this help"],
];

function Screen({ v }) {
  const [shown, show] = useState({});
  useEffect(() => {
    let left; // for another screen, which may be loaded sooner
    (screens[v] || screens.overview)[2]().then((component) => left || show({ v, component }));
    return () => (left = true);
  }, [v]);
  return shown.v === v ? html`<${shown.component} />` : html`<p class="notice" aria-busy="true">Loading…</p>`;
}

function Times({ v }) {
  const chosen = v.from in times ? v.from : "custom";
  const { from, to } = range(v);
  const choose = (e) => go(e.target.value === "custom" ? { from: String(from), to: String(to) } : { from: e.target.value, to: "" });
  // The field has no zone: what it shows lies by the offset beside the time.
  const edge = (name, key, time) => html`<input type="datetime-local" aria-label=${name} required value=${new Date(time - offset(time) * 60e3).toISOString().slice(0, 16)}
    onChange=${(e) => e.target.value && go({ from: String(from), to: String(to), [key]: String(Date.parse(e.target.value + "Z") + offset(Date.parse(e.target.value)) * 60e3) })} />`;
  return html`${chosen === "custom" && html`<span class="times">${edge("From", "from", from)} – ${edge("To", "to", to)}</span>`}
    <select aria-label="Time" value=${chosen} onChange=${choose}>
    ${Object.entries(times).map(([key, name]) => html`<option value=${key}>Last ${name}</option>`)}
    <option value="custom">From – to</option></select>`;
}

// Views are loaded when they are first asked for.
function Views() {
  const [Saved, show] = useState();
  return html`<${Menu} label="Views" onOpen=${() => import("./parts/views.js").then((m) => show(() => m.Saved))}>${Saved && html`<${Saved} />`}<//>`;
}

function Theme({ theme, setTheme }) {
  const next = { "": "dark", dark: "light", light: "" }[theme];
  return html`<button class="quiet" onClick=${() => setTheme(next)}>Theme: ${theme || "system"}</button>`;
}

// switchZone shows the same view, which is its address, in the other zone.
function switchZone() {
  localStorage.setItem("utc", utc ? "" : "1");
  location.reload();
}

function Help({ dialog }) {
  return html`<dialog ref=${dialog} class="help" aria-label="Keys"><h2>Keys</h2><dl>${keys.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
    <form method="dialog"><button>Close</button></form></dialog>`;
}

// focusFilter puts the cursor into the filter, as soon as its screen is there.
function focusFilter(tries) {
  const field = document.getElementById("filter");
  field?.focus();
  if (tries && document.activeElement !== (field ?? null)) setTimeout(focusFilter, 50, tries - 1);
}

function Frame({ who, onLogout }) {
  const v = useView();
  const help = useRef();
  const [theme, setTheme] = useState(localStorage.getItem("theme") || "");
  document.documentElement.dataset.theme = theme;
  useEffect(() => localStorage.setItem("theme", theme), [theme]);
  useEffect(() => {
    let before = "";
    const press = (e) => {
      if (typing(e)) return;
      const target = before === "g" && Object.keys(screens).find((name) => screens[name][1] === e.key);
      before = e.key;
      if (target) screen(target);
      else if (e.key === "?") help.current.showModal();
      else if (e.key === "/") {
        e.preventDefault();
        if (view().v !== "requests") screen("requests");
        else if (view().id) go({ id: "", tab: "" });
        focusFilter(40);
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const name = (screens[v.v] || screens.overview)[0];
  useEffect(() => {
    document.title = `${name} · Weir`;
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [name]);
  return html`<nav aria-label="Screens"><strong class="brand">Weir</strong>
      ${Object.entries(screens).map(([key, [title]]) => html`<${To} change=${{ v: key, ...elsewhere }} aria-current=${key === v.v ? "page" : null}>${title}<//>`)}
      <span class="spring"></span><span class="quiet who">${who.organization}</span><${Theme} theme=${theme} setTheme=${setTheme} /><button class="quiet" onClick=${switchZone}>Times: ${zone}</button><button class="quiet" onClick=${() => help.current.showModal()}>Keys</button>
      ${who.login && html`<button class="quiet" onClick=${onLogout}>Log out</button>`}</nav>
    <main><header class="top-bar"><h1>${name}</h1><span class="conditions"><${Conditions} v=${v} /></span><${Views} /><${Times} v=${v} /></header>
      <${Screen} v=${v.v in screens ? v.v : "overview"} /></main>
    <${Help} dialog=${help} />`;
}

function App() {
  const [who, setWho] = useState();
  const [Login, setLogin] = useState();
  const out = () => {
    setWho(null);
    import("./screens/login.js").then((m) => setLogin(() => m.Login));
  };
  useEffect(() => {
    whenLoggedOut(out);
    session().then(setWho, out);
  }, []);
  if (who) return html`<${Frame} who=${who} onLogout=${() => logout().then(out)} />`;
  return who === null && Login ? html`<${Login} onDone=${setWho} />` : null;
}

render(html`<${App} />`, document.body);
