// What to paste into a client, with the address of this server.
import { html, useState } from "../html.js";
import { Copy } from "./basics.js";

const origin = location.origin;
const shell = (...vars) => vars.map(([name, value]) => `export ${name}=${value}`).join("\n");

// clients are the lines of each client by its name: of a key, and of the model to call.
export const clients = {
  "Claude Code": (key) => shell(["ANTHROPIC_BASE_URL", origin], ["ANTHROPIC_AUTH_TOKEN", key]) + "\nclaude",
  Codex: (key) => `# ~/.codex/config.toml\nmodel_provider = "weir"\n\n[model_providers.weir]\nname = "Weir"\nbase_url = "${origin}/v1"\nenv_key = "WEIR_KEY"\nwire_api = "responses"\n\n# in the shell\nexport WEIR_KEY=${key}\ncodex`,
  opencode: (key, model) => JSON.stringify({ $schema: "https://opencode.ai/config.json", provider: { weir: { npm: "@ai-sdk/openai-compatible", name: "Weir", options: { baseURL: origin + "/v1", apiKey: key }, models: { [model]: {} } } } }, null, 2),
  "Gemini CLI": (key) => shell(["GOOGLE_GEMINI_BASE_URL", origin + "/gemini"], ["GEMINI_API_KEY", "<your Gemini key>"], ["GEMINI_CLI_CUSTOM_HEADERS", `"Service-Auth: Bearer ${key}"`]) + "\ngemini",
  Cursor: (key) => `Settings → Models → API Keys\nOpenAI API Key:            ${key}\nOverride OpenAI Base URL:  ${origin}/v1\n(Cursor calls from its own servers: the address must be public.)`,
  Continue: (key, model) => `# ~/.continue/config.yaml\nmodels:\n  - name: ${model}\n    provider: openai\n    model: ${model}\n    apiBase: ${origin}/v1\n    apiKey: ${key}\n    roles: [chat, edit, apply]`,
  "OpenAI SDK": (key, model) => `from openai import OpenAI\n\nclient = OpenAI(base_url="${origin}/v1", api_key="${key}")\nprint(client.responses.create(model="${model}", input="Hello").output_text)`,
  "Anthropic SDK": (key, model) => `from anthropic import Anthropic\n\nclient = Anthropic(base_url="${origin}", auth_token="${key}")\nprint(client.messages.create(model="${model}", max_tokens=100, messages=[{"role": "user", "content": "Hello"}]).content)`,
  LangChain: (key, model) => `from langchain_openai import ChatOpenAI\n\nmodel = ChatOpenAI(model="${model}", base_url="${origin}/v1", api_key="${key}")\nprint(model.invoke("Hello").content)`,
  "AI SDK": (key, model) => `import { createOpenAI } from "@ai-sdk/openai";\nimport { generateText } from "ai";\n\nconst weir = createOpenAI({ baseURL: "${origin}/v1", apiKey: "${key}" });\nconst { text } = await generateText({ model: weir("${model}"), prompt: "Hello" });`,
  curl: (key, model) => `curl ${origin}/v1/responses \\\n  -H 'Authorization: Bearer ${key}' \\\n  -H 'Content-Type: application/json' \\\n  -d '{"model": "${model}", "input": "Hello"}'`,
};

// Setup shows the lines of a client that is chosen.
export function Setup({ secret = "<your key>", model = "gpt-5-mini" }) {
  const [name, choose] = useState(Object.keys(clients)[0]);
  const lines = clients[name](secret, model);
  return html`<label class="choose">Client <select value=${name} onChange=${(e) => choose(e.target.value)}>${Object.keys(clients).map((n) => html`<option>${n}</option>`)}</select></label>
    <div class="setup panel"><pre tabindex="0" aria-label=${"What to paste for " + name}>${lines}</pre><${Copy} text=${() => lines} /></div>`;
}
