// Which task burnt the money?
import { html, useState } from "../html.js";
import { filter, timeFilter, useView } from "../state.js";
import { useAnswer } from "../api.js";
import { Answer, List, More, To, sorting } from "../parts/basics.js";
import { compact, count, dollars, duration, moment, offset } from "../format.js";
import { Session } from "./session.js";

export function Sessions() {
  const v = useView();
  return v.session ? html`<${Session} v=${v} />` : html`<${All} v=${v} />`;
}

const columns = [
  { title: "Session", key: "session_id", cell: (s) => html`<${To} change=${{ session: s.session_id, name: s.session_name, sort: "" }}>${s.session_name || s.session_id}<//>${s.session_name && html` <code class="quiet">${s.session_id.slice(-8)}</code>`}` },
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
  const sort = v.sort || "-latest_request_created_at";
  const { key, descending } = sorting(sort);
  const state = useAnswer("/v1/session/query", {
    filter: filter(v), timeFilter: timeFilter(v), timezoneDifference: offset(), sort: { [key]: descending ? "desc" : "asc" }, limit,
  });
  return html`<${Answer} state=${state} empty=${(d) => d.length === 0} none="No sessions in this time. Send the header Service-Session-Id to group requests.">${(sessions) =>
    html`<${List} label="Sessions" columns=${columns} rows=${sessions} sort=${sort} keyOf=${(s) => s.session_id + "\n" + s.session_name} /><${More} n=${sessions.length} limit=${limit} setLimit=${setLimit} />`}<//>`;
}
