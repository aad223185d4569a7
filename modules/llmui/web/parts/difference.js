// Two texts, or two lists of messages, with what differs marked.
import { html, useMemo, useState } from "../html.js";
import { compare, paired, words } from "../diff.js";
import { plural } from "../format.js";

// text is a message as one.
export const text = (m) => `${m.role}: ` + m.parts.map((p) => p.text ?? (p.type === "call" ? `${p.name} ${show(p.args)}` : show(p.value ?? p.kind ?? p))).join("\n");
const show = (v) => (typeof v === "string" ? v : JSON.stringify(v, null, 2) ?? "");

const around = 120; // characters of what is the same, on each side of a difference
const most = 60_000; // characters that are compared by words

// Texts shows two texts, one below the other, with the words that differ marked.
export function Texts({ then, now }) {
  const steps = useMemo(() => (then.length + now.length > most ? byLines(then, now) : words(then, now)), [then, now]);
  const side = (name, other, Tag) => html`<dt>${name}</dt><dd dir="auto" tabindex="0"><code>${steps.map(([kind, part], i) => kind !== other && (kind === "same" ? short(part, i === 0, i === steps.length - 1) : html`<${Tag}>${part}<//>`))}</code></dd>`;
  return html`<dl class="texts">${then && side("Then", "new", "del")}${now && side("Now", "gone", "ins")}</dl>`;
}

const byLines = (then, now) => compare(then.split("\n"), now.split("\n"), (a, b) => a === b).map(([kind, a, b]) => [kind, (b ?? a) + "\n"]);

// short leaves out the middle of what is the same.
function short(part, first, last) {
  if (part.length <= 2 * around) return part;
  return (first ? "" : part.slice(0, around)) + " … " + (last ? "" : part.slice(-around));
}

// Lists shows what differs between two lists of things that title and body make texts of.
export function Lists({ name, noun, then, now, title, body }) {
  const [all, setAll] = useState(false);
  const key = (x) => body(x);
  const steps = useMemo(() => paired(compare(then, now, (a, b) => key(a) === key(b))), [then, now]);
  const differ = steps.filter(([kind]) => kind !== "same").length;
  return html`<section class="difference"><h3>${name} <span class="quiet">${differ ? `${plural(differ, noun)} of ${steps.length} differ` : steps.length ? `${plural(steps.length, noun)}, the same on both sides` : "none on either side"}</span></h3>
    ${steps.map(([kind, a, b], i) => kind === "same"
      ? all && html`<p class="quiet">${i + 1}. ${title(a)}: the same</p>`
      : html`<div class=${"step " + kind}><p>${i + 1}. ${kind === "gone" ? html`<del>only on the left: ${title(a)}</del>` : kind === "new" ? html`<ins>only on the right: ${title(b)}</ins>` : html`<b>${title(a)}</b> differs`}</p>
        <${Texts} then=${a === undefined ? "" : body(a)} now=${b === undefined ? "" : body(b)} /></div>`)}
    ${steps.length > differ && html`<button class="quiet" onClick=${() => setAll(!all)}>${all ? "Hide" : "Show"} what is the same</button>`}</section>`;
}
