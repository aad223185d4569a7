// What did a task cost, and how long did its agents take? Sessions, and the requests
// of one as a tree of their paths.
import { html, useState } from "../html.js";
import { either, elsewhere, filter, go, having, timeFilter, useView } from "../state.js";
import { useAnswer } from "../api.js";
import { Answer, Drawer, List, More, Outcome, To, failed, sorting, useSteps } from "../parts/basics.js";
import { compact, count, dollars, duration, moment, offset, plural } from "../format.js";

export function Sessions() {
  const v = useView();
  return v.session ? html`<${Session} v=${v} />` : html`<${All} v=${v} />`;
}

const columns = [
  { title: "Session", key: "session_id", cell: (s) => html`<${To} change=${{ session: s.session_id, name: s.session_name, sort: "", by: s.is_derived ? "root" : "" }}>${s.session_name || s.session_id}<//>${s.session_name && html` <code class="quiet">${s.session_id.slice(-8)}</code>`}` },
  { title: "Requests", key: "total_requests", number: true, cell: (s) => count(s.total_requests) },
  { title: "Tokens", key: "total_tokens", number: true, wide: true, cell: (s) => compact(s.total_tokens) },
  { title: "Mean latency", key: "avg_latency", number: true, wide: true, cell: (s) => duration(s.avg_latency) },
  { title: "Duration", number: true, wide: true, cell: (s) => duration(Date.parse(s.latest_request_created_at) - Date.parse(s.created_at)) },
  { title: "Cost", key: "total_cost", number: true, cell: (s) => dollars(s.total_cost) },
  { title: "Began", key: "created_at", number: true, wide: true, cell: (s) => moment(s.created_at) },
  { title: "Last request", key: "latest_request_created_at", number: true, mid: true, cell: (s) => moment(s.latest_request_created_at) },
];

function All({ v }) {
  const [limit, setLimit] = useState(200);
  const [derived, setDerived] = useState(false);
  const sort = v.sort || "-latest_request_created_at";
  const { key, descending } = sorting(sort);
  const state = useAnswer("/v1/session/query", {
    filter: filter(v), timeFilter: timeFilter(v), timezoneDifference: offset(), sort: { [key]: descending ? "desc" : "asc" }, limit, derived,
  });
  return html`<label class="choose"><input type="checkbox" checked=${derived} onChange=${() => setDerived(!derived)} /> Also those without an id</label>
    <${Answer} state=${state} empty=${(d) => d.length === 0} none="No sessions in this time. Send the header Service-Session-Id to group requests.">${(sessions) =>
    html`<${List} label="Sessions" columns=${columns} rows=${sessions} sort=${sort} keyOf=${(s) => s.session_id + "\n" + s.session_name} /><${More} n=${sessions.length} limit=${limit} setLimit=${setLimit} />`}<//>`;
}

const most = 1000; // requests of a session

// sum adds what is known; unknown alone is unknown.
const sum = (requests, value) => requests.reduce((total, r) => (value(r) === null ? total : (total || 0) + value(r)), null);
const cost = (requests) => {
  const nano = sum(requests, (r) => (r.cost === null ? null : Math.round(r.cost * 1e9)));
  return nano === null ? null : nano / 1e9;
};

// tree puts requests under the nodes of their path, in order of time.
function tree(requests) {
  const root = { name: "", path: "", children: new Map(), own: [], all: [] };
  for (const r of requests) {
    let node = root;
    node.all.push(r);
    for (const name of (r.properties["Service-Session-Path"] || "").split("/").filter(Boolean)) {
      if (!node.children.has(name)) node.children.set(name, { name, path: node.path + "/" + name, children: new Map(), own: [], all: [] });
      node = node.children.get(name);
      node.all.push(r);
    }
    node.own.push(r);
  }
  return root;
}

// rows are the nodes and their requests in the order they are shown.
function rows(node, closed, depth = 0, out = []) {
  out.push({ node, depth });
  if (closed.has(node.path)) return out;
  const begins = (x) => Date.parse((x.all?.[0] || x).request_created_at);
  for (const child of [...node.own, ...node.children.values()].sort((a, b) => begins(a) - begins(b))) {
    if (child.all?.length === 1 && child.own.length) out.push({ request: child.own[0], depth: depth + 1, name: child.name });
    else if (child.all) rows(child, closed, depth + 1, out);
    else out.push({ request: child, depth: depth + 1 });
  }
  return out;
}

const indent = (depth) => ({ paddingLeft: `${0.4 + 1.2 * Math.min(depth, 8)}rem` });

function Session({ v }) {
  const [closed, setClosed] = useState(new Set());
  const state = useAnswer("/v1/request/query-clickhouse", { filter: v.by ? either({ request_id: { equals: v.session } }, { root_request_id: { equals: v.session } }) : filter({ f: [] }, { session_id: { equals: v.session } }), sort: { created_at: "asc" }, limit: most, includeContent: false });
  const requests = state.data?.filter((r) => !v.name || (r.properties["Service-Session-Name"] || "") === v.name) || [];
  const shown = requests.length ? rows(tree(requests), closed) : [];
  useSteps(shown.flatMap((row) => row.request || []));
  const toggle = (path) => {
    const next = new Set(closed);
    if (!next.delete(path)) next.add(path);
    setClosed(next);
  };
  return html`<${Answer} state=${state} empty=${() => requests.length === 0} none="This session has no requests.">${() => {
    const begin = Date.parse(requests[0].request_created_at);
    const span = Math.max(1, Math.max(...requests.map((r) => Date.parse(r.request_created_at) + (r.delay_ms || 0))) - begin);
    const bar = (from, length, tone) => html`<rect class=${tone} x=${((from - begin) / span) * 100} width=${Math.max(0.5, (length / span) * 100)} height="10"><title>${duration(length)}</title></rect>`;
    const line = (r) => bar(Date.parse(r.request_created_at), r.delay_ms || 0, failed(r) ? "failed" : "");
    const unknown = requests.filter((r) => r.cost === null).length;
    return html`<header class="heading"><h2>${v.name || requests[0].properties["Service-Session-Name"] || v.session} <code class="quiet">${v.session}</code></h2>
        <p>${plural(requests.length, "request")} over ${duration(span)}, ${dollars(cost(requests))}${unknown ? ` and ${count(unknown)} without a price` : ""}, ${compact(sum(requests, (r) => r.total_tokens))} tokens,
          begun ${moment(requests[0].request_created_at)} by ${requests[0].request_user_id ? html`<${To} change=${having("user_id", requests[0].request_user_id, [])}>${requests[0].request_user_id}<//>` : "nobody known"}. <${To} change=${elsewhere}>All sessions<//></p>
        <${More} n=${requests.length} limit=${most} /></header>
      <div class="scroll" role="region" aria-label="Session" tabindex="0"><table class="waterfall"><thead><tr><th scope="col">Step</th><th scope="col" class="wide">Model</th><th scope="col" class="mid">Outcome</th><th scope="col" class="number wide">Tokens</th><th scope="col" class="number">Own cost</th><th scope="col" class="number">In all</th><th scope="col" class="wide">${duration(span)}</th></tr></thead>
      <tbody>${shown.map(({ node, request: r, depth, name }) => node
        ? html`<tr key=${"/" + node.path} class="node"><td style=${indent(depth)}><button class="fold" aria-expanded=${!closed.has(node.path)} onClick=${() => toggle(node.path)}>${closed.has(node.path) ? "▸" : "▾"} ${node.name || v.name || "session"}</button> <span class="quiet">${count(node.all.length)}</span></td>
          <td class="wide"></td><td class="mid">${node.all.some(failed) && html`<span class="bad">▲ ${count(node.all.filter(failed).length)}</span>`}</td><td class="number wide">${compact(sum(node.all, (r) => r.total_tokens))}</td>
          <td class="number">${node.own.length ? dollars(cost(node.own)) : ""}</td><td class="number" data-all=${cost(node.all)}><b>${dollars(cost(node.all))}</b></td>
          <td class="wide"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">${node.all.map(line)}</svg></td></tr>`
        : html`<tr key=${r.request_id} data-id=${r.request_id} class=${r.request_id === v.id ? "selected" : ""}><td style=${indent(depth)}><button class="open" onClick=${() => go({ id: r.request_id })}>${name || "call"}</button> <span class="quiet mid">${moment(r.request_created_at)}</span></td>
          <td class="wide">${r.model || "—"}</td><td class="mid"><${Outcome} record=${r} /></td><td class="number wide">${compact(r.total_tokens)}</td><td class="number" data-own=${r.cost}>${dollars(r.cost)}</td><td></td>
          <td class="wide"><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">${line(r)}</svg></td></tr>`)}</tbody></table></div>
      <${Drawer} v=${v} />`;
  }}<//>`;
}
