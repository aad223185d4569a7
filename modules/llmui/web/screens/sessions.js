// What did a task cost? Sessions, and one of them as a trace.
import { html } from "../html.js";
import { filter } from "../filter.js";
import { go, timeFilter, useView } from "../state.js";
import { useAnswer } from "../api.js";
import { Answer, Later, List, To, sorting, useCursor } from "../parts/basics.js";
import { compact, count, dollars, duration, moment, offset } from "../format.js";

export function Sessions() {
  const v = useView();
  return v.session ? html`<${Later} file="session" name="Session" key=${v.session} />` : html`<${All} v=${v} />`;
}

const columns = [
  { title: "Session", key: "session_id", cell: (s) => html`<${To} change=${{ session: s.session_id, name: s.session_name, sort: "", derived: s.is_derived ? "1" : "" }} dir="auto">${s.session_name || s.session_id}<//>${s.session_name && html` <code class="quiet">${s.session_id.slice(-8)}</code>`}` },
  { title: "Cost", key: "total_cost", number: true, cell: (s) => dollars(s.total_cost) },
  { title: "Calls", key: "total_requests", number: true, cell: (s) => count(s.total_requests) },
  { title: "Tokens", key: "total_tokens", number: true, semi: true, cell: (s) => compact(s.total_tokens) },
  { title: "Duration", number: true, mid: true, cell: (s) => duration(Date.parse(s.latest_request_created_at) - Date.parse(s.created_at)) },
  { title: "Mean latency", key: "avg_latency", number: true, wide: true, cell: (s) => duration(s.avg_latency) },
  { title: "Began", key: "created_at", number: true, wide: true, cell: (s) => moment(s.created_at) },
  { title: "Last call", key: "latest_request_created_at", number: true, mid: true, cell: (s) => moment(s.latest_request_created_at) },
];

function All({ v }) {
  const derived = Boolean(v.derived);
  const sort = v.sort || "-latest_request_created_at";
  const { key, descending } = sorting(sort);
  const [page, pager] = useCursor(v, sort, derived);
  const state = useAnswer("/v1/session/query", {
    filter: filter(v), timeFilter: timeFilter(v), timezoneDifference: offset(), sort: { [key]: descending ? "desc" : "asc" }, ...page, derived,
  });
  return html`<label class="choose"><input type="checkbox" checked=${derived} onChange=${() => go({ derived: derived ? "" : "1" })} /> Also those without an id</label>
    <${Answer} state=${state} empty=${(d) => d.length === 0} none="No sessions in this time. Send the header Service-Session-Id to group requests.">${(sessions) =>
    html`<${List} label="Sessions" columns=${columns} rows=${sessions} sort=${sort} keyOf=${(s) => s.session_id + "\n" + s.session_name} />${pager(state.next)}`}<//>`;
}
