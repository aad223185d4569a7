// Markdown as nodes, never as HTML: what a model or a user wrote cannot become
// markup. It knows headings, lists, code, quotes, tables, emphasis and links.
import { html } from "./html.js";

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
