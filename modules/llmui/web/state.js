// The address is the state: reload, back, forward and a copied link restore the
// same view.
import { useEffect, useState } from "./html.js";
import { format, isOf, parse as parseCondition, withCondition } from "./filter.js";
import { midnight } from "./format.js";

// defaults are left out of the address.
const defaults = { v: "overview", from: "24h", to: "", sort: "", id: "", session: "", name: "", by: "", tab: "", cols: "", json: "", any: "", derived: "", show: "", tool: "", find: "", mark: "", a: "", b: "" };

const units = { m: 60e3, h: 3600e3, d: 86400e3 };
const relative = /^-?(\d{1,4})([mhd])$/; // also as `weir query` writes it
const isTime = (text) => relative.test(text) || /^\d{1,15}$/.test(text) || text === "today" || text === "month" || text === "all";

// parse reads the state of an address. problems are the parts that it cannot read.
export function parse(text) {
  const query = new URLSearchParams(text);
  const view = { ...defaults, cols: localStorage.getItem("cols") || "", f: [], problems: [] };
  const reject = (key, value) => view.problems.push(`${key}=${value}`);
  for (const condition of query.getAll("f")) {
    const c = parseCondition(condition);
    if (c) view.f.push(c);
    else reject("f", condition);
  }
  for (const key of Object.keys(defaults)) if (query.has(key)) view[key] = query.get(key);
  view.from = view.from.replace(/^-/, "");
  for (const key of ["from", "to"])
    if (view[key] && !isTime(view[key])) {
      reject(key, view[key]);
      view[key] = defaults[key];
    }
  try {
    if (view.json) JSON.parse(view.json);
  } catch {
    reject("json", view.json);
    view.json = "";
  }
  return view;
}

let current = parse(location.search);
const listeners = new Set();

// publish shows what the address says. Without a change of it, times that end now have
// moved on.
export function publish() {
  current = parse(location.search);
  for (const listener of listeners) listener(current);
}
addEventListener("popstate", publish);

// view is the state as it is now.
export const view = () => current;

// useView renders again when the state changes.
export function useView() {
  const [value, set] = useState(current);
  useEffect(() => {
    listeners.add(set);
    set(current);
    return () => listeners.delete(set);
  }, []);
  return value;
}

// link is the address of the current view with some of it changed.
export function link(change) {
  const next = { ...current, ...change };
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(defaults)) if (next[key] && next[key] !== value) query.set(key, next[key]);
  for (const condition of next.f) query.append("f", format(condition));
  const text = query.toString();
  return text ? "?" + text : location.pathname;
}

// go changes the view; replace leaves no step in the history.
export function go(change, replace) {
  history[replace ? "replaceState" : "pushState"](null, "", link(change));
  publish();
}

// elsewhere is what another screen does not take over.
export const elsewhere = { id: "", session: "", name: "", sort: "", by: "", tab: "", show: "", tool: "", find: "", a: "", b: "" };

// open shows an address as it is: what cannot be read of it is said there.
export function open(address) {
  history.pushState(null, "", "?" + address);
  publish();
}

// pins are the saved views of an organisation that this browser keeps in the navigation: their addresses
// by name.
export const pins = (organization) => JSON.parse(localStorage.getItem("pins of " + organization) || "{}");
export function pin(organization, name, address) {
  localStorage.setItem("pins of " + organization, JSON.stringify({ ...pins(organization), [name]: address }));
  publish();
}

// screen goes to another screen and keeps time and filter.
export const screen = (v, change) => go({ v, ...elsewhere, ...change });

// having is the change to the requests of the view that have a value.
export const having = (field, value, f = current.f) => ({ ...elsewhere, v: "requests", f: withCondition(f, isOf(field, value)) });

// pages are the fields whose values have a page of their own: the Overview of that value.
export const pages = { user_id: "User", model: "Model" };

// pageIn is the condition of the value whose page a view of the Overview is, if it is one.
export const pageIn = (v) => (v.any ? undefined : v.f.find((c) => Object.hasOwn(pages, c.field) && c.op === "equals"));

// pageOf is the change to the page of a value, or to its requests if it has no page.
export const pageOf = (field, value) => (Object.hasOwn(pages, field) && value ? { ...having(field, value), v: "overview" } : having(field, value));

// range is the time that the view shows, as milliseconds; relative times end now.
export function range(v, now = Date.now()) {
  const [, count, unit] = relative.exec(v.from) || [];
  const from = { all: 0, today: midnight(now), month: midnight(now, 1) }[v.from] ?? (unit ? now - count * units[unit] : Number(v.from));
  return { from, to: Number(v.to) || now };
}

const widths = [["1m", 60e3], ["5m", 300e3], ["15m", 900e3], ["1h", 3600e3], ["1d", 86400e3], ["7d", 7 * 86400e3]];

// bucket is the width of the points of a chart: about a hundred fill it.
export function bucket(v) {
  if (v.from === "all") return "auto";
  const { from, to } = range(v);
  return (widths.find(([, width]) => (to - from) / width <= 170) || ["30d"])[0];
}

// timeFilter is the range in whole minutes, so that a view asks the same question
// for a minute. All time has no bounds.
export function timeFilter(v) {
  if (v.from === "all") return undefined;
  const { from, to } = range(v);
  return { startTimeUnixMs: Math.floor(from / 60e3) * 60e3, endTimeUnixMs: Math.ceil(to / 60e3) * 60e3 };
}

// during are the conditions that a request was in that range.
export function during(v) {
  const bounds = timeFilter(v);
  return bounds ? [{ request_created_at: { gte: new Date(bounds.startTimeUnixMs).toISOString() } }, { request_created_at: { lte: new Date(bounds.endTimeUnixMs).toISOString() } }] : [];
}
