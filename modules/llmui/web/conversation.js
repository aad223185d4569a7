// What was said in a call, in one form for all dialects: a list of messages
// {role, parts}, where a part is {type, …}:
//
//	text {text, sources}, thinking {text}, call {name, args, id}, result {text, id, bad},
//	media {kind, size, url, remote}, vectors {count, size}, other {value}
//
// It reads whatever is there and never fails: what it does not know is "other", so that
// no message is empty.

const list = (v) => (Array.isArray(v) ? v : v === undefined || v === null ? [] : [v]);
const parseJSON = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
const other = (value) => ({ type: "other", value });
const say = (text, sources) => ({ type: "text", text, ...(sources?.length && { sources }) });
const sealed = "(encrypted by the provider)";

// media is what stands in a body as base64, as an address, or as neither. type is its
// media type where the source does not say.
function media(type, source) {
  const data = typeof source === "string" ? source : source?.data || source?.url || source?.file_data || source?.bytes || source?.fileUri || source?.uri || "";
  if (typeof data !== "string") return other(source);
  if (/^data:/.test(data)) return { type: "media", kind: data.slice(5, data.indexOf(";")), size: Math.round((data.length - data.indexOf(",")) * 0.75), url: data };
  const kind = source?.media_type || source?.mimeType || source?.mime_type || type;
  if (/^[a-z]+:\/\//.test(data)) return { type: "media", kind, remote: data };
  if (!data) return { type: "media", kind, remote: source?.file_id || source?.id };
  return { type: "media", kind, size: Math.round(data.length * 0.75), ...(/^(image|audio)\/\w/.test(kind) && { url: `data:${kind};base64,${data}` }) };
}

const textOf = (v) =>
  typeof v === "string" ? v : list(v).map((p) => (typeof p === "string" ? p : (p.text ?? p.json ?? p.output ?? p.content ?? JSON.stringify(p)))).map((t) => (typeof t === "string" ? t : JSON.stringify(t))).join("\n");

// sources are what an answer cites: {title, url}.
const sources = (cited) => list(cited).map((c) => c.url_citation || c.web || c).map((c) => ({ title: c.title || c.document_title || c.cited_text || c.filename || c.url || c.uri || "source", url: c.url || c.uri })).filter((c) => c.url || c.title !== "source");

const result = (text, id, bad) => ({ type: "result", text, id, ...(bad && { bad: true }) });
const call = (name, args, id) => ({ type: "call", name, args, id });

// part reads one piece of content of any dialect.
function part(p) {
  if (typeof p === "string") return say(p);
  if (!p || typeof p !== "object") return other(p);
  switch (p.type) {
    case "text": case "input_text": case "output_text": case "summary_text": case "reasoning_text":
      return say(p.text ?? "", sources(p.annotations ?? p.citations));
    case "refusal":
      return say(p.refusal);
    case "thinking":
      return { type: "thinking", text: p.thinking || sealed };
    case "redacted_thinking":
      return { type: "thinking", text: sealed };
    case "tool_use": case "server_tool_use": case "mcp_tool_use":
      return call(p.server_name ? `${p.server_name}: ${p.name}` : p.name, p.input, p.id);
    case "tool_result": case "mcp_tool_result": case "web_search_tool_result": case "code_execution_tool_result":
      return result(textOf(p.content), p.tool_use_id, p.is_error);
    case "image": case "document":
      return p.source?.type === "text" ? say(p.source.data) : media(p.type, p.source);
    case "image_url":
      return media("image", p.image_url?.url ?? p.image_url);
    case "input_image":
      return media("image", p.image_url ?? p);
    case "input_file": case "file":
      return media(p.filename || p.file?.filename || "file", p.file_data || p.file_url || p.file?.file_data || p.file || p);
    case "input_audio":
      return media(`audio/${p.input_audio?.format || "wav"}`, p.input_audio);
    case "audio": case "output_audio":
      return media("audio/wav", p.audio ?? p);
  }
  if (p.functionCall) return call(p.functionCall.name, p.functionCall.args, p.functionCall.id);
  if (p.functionResponse) return result(JSON.stringify(p.functionResponse.response, null, 2), p.functionResponse.id || p.functionResponse.name);
  if (p.inlineData || p.inline_data) return media("file", p.inlineData || p.inline_data);
  if (p.fileData || p.file_data) return media("file", p.fileData || p.file_data);
  if (p.executableCode) return call("code", p.executableCode.code);
  if (p.codeExecutionResult) return result(p.codeExecutionResult.output ?? "");
  if (p.toolUse) return call(p.toolUse.name, p.toolUse.input, p.toolUse.toolUseId);
  if (p.toolResult) return result(textOf(p.toolResult.content), p.toolResult.toolUseId, p.toolResult.status === "error");
  if (p.image?.source || p.document?.source) return media(`${p.image ? "image" : "document"}/${(p.image || p.document).format}`, (p.image || p.document).source);
  if (p.reasoningContent) return { type: "thinking", text: p.reasoningContent.reasoningText?.text ?? sealed };
  if (typeof p.text === "string") return p.thought ? { type: "thinking", text: p.text } : say(p.text, sources(p.annotations ?? p.citations));
  return other(p);
}

const roles = { model: "assistant", developer: "system", function: "tool" };

// message reads a message of Chat Completions, Messages, Converse, Gemini or Ollama.
function message(m) {
  if (typeof m === "string") return { role: "user", parts: [say(m)] };
  if (m.role === "tool" && !list(m.content).some((p) => p?.toolResult)) return { role: "tool", parts: [result(textOf(m.content), m.tool_call_id)] };
  if (m.role === "function") return { role: "tool", parts: [result(textOf(m.content), m.name)] };
  const parts = list(m.content ?? m.parts).map(part).filter((p) => p.type !== "text" || p.text !== "");
  const thinking = m.reasoning_content ?? m.reasoning ?? m.thinking;
  if (typeof thinking === "string" && thinking) parts.unshift({ type: "thinking", text: thinking });
  if (m.refusal) parts.push(say(m.refusal));
  if (m.audio) {
    if (m.audio.transcript) parts.push(say(m.audio.transcript));
    parts.push(media("audio/wav", m.audio));
  }
  for (const image of list(m.images)) parts.push(typeof image === "string" ? media("image/png", image) : part(image));
  for (const c of list(m.tool_calls)) parts.push(call(c.function?.name ?? c.custom?.name, parseJSON(c.function?.arguments ?? c.custom?.input ?? ""), c.id));
  if (m.function_call) parts.push(call(m.function_call.name, parseJSON(m.function_call.arguments ?? ""), m.function_call.name));
  const cited = sources(m.annotations ?? m.citations);
  if (cited.length) parts.push(say("", cited));
  return { role: roles[m.role] || m.role || "assistant", parts: parts.length || m.content === "" ? parts : [other(m)] };
}

// item reads an item of Responses.
function item(i) {
  const from = (role, ...parts) => ({ role, parts });
  switch (i.type) {
    case "function_call": case "custom_tool_call":
      return from("assistant", call(i.name, parseJSON(i.arguments ?? i.input ?? ""), i.call_id));
    case "function_call_output": case "custom_tool_call_output":
      return from("tool", result(textOf(i.output), i.call_id));
    case "mcp_call":
      return from("assistant", call(`${i.server_label}: ${i.name}`, parseJSON(i.arguments ?? ""), i.id), result(textOf(i.error?.message ?? i.error ?? i.output ?? ""), i.id, i.error));
    case "mcp_list_tools":
      return from("assistant", result(list(i.tools).map((t) => t.name).join("\n"), `tools of ${i.server_label}`));
    case "image_generation_call":
      return from("assistant", ...(i.revised_prompt ? [say(i.revised_prompt)] : []), i.result ? media(`image/${i.output_format || "png"}`, i.result) : other(i));
    case "web_search_call":
      return from("assistant", call("web search", i.action ?? {}, i.id));
    case "file_search_call":
      return from("assistant", call("file search", i.queries ?? {}, i.id), ...(i.results ? [result(list(i.results).map((r) => `${r.filename}: ${r.text}`).join("\n"), i.id)] : []));
    case "code_interpreter_call":
      return from("assistant", call("code", i.code ?? "", i.id), ...list(i.outputs).map((o) => (o.url ? media("image", o.url) : result(o.logs ?? "", i.id))));
    case "reasoning":
      return from("assistant", { type: "thinking", text: textOf([...list(i.summary), ...list(i.content)]) || sealed });
  }
  return i.role || i.content ? message(i) : from("assistant", other(i));
}

// asked are the messages of a request.
export function asked(body) {
  if (!body || typeof body !== "object") return body ? [{ role: "user", parts: [part(body)] }] : [];
  const system = body.system ?? body.instructions ?? body.systemInstruction?.parts ?? body.system_instruction?.parts;
  const first = system ? [{ role: "system", parts: list(system).map(part) }] : [];
  const user = (parts) => [...first, { role: "user", parts }];
  if (body.messages) return [...first, ...list(body.messages).map(message)];
  if (body.contents) return [...first, ...list(body.contents).map(message)];
  if (typeof body.input === "string") return user([say(body.input)]);
  if (body.input !== undefined) return [...first, ...list(body.input).map((i) => (i && typeof i === "object" ? item(i) : { role: "user", parts: [part(typeof i === "number" ? String(i) : i)] }))];
  if (body.prompt !== undefined) return user([...list(body.prompt).map(part), ...list(body.image).map((i) => media("image", i))]);
  if (body.query !== undefined) return user([say(String(body.query)), ...list(body.documents).map(part)]);
  if (body.content !== undefined) return user(list(body.content.parts ?? body.content).map(part));
  if (body.base64) return user([media(body.content_type || "file", { data: body.base64 })]);
  return first.length || !Object.keys(body).length ? first : user([other(body)]);
}

// vectors are what embeddings come to: how many, and of how many dimensions.
function vectors(found) {
  const one = list(found)[0];
  const values = Array.isArray(one) ? one : (one?.embedding ?? one);
  const size = typeof values === "string" ? Math.round((values.length * 0.75) / 4) : (Array.isArray(values) ? values : list(values?.values)).length;
  return [{ role: "assistant", parts: [{ type: "vectors", count: list(found).length, size }] }];
}

// answered are the messages of a response. One that failed may be no JSON.
export function answered(body, failed) {
  const from = (role, ...parts) => [{ role, parts }];
  if (body === null || body === undefined || body === "") return [];
  if (typeof body !== "object") return from(failed ? "error" : "assistant", failed ? { type: "result", text: String(body) } : part(body));
  if (body.error) return from("error", say(textOf(body.error.message ?? body.error)));
  if (body.choices) return list(body.choices).map((c) => (c.message ? message(c.message) : { role: "assistant", parts: [part(c.text ?? "")] }));
  if (body.candidates) return list(body.candidates).map((c) => {
    const m = message({ role: "model", ...(c.content ?? { parts: [other(c)] }) });
    const cited = sources(c.groundingMetadata?.groundingChunks);
    return cited.length ? { ...m, parts: [...m.parts, say("", cited)] } : m;
  });
  if (Array.isArray(body.output)) return body.output.map(item);
  if (body.output?.message) return [message(body.output.message)];
  if (body.message && !failed) return [message(typeof body.message === "string" ? { content: body.message } : body.message)];
  if (failed) return from("error", body.message ? say(textOf(body.message)) : other(body));
  if (Array.isArray(body.data) && body.data.some((d) => d?.embedding)) return vectors(body.data);
  if (body.embeddings || body.embedding) return vectors(body.embeddings?.float ?? body.embeddings ?? [body.embedding]);
  if (Array.isArray(body.data) && body.data.some((d) => d?.b64_json || d?.url)) return body.data.flatMap((d) => from("assistant", ...(d.revised_prompt ? [say(d.revised_prompt)] : []), media("image/png", d.b64_json || d.url)));
  if (body.base64) return from("assistant", media(body.content_type || "file", { data: body.base64 }));
  if (body.content) return [message({ role: "assistant", content: body.content })];
  if (typeof body.response === "string") return from("assistant", say(body.response));
  if (typeof body.text === "string") return from("assistant", say(body.text));
  return Object.keys(body).length ? from("assistant", other(body)) : [];
}

// said are the members of a request that hold messages; the others are its parameters.
const said = new Set(["messages", "contents", "input", "prompt", "system", "instructions", "systemInstruction", "system_instruction", "tools", "toolConfig", "functions", "model", "query", "documents", "content", "image"]);

// settings are what a request has beside its messages: its tools {name, description,
// schema}, and its parameters.
export function settings(body) {
  if (!body || typeof body !== "object") return { tools: [], parameters: {} };
  const found = [...list(body.tools), ...list(body.functions), ...list(body.toolConfig?.tools)].flatMap((t) => t?.functionDeclarations ?? t?.function_declarations ?? t);
  const tools = found.filter((t) => t && typeof t === "object").map((t) => {
    const f = t.function ?? t.toolSpec ?? t.custom ?? t;
    return { name: f.name ?? t.server_label ?? t.type ?? Object.keys(t)[0] ?? "tool", description: f.description, schema: f.parameters ?? f.input_schema ?? f.inputSchema?.json ?? (f === t ? t : undefined) };
  });
  return { tools, parameters: Object.fromEntries(Object.entries(body).filter(([key]) => !said.has(key))) };
}
