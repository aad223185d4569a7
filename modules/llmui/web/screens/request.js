// One request: what was said, what it cost and why, how it went, and what it is labelled with.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { sought, filter } from "../filter.js";
import { elsewhere, go, having, useView } from "../state.js";
import { caller, useAnswer, useRequests } from "../api.js";
import { answered, asked } from "../conversation.js";
import { command } from "../curl.js";
import { Answer, Copy, Mark, Outcome, Tabs, To, compare, failed, providerOf, typing, Bar, Table } from "../parts/basics.js";
import { Turn, absent } from "../parts/difference.js";
import { Json, Messages, Settings } from "../parts/messages.js";
import { Rating } from "../parts/rating.js";
import { count, dollars, duration, fullMoment, percent } from "../format.js";

const tabs = [["conversation", "Conversation"], ["turn", "New in this turn"], ["cost", "Cost"], ["timing", "Timing"], ["labels", "Labels"], ["raw", "Raw"]];
const panels = { conversation: Conversation, turn: Turn, cost: Cost, timing: Timing, labels: Labels, raw: Raw };

// Request shows the request of an id over the list, and keeps the focus until it is
// closed.
export function Request({ id, tab }) {
  const dialog = useRef();
  const state = useAnswer(`/v1/request/${encodeURIComponent(id)}`);
  const v = useView();
  const current = Object.hasOwn(panels, tab) ? tab : "conversation";
  const words = sought({ f: [...v.f, ...(v.find ? [{ field: "body", value: v.find }] : [])] });
  const body = useRef();
  useMarks(body, words);
  useLayoutEffect(() => {
    if (dialog.current.open) return;
    dialog.current.showModal();
    dialog.current.focus();
  }, [id]);
  // Whoever closes the drawer is at the row of its request.
  const close = () => {
    if (dialog.current?.open !== false) return;
    go({ id: "", tab: "" });
    document.querySelector(`tr[data-id="${CSS.escape(id)}"] button`)?.focus();
  };
  // A click beside the drawer closes it, one on another request opens that.
  const beside = (e) => {
    if (e.target !== dialog.current || e.clientX >= dialog.current.getBoundingClientRect().left) return;
    dialog.current.close();
    document.elementFromPoint(e.clientX, e.clientY)?.closest("tr[data-id]")?.querySelector("button.open").click();
  };
  useEffect(() => {
    const press = (e) => {
      const step = { "[": -1, "]": 1 }[e.key];
      if (typing(e)) return;
      if (e.key === "c") compare(id);
      if (!step) return;
      const at = tabs.findIndex(([key]) => key === current);
      go({ tab: tabs[(at + step + tabs.length) % tabs.length][0] }, true);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [current, id]);
  return html`<dialog ref=${dialog} class="drawer" data-id=${id} aria-label="Request" tabindex="-1" onClick=${beside} onClose=${close}>
    <header><h2>Request</h2><code title=${id}>${id.slice(0, 8)}…</code> <${Copy} text=${() => id} label="Copy id" />
      ${state.data && html`<${Copy} text=${() => command(state.data)} label="Copy as curl" /><${Copy} text=${() => location.href} label="Copy link" /><${Mark} id=${id} />`}<button class="quiet close" aria-label="Close" onClick=${() => dialog.current.close()}>×</button></header>
    <${Answer} state=${state}>${(r) => html`<${Summary} r=${r} /><${Missed} r=${r} />${caller.write && html`<${Rating} key=${r.request_id} r=${r} />`}<${Tabs} tabs=${tabs} current=${current} />
      <div class="body" ref=${body} role="tabpanel" id="panel" aria-labelledby=${"tab-" + current} tabindex="0"><${panels[current]} key=${r.request_id + current} r=${r} words=${words} /></div>`}<//>
  </dialog>`;
}

// useMarks marks words in what an element shows, without changing it.
function useMarks(element, words) {
  useEffect(() => {
    if (!words.length || !globalThis.Highlight) return;
    const mark = () => {
      const found = new Highlight();
      const walk = document.createTreeWalker(element.current || document.createElement("p"), NodeFilter.SHOW_TEXT);
      for (let node; found.size < 500 && (node = walk.nextNode()); )
        for (const word of words) {
          const text = node.data.toLowerCase(), wanted = word.toLowerCase();
          for (let at = -1; (at = text.indexOf(wanted, at + 1)) >= 0 && at + wanted.length <= node.length; ) {
            const range = new Range();
            range.setStart(node, at);
            range.setEnd(node, at + wanted.length);
            if (!found.size) node.parentElement.scrollIntoView({ block: "center" });
            found.add(range);
          }
        }
      CSS.highlights.set("find", found);
    };
    const timer = setTimeout(mark, 60);
    const again = setInterval(() => element.current && !CSS.highlights.get("find")?.size && mark(), 300);
    return () => (clearTimeout(timer), clearInterval(again), CSS.highlights.delete("find"));
  });
}

const Summary = ({ r }) => html`<p class="summary"><${Outcome} record=${r} /> <b>${r.model || "unknown model"}</b> <span>${r.account || providerOf(r)}</span>
  <time title=${fullMoment(r.request_created_at)}>${fullMoment(r.request_created_at)}</time> <span>${duration(r.delay_ms)}</span> ${r.total_tokens !== null && html`<span>${count(r.prompt_tokens)} in, ${count(r.completion_tokens)} out</span>`} <b>${dollars(r.cost)}</b>
  ${r.request_user_id && html`<${To} change=${having("user_id", r.request_user_id, [])} dir="auto">${r.request_user_id}<//>`}
  ${r.session_id ? html`<${To} change=${{ ...elsewhere, v: "sessions", session: r.session_id, derived: "" }} dir="auto">session ${r.properties["Service-Session-Name"] || r.session_id}<//>`
    : (r.root_request_id || r.turn === 1) && html`<${To} change=${{ ...elsewhere, v: "sessions", session: r.root_request_id || r.request_id, derived: "1" }}>all calls of its agents<//>`}</p>`;

const reasons = {
  below_minimum: "the provider does not cache so little", never_marked: "nothing was marked for the cache", model: "the turn before asked another model", other_key: "the turn before used another account or cache key",
  tools_changed: "the tools have changed", system_changed: "the instructions have changed", history_edited: "an earlier message has changed", ttl: "the turn before is older than the cache lives", unexplained: "nothing has changed: the provider did not keep it",
};

// Missed says why the provider's cache missed, and leads to what has changed.
const Missed = ({ r }) => r.cache_miss_reason && html`<p class="notice bad missed">⚠ <b>The cache missed:</b> ${reasons[r.cache_miss_reason] || r.cache_miss_reason}${r.cache_miss_at ? html` at <code>${r.cache_miss_at}</code>` : ""}. ${count(r.cache_missed_tokens)} tokens${r.cache_loss ? html` cost <b>${dollars(r.cache_loss)}</b> more than from the cache` : ""}. ${r.parent_request_id && html`<${To} change=${{ ...elsewhere, v: "compare", a: r.parent_request_id, b: r.request_id }}>What has changed<//>`}</p>`;

const note = (text) => text && html`<p class="notice">${text}</p>`;

function Conversation({ r, words }) {
  const answer = useRef();
  const said = asked(r.request_body);
  const toAnswer = () => answer.current.scrollIntoView({ block: "start" });
  return html`<div class="jump"><${Settings} body=${r.request_body} />${said.length > 0 && html`<button class="quiet" onClick=${toAnswer}>To the answer ↓</button>`}</div>
    ${note(absent(r.request_body, r.request_omitted, "request"))}<${Messages} list=${said} words=${words} />
    ${r.request_truncated && note("The request was cut at the largest size that is kept.")}
    <div ref=${answer}></div>${note(absent(r.response_body, r.response_omitted, "response"))}<${Messages} list=${answered(r.response_body, failed(r))} words=${words} answer />
    ${r.response_truncated && note("The response was cut at the largest size that is kept.")}`;
}

function Raw({ r }) {
  const [find, setFind] = useState("");
  const wait = useRef();
  // A large body is looked through when the typing rests.
  const look = (text) => (clearTimeout(wait.current), (wait.current = setTimeout(setFind, 150, text)));
  return html`<input type="search" class="find" placeholder="Search in both bodies" aria-label="Search in both bodies" onInput=${(e) => look(e.target.value.trim().toLowerCase())} />
    ${[["Request", r.request_body, r.request_omitted], ["Response", r.response_body, r.response_omitted]].map(
    ([name, body, omitted]) => html`<section><h3>${name} ${body !== null && html`<${Copy} text=${() => typeof body === "string" ? body : JSON.stringify(body, null, 2)} />`}</h3>
      ${body === null ? note(absent(body, omitted, name.toLowerCase())) : html`<${Json} value=${body} find=${find} />`}</section>`,
  )}`;
}

export function Cost({ r }) {
  const cached = (r.prompt_cache_read_tokens || 0) + (r.prompt_cache_write_tokens || 0);
  const share = (n) => (n === null || !r.total_tokens ? null : n / r.total_tokens);
  const rows = [
    ["Input, not cached", r.prompt_tokens === null ? null : r.prompt_tokens - cached], ["Input, read from the cache", r.prompt_cache_read_tokens], ["Input, written to the cache", r.prompt_cache_write_tokens],
    ["Output, without reasoning", r.completion_tokens === null ? null : r.completion_tokens - (r.reasoning_tokens || 0)], ["Output, reasoning", r.reasoning_tokens], ["Total", r.total_tokens],
  ];
  if (failed(r) && r.total_tokens === null && r.cost === 0) return note("The call failed before a model answered: it used no tokens, and cost nothing.");
  return html`<${Table} label="Tokens" keyOf=${([name]) => name} rows=${rows} columns=${[
      { title: "Tokens", cell: ([name]) => name }, { title: "Count", number: true, cell: ([, n]) => count(n) },
      { title: "Share", number: true, cell: ([, n]) => percent(share(n)) }, { title: "Bar", unseen: true, cell: ([, n]) => html`<${Bar} share=${share(n)} />` },
    ]} />
    ${r.cost_details?.length > 0 && html`<${Charges} list=${r.cost_details} />`}
    ${!!r.cache_savings && html`<p>The cache ${r.cache_savings > 0 ? "saved" : "cost"} <b class=${r.cache_savings > 0 ? "good" : "bad"}>${dollars(Math.abs(r.cache_savings))}</b>.</p>`}
    ${r.routing_savings > 0 && html`<p>Of this, <b class="good">${dollars(r.routing_savings)}</b> came of staying where the cache was: a random account would have had no cache.</p>`}
    ${r.cache_loss > 0 && html`<p>The cache missed ${count(r.cache_missed_tokens)} tokens, which cost <b class="bad">${dollars(r.cache_loss)}</b> more.</p>`}
    ${r.cost === null && note("The cost is unknown: the provider reported no usage, or the catalogue has no price for this model.")}
    ${r.is_cost_counted && note(counted[r.end_state] || "The answer was broken off before the provider stated its usage: the cost is counted by the length of what passed.")}
    ${r.price_version && html`<p class="quiet">By the prices of ${r.price_version}.</p>`}
    ${r.is_passthrough_billing && note("The platform's credentials paid for this call, against the organisation's credits.")}`;
}

// counted says what a cost is that nobody has stated, by the end of the call.
const counted = {
  complete: "The answer states no usage: the cost is the most that the call can have cost. A client of Chat Completions asks for the usage with stream_options, or the proxy does with stream_usage.",
  interrupted: "The call was interrupted: the cost is the most that it can have cost.",
};

const per = { 1: "each", 1000000: "a million", 3600000: "an hour" };

// Charges are what a cost is made of.
const Charges = ({ list }) => html`<section><h3>Charges</h3><${Table} label="Charges" keyOf=${(c) => c.item} rows=${list} columns=${[
    { title: "Item", cell: (c) => c.item.replaceAll("_", " ") }, { title: "Count", number: true, cell: (c) => (c.per === 3600000 ? duration(c.count) : count(c.count)) },
    { title: "Price", number: true, cell: (c) => `${dollars(c.price)} ${per[c.per] || `for ${count(c.per)}`}` }, { title: "Cost", number: true, cell: (c) => dollars(c.cost) },
  ]} /></section>`;

export function Timing({ r }) {
  const total = r.delay_ms || 1;
  const first = r.time_to_first_token;
  const rate = first !== null && r.completion_tokens && r.delay_ms > first ? (r.completion_tokens / (r.delay_ms - first)) * 1000 : null;
  const bar = (from, to, name, tone) => html`<rect class=${tone} x=${(from / total) * 100} width=${Math.max(0.3, ((to - from) / total) * 100)} height="14"><title>${name}: ${duration(to - from)}</title></rect>`;
  return html`<svg class="timing" viewBox="0 0 100 14" preserveAspectRatio="none" role="img" aria-label=${`First token after ${duration(first)}, end after ${duration(r.delay_ms)}`}>
      ${first !== null ? html`${bar(0, first, "To the first token", "wait")}${bar(first, total, "Stream", "flow")}` : bar(0, total, "Call", "flow")}</svg>
    <dl><dt>Began</dt><dd>${fullMoment(r.request_created_at)}</dd><dt><i class="key c5"></i>To the first token</dt><dd>${first === null ? "— (no stream)" : duration(first)}</dd>
      <dt>To the end</dt><dd>${duration(r.delay_ms)}</dd>${rate !== null && html`<dt><i class="key c1"></i>Stream</dt><dd>${rate.toFixed(0)} tokens a second</dd>`}
      <dt>Ended</dt><dd>${r.end_state.replace("_", " ")}${r.finish_reason ? `, ${r.finish_reason}` : ""}</dd>
      <dt>Status</dt><dd>${r.response_status ?? "—"}</dd>${(r.error_message || r.error_type) && html`<dt>Error</dt><dd dir="auto">${r.error_message || ""} ${r.error_type && html`<code>${r.error_type}</code>`}</dd>`}
      ${r.would_refuse && html`<dt>Would be refused by</dt><dd dir="auto">${r.would_refuse}, which observes</dd>`}
      ${r.arm && html`<dt>Arm</dt><dd dir="auto">${r.arm}</dd>`}
      ${r.attempt !== null && html`<dt>Attempt</dt><dd>${r.attempt}</dd>`}</dl>
    ${r.attempt !== null && html`<${Attempts} r=${r} />`}`;
}

// Attempts are those of the gateway call that a request belongs to: the failed ones,
// then the one that answered.
function Attempts({ r }) {
  const answer = r.attempt_of || r.request_id;
  const failed = useRequests(filter({ f: [] }, { attempt_of: { equals: answer } }), { sort: { created_at: "asc" }, limit: 100 });
  const last = useAnswer("/v1/request/" + encodeURIComponent(answer));
  return html`<${Answer} state=${failed} empty=${(d) => d.length === 0} none="The first attempt answered.">${(list) => html`<section><h3>Attempts</h3><${Table} label="Attempts" keyOf=${(a) => a.request_id} selected=${r.request_id}
    rows=${[...list, ...(last.data ? [last.data] : [])]} columns=${attempts} /></section>`}<//>`;
}

const attempts = [
  { title: "Attempt", cell: (a) => html`<${To} change=${{ id: a.request_id }}>${a.attempt}<//>` }, { title: "Account", cell: (a) => a.account || a.provider }, { title: "Model", mid: true, cell: (a) => a.model || "—" },
  { title: "Outcome", cell: (a) => html`<${Outcome} record=${a} />` }, { title: "Error", text: true, cell: (a) => a.error_message || a.error_type || "—" }, { title: "Latency", ms: (a) => a.delay_ms }, { title: "Cost", mid: true, dollars: (a) => a.cost },
];

export function Labels({ r }) {
  const facts = { Provider: providerOf(r), Account: r.account, Arm: r.arm, "Requested model": r.request_model, "Answered model": r.response_model, "Model override": r.model_override, Target: r.target_url, Path: r.request_path, Organisation: r.organization_id, Prompt: r.prompt_id, "Prompt version": r.prompt_version, Node: r.node_id, Job: r.job_id, Country: r.country_code, Referrer: r.request_referrer, Trace: r.trace_id, Span: r.span_id };
  const said = Object.entries(facts).filter(([, v]) => v !== null && v !== undefined && v !== "");
  return html`<${Pairs} title="Call" pairs=${said} />
    <${Pairs} title="Properties" pairs=${Object.entries(r.properties)} of=${(name) => "property." + name} />
    <${Pairs} title="Scores" pairs=${Object.entries(r.scores || {})} />
    ${caller.admin && html`<p><${To} change=${{ ...elsewhere, v: "audit", show: "reads", find: r.request_id }}>Who has read this call<//></p>`}`;
}

// Pairs are names and values; with `of`, a value leads to all requests that have it.
const Pairs = ({ title, pairs, of }) => pairs.length > 0 && html`<section><h3>${title}</h3><dl>${pairs.map(([name, value]) => html`<dt>${name}</dt>
  <dd>${of ? html`<${To} change=${having(of(name), value, [])}>${String(value)}<//>` : String(value)}</dd>`)}</dl></section>`;
