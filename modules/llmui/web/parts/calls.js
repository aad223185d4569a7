// Which calls a budget or a rule is about, in words.

// attributes are those of a budget or a rule, with their fields in the filter language.
export const attributes = { user: "user_id", session: "session_id", project: "project", key: "key_id", provider: "provider", model: "model" };

// wordsOf says which calls a filter takes, in words. What has no words is shown as it is.
function wordsOf(node) {
  if (!node || node === "all") return "all calls";
  if (node.operator) return `${wordsOf(node.left)} ${node.operator} ${wordsOf(node.right)}`;
  const [[field, operation]] = Object.entries(node.request_response_rmt || {}), [[key, inner]] = Object.entries(operation);
  const name = field === "properties" ? key : Object.keys(attributes).find((a) => attributes[a] === field) || field;
  const [operator, value] = field === "properties" ? Object.entries(inner)[0] : [key, inner];
  return `${name} ${{ equals: "is", "not-equals": "is not", like: "is like" }[operator] || operator} ${value}`;
}

// sayOf is wordsOf for a filter of any shape.
export function sayOf(filter) {
  try {
    return wordsOf(filter);
  } catch {
    return JSON.stringify(filter);
  }
}

