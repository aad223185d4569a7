// The frame: login, navigation, time and filter, and the screen of the view.
import { html, render, useEffect, useRef, useState } from "./html.js";
import { elsewhere, go, open, pageIn, pages, pins, publish, range, screen, useView, view } from "./state.js";
import { beat, caller, login, logout, pace, retry, session, useOnline, whenLoggedOut } from "./api.js";
import { Conditions, Later, Menu, To, typing } from "./parts/basics.js";
import { minuteOf, timeOf, utc, zone } from "./format.js";

// dress sets the theme that was chosen, "" for that of the system.
const dress = (theme) => (document.documentElement.dataset.theme = theme);
const chosenTheme = localStorage.getItem("theme") || "";
dress(chosenTheme);

// screens have a title, a key, a file and the name of their component in it.
const screens = {
  overview: ["Overview", "o", "overview", "Overview"],
  requests: ["Requests", "r", "requests", "Requests"],
  errors: ["Errors", "x", "breakdown", "Errors"],
  sessions: ["Sessions", "s", "sessions", "Sessions"],
  users: ["Users", "u", "breakdown", "Users"],
  models: ["Models & cache", "m", "breakdown", "Models"],
  properties: ["Properties", "p", "breakdown", "Properties"],
  routes: ["Routes", "t", "routes", "Routes"],
  scores: ["Scores", "c", "scores", "Scores"],
  system: ["System", "y", "system", "System"],
  mine: ["My usage", "n", "mine", "Mine"],
  connect: ["Connect", "q", "mine", "Connect"],
  alerts: ["Alerts", "l", "alerts", "Alerts"],
  budgets: ["Budgets", "b", "budgets", "Budgets"],
  bill: ["Bill", "d", "bill", "Bill"],
  projects: ["Projects", "k", "control", "Projects"],
  people: ["People", "w", "control", "People"],
  keys: ["API keys", "i", "keys", "Keys"],
  audit: ["Audit", "a", "control", "Audit"],
  privacy: ["Privacy", "v", "privacy", "Privacy"],
};
// administration are the files of screens for the scope admin.
const administration = new Set(["alerts", "bill", "budgets", "control", "keys", "privacy"]);
// timeless are the screens that show the present, whatever time and filter others have,
// unfiltered those that have a time alone, and privacy has a filter alone.
const timeless = new Set(["alerts", "bill", "budgets", "audit", "connect"]), unfiltered = new Set(["keys", "mine", "people", "projects", ...timeless]);
// compare is a screen that others lead to.
const compare = ["Compare", "", "compare", "Compare"];
const screenOf = (v) => (v.v === "compare" ? compare : Object.hasOwn(screens, v.v) ? screens[v.v] : screens.overview);
import(`./screens/${screenOf(view())[2]}.js`).catch(() => {}); // beside the session, not after it; Later says what fails

const times = {
  "15m": "Last 15 minutes", "1h": "Last hour", "24h": "Last 24 hours", today: "Today", "7d": "Last 7 days", "30d": "Last 30 days", month: "This month", "90d": "Last 90 days", all: "All time",
};

const keys = [
  ["/", "find"], ["f", "filter"], ["j  k", "next, previous request"], ["Enter", "open"], ["Esc", "close"], ["[  ]", "previous, next tab"], ["t", "live"], ["e", "export"], ["h  l", "fold, unfold a part of a session"], ["$", "the costliest parts first"], ["c", "compare: mark one, then another"],
  ...Object.values(screens).map(([name, key]) => [`g ${key}`, name]), ["?", "this help"],
];

function Times({ v }) {
  const chosen = Object.hasOwn(times, v.from) && !v.to ? v.from : "custom";
  const { from, to } = range(v);
  const choose = (e) => go(e.target.value === "custom" ? { from: String(from), to: String(to) } : { from: e.target.value, to: "" });
  const edge = (name, key, time) => {
    const change = ({ target }) => {
      const at = timeOf(target.value), edges = { from, to, [key]: at };
      target.setCustomValidity(Number.isNaN(at) ? `Write a time as ${minuteOf(time)}` : edges.from < edges.to ? "" : "The time ends before it begins.");
      if (target.reportValidity()) go({ from: String(edges.from), to: String(edges.to) });
    };
    return html`<input aria-label=${name} size="18" value=${minuteOf(time)} onChange=${change} />`;
  };
  return html`<select aria-label="Time" value=${chosen} onChange=${choose}>
    ${Object.entries(times).map(([key, name]) => html`<option value=${key}>${name}</option>`)}
    <option value="custom">From – to</option></select>
    ${chosen === "custom" && html`<span class="times">${edge("From", "from", from)} – ${edge("To", "to", to)}</span>`}`;
}

// Part is a component of parts/ that is loaded when its menu is first opened.
function Part({ label, ...props }) {
  const [open, setOpen] = useState(false);
  return html`<${Menu} label=${label} onOpen=${() => setOpen(true)}>${open && html`<${Later} ...${props} />`}<//>`;
}

// Tell opens the form of an alert about the calls of the view.
function Tell({ v }) {
  const [open, show] = useState(false);
  return html`<button title="Create an alert about these calls" onClick=${() => show(true)}>Tell me when…</button>${open && html`<${Later} file="alerts" name="Rule" v=${v} onClose=${() => show(false)} />`}`;
}

// Find is the one search box.
function Find() {
  const [Found, show] = useState();
  const typed = useRef(""); // before the rest of it is there
  const load = () => import("./parts/search.js").then((m) => show(() => m.Search), () => {});
  return Found ? html`<${Found} typed=${typed.current} />` : html`<input id="search" type="search" placeholder="Find (/)" aria-label="Find an id, a user, a session, or words" onFocus=${load} onInput=${(e) => (typed.current = e.target.value)} />`;
}

// Connection asks again what the view shows: at its pace, and soon when Weir cannot be
// reached.
function Connection() {
  const online = useOnline();
  const ask = () => (publish(), beat());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || (online && view().to) || ask(), online ? pace : retry);
    return () => clearInterval(timer);
  }, [online]);
  return !online && html`<p class="offline" role="alert">▲ Disconnected: what is shown may be old. Trying again… <button onClick=${ask}>Try now</button></p>`;
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

// skip goes past the bars, to the first row of a table or what there is.
function skip(e) {
  e.preventDefault();
  (document.querySelector("main tbody button, main tbody a") || document.getElementById("content")).focus();
}

function Help({ dialog }) {
  return html`<dialog ref=${dialog} class="help" aria-label="Shortcuts"><h2>Keyboard shortcuts</h2><dl>${keys.map(([key, what]) => html`<dt><kbd>${key}</kbd></dt><dd>${what}</dd>`)}</dl>
    <form method="dialog"><button>Close</button></form></dialog>`;
}

// focusOn puts the cursor into a field, as soon as it is there.
function focusOn(id, tries = 40) {
  const field = document.getElementById(id);
  field?.focus();
  if (tries && document.activeElement !== (field ?? null)) setTimeout(focusOn, 50, id, tries - 1);
}

function Frame({ onLogout }) {
  const v = useView();
  const help = useRef();
  const [theme, setTheme] = useState(chosenTheme);
  useEffect(() => (dress(theme), localStorage.setItem("theme", theme)), [theme]);
  useEffect(() => {
    let before = "";
    const press = (e) => {
      if (typing(e)) return;
      const target = before === "g" && Object.keys(screens).find((name) => screens[name][1] === e.key);
      before = e.key;
      if (target) screen(target);
      else if (e.key === "?") help.current.showModal();
      else if (e.key === "/" || (e.key === "f" && before !== "g")) {
        e.preventDefault();
        if (view().id) go({ id: "", tab: "" });
        if (e.key === "f" && view().v !== "requests") screen("requests");
        focusOn(e.key === "/" ? "search" : "filter");
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  const [named, , file, name] = screenOf(v);
  const one = v.v === "overview" && pageIn(v), title = one ? pages[one.field] : named;
  useEffect(() => {
    document.title = `${title} · Weir`;
    document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [title]);
  return html`<a class="skip" href="#content" onClick=${skip}>Skip to the content</a><nav aria-label="Screens"><strong class="brand">Weir</strong>
      ${Object.entries(screens).map(([key, [title, , file]]) => (caller.admin || !administration.has(file)) && html`<${To} change=${{ v: key, ...elsewhere }} class=${key === "mine" || key === "alerts" ? "apart" : ""} aria-current=${key === v.v ? "page" : null}>${title}<//>`)}
      ${Object.entries(pins(caller.organization)).map(([name, address]) => html`<a class="pin" href=${"?" + address} onClick=${(e) => (e.preventDefault(), open(address))}>${name}</a>`)}
      <span class="spring"></span><span class="quiet who" title="The organisation whose calls are shown"><small>Organisation</small> ${caller.organization}</span><${Theme} theme=${theme} setTheme=${setTheme} /><button class="quiet" onClick=${switchZone}>Times: ${zone}</button><button class="quiet" onClick=${() => help.current.showModal()}>Shortcuts</button>
      ${caller.login && html`<button class="quiet" onClick=${onLogout}>Log out</button>`}</nav>
    <main><header class="top-bar"><h1>${title}</h1><span class="conditions">${!unfiltered.has(v.v) && html`<${Conditions} v=${v} />`}</span><${Find} />
        ${!timeless.has(v.v) && html`${!unfiltered.has(v.v) && html`${v.v !== "requests" && html`<${Part} label="Filter" file="../parts/filters" name="FilterMenu" v=${v} />`}${caller.admin && html`<${Tell} v=${v} />`}`}<${Part} label="Views" file="../parts/views" name="Saved" />${v.v !== "privacy" && html`<${Times} v=${v} />`}`}</header>
      <${Connection} /><span id="content" tabindex="-1"></span>
      <${Later} file=${file} name=${name} /></main>
    <${Help} dialog=${help} />`;
}

// Login is the way in: an API key, exchanged once for a cookie that scripts cannot read, or
// an issuer, which sends the browser back to what it wanted to see.
function Login({ issuer, problem, onDone }) {
  const [error, setError] = useState(problem);
  const submit = async (e) => {
    e.preventDefault();
    const field = e.target.elements.key;
    try {
      const session = await login(field.value.trim());
      onDone(session);
    } catch (failure) {
      setError(failure.message);
      field.select();
    }
  };
  return html`<main class="login">
    <form onSubmit=${submit}>
      <h1>Weir</h1>
      ${issuer && html`<button type="button" class="primary" onClick=${() => location.assign("api/login" + location.search)}>Log in at ${new URL(issuer).host}</button>`}
      <label>API key <input name="key" type="password" autocomplete="off" required autofocus aria-describedby="why" /></label>
      <p id="why" class="quiet">A Weir API key with read access (scope <code>query</code> or <code>metrics</code>). It is not saved.</p>
      ${error && html`<p class="notice bad" role="alert">${error}</p>`}
      <button class=${issuer ? "" : "primary"}>Open the dashboard</button>
    </form>
  </main>`;
}

// linked logs in with the key of a link such as `weir run` prints. A link does not replace a
// session, and the address does not keep the key.
async function linked(failure) {
  const key = new URLSearchParams(location.hash.slice(1)).get("key");
  if (!key) throw failure;
  history.replaceState(null, "", location.pathname + location.search);
  return login(key).catch((wrong) => {
    throw Object.assign(wrong, { linked: true, data: failure.data });
  });
}

function App() {
  const [who, setWho] = useState();
  const [way, setWay] = useState({ issuer: "", problem: "" });
  const out = () => setWho(null);
  useEffect(() => {
    whenLoggedOut(out);
    session().catch(linked).then(setWho, (failure) => (setWay({ issuer: failure.data?.issuer, problem: failure.linked ? `The key of the link does not open this dashboard: ${failure.message}` : "" }), out()));
  }, []);
  if (who) return html`<${Frame} onLogout=${() => logout().then(out)} />`;
  return who === null && html`<${Login} ...${way} onDone=${setWho} />`;
}

render(html`<${App} />`, document.body);
