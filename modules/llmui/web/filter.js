// The filter of a view: its conditions, what they mean to the API, and a filter in words.

// fields are those that a condition may name, with their kind and unit.
export const fields = {
  model: "text", provider: "text", account: "text", user_id: "text", key_id: "text", project: "text", verified_by: "text", session_id: "text", request_id: "text", response_id: "id", trace_id: "id",
  status: "number", end_state: "text", finish_reason: "text", error_type: "text", error_message: "text", error_group: "text", would_refuse: "text", arm: "text", answer_cache: "text", saved_cost: "number", request_path: "text",
  cost: "number", latency: "number", time_to_first_token: "number", prompt_tokens: "number",
  completion_tokens: "number", total_tokens: "number", prompt_cache_read_tokens: "number",
  prompt_cache_write_tokens: "number", cache_savings: "number", routing_savings: "number", cache_loss: "number", cache_miss_reason: "text",
  turn: "number", job_id: "text", country_code: "text", prompt_id: "text", prompt_version: "text", target_url: "text", property_key: "text", failed: "boolean", stream: "boolean",
  body: "content", request_body: "content", response_body: "content",
};

export const unitOf = (field) => (/^(latency|time_to)/.test(field) ? "ms" : /^(cost|cache_(savings|loss))$/.test(field) ? "$" : /tokens$/.test(field) ? "tokens" : "");

// operators are those of each kind, and how they are shown.
export const operators = {
  text: { equals: "is", "not-equals": "is not", in: "is one of", contains: "contains", "not-contains": "does not contain" },
  number: { equals: "=", "not-equals": "≠", gte: "≥", gt: ">", lte: "≤", lt: "<", "is-null": "is unknown:" },
  id: { equals: "is", "not-equals": "is not" },
  boolean: { equals: "is" },
  content: { contains: "contains" },
};

// kindOf is the kind of a field, also of a property.
export const kindOf = (field) => (field.startsWith("property.") ? "text" : field.startsWith("score.") ? "number" : Object.hasOwn(fields, field) ? fields[field] : undefined);

// signs are operators as `weir query` spells them, the longer ones first.
const signs = [[">=", "gte"], ["<=", "lte"], ["!=", "not-equals"], ["!~", "not-contains"], ["=", "equals"], ["~", "contains"], [">", "gt"], ["<", "lt"]];

// parse reads one condition of an address, as in f=model:equals:gpt-5 or f=status>=400.
// It returns null for a text that is no condition.
export function parse(text) {
  const [field, op, ...rest] = text.split(":");
  if (Object.hasOwn(operators[kindOf(unescape(field))] || {}, op)) return sound({ field: unescape(field), op, value: rest.join(":") });
  const [, name, sign, value] = /^([\w.-]+?)(>=|<=|!=|!~|=|~|>|<)(.*)$/s.exec(text) || [];
  return name && kindOf(name) ? sound({ field: name, op: signs.find(([s]) => s === sign)[1], value }) : null;
}

// sound is a condition that the API takes, else null.
function sound(c) {
  const kind = kindOf(c.field);
  if (!Object.hasOwn(operators[kind], c.op)) return null;
  if (kind === "number" && c.op !== "is-null" && (c.value.trim() === "" || Number.isNaN(Number(c.value)))) return null;
  return kind === "content" && c.value === "" ? null : c;
}

const unescape = (field) => field.replaceAll("%3A", ":").replaceAll("%25", "%");

// format is a condition as an address has it. A property's name may have a colon.
export const format = (c) => `${c.field.replaceAll("%", "%25").replaceAll(":", "%3A")}:${c.op}:${c.value}`;

// listed are the values of a condition that names several.
export const listed = (value) => value.split(",").map((v) => v.trim()).filter(Boolean);

const on = (inner) => ({ request_response_rmt: inner });
const join = (operator) => (right, left) => ({ left, operator, right });
const all = (leaves) => leaves.reduceRight(join("and"));
export const any = (leaves) => leaves.reduceRight(join("or"));
export const either = (...leaves) => any(leaves.map(on));

// failed are the requests that the API counts as errors, and the others.
const failed = {
  true: either({ status: { gte: 400 } }, { end_state: { "not-equals": "complete" } }),
  false: all([either({ status: { lt: 400 } }, { status: { "is-null": true } }), on({ end_state: { equals: "complete" } })]),
};

// failures is the filter of a view, of failed calls alone.
export function failures(v) {
  const chosen = filter(v);
  return chosen === "all" ? failed.true : { left: chosen, operator: "and", right: failed.true };
}

function leaf({ field, op, value }) {
  const kind = kindOf(field);
  if (op === "in") return any((listed(value).length ? listed(value) : [""]).map((one) => leaf({ field, op: "equals", value: one })));
  if (field === "failed") return failed[value] || failed.false;
  if (field === "body") return either({ request_body: { [op]: value } }, { response_body: { [op]: value } });
  const operand = { [op]: op === "is-null" ? value !== "false" : kind === "number" ? Number(value) : kind === "boolean" ? value === "true" : value };
  const [map, name] = field.startsWith("property.") ? ["properties", field.slice(9)] : field.startsWith("score.") ? ["scores", field.slice(6)] : [];
  return on(map ? { [map]: { [name]: operand } } : { [field]: operand });
}

// filter is the filter of a view: its conditions, all or any of them, and what was written
// as JSON. extra are leaves that must hold besides.
export function filter(v, ...extra) {
  const conditions = v.f.map(leaf);
  if (v.json) conditions.push(JSON.parse(v.json));
  const leaves = [...(conditions.length ? [v.any ? any(conditions) : all(conditions)] : []), ...extra.map(on)];
  return leaves.length ? all(leaves) : "all";
}

// isOf is the condition that a field has a value of a facet or a group, "" stands for
// no value.
export const isOf = (field, value) =>
  kindOf(field) === "number" && value === "" ? { field, op: "is-null", value: "true" } : { field, op: "equals", value: String(value) };

// withCondition is f with a condition added. It takes the place of one with the same
// operator on the same field, unless both can hold at once.
export const withCondition = (f, c) =>
  [...f.filter((o) => o.field !== c.field || (o.op !== c.op ? !(c.op === "equals" && o.op === "in") : /^not-|contains/.test(c.op) && o.value !== c.value)), c];

// sought are the words that the conditions look for in bodies.
export const sought = (v) => v.f.filter((c) => kindOf(c.field) === "content").map((c) => c.value);

// attributes are those of a budget or a rule, with their fields in the filter language.
export const attributes = { user: "user_id", session: "session_id", project: "project", key: "key_id", provider: "provider", model: "model" };

// wordsOf says which calls a filter takes, in words. What has no words is shown as it is.
function wordsOf(node, around) {
  if (!node || node === "all") return "all calls";
  if (node.operator) {
    const text = `${wordsOf(node.left, node.operator)} ${node.operator} ${wordsOf(node.right, node.operator)}`;
    return around && around !== node.operator ? `(${text})` : text;
  }
  const [[field, operation]] = Object.entries(node.request_response_rmt || {}), [[key, inner]] = Object.entries(operation), map = /^(properties|scores)$/.test(field);
  const name = map ? key : Object.keys(attributes).find((a) => attributes[a] === field) || field;
  const [operator, value] = map ? Object.entries(inner)[0] : [key, inner];
  return `${name} ${operators[kindOf(field)]?.[operator] || { ...operators.text, like: "is like" }[operator] || operator} ${value === "" ? "(none)" : value}`;
}

// sayOf is wordsOf for a filter of any shape.
export function sayOf(filter) {
  try {
    return wordsOf(filter);
  } catch {
    return JSON.stringify(filter);
  }
}

