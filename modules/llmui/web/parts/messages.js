// A conversation as its messages, whatever the dialect.
import { html, useState } from "../html.js";
import { markdown } from "../markdown.js";
import { settings } from "../conversation.js";
import { bytes, count, plural } from "../format.js";
import { Json } from "./json.js";

const ends = 10; // messages shown at each end of a long conversation
const longText = 4096;

// paired puts what a tool answered below its call. Gemini's calls have a name alone:
// their answers come in the order of the calls.
function paired(list) {
  const calls = new Map();
  const pair = (p) => {
    if (p.type === "call") {
      const key = p.id || p.name;
      calls.set(key, [...(calls.get(key) || []), (p = { ...p })]);
    } else if (p.type === "result" && calls.get(p.id)?.length) {
      calls.get(p.id).shift().result = p;
      return [];
    }
    return p;
  };
  return list.map((m) => ({ ...m, parts: m.parts.flatMap(pair) })).filter((m, i) => m.parts.length || !list[i].parts.length);
}

// has tells whether a message has one of the words that are looked for.
const has = (m, words) => words.length > 0 && ((text) => words.some((w) => text.includes(w.toLowerCase())))(JSON.stringify(m).toLowerCase());

// Messages shows a list of them; the middle of a long one is folded, unless a word that
// is looked for is there.
export function Messages({ list: said, answer, words = [] }) {
  const [all, setAll] = useState(false);
  const list = paired(said);
  const middle = list.length - 2 * ends;
  const draw = (m, i) => html`<${Message} key=${i} m=${m} answer=${answer} words=${words} />`;
  if (all || middle <= 0) return html`${list.map(draw)}`;
  const found = list.slice(ends, -ends).findIndex((m) => has(m, words));
  return html`${list.slice(0, ends).map(draw)}
    ${found >= 0 && html`<p class="quiet">Message ${ends + found + 1}</p>${draw(list[ends + found], "found")}`}
    <button class="more" onClick=${() => setAll(true)}>Show ${count(middle)} more messages</button>
    ${list.slice(-ends).map((m, i) => draw(m, i - ends))}`;
}

const marks = { system: "⚙", user: "◯", assistant: "◆", tool: "⚒", error: "▲" };

// Message is one; the instructions are folded, as they are long and the same every time.
function Message({ m, answer, words }) {
  const parts = m.parts.length ? m.parts.map((p) => html`<${Part} p=${p} role=${m.role} words=${words} />`) : html`<p class="quiet">(empty)</p>`;
  const title = html`<i aria-hidden="true">${marks[m.role]}</i> ${m.role}`;
  const text = m.parts.map((p) => p.text || "").join(" ");
  if (m.role === "system" && text.length > 400 && !has(m, words)) return html`<article class="message system"><details><summary><h3>${title}</h3> <span class="quiet">${bytes(text.length)}: ${text.slice(0, 90)}…</span></summary>${parts}</details></article>`;
  return html`<article class="message ${m.role} ${answer ? "answer" : ""}"><h3>${title}</h3>${parts}</article>`;
}

function Part({ p, role, words }) {
  switch (p.type) {
    case "text":
      return html`${p.text && html`<${Text} text=${p.text} rich=${role !== "system"} words=${words} />`}${p.sources && html`<${Sources} list=${p.sources} />`}`;
    case "thinking":
      return html`<details class="thinking" open=${has(p, words)}><summary>Thinking</summary><${Text} text=${p.text} words=${words} /></details>`;
    case "call":
      return html`<div class="call"><b dir="auto">${p.name}</b>${p.id && html` <code class="quiet" title=${p.id}>${String(p.id).slice(-8)}</code>`}<${Text} text=${pretty(p.args)} plain words=${words} />${p.result && html`<${Part} p=${p.result} words=${words} />`}</div>`;
    case "result":
      return html`<div class="call result"><b class=${p.bad ? "bad" : ""}>${p.bad ? "failed" : role === "error" ? "no JSON" : "result"}</b>${p.id && html` <code class="quiet" title=${p.id}>${String(p.id).slice(-8)}</code>`}<${Text} text=${p.text || "(empty)"} plain words=${words} /></div>`;
    case "media":
      return html`<${Media} p=${p} />`;
    case "vectors":
      return html`<p>${plural(p.count, "embedding")} of ${count(p.size)} dimensions</p>`;
    default:
      return html`<${Json} value=${p.value} />`;
  }
}

const Sources = ({ list }) => html`<p class="quiet">Sources: ${list.map(({ title, url }, i) => html`${i > 0 && ", "}${/^https?:/.test(url || "") ? html`<a href=${url} target="_blank" rel="noreferrer noopener">${title}</a>` : title}`)}</p>`;

const pretty = (v) => (typeof v === "string" ? v : JSON.stringify(v, null, 2) ?? "");

// Text is cut where it is long, behind the last word that is looked for.
function Text({ text, rich, plain, words = [] }) {
  const [open, setOpen] = useState(false);
  const lower = words.length && text.length > longText ? text.toLowerCase() : "";
  const end = Math.max(longText, ...words.map((w) => lower.indexOf(w.toLowerCase()) + longText / 4));
  const cut = !open && text.length > end;
  const part = cut ? text.slice(0, end) : text;
  return html`${plain ? html`<pre dir="auto">${part}</pre>` : rich ? html`<div dir="auto">${markdown(part)}</div>` : html`<p class="plain" dir="auto">${part}</p>`}
    ${cut && html`<button class="more" onClick=${() => setOpen(true)}>Show all ${bytes(text.length)}</button>`}`;
}

// Media is shown on request, and only what stands in the body: fetching it from
// elsewhere would tell who reads what.
function Media({ p }) {
  const [open, setOpen] = useState(false);
  const image = /^data:image\/(png|jpeg|gif|webp);/.test(p.url || ""), audio = /^data:audio\//.test(p.url || "");
  return html`<div class="media"><span class="chip">${p.kind}${p.size ? ` ${bytes(p.size)}` : ""}${p.remote ? ` at ${p.remote.slice(0, 80)}` : ""}</span>
    ${(image || audio) && (!open ? html`<button class="quiet" onClick=${() => setOpen(true)}>${image ? "Show" : "Listen"}</button>` : image ? html`<img src=${p.url} alt="Image of the call" />` : html`<audio controls src=${p.url}></audio>`)}</div>`;
}

// Settings are the tools and the parameters of a request.
export function Settings({ body }) {
  const { tools, parameters } = settings(body);
  const said = Object.entries(parameters);
  if (!tools.length && !said.length) return null;
  return html`<details class="settings"><summary>${[tools.length && plural(tools.length, "tool"), ...said.filter(([, v]) => typeof v !== "object").slice(0, 4).map(([k, v]) => `${k} ${v}`)].filter(Boolean).join(" · ") || plural(said.length, "parameter")}</summary>
    ${said.length > 0 && html`<h3>Parameters</h3><${Json} value=${parameters} />`}
    ${tools.length > 0 && html`<h3>Tools</h3>${tools.map((t) => html`<details><summary><b>${t.name}</b> <span class="quiet" dir="auto">${(t.description || "").slice(0, 100)}</span></summary>${t.description?.length > 100 && html`<p class="plain">${t.description}</p>`}${t.schema && html`<${Json} value=${t.schema} />`}</details>`)}`}</details>`;
}
