// The address is the state: reload, back, forward and a copied link restore the
// same view.
import { useEffect, useState } from "./html.js";

// defaults are left out of the address.
const defaults = { v: "overview", from: "24h", to: "", sort: "", id: "", session: "", name: "", by: "", tab: "", cols: "", json: "" };

// A condition is one leaf of the filter: a field, an operator and a value, as in
// f=model:equals:gpt-5. Names of properties follow the field: property.team.
const parseCondition = (text) => {
  const [field, op, ...value] = text.split(":");
  return op ? { field, op, value: value.join(":") } : null;
};
const formatCondition = (c) => `${c.field}:${c.op}:${c.value}`;

// parse reads the state of an address.
export function parse(text) {
  const query = new URLSearchParams(text);
  const view = { ...defaults, f: query.getAll("f").map(parseCondition).filter(Boolean) };
  for (const key of Object.keys(defaults)) if (query.has(key)) view[key] = query.get(key);
  try {
    if (view.json) JSON.parse(view.json);
  } catch {
    view.json = "";
  }
  return view;
}

let current = parse(location.search);
const listeners = new Set();

function publish() {
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
  for (const condition of next.f) query.append("f", formatCondition(condition));
  const text = query.toString();
  return text ? "?" + text : location.pathname;
}

// go changes the view; replace leaves no step in the history.
export function go(change, replace) {
  history[replace ? "replaceState" : "pushState"](null, "", link(change));
  publish();
}

// elsewhere is what another screen does not take over.
export const elsewhere = { id: "", session: "", name: "", sort: "", by: "", tab: "" };

// screen goes to another screen and keeps time and filter.
export const screen = (v, change) => go({ v, ...elsewhere, ...change });

// fields are those that a condition may name, with their kind.
export const fields = {
  model: "text", provider: "text", user_id: "text", session_id: "text", request_id: "text",
  status: "number", end_state: "text", finish_reason: "text", error_type: "text", request_path: "text",
  cost: "number", latency: "number", time_to_first_token: "number", prompt_tokens: "number",
  completion_tokens: "number", total_tokens: "number", prompt_cache_read_tokens: "number",
  prompt_cache_write_tokens: "number", cache_savings: "number", cache_loss: "number", cache_miss_reason: "text", turn: "number", country_code: "text", prompt_id: "text", target_url: "text", failed: "boolean", stream: "boolean", request_body: "content", response_body: "content",
};

// operators are those of each kind, and how they are shown.
export const operators = {
  text: { equals: "is", "not-equals": "is not", contains: "contains", "not-contains": "does not contain" },
  number: { equals: "=", "not-equals": "≠", gte: "≥", gt: ">", lte: "≤", lt: "<", "is-null": "is unknown:" },
  boolean: { equals: "is" },
  content: { contains: "contains" },
};

// kindOf is the kind of a field, also of a property.
export const kindOf = (field) => (field.startsWith("property.") ? "text" : field.startsWith("score.") ? "number" : fields[field] || "text");

function leaf({ field, op, value }) {
  const kind = kindOf(field);
  const operand = { [op]: op === "is-null" ? value !== "false" : kind === "number" ? Number(value) : kind === "boolean" ? value === "true" : value };
  const [map, name] = field.startsWith("property.") ? ["properties", field.slice(9)] : field.startsWith("score.") ? ["scores", field.slice(6)] : [];
  if (field === "failed") return failed[value] || failed.false;
  return on(map ? { [map]: { [name]: operand } } : { [field]: operand });
}

const on = (inner) => ({ request_response_rmt: inner });
const join = (left, right, operator = "and") => ({ left, operator, right });

export const either = (a, b) => join(on(a), on(b), "or");

// failed are the requests that the API counts as errors, and the others.
const failed = {
  true: either({ status: { gte: 400 } }, { end_state: { "not-equals": "complete" } }),
  false: join(either({ status: { lt: 400 } }, { status: { "is-null": true } }), on({ end_state: { equals: "complete" } })),
};

// filter is the filter of the view: its conditions, and what was written as JSON.
// extra are further leaves.
export function filter(v, ...extra) {
  const leaves = [...v.f.map(leaf), ...extra.map(on)];
  if (v.json) leaves.push(JSON.parse(v.json));
  return leaves.length ? leaves.reduceRight((right, left) => join(left, right)) : "all";
}

// isOf is the condition that a field has a value of a facet or a group, "" is
// that it has none.
export const isOf = (field, value) =>
  kindOf(field) === "number" && value === "" ? { field, op: "is-null", value: "true" } : { field, op: "equals", value: String(value) };

// withCondition is f with a condition added, in place of one on the same field
// with the same operator.
export const withCondition = (f, c) => [...f.filter((o) => o.field !== c.field || o.op !== c.op), c];

// having is the change to the requests of the view that have a value.
export const having = (field, value, f = current.f) => ({ ...elsewhere, v: "requests", f: withCondition(f, isOf(field, value)) });

const units = { m: 60e3, h: 3600e3, d: 86400e3 };

// range is the time that the view shows, as milliseconds; relative times end now.
export function range(v, now = Date.now()) {
  const relative = /^(\d+)([mhd])$/.exec(v.from);
  if (relative) return { from: now - relative[1] * units[relative[2]], to: now };
  return { from: Number(v.from), to: Number(v.to) || now };
}

const widths = [["1m", 60e3], ["5m", 300e3], ["15m", 900e3], ["1h", 3600e3], ["6h", 6 * 3600e3], ["1d", 86400e3], ["7d", 7 * 86400e3]];

// bucket is the width of the points of a chart: about a hundred fill it.
export function bucket(v) {
  const { from, to } = range(v);
  return (widths.find(([, width]) => (to - from) / width <= 170) || ["30d"])[0];
}

// timeFilter is the range in whole minutes, so that a view asks the same question
// for a minute.
export function timeFilter(v) {
  const { from, to } = range(v);
  return { startTimeUnixMs: Math.floor(from / 60e3) * 60e3, endTimeUnixMs: Math.ceil(to / 60e3) * 60e3 };
}

// during are the conditions that a request was in that range.
export function during(v) {
  const { startTimeUnixMs: from, endTimeUnixMs: to } = timeFilter(v);
  return [{ request_created_at: { gte: new Date(from).toISOString() } }, { request_created_at: { lte: new Date(to).toISOString() } }];
}
