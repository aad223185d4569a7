// Messages as people read them: their parts, Markdown, and values as JSON.
import { html, useState } from "../html.js";
import { settings } from "../conversation.js";
import { mark } from "./basics.js";
import { bytes, count, plural } from "../format.js";

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

// What follows shows Markdown as nodes, never as HTML: what a model or a user wrote cannot become
// markup. It knows headings, lists, code, quotes, tables, emphasis and links.

const safe = /^(https?:|mailto:)/i;

function inline(text) {
  const out = [];
  // What never ends is looked for in a bounded length, or a long text would block the page.
  const token = /(`+)(.{1,2000}?)\1|\*\*(.{1,2000}?)\*\*|\*([^\s*](?:.{0,2000}?[^\s*])?)\*|\[([^\][]{0,500})\]\(([^)\s]{1,2000})\)/g;
  let at = 0;
  for (let m; (m = token.exec(text)); at = token.lastIndex) {
    if (m.index > at) out.push(text.slice(at, m.index));
    if (m[2]) out.push(html`<code>${m[2]}</code>`);
    else if (m[3]) out.push(html`<strong>${m[3]}</strong>`);
    else if (m[4]) out.push(html`<em>${m[4]}</em>`);
    else out.push(safe.test(m[6]) ? html`<a href=${m[6]} target="_blank" rel="noreferrer noopener">${m[5]}</a>` : m[0]);
  }
  if (at < text.length) out.push(text.slice(at));
  return out;
}

const cells = (line) => line.replace(/^\||\|\s*$/g, "").split("|").map((c) => c.trim());

function table(rows) {
  return html`<div class="scroll"><table><thead><tr>${cells(rows[0]).map((c) => html`<th>${inline(c)}</th>`)}</tr></thead>
    <tbody>${rows.slice(2).map((r) => html`<tr>${cells(r).map((c) => html`<td>${inline(c)}</td>`)}</tr>`)}</tbody></table></div>`;
}

// kinds are the blocks that a line may begin, with the test of the lines that
// belong to it and what they become.
const kinds = [
  [/^#{1,6} /, (l) => /^#{1,6} /.test(l), (ls) => ls.map((l) => html`<p class="heading">${inline(l.replace(/^#+ /, ""))}</p>`)],
  [/^\s*[-*+] /, (l) => /^\s*[-*+] |^\s+\S/.test(l), (ls) => html`<ul>${ls.map((l) => html`<li>${inline(l.replace(/^\s*[-*+] /, ""))}</li>`)}</ul>`],
  [/^\s*\d+[.)] /, (l) => /^\s*\d+[.)] |^\s+\S/.test(l), (ls) => html`<ol start=${parseInt(ls[0].trim())}>${ls.map((l) => html`<li>${inline(l.replace(/^\s*\d+[.)] /, ""))}</li>`)}</ol>`],
  [/^> ?/, (l) => /^>/.test(l), (ls, depth) => html`<blockquote>${markdown(ls.map((l) => l.replace(/^> ?/, "")).join("\n"), depth + 1)}</blockquote>`],
];

// deepest is how many quotes stand in each other. What is deeper is text: the stack has an end.
const deepest = 16;

// markdown is the nodes of a text.
export function markdown(text, depth = 0) {
  if (depth > deepest) return text;
  const lines = text.split("\n");
  const out = [];
  for (let i = 0; i < lines.length; ) {
    const line = lines[i];
    const fence = /^\s*(```+|~~~+)\s*(\S*)/.exec(line);
    if (fence) {
      const end = lines.findIndex((l, j) => j > i && l.trim().startsWith(fence[1]));
      const last = end < 0 ? lines.length : end;
      out.push(html`<pre><code>${lines.slice(i + 1, last).join("\n")}</code></pre>`);
      i = last + 1;
      continue;
    }
    if (!line.trim()) {
      i++;
      continue;
    }
    const kind = kinds.find(([start]) => start.test(line));
    const isTable = !kind && line.includes("|") && /^\s*\|?[\s:|-]+\|?\s*$/.test(lines[i + 1] || "") && (lines[i + 1] || "").includes("-");
    const belongs = kind ? kind[1] : isTable ? (l) => l.includes("|") : (l) => l.trim() && !/^\s*(```|~~~)/.test(l) && !kinds.some(([start]) => start.test(l));
    let end = i + 1;
    while (end < lines.length && belongs(lines[end])) end++;
    const block = lines.slice(i, end);
    out.push(kind ? kind[2](block, depth) : isTable ? table(block) : html`<p>${block.flatMap((l, n) => [n ? html`<br />` : null, inline(l)])}</p>`);
    i = end;
  }
  return out;
}

// What follows is JSON that folds, and opens where a search finds something.

const longString = 2000;
const most = 200; // members shown at once

const hasText = (value, text) => (typeof value === "object" && value !== null ? JSON.stringify(value) : String(value)).toLowerCase().includes(text);

function Scalar({ value, find }) {
  const [all, setAll] = useState(false);
  if (typeof value !== "string") return html`<span class="json-${value === null ? "null" : typeof value}">${String(value)}</span>`;
  const cut = !all && value.length > longString;
  const at = cut && find ? Math.max(0, value.toLowerCase().indexOf(find) - longString / 2) : 0; // what is found is in sight
  return html`<span class="json-string">${at > 0 && "…"}${mark(JSON.stringify(cut ? value.slice(at, at + longString) : value), find)}</span>${cut && html` <button class="quiet" onClick=${() => setAll(true)}>show all ${bytes(value.length)}</button>`}`;
}

// Json shows a value. Deep and long ones are folded; find is what to look for, in
// lower case.
export function Json({ name, value, find = "", depth = 0 }) {
  const [open, setOpen] = useState(null);
  const [count, setCount] = useState(most);
  const label = name !== undefined && html`<span class="json-key">${mark(String(name), find)}</span>: `;
  if (typeof value !== "object" || value === null) return html`<div class="json">${label}<${Scalar} value=${value} find=${find} /></div>`;
  const list = Array.isArray(value);
  const entries = Object.entries(value);
  // A search shows the members in which it finds something, wherever they are.
  const found = find ? entries.filter(([key, member]) => key.toLowerCase().includes(find) || hasText(member, find)) : entries;
  const isOpen = open ?? (find ? found.length > 0 : depth < 3 && entries.length <= 20);
  return html`<div class="json"><button class="fold" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${isOpen ? "▾" : "▸"} ${label || (list ? "list" : "object")}</button>
    <span class="quiet">${list ? `[${plural(entries.length, "element")}]` : `{${plural(entries.length, "field")}}`}</span>
    ${isOpen && html`<div class="json-members">${found.slice(0, count).map(([key, member]) => html`<${Json} key=${key} name=${list ? Number(key) : key} value=${member} find=${find} depth=${depth + 1} />`)}
      ${found.length > count && html`<button class="quiet" onClick=${() => setCount(count + most)}>${found.length - count} more</button>`}</div>`}</div>`;
}
