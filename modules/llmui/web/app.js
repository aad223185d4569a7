// The frame: login, navigation, time and filter, and the screen of the view.
import { html, render, useEffect, useRef, useState } from "./html.js";
import { elsewhere, go, range, screen, useView, view } from "./state.js";
import { logout, session, whenLoggedOut } from "./api.js";
import { Conditions, Later, Menu, To, typing } from "./parts/basics.js";
import { offset, utc, zone } from "./format.js";

// screens have a title, a key, a file and the name of their component in it.
const screens = {
  overview: ["Overview", "o", "overview", "Overview"],
  requests: ["Requests", "r", "requests", "Requests"],
  sessions: ["Sessions", "s", "sessions", "Sessions"],
  users: ["Users", "u", "users", "Users"],
  models: ["Models & cache", "m", "breakdown", "Models"],
  properties: ["Properties", "p", "breakdown", "Properties"],
  scores: ["Scores", "c", "scores", "Scores"],
  system: ["System", "y", "system", "System"],
};
const screenOf = (v) => (Object.hasOwn(screens, v.v) ? screens[v.v] : screens.overview);
import(`./screens/${screenOf(view())[2]}.js`); // beside the session, not after it

const times = { "15m": "15 minutes", "1h": "hour", "24h": "24 hours", "7d": "7 days", "30d": "30 days", "90d": "90 days" };

const keys = [
  ["/", "filter"], ["j  k", "next, previous request"], ["Enter", "open"], ["Esc", "close"], ["[  ]", "previous, next tab"], ["t", "live"], ["e", "export"],
  ...Object.values(screens).map(([name, key]) => [`g ${key}`, name]), ["?", "this help"],
];

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
  const [title, , file, name] = screenOf(v);
  useEffect(() => {
    document.title = `${title} · Weir`;
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [title]);
  return html`<nav aria-label="Screens"><strong class="brand">Weir</strong>
      ${Object.entries(screens).map(([key, [title]]) => html`<${To} change=${{ v: key, ...elsewhere }} aria-current=${key === v.v ? "page" : null}>${title}<//>`)}
      <span class="spring"></span><span class="quiet who">${who.organization}</span><${Theme} theme=${theme} setTheme=${setTheme} /><button class="quiet" onClick=${switchZone}>Times: ${zone}</button><button class="quiet" onClick=${() => help.current.showModal()}>Keys</button>
      ${who.login && html`<button class="quiet" onClick=${onLogout}>Log out</button>`}</nav>
    <main><header class="top-bar"><h1>${title}</h1><span class="conditions"><${Conditions} v=${v} /></span><${Views} /><${Times} v=${v} /></header>
      <${Later} file=${file} name=${name} /></main>
    <${Help} dialog=${help} />`;
}

function App() {
  const [who, setWho] = useState();
  const out = () => setWho(null);
  useEffect(() => {
    whenLoggedOut(out);
    session().then(setWho, out);
  }, []);
  if (who) return html`<${Frame} who=${who} onLogout=${() => logout().then(out)} />`;
  return who === null && html`<${Later} file="login" name="Login" onDone=${setWho} />`;
}

render(html`<${App} />`, document.body);
