// What was said in a call, in one form for all dialects: a list of messages
// {role, parts}, where a part is {type, …}:
//
//	text {text}, thinking {text}, call {name, args, id}, result {text, id},
//	media {kind, size, url}, other {value}
//
// It reads whatever is there and never fails: what it does not know is "other".

const list = (v) => (Array.isArray(v) ? v : v === undefined || v === null ? [] : [v]);
const parseJSON = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

function media(kind, source) {
  const data = typeof source === "string" ? source : source?.data || source?.url || source?.file_data || source?.bytes || "";
  if (/^data:/.test(data)) return { type: "media", kind: data.slice(5, data.indexOf(";")), size: Math.round((data.length - data.indexOf(",")) * 0.75), url: data };
  if (/^https?:/.test(data)) return { type: "media", kind, remote: data };
  return { type: "media", kind: source?.media_type || source?.mimeType || kind, size: Math.round(data.length * 0.75) };
}

const textOf = (v) =>
  typeof v === "string" ? v : list(v).map((p) => (typeof p === "string" ? p : (p.text ?? p.json ?? p.output ?? p.content ?? JSON.stringify(p)))).map((t) => (typeof t === "string" ? t : JSON.stringify(t))).join("\n");

// part reads one piece of content of any dialect.
function part(p) {
  if (typeof p === "string") return { type: "text", text: p };
  if (!p || typeof p !== "object") return { type: "other", value: p };
  switch (p.type) {
    case "text": case "input_text": case "output_text": case "summary_text": case "reasoning_text":
      return { type: "text", text: p.text ?? "" };
    case "refusal":
      return { type: "text", text: p.refusal };
    case "thinking":
      return { type: "thinking", text: p.thinking };
    case "redacted_thinking":
      return { type: "thinking", text: "(encrypted by the provider)" };
    case "tool_use": case "server_tool_use":
      return { type: "call", name: p.name, args: p.input, id: p.id };
    case "tool_result":
      return { type: "result", text: textOf(p.content), id: p.tool_use_id };
    case "image": case "document":
      return media(p.type, p.source);
    case "image_url":
      return media("image", p.image_url?.url);
    case "input_image":
      return media("image", p.image_url);
    case "input_file": case "file":
      return media(p.filename || p.file?.filename || "file", p.file_data || p.file_url || p.file?.file_data);
    case "input_audio":
      return media(`audio/${p.input_audio?.format || "?"}`, p.input_audio);
  }
  if (p.functionCall) return { type: "call", name: p.functionCall.name, args: p.functionCall.args, id: p.functionCall.id };
  if (p.functionResponse) return { type: "result", text: JSON.stringify(p.functionResponse.response, null, 2), id: p.functionResponse.id || p.functionResponse.name };
  if (p.inlineData) return media(p.inlineData.mimeType, p.inlineData);
  if (p.toolUse) return { type: "call", name: p.toolUse.name, args: p.toolUse.input, id: p.toolUse.toolUseId };
  if (p.toolResult) return { type: "result", text: textOf(p.toolResult.content), id: p.toolResult.toolUseId };
  if (p.reasoningContent) return { type: "thinking", text: p.reasoningContent.reasoningText?.text ?? "(encrypted by the provider)" };
  if (typeof p.text === "string") return { type: p.thought ? "thinking" : "text", text: p.text };
  return { type: "other", value: p };
}

// message reads a message of Chat Completions, Messages, Converse, Gemini or Ollama.
function message(m) {
  const parts = list(m.content ?? m.parts).map(part);
  const thinking = m.reasoning_content ?? m.reasoning;
  if (typeof thinking === "string" && thinking) parts.unshift({ type: "thinking", text: thinking });
  if (m.refusal) parts.push({ type: "text", text: m.refusal });
  for (const c of list(m.tool_calls)) parts.push({ type: "call", name: c.function?.name ?? c.custom?.name, args: parseJSON(c.function?.arguments ?? c.custom?.input ?? ""), id: c.id });
  if (m.role === "tool") return { role: "tool", parts: [{ type: "result", text: textOf(m.content), id: m.tool_call_id }] };
  return { role: { model: "assistant", developer: "system" }[m.role] || m.role || "assistant", parts };
}

// item reads an item of Responses.
function item(i) {
  switch (i.type) {
    case "function_call": case "custom_tool_call":
      return { role: "assistant", parts: [{ type: "call", name: i.name, args: parseJSON(i.arguments ?? i.input ?? ""), id: i.call_id }] };
    case "function_call_output": case "custom_tool_call_output":
      return { role: "tool", parts: [{ type: "result", text: textOf(i.output), id: i.call_id }] };
    case "reasoning":
      return { role: "assistant", parts: [{ type: "thinking", text: textOf([...list(i.summary), ...list(i.content)]) || "(encrypted by the provider)" }] };
  }
  return i.role || i.content ? message(i) : { role: "assistant", parts: [{ type: "other", value: i }] };
}

// asked are the messages of a request.
export function asked(body) {
  if (!body || typeof body !== "object") return body ? [{ role: "user", parts: [part(body)] }] : [];
  const system = body.system ?? body.instructions ?? body.systemInstruction?.parts ?? body.system_instruction?.parts;
  const first = system ? [{ role: "system", parts: list(system).map(part) }] : [];
  if (body.messages) return [...first, ...body.messages.map(message)];
  if (body.contents) return [...first, ...list(body.contents).map(message)];
  if (body.input !== undefined) return [...first, ...(typeof body.input === "string" ? [{ role: "user", parts: [part(body.input)] }] : list(body.input).map((i) => (typeof i === "object" ? item(i) : { role: "user", parts: [part(i)] })))];
  if (body.prompt !== undefined) return [...first, { role: "user", parts: list(body.prompt).map(part) }];
  return first;
}

// answered are the messages of a response.
export function answered(body) {
  if (!body || typeof body !== "object") return body ? [{ role: "assistant", parts: [part(body)] }] : [];
  if (body.error) return [{ role: "error", parts: [{ type: "text", text: textOf(body.error.message ?? body.error) }] }];
  if (body.choices) return body.choices.map((c) => (c.message ? message(c.message) : { role: "assistant", parts: [part(c.text ?? "")] }));
  if (body.candidates) return body.candidates.map((c) => message(c.content ?? {}));
  if (Array.isArray(body.output)) return body.output.map(item);
  if (body.output?.message) return [message(body.output.message)];
  if (body.message) return [message(typeof body.message === "string" ? { content: body.message } : body.message)];
  if (body.content) return [message({ role: "assistant", content: body.content })];
  if (typeof body.response === "string") return [{ role: "assistant", parts: [part(body.response)] }];
  return [];
}
