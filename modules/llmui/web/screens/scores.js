// Is quality falling?
import { html, useMemo } from "../html.js";
import { filter, timeFilter, useView } from "../state.js";
import { useAnswer } from "../api.js";
import { Answer } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { plural } from "../format.js";

const increments = [[2 * 3600e3, "min"], [3 * 86400e3, "hour"], [Infinity, "day"]];
const score = (n) => (n === null || n === undefined ? "—" : n.toFixed(2));

export function Scores() {
  const v = useView();
  const { startTimeUnixMs: from, endTimeUnixMs: to } = timeFilter(v);
  const state = useAnswer("/v1/dashboard/scores/query", {
    timeFilter: { start: new Date(from).toISOString(), end: new Date(to).toISOString() },
    userFilter: filter(v.f), dbIncrement: increments.find(([width]) => to - from <= width)[1], timeZoneDifference: new Date().getTimezoneOffset(),
  });
  return html`<${Answer} state=${state} empty=${(d) => d.length === 0} none="No scores in this time. Send them to POST /v1/request/{id}/score.">${(points) => html`<div class="charts">
    ${[...new Set(points.map((p) => p.score_key))].sort().map((key) => html`<${Score} key=${key} name=${key} points=${points.filter((p) => p.score_key === key)} />`)}</div>`}<//>`;
}

function Score({ name, points }) {
  const [times, series] = useMemo(() => [points.map((p) => Date.parse(p.created_at_trunc)), [{ name: "mean", values: points.map((p) => p.score_avg) }]], [points]);
  const n = points.reduce((sum, p) => sum + p.score_count, 0);
  return html`<${Chart} title=${`${name} (${plural(n, "score")})`} times=${times} series=${series} format=${score} />`;
}
