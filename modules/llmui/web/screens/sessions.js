// What did a task cost? Sessions, and one of them as the trace of an agent run.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { either, filter } from "../filter.js";
import { elsewhere, go, having, timeFilter, useView, view } from "../state.js";
import { caller, lines, pace, page, useAnswer } from "../api.js";
import { Answer, Drawer, Mark, Menu, Outcome, Table, To, failed, sorting, typing, useCursor } from "../parts/basics.js";
import { Export, pagesOf } from "../parts/csv.js";
import { axis, grow, orderOf, rows, strokes, tokensOf } from "../trace.js";
import { compact, count, dollars, duration, fullMoment, moment, offset, percent, plural } from "../format.js";

export function Sessions() {
  const v = useView();
  return v.session ? html`<${Session} key=${v.session} />` : html`<${All} v=${v} />`;
}

const columns = [
  { title: "Session", key: "session_id", cell: (s) => html`<${To} change=${{ session: s.session_id, name: s.session_name, sort: "", derived: s.is_derived ? "1" : "" }} dir="auto">${s.session_name || s.session_id}<//>${s.session_name && html` <code class="quiet">${s.session_id.slice(-8)}</code>`}` },
  { title: "Cost", key: "total_cost", dollars: (s) => s.total_cost },
  { title: "Calls", key: "total_requests", number: true, cell: (s) => count(s.total_requests) },
  { title: "Tokens", key: "total_tokens", number: true, semi: true, raw: (s) => s.total_tokens, cell: (s) => compact(s.total_tokens) },
  { title: "Duration", mid: true, ms: (s) => Date.parse(s.latest_request_created_at) - Date.parse(s.created_at) },
  { title: "Mean latency", key: "avg_latency", wide: true, ms: (s) => s.avg_latency },
  { title: "Began", key: "created_at", number: true, wide: true, raw: (s) => s.created_at, cell: (s) => moment(s.created_at) },
  { title: "Last call", key: "latest_request_created_at", number: true, mid: true, raw: (s) => s.latest_request_created_at, cell: (s) => moment(s.latest_request_created_at) },
];

function All({ v }) {
  const derived = Boolean(v.derived);
  const sort = v.sort || "-latest_request_created_at";
  const { key, descending } = sorting(sort);
  const [page, pager] = useCursor(v, sort, derived);
  const question = { filter: filter(v), timeFilter: timeFilter(v), timezoneDifference: offset(), sort: { [key]: descending ? "desc" : "asc" }, limit: page.limit, derived };
  const state = useAnswer("/v1/session/query", { ...question, ...page });
  return html`<div class="bar-row"><label class="choose"><input type="checkbox" checked=${derived} onChange=${() => go({ derived: derived ? "" : "1" })} /> Include sessions that no client named</label><span class="spring"></span><${Export} name="sessions" columns=${columns} pages=${pagesOf("/v1/session/query", question)} /></div>
    <${Answer} state=${state} empty=${(d) => d.length === 0} none="No sessions in this time. Send the header Service-Session-Id to group requests.">${(sessions) =>
    html`<${Table} label="Sessions" columns=${columns} rows=${sessions} sort=${sort} keyOf=${(s) => s.session_id + "\n" + s.session_name} />${pager(state.next)}`}<//>`;
}

const pageSize = 1000;
const most = 50_000; // calls of a session, as the API has it for a tree

// idsOf is the filter of the calls of a session. A session that no caller named is those
// of a tree.
const idsOf = (v) => (v.derived ? either({ request_id: { equals: v.session } }, { root_request_id: { equals: v.session } }) : { request_response_rmt: { session_id: { equals: v.session } } });

// useCalls are the calls of a session, page after page, the oldest first. They are read
// again when their total changes: those at hand are shown until all have come.
function useCalls(v, total) {
  const [state, set] = useState({ calls: [], more: true });
  const [tries, setTries] = useState(0);
  const begun = useRef(); // the total of the first reading
  begun.current ??= total;
  useEffect(() => {
    const abort = new AbortController();
    let again;
    (async () => {
      let calls = [], after;
      do {
        const part = await page("/v1/request/query-clickhouse", { filter: idsOf(v), sort: { created_at: "asc" }, limit: pageSize, after, includeContent: false }, abort.signal);
        calls = [...calls, ...part.data];
        after = part.next;
        set((old) => (after && calls.length < old.calls.length ? old : { calls, more: Boolean(after) }));
      } while (after && calls.length < most);
    })().catch((error) => {
      if (error.name === "AbortError") return;
      set((old) => ({ ...old, error }));
      again = setTimeout(setTries, pace, tries + 1);
    });
    return () => (clearTimeout(again), abort.abort());
  }, [v.session, v.derived, total === begun.current ? 0 : total, tries]);
  return state;
}

// usePreviews are the previews of the calls in sight, by id: null is that of a call that is
// gone.
function usePreviews() {
  const [known, set] = useState(new Map());
  const asked = useRef(new Set());
  const want = (ids) => {
    const fresh = ids.filter((id) => !asked.current.has(id)).slice(0, 100);
    if (!fresh.length) return;
    fresh.forEach((id) => asked.current.add(id));
    page("/v1/request/query-clickhouse", { filter: either(...fresh.map((id) => ({ request_id: { equals: id } }))), limit: fresh.length, includeContent: false, includePreview: true }).then(
      ({ data }) => set((old) => new Map([...old, ...fresh.map((id) => [id, null]), ...data.map((r) => [r.request_id, r.preview])])),
      () => fresh.forEach((id) => asked.current.delete(id)),
    );
  };
  return [known, want];
}

// useFound are the ids of the calls whose bodies contain a text, null for no text.
function useFound(v) {
  const [found, set] = useState(null);
  useEffect(() => {
    set(null);
    if (!v.find) return;
    const abort = new AbortController();
    (async () => {
      const ids = new Set();
      const filter = { left: idsOf(v), operator: "and", right: either({ request_body: { contains: v.find } }, { response_body: { contains: v.find } }) };
      for await (const line of lines("/v1/request/search", { filter, limit: pageSize, includeContent: false }, abort.signal)) {
        line.data.forEach((r) => ids.add(r.request_id));
        set(new Set(ids));
      }
    })().catch(() => {}); // the whole session is shown
    return () => abort.abort();
  }, [v.session, v.derived, v.find]);
  return found;
}

// useTools counts the calls of each tool in a session, once somebody asks: the previews of
// all calls tell.
function useTools(calls, previews, want, chosen) {
  const [asked, ask] = useState(false);
  const wanted = asked || chosen;
  const unknown = useMemo(() => (wanted ? calls.map((r) => r.request_id).filter((id) => !previews.has(id)) : []), [wanted, calls, previews]);
  useEffect(() => want(unknown), [unknown]);
  const counts = useMemo(() => {
    const all = {};
    for (const p of wanted ? previews.values() : []) for (const { name, count } of p?.calls || []) all[name] = (all[name] || 0) + count;
    return Object.entries(all).sort((a, b) => b[1] - a[1]);
  }, [wanted, previews]);
  return { counts, left: unknown.length, ask: () => ask(true) };
}

const loop = (r) => r.properties["Tool-Loop"];
const marks = { errors: ["Errors", failed], misses: ["Cache misses", (r) => r.cache_miss_reason], loops: ["Loops", loop] };

// Trace is a session. Its totals are the API's, never those of the rows at hand.
function Session() {
  const v = useView();
  const filter = idsOf(v);
  const misses = useAnswer("/v1/metrics/query", { filter, groupBy: "cache_miss_reason", bucket: "none", limit: 50 });
  const loops = useAnswer("/v1/metrics/query", { filter, groupBy: "property:Tool-Loop", bucket: "none", limit: 50 });
  const agents = useAnswer("/v1/session/tree/query", { sessionId: v.session, by: "conversation" });
  const paths = useAnswer("/v1/session/tree/query", v.by === "path" ? { sessionId: v.session, by: "path" } : null);
  const { calls, more, error } = useCalls(v, misses.data?.totals.requests);
  const clock = useMemo(() => axis(calls), [calls]);
  return html`<${Answer} state=${error && !calls.length ? { error } : misses} empty=${(d) => !d.totals.requests && !calls.length} none="This session has no calls.">${(d) => html`
      <${Head} v=${v} d=${d} loops=${loops.data} agents=${agents.data} first=${calls[0]} clock=${clock} />
      <${Rows} v=${v} calls=${calls} clock=${clock} more=${more} nodes=${v.by === "time" ? [] : (v.by === "path" ? paths : agents).data} />`}<//>
    <${Drawer} v=${v} />`;
}

function Head({ v, d, loops, agents, first, clock }) {
  const t = d.totals;
  const lost = d.groups.filter((g) => g.key), looping = loops?.groups.filter((g) => g.key) || [];
  const user = first?.request_user_id;
  const facts = [
    user && html`<${To} change=${having("user_id", user, [])} dir="auto">${user}<//>`, agents && plural(agents.length, agents.length === 1 || agents.some((n) => n.depth) ? "agent" : "conversation"), plural(t.requests, "call"),
    first && `${moment(first.request_created_at)}, ${duration(clock.span)}, ${duration(clock.busy)} of it waiting for models`,
  ];
  const sums = [
    html`<b data-all=${t.cost}>${dollars(t.cost)}</b>${t.requests_without_cost > 0 && ` and ${count(t.requests_without_cost)} calls without a price`}`,
    `${compact(t.prompt_tokens)} tokens in${t.prompt_tokens && t.prompt_cache_read_tokens != null ? `, ${percent(t.prompt_cache_read_tokens / t.prompt_tokens)} from the cache` : ""}`, `${compact(t.completion_tokens)} out`,
    lost.length > 0 && html`<span class="bad">${dollars(t.cache_loss)} lost to ${plural(lost.reduce((sum, g) => sum + g.totals.requests, 0), "cache miss", "es")} (${lost.map((g) => g.key.replaceAll("_", " ")).join(", ")})</span>`,
    t.errors > 0 && html`<span class="bad">${plural(t.errors, "error")}</span>`, looping.length > 0 && html`<span class="bad">loop of ${looping.map((g) => g.key).join(", ")}</span>`,
  ];
  const joined = (list) => list.filter(Boolean).map((x, i) => [i > 0 && " · ", x]);
  return html`<header class="heading"><h2 dir="auto">${v.name || first?.properties["Service-Session-Name"] || v.session} <code class="quiet">${v.session}</code></h2>
    <p>${joined([...facts, html`<${To} change=${elsewhere}>all sessions<//>`])}</p><p>${joined(sums)}</p></header>`;
}

// summary is what a call is about: what is asked, or how many results of tools came, and
// then the tools that it called.
function Summary({ r, p }) {
  if (!p) return html`<span class="quiet">${r.model || "…"}</span>`;
  const tools = p.calls.map((c) => c.name + (c.count > 1 ? ` ×${c.count}` : "")).join(", ");
  return html`<span class="said" dir="auto" title=${p.asked || p.answered}>${p.asked ? `“${p.asked}”` : p.results ? html`${plural(p.results, "tool result")}${p.failed_results > 0 && html` <b class="bad">(${p.failed_results} failed)</b>`}` : ""}${!tools && !p.asked && p.answered ? ` → “${p.answered}”` : ""}</span>${tools && html`<span class="tools">→ <b title=${tools}>${tools}</b></span>`}`;
}

const why = (r) => `The cache missed: ${r.cache_miss_reason.replaceAll("_", " ")}${r.cache_miss_at ? ` at ${r.cache_miss_at}` : ""}, ${count(r.cache_missed_tokens)} tokens`;

function Marks({ r }) {
  return html`${(failed(r) || r.attempt > 1) && html` <${Outcome} record=${r} />`}${r.cache_miss_reason && html` <span class="bad" title=${why(r)}>⚠ ${r.cache_loss > 0 && `−${dollars(r.cache_loss)} `}${r.cache_miss_reason.replaceAll("_", " ")}${r.cache_miss_at ? ` at ${r.cache_miss_at}` : ""}</span>`}${loop(r) && html` <span class="bad" title="The conversation has called this tool with the same arguments at least five times">↻ ${loop(r)}</span>`}`;
}

// Tokens is a bar on the scale of the whole session.
function Tokens({ r, top }) {
  let at = 0;
  const parts = tokensOf(r);
  const title = parts.map(([name, n]) => `${count(n)} ${name}`).join(", ");
  return html`<span class="tokens" title=${title}><svg viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label=${title}>${parts.map(([, n], i) => {
    const x = at;
    at += (n / top) * 100;
    return n > 0 && html`<rect class=${"t" + i} x=${x} width=${Math.max(0.4, at - x)} height="10" />`;
  })}</svg> <small>${compact(r.prompt_tokens)}</small></span>`;
}

// Line is when the calls of a row ran, and where they waited for the first token.
function Line({ row, clock }) {
  const drawn = useMemo(() => strokes(row.node ? beneath(row.node) : [row.request], clock, failed), [row, clock]);
  return html`<svg class="line" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">${clock.gaps.map(([x]) => html`<rect class="gap" x=${x * 100} width="2" height="10" />`)}${
    drawn.map(([from, to, tone]) => html`<rect class=${tone} x=${from * 100} width=${Math.max(0.4, (to - from) * 100)} y="1" height="8" />`)}</svg>`;
}

const Axis = ({ clock }) => html`<svg class="axis" role="img" aria-label=${`${duration(clock.span)} from ${fullMoment(clock.from)}`}>${clock.ticks.map(([x, t]) => html`<text x=${`${x * 100}%`} y="12">${t ? "+" + duration(t).replace(/(\.0)(?= )| 0 (s|min)$/, "") : "0"}</text>`)}
  ${clock.gaps.map(([x, ms]) => html`<text class="gap" x=${`${(x + 0.01) * 100}%`} y="12"><title>Nothing ran for ${duration(ms)}</title>//</text>`)}</svg>`;

// beneath are all calls of a node and of those beneath it.
const beneath = (node) => [...node.own_calls, ...node.beneath.flatMap(beneath)];

const indent = (depth) => ({ paddingLeft: `${0.4 + 1.1 * Math.min(depth, 8)}rem` });
const orders = [["", "as it ran"], ["-cost", "by cost"], ["-latency", "by time"]];
const views = [["", "Agents"], ["path", "Paths"], ["time", "Time"]];

// atRest calls f at once, and while it is called again and again only when that ends.
function atRest(timer, f) {
  const first = !timer.current;
  clearTimeout(timer.current);
  if (first) f();
  timer.current = setTimeout(() => ((timer.current = 0), first || f()), 60);
}

function Rows({ v, calls, clock, more, nodes }) {
  const [closed, setClosed] = useState(new Set());
  const [at, setAt] = useState("");
  const [previews, want] = usePreviews();
  const rest = useRef(); // the timer of a list that moves
  const found = useFound(v);
  const tools = useTools(calls, previews, want, v.tool);
  const shown = useMemo(() => {
    const keep = (r) => (!Object.hasOwn(marks, v.show) || marks[v.show][1](r)) && (!found || found.has(r.request_id)) && (!v.tool || previews.get(r.request_id)?.calls.some((c) => c.name === v.tool));
    if (v.by === "time" || !nodes?.length) return calls.filter(keep).sort(orderOf(v.sort)).map((r) => ({ key: r.request_id, request: r, depth: 0 }));
    return rows(grow(nodes, calls, v.by === "path"), closed, v.sort, keep);
  }, [calls, nodes, closed, v.by, v.sort, v.show, found, v.tool, v.tool && previews]);
  const top = useMemo(() => Math.max(1, ...calls.map((r) => tokensOf(r).reduce((sum, [, n]) => sum + n, 0))), [calls]);
  const fold = (id, close) => setClosed((old) => new Set(close ?? !old.has(id) ? [...old, id] : [...old].filter((x) => x !== id)));
  const open = (row) => (setAt(row.key), row.node ? fold(row.node.id) : go({ id: row.key, tab: "turn" }));
  const index = shown.findIndex((row) => row.key === (v.id || at));

  // As soon as a row is marked, keys are about it.
  useLayoutEffect(() => {
    const press = (e) => {
      const row = shown[index];
      if (typing(e)) return;
      if (e.key === "j" || e.key === "k") {
        let next = index;
        do next += e.key === "j" ? 1 : -1;
        while (v.id && shown[next]?.node); // the drawer has calls alone
        if (!shown[next]) return;
        setAt(shown[next].key);
        if (v.id) go({ id: shown[next].key }, true);
        else setTimeout(() => document.querySelector("tr.selected button")?.focus());
      } else if (e.key === "h" && row) {
        const id = row.node && !closed.has(row.node.id) ? row.node.id : row.above;
        if (id) (fold(id, true), setAt("node " + id));
      } else if (e.key === "l" && row?.node) fold(row.node.id, false);
      else if (e.key === "$") go({ sort: view().sort === "-cost" ? "" : "-cost" }, true);
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [shown, index, closed, v.id]);

  const columns = useMemo(() => [
    { title: "Step", cell: ({ node, request: r, depth }) => {
      const first = node ? node.own_calls[0] : r, p = previews.get(first?.request_id);
      return html`<span class="step" style=${indent(depth)} aria-busy=${Boolean(first) && p === undefined}>${node ? html`<${Agent} node=${node} open=${!closed.has(node.id)} p=${p} v=${v} />`
        : html`<small class="quiet" title="Turn of the conversation">${r.turn ?? "·"}</small> <${Summary} r=${r} p=${p} /><${Marks} r=${r} />`}</span>`;
    } },
    { title: "Tokens in", semi: true, cell: ({ node, request: r }) => (node ? html`<small class="quiet">${compact(node.total?.prompt_tokens)}</small>` : html`<${Tokens} r=${r} top=${top} />`) },
    { title: "First token", wide: true, ms: ({ request: r }) => r?.time_to_first_token },
    { title: "Time", mid: true, ms: ({ request: r }) => r?.delay_ms },
    { title: "Own", dollars: ({ node, request: r }) => (r ? r.cost : node.own.requests ? node.own.cost : undefined), around: (text, { request: r }) => (r ? html`<span data-own=${r.cost}>${text}</span>` : text) },
    { title: "Total with sub-agents", semi: true, dollars: ({ node }) => node?.total.cost, around: (text, { node }) => html`<b data-node=${node.total.cost}>${text}</b>` },
    { title: html`<${Axis} clock=${clock} />`, mid: true, cell: (row) => html`<${Line} row=${row} clock=${clock} />` },
    { title: "Compare", unseen: true, semi: true, cell: ({ request: r }) => r && html`<${Mark} id=${r.request_id} />` },
  ], [previews, closed, clock, top, v.by, v.mark]);

  return html`<div class="bar-row">
      <span role="group" aria-label="Shown as">${views.map(([key, name]) => html`<button aria-pressed=${v.by === key} onClick=${() => go({ by: key }, true)}>${name}</button>`)}</span>
      <span role="group" aria-label="Only">${Object.entries(marks).map(([key, [title]]) => html`<button aria-pressed=${v.show === key} onClick=${() => go({ show: v.show === key ? "" : key }, true)}>${title}</button>`)}</span>
      <${Menu} label="Tools" onOpen=${tools.ask}>${v.tool && html`<button onClick=${() => go({ tool: "" }, true)}>all calls</button>`}${tools.counts.map(([name, n]) => html`<button key=${name} aria-pressed=${v.tool === name} onClick=${() => go({ tool: name }, true)}>${name} <span class="quiet">×${count(n)}</span></button>`)}
        ${tools.left > 0 ? html`<p class="quiet" role="status">${count(tools.left)} calls are still to be read…</p>` : !tools.counts.length && html`<p class="quiet">No call of a tool.</p>`}<//>${v.tool && html`<span class="chip"><b>tool</b> ${v.tool} <button aria-label="Remove the tool" onClick=${() => go({ tool: "" }, true)}>×</button></span>`}
      ${caller.content && html`<input type="search" aria-label="Find in this session" placeholder="find in bodies, tools…" value=${v.find} onChange=${(e) => go({ find: e.target.value.trim() }, true)} />`}
      <span class="spring"></span><label class="choose"><span class="quiet">Order</span> <select aria-label="Order" value=${v.sort} onChange=${(e) => go({ sort: e.target.value }, true)}>${orders.map(([key, name]) => html`<option value=${key}>${name}</option>`)}</select></label></div>
    ${!shown.length && !more && !tools.left ? html`<p class="notice">Nothing of this session matches. <button onClick=${() => go({ show: "", find: "", tool: "" }, true)}>Show all</button></p>`
      : html`<div class="trace" aria-busy=${Boolean(more || (v.tool && tools.left)) || nodes === undefined}><${Table} label="Session" columns=${columns} rows=${shown} selected=${v.id || at} keyOf=${(row) => row.key} onOpen=${open}
        onSight=${(first, last) => atRest(rest, () => want(shown.slice(first, last).map((row) => (row.node ? row.node.own_calls[0]?.request_id : row.key)).filter(Boolean)))} /></div>
        <p class="quiet keys">Tokens:${[["c4", "from the cache"], ["c5", "written to the cache"], ["c1", "new"], ["c3", "output"]].map(key)} · Time:${[["c5", "until the first token"], ["c1", "answering"], ["error", "failed"]].map(key)}</p>`}`;
}

// key says what a colour of the bars means.
const key = ([colour, text]) => html`<span><i class=${"key " + colour} aria-hidden="true"></i>${text}</span>`;

// Agent names a node: by what its caller calls it, else by its task.
function Agent({ node, open, p, v }) {
  const r = node.own_calls[0], role = r?.properties["Agent-Type"];
  const name = v.by === "path" ? node.id : role || (node.depth ? "agent" : "main");
  const models = [...new Set(node.own_calls.map((r) => r.model).filter(Boolean))].join(", ");
  return html`<span aria-hidden="true">${open ? "▾" : "▸"}</span> ${node.depth > 0 && v.by !== "path" && "↳ "}<b dir="auto">${name}</b> ${p?.asked && node.depth > 0 && v.by !== "path" && html`<span class="said" dir="auto" title=${`Linked by its task: ${p.asked}`}>“${p.asked}”</span> `}<span class="quiet">${models} · ${plural(node.own.requests, "call")}</span>`;
}
