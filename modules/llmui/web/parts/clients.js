// What to paste into a client, with the address of this server.
import { html, useState } from "../html.js";
import { Copy } from "./basics.js";

const origin = location.origin;
const shell = (...vars) => vars.map(([name, value]) => `export ${name}=${value}`).join("\n");
const header = (key) => `"Service-Auth": "Bearer ${key}"`;
const codex = (lines, variables) => `# ~/.codex/config.toml\nmodel_provider = "weir"\n\n[model_providers.weir]\nname = "Weir"\nwire_api = "responses"\n${lines}\n\n# in the shell\n${variables}\ncodex`;
const opencode = (provider, options, model) => JSON.stringify({ $schema: "https://opencode.ai/config.json", provider: { [provider]: { ...(provider === "weir" && { npm: "@ai-sdk/openai-compatible", name: "Weir" }), options, ...(provider === "weir" && { models: { [model]: {} } }) } } }, null, 2);
const continues = (model, lines) => `# ~/.continue/config.yaml\nmodels:\n  - name: ${model}\n    provider: openai\n    model: ${model}\n    roles: [chat, edit, apply]\n${lines}`;
const curl = (address, model, headers) => `curl ${address}/v1/responses \\\n${headers.map((h) => `  -H ${h} \\\n`).join("")}  -H 'Content-Type: application/json' \\\n  -d '{"model": "${model}", "input": "Hello"}'`;

// lanes are the ways through Weir: with the provider keys of the server, or with the client's own.
const lanes = { gateway: "this server's", proxy: "my own, or a subscription" };

// clients are the lines of each client by its name, for each lane that it can take: of a key, and
// of the model to call.
export const clients = {
  "Claude Code": {
    gateway: (key) => shell(["ANTHROPIC_BASE_URL", origin], ["ANTHROPIC_AUTH_TOKEN", key]) + "\nclaude",
    proxy: (key) => shell(["ANTHROPIC_BASE_URL", origin + "/anthropic"], ["ANTHROPIC_CUSTOM_HEADERS", `"Service-Auth: Bearer ${key}"`]) + "\nclaude",
  },
  Codex: {
    gateway: (key) => codex(`base_url = "${origin}/v1"\nenv_key = "WEIR_KEY"`, shell(["WEIR_KEY", key])),
    proxy: (key) => codex(`base_url = "${origin}/openai/v1"\nenv_key = "OPENAI_API_KEY"\nhttp_headers = { "Service-Auth" = "Bearer ${key}" }`, shell(["OPENAI_API_KEY", "<your OpenAI key>"])),
  },
  opencode: {
    gateway: (key, model) => opencode("weir", { baseURL: origin + "/v1", apiKey: key }, model),
    proxy: (key) => opencode("openai", { baseURL: origin + "/openai/v1", headers: { "Service-Auth": "Bearer " + key } }),
  },
  "Gemini CLI": { proxy: (key) => shell(["GOOGLE_GEMINI_BASE_URL", origin + "/gemini"], ["GEMINI_API_KEY", "<your Gemini key>"], ["GEMINI_CLI_CUSTOM_HEADERS", `"Service-Auth: Bearer ${key}"`]) + "\ngemini" },
  Cursor: { gateway: (key) => `Settings → Models → API Keys\nOpenAI API Key:            ${key}\nOverride OpenAI Base URL:  ${origin}/v1\n(Cursor calls from its own servers: the address must be public.)` },
  Continue: {
    gateway: (key, model) => continues(model, `    apiBase: ${origin}/v1\n    apiKey: ${key}`),
    proxy: (key, model) => continues(model, `    apiBase: ${origin}/openai/v1\n    apiKey: <your OpenAI key>\n    requestOptions:\n      headers:\n        Service-Auth: Bearer ${key}`),
  },
  "OpenAI SDK": {
    gateway: (key, model) => `from openai import OpenAI\n\nclient = OpenAI(base_url="${origin}/v1", api_key="${key}")\nprint(client.responses.create(model="${model}", input="Hello").output_text)`,
    proxy: (key, model) => `from openai import OpenAI  # reads OPENAI_API_KEY\n\nclient = OpenAI(base_url="${origin}/openai/v1", default_headers={${header(key)}})\nprint(client.responses.create(model="${model}", input="Hello").output_text)`,
  },
  "Anthropic SDK": {
    gateway: (key, model) => `from anthropic import Anthropic\n\nclient = Anthropic(base_url="${origin}", auth_token="${key}")\nprint(client.messages.create(model="${model}", max_tokens=100, messages=[{"role": "user", "content": "Hello"}]).content)`,
    proxy: (key) => `from anthropic import Anthropic  # reads ANTHROPIC_API_KEY\n\nclient = Anthropic(base_url="${origin}/anthropic", default_headers={${header(key)}})`,
  },
  LangChain: {
    gateway: (key, model) => `from langchain_openai import ChatOpenAI\n\nmodel = ChatOpenAI(model="${model}", base_url="${origin}/v1", api_key="${key}")\nprint(model.invoke("Hello").content)`,
    proxy: (key, model) => `from langchain_openai import ChatOpenAI  # reads OPENAI_API_KEY\n\nmodel = ChatOpenAI(model="${model}", base_url="${origin}/openai/v1", default_headers={${header(key)}})\nprint(model.invoke("Hello").content)`,
  },
  "AI SDK": {
    gateway: (key, model) => `import { createOpenAI } from "@ai-sdk/openai";\nimport { generateText } from "ai";\n\nconst weir = createOpenAI({ baseURL: "${origin}/v1", apiKey: "${key}" });\nconst { text } = await generateText({ model: weir("${model}"), prompt: "Hello" });`,
    proxy: (key) => `import { createOpenAI } from "@ai-sdk/openai"; // reads OPENAI_API_KEY\n\nconst openai = createOpenAI({ baseURL: "${origin}/openai/v1", headers: { ${header(key)} } });`,
  },
  curl: {
    gateway: (key, model) => curl(origin, model, [`'Authorization: Bearer ${key}'`]),
    proxy: (key, model) => curl(origin + "/openai", model, [`"Authorization: Bearer $OPENAI_API_KEY"`, `'Service-Auth: Bearer ${key}'`]),
  },
};

// Setup shows the lines of a client and a lane that are chosen.
export function Setup({ secret = "<your key>", model = "gpt-5-mini" }) {
  const [name, choose] = useState(Object.keys(clients)[0]);
  const [wanted, want] = useState("gateway");
  const client = clients[name], lane = client[wanted] ? wanted : Object.keys(client)[0], lines = client[lane](secret, model);
  return html`<div class="bar-row"><label class="choose">Client <select value=${name} onChange=${(e) => choose(e.target.value)}>${Object.keys(clients).map((n) => html`<option>${n}</option>`)}</select></label>
    <label class="choose">Provider keys <select value=${lane} onChange=${(e) => want(e.target.value)}>${Object.keys(client).map((l) => html`<option value=${l}>${lanes[l]}</option>`)}</select></label></div>
    <div class="setup panel"><pre tabindex="0" aria-label=${"What to paste for " + name}>${lines}</pre><${Copy} text=${() => lines} /></div>
    ${lane === "proxy" && html`<p class="quiet">Weir passes your provider key or subscription on unchanged, and records the calls. The Caddyfile of this server needs the path, such as <code>handle_path /anthropic/* { llm_proxy anthropic https://api.anthropic.com }</code>, and the Weir key the scope <code>log</code>.</p>`}`;
}
