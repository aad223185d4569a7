// The address is the state: reload, back, forward and a copied link restore the
// same view.
import { useEffect, useState } from "./html.js";

// defaults are left out of the address.
const defaults = { v: "requests", from: "24h", to: "", sort: "", id: "", session: "", name: "", tab: "" };

// A condition is one leaf of the filter: a field, an operator and a value, as in
// f=model:equals:gpt-5. Names of properties follow the field: property.team.
const parseCondition = (text) => {
  const [field, op, ...value] = text.split(":");
  return op ? { field, op, value: value.join(":") } : null;
};
const formatCondition = (c) => `${c.field}:${c.op}:${c.value}`;

function parse() {
  const query = new URLSearchParams(location.search);
  const view = { ...defaults, f: query.getAll("f").map(parseCondition).filter(Boolean) };
  for (const key of Object.keys(defaults)) if (query.has(key)) view[key] = query.get(key);
  return view;
}

let current = parse();
const listeners = new Set();

function publish() {
  current = parse();
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

// screen goes to another screen and keeps time and filter.
export const screen = (v, change) => go({ v, id: "", session: "", name: "", sort: "", tab: "", ...change });

// fields are those that a condition may name, with their kind.
export const fields = {
  model: "text", provider: "text", user_id: "text", session_id: "text", request_id: "text",
  status: "number", end_state: "text", finish_reason: "text", error_type: "text", request_path: "text",
  cost: "number", latency: "number", time_to_first_token: "number", prompt_tokens: "number",
  completion_tokens: "number", total_tokens: "number", prompt_cache_read_tokens: "number",
  stream: "boolean", request_body: "content", response_body: "content",
};

// operators are those of each kind, and how they are shown.
export const operators = {
  text: { equals: "is", "not-equals": "is not", contains: "contains", "not-contains": "does not contain" },
  number: { equals: "=", "not-equals": "≠", gte: "≥", gt: ">", lte: "≤", lt: "<" },
  boolean: { equals: "is" },
  content: { contains: "contains" },
};

// kindOf is the kind of a field, also of a property.
export const kindOf = (field) => (field.startsWith("property.") ? "text" : fields[field] || "text");

function leaf({ field, op, value }) {
  const kind = kindOf(field);
  const operand = { [op]: kind === "number" ? Number(value) : kind === "boolean" ? value === "true" : value };
  const inner = field.startsWith("property.") ? { properties: { [field.slice(9)]: operand } } : { [field]: operand };
  return { request_response_rmt: inner };
}

const both = (left, right) => ({ left, operator: "and", right });

// filter is the filter of the view's conditions; extra are further leaves.
export function filter(conditions, ...extra) {
  const leaves = [...conditions.map(leaf), ...extra.map((inner) => ({ request_response_rmt: inner }))];
  return leaves.length ? leaves.reduceRight((right, left) => both(left, right)) : "all";
}

// withCondition is f with a condition added, in place of one on the same field
// with the same operator.
export const withCondition = (f, c) => [...f.filter((o) => o.field !== c.field || o.op !== c.op), c];

const units = { m: 60e3, h: 3600e3, d: 86400e3 };

// range is the time that the view shows, as milliseconds; relative times end now.
export function range(v, now = Date.now()) {
  const relative = /^(\d+)([mhd])$/.exec(v.from);
  if (relative) return { from: now - relative[1] * units[relative[2]], to: now };
  return { from: Number(v.from), to: Number(v.to) || now };
}

// timeFilter is the range in whole minutes, so that a view asks the same question
// for a minute.
export function timeFilter(v) {
  const { from, to } = range(v);
  return { startTimeUnixMs: Math.floor(from / 60e3) * 60e3, endTimeUnixMs: Math.ceil(to / 60e3) * 60e3 };
}
