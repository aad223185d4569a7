// One request: what was said, what it cost and why, how it went.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { elsewhere, filter, go, having } from "../state.js";
import { post, useAnswer } from "../api.js";
import { asked, answered } from "../conversation.js";
import { Answer, Bar, Copy, List, Outcome, Tabs, To, typing } from "../parts/basics.js";
import { Json } from "../parts/json.js";
import { Messages } from "../parts/messages.js";
import { count, dollars, duration, fullMoment, moment, percent, plural } from "../format.js";

const tabs = [["conversation", "Conversation"], ["turn", "New in this turn"], ["cost", "Cost"], ["timing", "Timing"], ["labels", "Labels"], ["raw", "Raw"]];
const panels = { conversation: Conversation, turn: Turn, cost: Cost, timing: Timing, labels: Labels, raw: Raw };

// Request shows the request of an id over the list, and keeps the focus until it is
// closed.
export function Request({ id, tab }) {
  const dialog = useRef();
  const state = useAnswer(`/v1/request/${encodeURIComponent(id)}`);
  const current = panels[tab] ? tab : "conversation";
  useLayoutEffect(() => {
    if (dialog.current.open) return;
    dialog.current.showModal();
    dialog.current.focus();
  }, [id]);
  // A click beside the drawer closes it, one on another request opens that.
  const beside = (e) => {
    if (e.target !== dialog.current || e.clientX >= dialog.current.getBoundingClientRect().left) return;
    dialog.current.close();
    document.elementFromPoint(e.clientX, e.clientY)?.closest("tr[data-id]")?.querySelector("button.open").click();
  };
  useEffect(() => {
    const press = (e) => {
      const step = { "[": -1, "]": 1 }[e.key];
      if (!step || typing(e)) return;
      const at = tabs.findIndex(([key]) => key === current);
      go({ tab: tabs[(at + step + tabs.length) % tabs.length][0] }, true);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [current]);
  return html`<dialog ref=${dialog} class="drawer" data-id=${id} aria-label="Request" tabindex="-1" onClick=${beside} onClose=${() => dialog.current.open || go({ id: "", tab: "" })}>
    <header><h2>Request</h2><code title=${id}>${id.slice(0, 8)}…</code> <${Copy} text=${() => id} label="Copy id" />
      ${state.data && html`<${Copy} text=${() => curl(state.data)} label="Copy as curl" /><${Feedback} key=${state.data.request_id} r=${state.data} />`}<button class="quiet close" aria-label="Close" onClick=${() => dialog.current.close()}>×</button></header>
    <${Answer} state=${state}>${(r) => html`<${Summary} r=${r} /><${Tabs} tabs=${tabs} current=${current} />
      <div class="body" role="tabpanel" id="panel" aria-labelledby=${"tab-" + current} tabindex="0"><${panels[current]} key=${r.request_id + current} r=${r} /></div>`}<//>
  </dialog>`;
}

const Summary = ({ r }) => html`<p class="summary"><${Outcome} record=${r} /> <b>${r.model || "unknown model"}</b> <span>${r.provider}</span>
  <span>${duration(r.delay_ms)}</span> <span>${count(r.prompt_tokens)} in, ${count(r.completion_tokens)} out</span> <b>${dollars(r.cost)}</b>
  ${r.request_user_id && html`<${To} change=${having("user_id", r.request_user_id, [])}>${r.request_user_id}<//>`}
  ${r.properties["Service-Session-Id"] && html`<${To} change=${{ ...elsewhere, v: "sessions", session: r.properties["Service-Session-Id"] }}>session ${r.properties["Service-Session-Name"] || r.properties["Service-Session-Id"]}<//>`}</p>`;

// curl is the call for a shell; the key is left to the environment, a body that is
// not kept to a file.
function curl(r) {
  const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const { request_body: body, request_path: path } = r;
  const key = /\/messages\b/.test(path) ? `anthropic-version: 2023-06-01" -H "x-api-key: ` : /:\w*generateContent/i.test(path) ? "x-goog-api-key: " : "Authorization: Bearer ";
  return `curl ${quote(String(new URL(r.target_url || path, location)))} -H "${key}$API_KEY" -H "Content-Type: application/json" -d ${body === null ? "@request.json" : quote(typeof body === "string" ? body : JSON.stringify(body))}`;
}

function Feedback({ r }) {
  const [rating, setRating] = useState(r.feedback_rating);
  const [error, setError] = useState("");
  const say = (good) => post(`/v1/request/${r.request_id}/feedback`, { rating: good }).then(() => setRating(good), (failure) => setError(failure.message));
  return html`<span class="feedback" role="group" aria-label="Feedback"><button class="quiet" aria-pressed=${rating === true} aria-label="+1, a good answer" onClick=${() => say(true)}>+1</button><button class="quiet" aria-pressed=${rating === false} aria-label="−1, a bad answer" onClick=${() => say(false)}>−1</button></span>
    ${error && html`<span class="bad" role="alert">${error}</span>`}`;
}

const note = (text) => text && html`<p class="notice">${text}</p>`;

// absent says why there is no content.
function absent(body, omitted, side) {
  if (body !== null) return null;
  return omitted ? `The ${side} is not kept: the caller or the configuration omits it.` : `There is no ${side}. It was empty, or its retention has ended.`;
}

function Conversation({ r }) {
  return html`
    ${note(absent(r.request_body, r.request_omitted, "request"))}<${Messages} list=${asked(r.request_body)} />
    ${r.request_truncated && note("The request was cut at the largest size that is kept.")}
    ${note(absent(r.response_body, r.response_omitted, "response"))}<${Messages} list=${answered(r.response_body)} answer />
    ${r.response_truncated && note("The response was cut at the largest size that is kept.")}`;
}

function Cost({ r }) {
  const cached = (r.prompt_cache_read_tokens || 0) + (r.prompt_cache_write_tokens || 0);
  const share = (n) => (n === null || !r.total_tokens ? null : n / r.total_tokens);
  const rows = [
    ["Input, not cached", r.prompt_tokens === null ? null : r.prompt_tokens - cached], ["Input, read from the cache", r.prompt_cache_read_tokens], ["Input, written to the cache", r.prompt_cache_write_tokens],
    ["Output, without reasoning", r.completion_tokens === null ? null : r.completion_tokens - (r.reasoning_tokens || 0)], ["Output, reasoning", r.reasoning_tokens], ["All", r.total_tokens],
  ];
  return html`<${List} label="Tokens" keyOf=${([name]) => name} rows=${rows} columns=${[
      { title: "Tokens", cell: ([name]) => name }, { title: "Count", number: true, cell: ([, n]) => count(n) },
      { title: "Share", number: true, cell: ([, n]) => percent(share(n)) }, { title: "", cell: ([, n]) => html`<${Bar} share=${share(n)} />` },
    ]} />
    ${r.cost_details?.length > 0 && html`<${Charges} list=${r.cost_details} />`}
    ${!!r.cache_savings && html`<p>The cache ${r.cache_savings > 0 ? "saved" : "cost"} <b class=${r.cache_savings > 0 ? "good" : "bad"}>${dollars(Math.abs(r.cache_savings))}</b>.</p>`}
    ${r.cost === null && note("The cost is unknown: the provider reported no usage, or the catalogue has no price for this model.")}
    ${r.price_version && html`<p class="quiet">By the prices of ${r.price_version}.</p>`}
    ${r.is_passthrough_billing && note("The platform's credentials paid for this call, against the organisation's credits.")}`;
}

const per = { 1: "each", 1000000: "a million", 3600000: "an hour" };

// Charges are what a cost is made of.
const Charges = ({ list }) => html`<section><h3>Charges</h3><${List} label="Charges" keyOf=${(c) => c.item} rows=${list} columns=${[
    { title: "Item", cell: (c) => c.item.replaceAll("_", " ") }, { title: "Count", number: true, cell: (c) => (c.per === 3600000 ? duration(c.count) : count(c.count)) },
    { title: "Price", number: true, cell: (c) => `${dollars(c.price)} ${per[c.per] || `for ${count(c.per)}`}` }, { title: "Cost", number: true, cell: (c) => dollars(c.cost) },
  ]} /></section>`;

function Timing({ r }) {
  const total = r.delay_ms || 1;
  const first = r.time_to_first_token;
  const rate = first !== null && r.completion_tokens && r.delay_ms > first ? (r.completion_tokens / (r.delay_ms - first)) * 1000 : null;
  const bar = (from, to, name, tone) => html`<rect class=${tone} x=${(from / total) * 100} width=${Math.max(0.3, ((to - from) / total) * 100)} height="14"><title>${name}: ${duration(to - from)}</title></rect>`;
  return html`<svg class="timing" viewBox="0 0 100 14" preserveAspectRatio="none" role="img" aria-label=${`First token after ${duration(first)}, end after ${duration(r.delay_ms)}`}>
      ${first !== null ? html`${bar(0, first, "To the first token", "wait")}${bar(first, total, "Stream", "flow")}` : bar(0, total, "Call", "flow")}</svg>
    <dl><dt>Began</dt><dd>${fullMoment(r.request_created_at)}</dd><dt>To the first token</dt><dd>${first === null ? "— (no stream)" : duration(first)}</dd>
      <dt>To the end</dt><dd>${duration(r.delay_ms)}</dd>${rate !== null && html`<dt>Stream</dt><dd>${rate.toFixed(0)} tokens a second</dd>`}
      <dt>Ended</dt><dd>${r.end_state.replace("_", " ")}${r.finish_reason ? `, ${r.finish_reason}` : ""}</dd>
      <dt>Status</dt><dd>${r.response_status ?? "—"}</dd>${r.error_type && html`<dt>Error</dt><dd>${r.error_type}</dd>`}
      ${r.attempt !== null && html`<dt>Attempt</dt><dd>${r.attempt}</dd>`}</dl>
    ${r.attempt !== null && html`<${Attempts} r=${r} />`}`;
}

// Attempts are those of the gateway call that a request belongs to: the failed ones,
// then the one that answered.
function Attempts({ r }) {
  const answer = r.attempt_of || r.request_id;
  const failed = useAnswer("/v1/request/query-clickhouse", { filter: filter({ f: [] }, { attempt_of: { equals: answer } }), sort: { created_at: "asc" }, limit: 100, includeContent: false });
  const last = useAnswer("/v1/request/" + encodeURIComponent(answer));
  return html`<${Answer} state=${failed} empty=${(d) => d.length === 0} none="The first attempt answered.">${(list) => html`<section><h3>Attempts</h3><${List} label="Attempts" keyOf=${(a) => a.request_id} selected=${(a) => a.request_id === r.request_id}
    rows=${[...list, ...(last.data ? [last.data] : [])]} columns=${attempts} /></section>`}<//>`;
}

const attempts = [
  { title: "Attempt", cell: (a) => html`<${To} change=${{ id: a.request_id }}>${a.attempt}<//>` }, { title: "Provider", cell: (a) => a.provider }, { title: "Model", mid: true, cell: (a) => a.model || "—" },
  { title: "Outcome", cell: (a) => html`<${Outcome} record=${a} />` }, { title: "Error", cell: (a) => a.error_type || "—" }, { title: "Latency", number: true, cell: (a) => duration(a.delay_ms) }, { title: "Cost", number: true, mid: true, cell: (a) => dollars(a.cost) },
];

function Labels({ r }) {
  const facts = { Provider: r.provider, "Requested model": r.request_model, "Answered model": r.response_model, "Model override": r.model_override, Target: r.target_url, Path: r.request_path, Organisation: r.organization_id, Prompt: r.prompt_id, "Prompt version": r.prompt_version, Node: r.node_id, Job: r.job_id, Country: r.country_code, Referrer: r.request_referrer, Trace: r.trace_id, Span: r.span_id };
  const said = Object.entries(facts).filter(([, v]) => v !== null && v !== undefined && v !== "");
  return html`<${Pairs} title="Call" pairs=${said} />
    <${Pairs} title="Properties" pairs=${Object.entries(r.properties)} of=${(name) => "property." + name} />
    <${Pairs} title="Scores" pairs=${Object.entries(r.scores || {})} />`;
}

// Pairs are names and values; with `of`, a value leads to all requests that have it.
const Pairs = ({ title, pairs, of }) => pairs.length > 0 && html`<section><h3>${title}</h3><dl>${pairs.map(([name, value]) => html`<dt>${name}</dt>
  <dd>${of ? html`<${To} change=${having(of(name), value, [])}>${String(value)}<//>` : String(value)}</dd>`)}</dl></section>`;

function Raw({ r }) {
  const [find, setFind] = useState("");
  return html`<input type="search" class="find" placeholder="Search in both bodies" aria-label="Search in both bodies" onInput=${(e) => setFind(e.target.value.trim().toLowerCase())} />
    ${[["Request", r.request_body, r.request_omitted], ["Response", r.response_body, r.response_omitted]].map(
    ([name, body, omitted]) => html`<section><h3>${name} ${body !== null && html`<${Copy} text=${() => typeof body === "string" ? body : JSON.stringify(body, null, 2)} />`}</h3>
      ${body === null ? note(absent(body, omitted, name.toLowerCase())) : html`<${Json} value=${body} find=${find} />`}</section>`,
  )}`;
}

// same tells whether two messages say the same, whatever the ids in them.
const same = (a, b) => a !== undefined && b !== undefined && said(a) === said(b);
const said = (m) => JSON.stringify([m.role, m.parts.map(({ id, ...part }) => part)]);

// Turn is what a request adds to the one before it, and where the two first differ,
// which is where the provider's cache ends.
function Turn({ r }) {
  const session = r.properties["Service-Session-Id"];
  const before = r.parent_request_id ? [{ request_id: { equals: r.parent_request_id } }] : session && [{ session_id: { equals: session } }, { request_created_at: { lt: r.request_created_at } }];
  const state = useAnswer("/v1/request/query-clickhouse", before ? { filter: filter({ f: [] }, ...before), sort: { created_at: "desc" }, limit: 1 } : null);
  if (!before) return note("The request goes on from no other, and belongs to no session.");
  return html`<${Answer} state=${state} empty=${(d) => d.length === 0} none="This is the first turn, or the one before is gone.">${([before]) => {
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
        <${Difference} then=${text(then[common])} now=${now[common] ? text(now[common]) : ""} /></div>`}
      <${Messages} list=${now.slice(common + repeated)} />${note(absent(r.response_body, r.response_omitted, "response"))}<${Messages} list=${answered(r.response_body)} answer />`;
  }}<//>`;
}

// text is a message as one.
const text = (m) => `${m.role}: ` + m.parts.map((p) => p.text ?? JSON.stringify(p.args ?? p.value ?? p.kind)).join("\n");

const around = 80; // characters

// Difference shows two texts around the place from which on they differ.
function Difference({ then, now }) {
  let at = 0;
  while (at < now.length && then[at] === now[at]) at++;
  const begin = Math.max(0, at - around);
  const side = (name, text, Mark) => html`<dt>${name}</dt><dd><code>${begin > 0 && "…"}${text.slice(begin, at)}<${Mark}>${text.slice(at, at + around) || "(ends)"}<//></code></dd>`;
  return html`<dl>${side("Then", then, "del")}${side("Now", now, "ins")}</dl>`;
}
