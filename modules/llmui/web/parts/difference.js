// Two texts, or two lists of messages, with what differs marked.
import { html, useMemo, useState } from "../html.js";
import { filter } from "../filter.js";
import { caller, useAnswer } from "../api.js";
import { answered, asked } from "../conversation.js";
import { Answer, To, failed } from "./basics.js";
import { Messages, Settings } from "./messages.js";
import { count, moment, plural } from "../format.js";

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


// What follows are pure functions: differences of lists and of texts, as steps [kind, then, now]: "same", "gone", "new", or
// "edited" for two that stand for each other.

const compared = 1500; // elements of a list that are compared with each other

// compare pairs two lists by an equality, with as many pairs as possible in order.
function compare(then, now, same) {
  let head = 0, tail = 0;
  while (head < Math.min(then.length, now.length) && same(then[head], now[head])) head++;
  while (tail < Math.min(then.length, now.length) - head && same(then.at(-1 - tail), now.at(-1 - tail))) tail++;
  const a = then.slice(head, then.length - tail), b = now.slice(head, now.length - tail);
  const steps = then.slice(0, head).map((x, i) => ["same", x, now[i]]);
  if (a.length * b.length > compared * compared) steps.push(...a.map((x) => ["gone", x]), ...b.map((x) => ["new", undefined, x]));
  else {
    const width = b.length + 1, longest = new Uint16Array((a.length + 1) * width);
    for (let i = a.length - 1; i >= 0; i--)
      for (let j = b.length - 1; j >= 0; j--) longest[i * width + j] = same(a[i], b[j]) ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    for (let i = 0, j = 0; i < a.length || j < b.length; ) {
      if (i < a.length && j < b.length && same(a[i], b[j])) steps.push(["same", a[i++], b[j++]]);
      else if (i < a.length && (j === b.length || longest[(i + 1) * width + j] >= longest[i * width + j + 1])) steps.push(["gone", a[i++]]);
      else steps.push(["new", undefined, b[j++]]);
    }
  }
  for (let i = tail; i > 0; i--) steps.push(["same", then.at(-i), now.at(-i)]);
  return steps;
}

// paired makes "edited" of what is gone and what has come in its place.
function paired(steps) {
  const out = [];
  for (let i = 0; i < steps.length; ) {
    if (steps[i][0] === "same") {
      out.push(steps[i++]);
      continue;
    }
    const end = steps.findIndex(([kind], j) => j > i && kind === "same");
    const run = steps.slice(i, end < 0 ? steps.length : end);
    const gone = run.filter(([kind]) => kind === "gone"), fresh = run.filter(([kind]) => kind === "new");
    for (let j = 0; j < Math.max(gone.length, fresh.length); j++) out.push(gone[j] && fresh[j] ? ["edited", gone[j][1], fresh[j][2]] : gone[j] || fresh[j]);
    i += run.length;
  }
  return out;
}

// words is the difference of two texts, by words: [kind, text] with neighbours joined.
function words(then, now) {
  const split = (text) => text.split(/(\s+|[^\p{L}\p{N}\s])/u).filter(Boolean);
  const out = [];
  for (const [kind, a, b] of compare(split(then), split(now), (x, y) => x === y)) {
    if (out.at(-1)?.[0] === kind) out.at(-1)[1] += b ?? a;
    else out.push([kind, b ?? a]);
  }
  return out;
}

// What a request adds to the turn before it, and where the two first differ.

const note = (text) => text && html`<p class="notice">${text}</p>`;

// absent says why there is no content.
export function absent(body, omitted, side) {
  if (body !== null) return null;
  if (!caller.content) return `Your login does not read the ${side}: that needs the scope query.`;
  return omitted ? `The ${side} is not kept: the caller or the configuration omits it.` : `There is no ${side}. It was empty, it was erased, or its retention has ended.`;
}

// First is a turn of which all is new.
const First = ({ r, words, says }) => html`<p class="quiet">${says}</p><${Settings} body=${r.request_body} />${note(absent(r.request_body, r.request_omitted, "request"))}<${Messages} list=${asked(r.request_body)} words=${words} />
  ${note(absent(r.response_body, r.response_omitted, "response"))}<${Messages} list=${answered(r.response_body, failed(r))} words=${words} answer />`;

// same tells whether two messages say the same, whatever the ids in them.
const same = (a, b) => a !== undefined && b !== undefined && said(a) === said(b);
const said = (m) => JSON.stringify([m.role, m.parts.map(({ id, ...part }) => part)]);

// Turn is what a request adds to the one before it, and where the two first differ,
// which is where the provider's cache ends.
export function Turn({ r, words }) {
  const session = r.properties["Service-Session-Id"];
  const before = r.parent_request_id ? [{ request_id: { equals: r.parent_request_id } }] : session && [{ session_id: { equals: session } }, { request_created_at: { lt: r.request_created_at } }];
  const state = useAnswer("/v1/request/query-clickhouse", before ? { filter: filter({ f: [] }, ...before), sort: { created_at: "desc" }, limit: 1 } : null);
  if (!before) return html`<${First} r=${r} words=${words} says="The request continues no other call, and belongs to no session: all of it is new." />`;
  return html`<${Answer} state=${state} empty=${(d) => d.length === 0} none=${html`<${First} r=${r} words=${words} says="This is the first turn, or the one before is gone: all of it is new." />`}>${([before]) => {
    const missing = absent(r.request_body, r.request_omitted, "request") || absent(before.request_body, before.request_omitted, "request of the turn before");
    if (missing) return note(missing + " So what is new is not known.");
    const now = asked(r.request_body);
    const then = asked(before.request_body);
    let common = 0;
    while (same(now[common], then[common])) common++;
    const answer = answered(before.response_body);
    const repeated = answer.length > 0 && answer.every((m, i) => same(m, now[common + i])) ? answer.length : 0;
    const fresh = now.length - common - repeated;
    const link = html`<${To} change=${{ id: before.request_id }}>the turn before<//>`;
    return html`<p>${plural(common, "message")} as in ${link} of ${moment(before.request_created_at)}${repeated ? ", then its answer" : ""}. ${plural(fresh, "message")} ${fresh === 1 ? "is" : "are"} new.
        ${r.prompt_cache_read_tokens !== null && html` ${count(r.prompt_cache_read_tokens)} of ${count(r.prompt_tokens)} input tokens came from the cache.`}</p>
      ${common < then.length && html`<div class="notice bad">Message ${common + 1} differs from ${link}, which has ${plural(then.length, "message")}: a prompt cache serves nothing from there on.
        <${Texts} then=${text(then[common])} now=${now[common] ? text(now[common]) : ""} /></div>`}
      <${Settings} body=${r.request_body} /><${Messages} list=${now.slice(common + repeated)} words=${words} />${note(absent(r.response_body, r.response_omitted, "response"))}<${Messages} list=${answered(r.response_body, failed(r))} words=${words} answer />`;
  }}<//>`;
}
