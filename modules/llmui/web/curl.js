// A recorded call as a command for a shell. Keys are left to the environment.
import { failed } from "./parts/basics.js";

const vendors = { openai: "https://api.openai.com", anthropic: "https://api.anthropic.com", gemini: "https://generativelanguage.googleapis.com" };

// special are characters that end a line, or that a terminal takes for keys, when they are pasted.
const special = /[\x00-\x1f\x7f-\x9f\u2028\u2029]/g;

// quote writes a text as one word of a shell, on one line: $'…' has escapes for what is special.
function quote(text) {
  if (text.search(special) < 0) return `'${text.replaceAll("'", `'\\''`)}'`;
  const escaped = text.replace(/[\\']/g, "\\$&").replace(special, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
  return `$'${escaped}'`;
}

// endpoints are the gateway's, by what an answer of theirs is called.
const endpoints = { "chat.completion": "/v1/chat/completions", response: "/v1/responses", message: "/v1/messages" };

// addressOf is where the call went: to the gateway in the words of its caller, or to the
// provider. What is not known is left to the environment.
function addressOf(r) {
  if (r.request_referrer === "gateway" && !failed(r)) {
    const path = endpoints[r.response_body?.object || r.response_body?.type] || (r.request_body?.input !== undefined ? endpoints.response : r.request_body?.max_tokens && r.request_body?.system !== undefined ? endpoints.message : endpoints["chat.completion"]);
    return { url: quote(location.origin + path), gateway: true };
  }
  if (/^https?:/.test(r.target_url)) return { url: quote(r.target_url) };
  return { url: vendors[r.provider] ? quote(vendors[r.provider] + r.request_path) : `"$BASE_URL"${quote(r.request_path || "/")}` };
}

// command is the call. Its body comes on the standard input: an argument may not be
// longer than 128 KiB.
export function command(r) {
  const { request_body: body, request_path: path } = r;
  const { url, gateway } = addressOf(r);
  const key = gateway ? "Authorization: Bearer $WEIR_API_KEY" : /\/messages\b/.test(path) ? `x-api-key: $API_KEY" -H "anthropic-version: 2023-06-01` : /:\w*generateContent/i.test(path) ? "x-goog-api-key: $API_KEY" : "Authorization: Bearer $API_KEY";
  const head = `curl ${url} -H "${key}" -H "Content-Type: application/json"`;
  if (body === null) return head + " -d @request.json";
  const text = typeof body === "string" ? body : JSON.stringify(body);
  if (text.includes("\0")) return "# The body has a NUL character, which no shell can pass on.";
  return `printf %s ${quote(text)} | ${head} --data-binary @-\n`;
}
