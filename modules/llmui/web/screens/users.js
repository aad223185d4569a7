// Who costs most, who is new, who has errors?
import { html } from "../html.js";
import { filter } from "../filter.js";
import { having, pageOf, timeFilter, useView } from "../state.js";
import { useAnswer, useMetrics } from "../api.js";
import { Answer, Mark, Spark, Table, To, sorting, useCursor } from "../parts/basics.js";
import { Export, pagesOf } from "../parts/csv.js";
import { compact, count, moment, offset, plural } from "../format.js";

const columns = (groups) => [
  { title: "User", key: "user_id", cell: (u) => html`<${To} change=${pageOf("user_id", u.user_id)} dir="auto" title=${u.user_id}>${u.user_id}<//>` },
  { title: "Cost", key: "cost", dollars: (u) => u.cost },
  { title: "Requests", key: "total_requests", number: true, cell: (u) => count(u.total_requests) },
  { title: "Errors", number: true, mid: true, cell: (u) => (!groups.get(u.user_id)?.totals.errors ? count(groups.get(u.user_id)?.totals.errors) : html`<${To} class=${groups.get(u.user_id).totals.errors >= 0.05 * u.total_requests ? "bad" : ""} change=${{ ...having("user_id", u.user_id), f: [...having("user_id", u.user_id).f, { field: "failed", op: "equals", value: "true" }] }}>${count(groups.get(u.user_id).totals.errors)}<//>`) },
  { title: "Input", key: "total_prompt_tokens", number: true, semi: true, cell: (u) => compact(u.total_prompt_tokens) },
  { title: "Output", key: "total_completion_tokens", number: true, semi: true, cell: (u) => compact(u.total_completion_tokens) },
  { title: "Tokens a request", key: "average_tokens_per_request", number: true, wide: true, cell: (u) => compact(u.average_tokens_per_request) },
  { title: "Active days", key: "active_for", number: true, wide: true, cell: (u) => count(u.active_for) },
  { title: "First in this time", key: "first_active", number: true, vast: true, cell: (u) => moment(u.first_active) },
  { title: "Last call", key: "last_active", number: true, mid: true, cell: (u) => moment(u.last_active) },
  { title: "Over time", wide: true, cell: (u) => groups.has(u.user_id) && html`<${Spark} values=${groups.get(u.user_id).points.map((p) => p.cost)} />` },
  { title: "Compare", unseen: true, mid: true, cell: (u) => html`<${Mark} id=${u.user_id} by="user_id" />` },
];

export function Users() {
  const v = useView();
  const sort = v.sort || "-cost";
  const { key, descending } = sorting(sort);
  const [page, pager] = useCursor(v, sort);
  const { startTimeUnixMs: from, endTimeUnixMs: to } = timeFilter(v) || {};
  const question = {
    filter: filter(v), timeFilter: from === undefined ? undefined : { startTimeUnixSeconds: from / 1000, endTimeUnixSeconds: to / 1000 },
    timeZoneDifferenceMinutes: offset(), sort: { [key]: descending ? "desc" : "asc" }, limit: page.limit,
  };
  const state = useAnswer("/v1/user/metrics/query", { ...question, ...page });
  const series = useMetrics(v, { groupBy: "user_id", limit: 100, sort: { cost: "desc" } });
  const groups = new Map(series.data?.groups.map((g) => [g.key, g]));
  return html`<${Answer} state=${state} empty=${(d) => d.users.length === 0} none="No users in this time. Send the header Service-User-Id to tell them apart.">${(d) => html`<div class="bar-row"><p class="quiet">${plural(d.count, "user")}</p><span class="spring"></span><${Export} name="users" columns=${columns(groups)} pages=${pagesOf("/v1/user/metrics/query", question, (d) => d.users)} /></div>
    <div aria-busy=${!series.data && !series.error} class=${series.loading ? "stale" : ""}><${Table} label="Users" columns=${columns(groups)} rows=${d.users} sort=${sort} keyOf=${(u) => u.user_id} />${pager(state.next)}</div>`}<//>`;
}
