// Which calls a budget or a rule is about, in words.
import { kindOf, operators } from "../filter.js";

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

