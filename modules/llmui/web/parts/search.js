// The one search box: ids, models, users, sessions, keys, and words in bodies.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { withCondition } from "../filter.js";
import { elsewhere, go, view } from "../state.js";
import { caller, itemsOf, post } from "../api.js";
import { count, dollars, moment } from "../format.js";

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
// providerId is what an id that a provider gave looks like, as in chatcmpl-9xYz and msg_01A.
const providerId = /^[a-z]{2,12}[-_][\w-]{6,}$/i;
const few = 4; // of a kind

const requests = (condition, change) => ({ ...elsewhere, v: "requests", f: withCondition(view().f, condition), ...change });

// groups are the values of a field that contain a text, in all of time.
async function groups(field, text, signal) {
  const filter = { request_response_rmt: { [field]: { contains: text } } };
  const { groups } = await post("/v1/metrics/query", { filter, groupBy: field, bucket: "none", limit: few, sort: { cost: "desc" } }, signal);
  return groups.filter((g) => g.key).map((g) => ({ kind: field === "model" ? "Model" : "User", text: g.key, detail: `${count(g.totals.requests)} requests, ${dollars(g.totals.cost)}`, change: requests({ field, op: "equals", value: g.key }) }));
}

async function sessions(text, signal) {
  const list = await post("/v1/session/query", { search: text, limit: few, derived: true }, signal);
  return list.map((s) => ({ kind: "Session", text: s.session_name || s.session_id, detail: `${s.session_id.slice(-8)}, ${count(s.total_requests)} requests, ${dollars(s.total_cost)}`, change: { ...elsewhere, v: "sessions", session: s.session_id, name: s.session_name, derived: s.is_derived ? "1" : "" } }));
}

// calls are those of an id, of Weir's or of the provider's.
async function calls(id, signal) {
  const list = await post("/v1/request/query-clickhouse", { filter: { request_response_rmt: { [uuid.test(id) ? "request_id" : "response_id"]: { equals: id } } }, limit: few, includeContent: false }, signal);
  return list.map((r) => ({ kind: "Request", text: id, detail: `${r.model || "unknown model"}, ${moment(r.request_created_at)}`, change: { ...elsewhere, v: "requests", id: r.request_id } }));
}

// keys are those of a name or an owner, for administrators.
async function keys(text, signal) {
  const found = [];
  if (!caller.admin) return found;
  for await (const some of itemsOf("/v1/keys", "after", signal)) {
    found.push(...some.filter((k) => [k.name, k.owner, k.id].some((t) => t?.toLowerCase().includes(text.toLowerCase()))));
    if (found.length >= few) break;
  }
  return found.slice(0, few).map((k) => ({ kind: "Key", text: k.name, detail: [k.owner, k.project].filter(Boolean).join(", "), change: { ...elsewhere, v: "keys", id: k.id } }));
}

// words lead to the requests that have a text in a body, for those who may see it. What looks
// like an id has no time.
const inBodies = "In bodies";
function words(value) {
  if (!caller.content) return [];
  const condition = { field: "body", op: "contains", value }, isId = providerId.test(value);
  return [{ kind: inBodies, text: value, detail: isId ? "at any time" : "in this time", change: requests(condition, isId && { from: "all", to: "", f: [condition] }) }];
}

// Search shows what it finds below the box, the likeliest first.
export function Search({ typed }) {
  const [text, setText] = useState(typed);
  const [found, setFound] = useState([]);
  const [at, setAt] = useState(0);
  const field = useRef();
  useLayoutEffect(() => field.current.focus(), []); // before another letter is typed
  const wanted = text.trim();
  useEffect(() => {
    setAt(0);
    setFound(wanted ? words(wanted) : []);
    if (wanted.length < 2) return;
    const abort = new AbortController(), parts = [];
    const take = (order) => (list) => {
      parts[order] = list;
      setFound([...parts.flat().filter(Boolean), ...words(wanted)]);
    };
    const ask = setTimeout(() => {
      const { signal } = abort;
      [calls(wanted, signal), groups("model", wanted, signal), groups("user_id", wanted, signal), sessions(wanted, signal), keys(wanted, signal)].forEach((answer, order) => answer.then(take(order), () => {}));
    }, 120);
    return () => (clearTimeout(ask), abort.abort());
  }, [wanted]);
  const choose = (one) => {
    setText("");
    field.current.blur();
    go(one.change);
  };
  // Who types fast presses Enter before what was typed last has been drawn.
  const press = (e) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (step && found.length) setAt((at + step + found.length) % found.length);
    else if (e.key === "Enter" && e.target.value.trim()) [found[at] && found[at].kind !== inBodies ? found[at] : words(e.target.value.trim())[0]].filter(Boolean).forEach(choose);
    else if (e.key === "Escape") (setText(""), field.current.blur());
    else return;
    e.preventDefault();
  };
  return html`<span class="search"><input id="search" ref=${field} type="search" role="combobox" aria-label="Find an id, a user, a session, or words" aria-expanded=${found.length > 0} aria-controls="found" aria-autocomplete="list"
      aria-activedescendant=${found.length ? `found-${at}` : null} placeholder="Find (/)" autocomplete="off" dir="auto" value=${text} onInput=${(e) => setText(e.target.value)} onKeyDown=${press} />
    <ul id="found" role="listbox" aria-label="Found" class="panel" hidden=${!found.length}>${found.map((one, i) => html`<li key=${i} id=${`found-${i}`} role="option" aria-selected=${i === at} onPointerMove=${() => setAt(i)}
      onPointerDown=${(e) => (e.preventDefault(), choose(one))}><b>${one.kind}</b> <span dir="auto">${one.text}</span> <small class="quiet">${one.detail}</small></li>`)}</ul></span>`;
}
