// What does each model, or each value of a property, cost?
import { html, useMemo } from "../html.js";
import { filter, go, useView } from "../state.js";
import { useAnswer } from "../api.js";
import { Answer } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { dollars } from "../format.js";
import { Top, timeFilter, useMetrics } from "./overview.js";

export const Models = () => html`<${Breakdown} by="model" title="Models" />`;

// Properties lets one of the properties in use be chosen.
export function Properties() {
  const v = useView();
  const state = useAnswer("/v1/facets/query", { filter: filter(v.f), fields: ["property"], timeFilter: timeFilter(v) });
  return html`<${Answer} state=${state} empty=${(d) => d.fields[0].values.length === 0} none="No request has a property. Send headers such as Service-Property-Feature.">${(d) => {
    const names = d.fields[0].values.map((p) => p.value);
    const name = names.includes(v.by) ? v.by : names[0];
    return html`<label class="choose">Property <select value=${name} onChange=${(e) => go({ by: e.target.value }, true)}>${names.map((n) => html`<option>${n}</option>`)}</select></label>
      <${Breakdown} by=${"property." + name} title=${name} />`;
  }}<//>`;
}

function Breakdown({ by, title }) {
  const v = useView();
  const state = useMetrics(v, { groupBy: [by], limit: 6 });
  return html`<${Answer} state=${state} empty=${(d) => d.groups.length === 0}>${(d) => html`<${Stacked} d=${d} title=${`Cost by ${title.toLowerCase()}`} />`}<//>
    <${Top} v=${v} by=${by} title=${title} limit=${50} />`;
}

function Stacked({ d, title }) {
  const { times, series } = useMemo(() => ({
    times: d.groups[0].points.map((p) => Date.parse(p.range_start)),
    series: d.groups.map((g) => ({ name: g.key[0] || "(none)", values: g.points.map((p) => p.cost || 0) })),
  }), [d]);
  return html`<div class="charts one"><${Chart} title=${title} times=${times} format=${dollars} stacked series=${series} height=${220} /></div>`;
}
