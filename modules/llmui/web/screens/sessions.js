// Which task burnt the money, and where did it loop?
import { html } from "../html.js";
import { filter, go, timeFilter, useView } from "../state.js";
import { useAnswer } from "../api.js";
import { Answer, Outcome, To } from "../parts/basics.js";
import { compact, count, dollars, duration, moment, plural } from "../format.js";
import { Drawer } from "./request.js";

export function Sessions() {
  const v = useView();
  return v.session ? html`<${Session} v=${v} />` : html`<${List} v=${v} />`;
}

const columns = [
  ["Session", "session_id"], ["Requests", "total_requests"], ["Tokens", "total_tokens"], ["Mean latency", "avg_latency"],
  ["Cost", "total_cost"], ["Began", "created_at"], ["Last request", "latest_request_created_at"],
];

function List({ v }) {
  const key = v.sort.replace("-", "") || "latest_request_created_at";
  const descending = !v.sort || v.sort.startsWith("-");
  const state = useAnswer("/v1/session/query", {
    filter: filter(v.f), timeFilter: timeFilter(v), timezoneDifference: new Date().getTimezoneOffset(),
    sort: { [key]: descending ? "desc" : "asc" }, limit: 200,
  });
  return html`<${Answer} state=${state} empty=${(d) => d.length === 0} none="No sessions in this time. Send the header Service-Session-Id to group requests.">${(sessions) => html`<div class="scroll"><table>
    <thead><tr>${columns.map(([title, sort], i) => html`<th scope="col" class=${i ? "number" : ""} aria-sort=${key === sort ? (descending ? "descending" : "ascending") : "none"}>
      <button onClick=${() => go({ sort: key === sort && descending ? sort : "-" + sort })}>${title}${key === sort ? (descending ? " ↓" : " ↑") : ""}</button></th>`)}</tr></thead>
    <tbody>${sessions.map((s) => html`<tr key=${s.session_id + "\n" + s.session_name}><td><${To} change=${{ session: s.session_id, name: s.session_name, sort: "" }}>${s.session_name || s.session_id}<//>${s.session_name && html` <code class="quiet">${s.session_id.slice(0, 12)}</code>`}</td>
      <td class="number">${count(s.total_requests)}</td><td class="number">${compact(s.total_tokens)}</td><td class="number">${duration(s.avg_latency)}</td>
      <td class="number">${dollars(s.total_cost)}</td><td class="number">${moment(s.created_at)}</td><td class="number">${moment(s.latest_request_created_at)}</td></tr>`)}</tbody></table></div>`}<//>`;
}

// Session shows the requests of a session, in order, against time.
function Session({ v }) {
  const state = useAnswer("/v1/request/query-clickhouse", {
    filter: filter([], { session_id: { equals: v.session } }), sort: { created_at: "asc" }, limit: 1000,
  });
  return html`<${Answer} state=${state} empty=${(d) => d.length === 0} none="This session has no requests.">${(all) => {
    const requests = v.name ? all.filter((r) => (r.properties["Service-Session-Name"] || "") === v.name) : all;
    const begin = Date.parse(requests[0].request_created_at);
    const end = Math.max(...requests.map((r) => Date.parse(r.request_created_at) + (r.delay_ms || 0)));
    const span = Math.max(1, end - begin);
    const known = requests.filter((r) => r.cost !== null);
    const share = (ms) => (ms / span) * 100;
    return html`<header class="heading"><h2>${v.name || v.session}</h2>
        <p>${plural(requests.length, "request")} over ${duration(span)}, ${dollars(known.reduce((sum, r) => sum + r.cost, 0))}${known.length < requests.length ? ` for ${known.length} of them` : ""}, ${compact(requests.reduce((sum, r) => sum + (r.total_tokens || 0), 0))} tokens. <${To} change=${{ session: "", name: "" }}>All sessions<//></p></header>
      <div class="scroll"><table class="waterfall"><thead><tr><th scope="col">Time</th><th scope="col">Path</th><th scope="col">Model</th><th scope="col">Outcome</th><th scope="col" class="number">Tokens</th><th scope="col" class="number">Cost</th><th scope="col">${duration(span)}</th></tr></thead>
      <tbody>${requests.map((r) => html`<tr key=${r.request_id} class=${r.request_id === v.id ? "selected" : ""}><td><button class="open" onClick=${() => go({ id: r.request_id })}>${moment(r.request_created_at)}</button></td>
        <td>${r.properties["Service-Session-Path"] || ""}</td><td>${r.model || "—"}</td><td><${Outcome} record=${r} /></td><td class="number">${compact(r.total_tokens)}</td><td class="number">${dollars(r.cost)}</td>
        <td><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect x=${share(Date.parse(r.request_created_at) - begin)} width=${Math.max(0.5, share(r.delay_ms || 0))} height="10"><title>${duration(r.delay_ms)}</title></rect></svg></td></tr>`)}</tbody></table></div>
      ${v.id && html`<${Drawer} key=${v.id} id=${v.id} tab=${v.tab || "conversation"} />`}`;
  }}<//>`;
}
