// Who costs most, who is new, who has errors?
import { html } from "../html.js";
import { filter, go, screen, timeFilter, useView, withCondition } from "../state.js";
import { useAnswer } from "../api.js";
import { Answer } from "../parts/basics.js";
import { compact, count, dollars, moment, plural } from "../format.js";

const columns = [
  ["User", "user_id"], ["Requests", "total_requests"], ["Active days", "active_for"], ["Tokens a request", "average_tokens_per_request"],
  ["Input", "total_prompt_tokens"], ["Output", "total_completion_tokens"], ["Cost", "cost"], ["First seen", "first_active"], ["Last seen", "last_active"],
];
const cells = {
  total_requests: count, active_for: count, average_tokens_per_request: compact, total_prompt_tokens: compact, total_completion_tokens: compact,
  cost: dollars, first_active: moment, last_active: moment,
};

export function Users() {
  const v = useView();
  const key = v.sort.replace("-", "") || "cost";
  const descending = !v.sort || v.sort.startsWith("-");
  const { startTimeUnixMs: from, endTimeUnixMs: to } = timeFilter(v);
  const state = useAnswer("/v1/user/metrics/query", {
    filter: filter(v.f), timeFilter: { startTimeUnixSeconds: from / 1000, endTimeUnixSeconds: to / 1000 },
    timeZoneDifferenceMinutes: new Date().getTimezoneOffset(), sort: { [key]: descending ? "desc" : "asc" }, limit: 200,
  });
  return html`<${Answer} state=${state} empty=${(d) => d.users.length === 0} none="No users in this time. Send the header Service-User-Id to tell them apart.">${(d) => html`<p class="quiet">${plural(d.count, "user")}</p>
    <div class="scroll"><table><thead><tr>${columns.map(([title, sort], i) => html`<th scope="col" class=${i ? "number" : ""} aria-sort=${key === sort ? (descending ? "descending" : "ascending") : "none"}>
      <button onClick=${() => go({ sort: key === sort && descending ? sort : "-" + sort })}>${title}${key === sort ? (descending ? " ↓" : " ↑") : ""}</button></th>`)}</tr></thead>
    <tbody>${d.users.map((u) => html`<tr key=${u.user_id}>${columns.map(([, name], i) =>
      i ? html`<td class="number">${cells[name](u[name])}</td>` : html`<td><button class="open" onClick=${() => screen("requests", { f: withCondition(v.f, { field: "user_id", op: "equals", value: u.user_id }) })}>${u.user_id}</button></td>`)}</tr>`)}</tbody></table></div>`}<//>`;
}
