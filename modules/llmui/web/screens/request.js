// One request: what was said, what it cost and why, how it went.
import { html, useEffect, useRef, useState } from "../html.js";
import { go } from "../state.js";
import { useAnswer } from "../api.js";
import { asked, answered } from "../conversation.js";
import { markdown } from "../markdown.js";
import { Answer, Copy, Outcome, Tabs, To } from "../parts/basics.js";
import { bytes, count, dollars, duration, fullMoment } from "../format.js";

const tabs = [["conversation", "Conversation"], ["cost", "Cost"], ["timing", "Timing"], ["labels", "Labels"], ["raw", "Raw"]];

// Drawer shows the request of an id over the list.
export function Drawer({ id, tab }) {
  const dialog = useRef();
  const state = useAnswer(`/v1/request/${encodeURIComponent(id)}`);
  const close = () => go({ id: "", tab: "" });
  useEffect(() => {
    dialog.current.show();
    const press = (e) => {
      if (e.key === "Escape") close();
      const step = { "[": -1, "]": 1 }[e.key];
      if (!step || e.target.matches("input, select, textarea")) return;
      const at = tabs.findIndex(([key]) => key === tab);
      go({ tab: tabs[(at + step + tabs.length) % tabs.length][0] }, true);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [tab]);
  return html`<dialog ref=${dialog} class="drawer" aria-label="Request">
    <header><h2>Request</h2><code title=${id}>${id.slice(0, 8)}…</code> <${Copy} text=${id} label="Copy id" /><button class="quiet close" aria-label="Close" onClick=${close}>×</button></header>
    <${Answer} state=${state}>${(r) => html`<${Summary} r=${r} /><${Tabs} tabs=${tabs} current=${tab} />
      <div class="body" role="tabpanel">${{ conversation: Conversation, cost: Cost, timing: Timing, labels: Labels, raw: Raw }[tab]({ r })}</div>`}<//>
  </dialog>`;
}

const Summary = ({ r }) => html`<p class="summary"><${Outcome} record=${r} /> <b>${r.model || "unknown model"}</b> <span>${r.provider}</span>
  <span>${duration(r.delay_ms)}</span> <span>${count(r.prompt_tokens)} in, ${count(r.completion_tokens)} out</span> <b>${dollars(r.cost)}</b>
  ${r.request_user_id && html`<${To} change=${{ v: "requests", id: "", f: [{ field: "user_id", op: "equals", value: r.request_user_id }] }}>${r.request_user_id}<//>`}
  ${r.properties["Service-Session-Id"] && html`<${To} change=${{ v: "sessions", id: "", session: r.properties["Service-Session-Id"] }}>session ${r.properties["Service-Session-Name"] || r.properties["Service-Session-Id"]}<//>`}</p>`;

// absent says why there is no content.
function absent(body, omitted, side) {
  if (body !== null) return null;
  return omitted ? `The ${side} is not kept: the caller or the configuration omits it.` : `There is no ${side}. It was empty, or its retention has ended.`;
}

const shown = 20;
const longText = 4096;

function Conversation({ r }) {
  const [all, setAll] = useState(false);
  const before = asked(r.request_body);
  const middle = before.length - shown;
  const messages = all || middle <= 0 ? before : [...before.slice(0, shown / 2), { skipped: middle }, ...before.slice(-shown / 2)];
  return html`
    ${note(absent(r.request_body, r.request_omitted, "request"))}
    ${messages.map((m, i) => (m.skipped ? html`<button class="more" onClick=${() => setAll(true)}>Show ${m.skipped} more messages</button>` : html`<${Message} key=${i} m=${m} />`))}
    ${r.request_truncated && note("The request was cut at the largest size that is kept.")}
    ${note(absent(r.response_body, r.response_omitted, "response"))}
    ${answered(r.response_body).map((m, i) => html`<${Message} key=${"a" + i} m=${m} answer />`)}
    ${r.response_truncated && note("The response was cut at the largest size that is kept.")}`;
}

const note = (text) => text && html`<p class="notice">${text}</p>`;

const Message = ({ m, answer }) => html`<article class="message ${m.role} ${answer ? "answer" : ""}"><h3>${m.role}</h3>${m.parts.map((p) => html`<${Part} p=${p} role=${m.role} />`)}</article>`;

function Part({ p, role }) {
  switch (p.type) {
    case "text":
      return html`<${Text} text=${p.text} rich=${role !== "system"} />`;
    case "thinking":
      return html`<details class="thinking"><summary>Thinking</summary><${Text} text=${p.text} /></details>`;
    case "call":
      return html`<div class="call"><b>${p.name}</b>${p.id && html` <code class="quiet">${p.id.slice(-8)}</code>`}<pre>${pretty(p.args)}</pre></div>`;
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

function Cost({ r }) {
  const rows = [
    ["Input, not cached", r.prompt_tokens === null ? null : r.prompt_tokens - (r.prompt_cache_read_tokens || 0) - (r.prompt_cache_write_tokens || 0)],
    ["Input, read from the cache", r.prompt_cache_read_tokens],
    ["Input, written to the cache", r.prompt_cache_write_tokens],
    ["Output", r.completion_tokens],
    ["of it reasoning", r.reasoning_tokens],
  ];
  return html`<table><thead><tr><th scope="col">Tokens</th><th scope="col" class="number">Count</th></tr></thead>
      <tbody>${rows.map(([name, n]) => html`<tr><td>${name}</td><td class="number">${count(n)}</td></tr>`)}
        <tr><td><b>Cost</b></td><td class="number"><b>${dollars(r.cost)}</b></td></tr></tbody></table>
    ${r.cost === null && note("The cost is unknown: the provider reported no usage, or the catalogue has no price for this model.")}
    ${r.is_passthrough_billing && note("The platform's credentials paid for this call, against the organisation's credits.")}`;
}

function Timing({ r }) {
  const total = r.delay_ms || 1;
  const first = r.time_to_first_token;
  const bar = (from, to, name, tone) => html`<g><rect class=${tone} x=${(from / total) * 100} width=${Math.max(0.3, ((to - from) / total) * 100)} height="14"><title>${name}: ${duration(to - from)}</title></rect></g>`;
  return html`<svg class="timing" viewBox="0 0 100 14" preserveAspectRatio="none" role="img" aria-label=${`First token after ${duration(first)}, end after ${duration(r.delay_ms)}`}>
      ${first !== null ? html`${bar(0, first, "To the first token", "wait")}${bar(first, total, "Stream", "flow")}` : bar(0, total, "Call", "flow")}</svg>
    <dl><dt>Began</dt><dd>${fullMoment(r.request_created_at)}</dd><dt>To the first token</dt><dd>${duration(first)}</dd>
      <dt>To the end</dt><dd>${duration(r.delay_ms)}</dd><dt>Ended</dt><dd>${r.end_state.replace("_", " ")}${r.finish_reason ? `, ${r.finish_reason}` : ""}</dd>
      <dt>Status</dt><dd>${r.response_status ?? "—"}</dd>${r.error_type && html`<dt>Error</dt><dd>${r.error_type}</dd>`}
      ${r.attempt !== null && html`<dt>Attempt</dt><dd>${r.attempt}${r.attempt_of ? html` of <${To} change=${{ id: r.attempt_of }}>the call that was answered<//>` : ""}</dd>`}</dl>`;
}

function Labels({ r }) {
  const rows = { ...r.properties, ...Object.fromEntries(Object.entries(r.scores || {}).map(([k, v]) => [`score ${k}`, v])) };
  const facts = { Provider: r.provider, "Requested model": r.request_model, "Answered model": r.response_model, Target: r.target_url, Path: r.request_path, Organisation: r.organization_id, Prompt: r.prompt_id, Node: r.node_id, Job: r.job_id, Country: r.country_code, Trace: r.trace_id };
  return html`<dl>${[...Object.entries(facts), ...Object.entries(rows)].filter(([, v]) => v !== null && v !== undefined && v !== "").map(([k, v]) => html`<dt>${k}</dt><dd>${String(v)}</dd>`)}</dl>`;
}

function Raw({ r }) {
  return html`${[["Request", r.request_body, r.request_omitted], ["Response", r.response_body, r.response_omitted]].map(
    ([name, body, omitted]) => html`<section><h3>${name} ${body !== null && html`<${Copy} text=${pretty(body)} />`}</h3>
      ${body === null ? note(absent(body, omitted, name.toLowerCase())) : html`<${Text} text=${pretty(body)} plain />`}</section>`,
  )}`;
}
