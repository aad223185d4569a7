// A conversation as its messages, whatever the dialect.
import { html, useState } from "../html.js";
import { markdown } from "../markdown.js";
import { bytes } from "../format.js";

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

// Messages shows a list of them; the middle of a long one is folded.
export function Messages({ list: said, answer }) {
  const [all, setAll] = useState(false);
  const list = paired(said);
  const middle = list.length - 2 * ends;
  if (all || middle <= 0) return html`${list.map((m, i) => html`<${Message} key=${i} m=${m} answer=${answer} />`)}`;
  return html`${list.slice(0, ends).map((m, i) => html`<${Message} key=${i} m=${m} />`)}
    <button class="more" onClick=${() => setAll(true)}>Show ${middle} more messages</button>
    ${list.slice(-ends).map((m, i) => html`<${Message} key=${i - ends} m=${m} />`)}`;
}

const marks = { system: "⚙", user: "◯", assistant: "◆", tool: "⚒", error: "▲" };

const Message = ({ m, answer }) => html`<article class="message ${m.role} ${answer ? "answer" : ""}"><h3><i aria-hidden="true">${marks[m.role]}</i> ${m.role}</h3>${m.parts.map((p) => html`<${Part} p=${p} role=${m.role} />`)}</article>`;

function Part({ p, role }) {
  switch (p.type) {
    case "text":
      return html`<${Text} text=${p.text} rich=${role !== "system"} />`;
    case "thinking":
      return html`<details class="thinking"><summary>Thinking</summary><${Text} text=${p.text} /></details>`;
    case "call":
      return html`<div class="call"><b>${p.name}</b>${p.id && html` <code class="quiet">${p.id.slice(-8)}</code>`}<pre>${pretty(p.args)}</pre>${p.result && html`<${Part} p=${p.result} />`}</div>`;
    case "result":
      return html`<div class="call result"><b>result</b>${p.id && html` <code class="quiet">${p.id.slice(-8)}</code>`}<${Text} text=${p.text} plain /></div>`;
    case "media":
      return html`<${Media} p=${p} />`;
    default:
      return html`<pre>${pretty(p.value)}</pre>`;
  }
}

const pretty = (v) => (typeof v === "string" ? v : JSON.stringify(v, null, 2));

function Text({ text, rich, plain }) {
  const [open, setOpen] = useState(false);
  const cut = !open && text.length > longText;
  const part = cut ? text.slice(0, longText) : text;
  return html`${plain ? html`<pre>${part}</pre>` : rich ? markdown(part) : html`<p class="plain">${part}</p>`}
    ${cut && html`<button class="more" onClick=${() => setOpen(true)}>Show all ${bytes(text.length)}</button>`}`;
}

// Media is shown on request, and only what stands in the body: fetching it from
// elsewhere would tell who reads what.
function Media({ p }) {
  const [open, setOpen] = useState(false);
  const image = /^data:image\/(png|jpeg|gif|webp);/.test(p.url || "");
  return html`<div class="media"><span class="chip">${p.kind}${p.size ? ` ${bytes(p.size)}` : ""}${p.remote ? ` at ${p.remote.slice(0, 80)}` : ""}</span>
    ${image && (open ? html`<img src=${p.url} alt="Image of the request" />` : html`<button class="quiet" onClick=${() => setOpen(true)}>Show</button>`)}</div>`;
}
