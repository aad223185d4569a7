// Is Weir healthy, and is anything lost?
import { html } from "../html.js";
import { useView } from "../state.js";
import { useAnswer, useMetrics } from "../api.js";
import { Answer, List, Spark } from "../parts/basics.js";
import { bytes, compact, count, duration, fullMoment, percent, plural } from "../format.js";
import { Name } from "./overview.js";

export function System() {
  const v = useView();
  const state = useAnswer("/system");
  const providers = useMetrics(v, { groupBy: "provider", limit: 50, sort: { requests: "desc" } });
  return html`<${Answer} state=${state}>${(s) => html`<${Ledger} s=${s} />`}<//>
    <h2>Providers</h2><${Answer} state=${providers} empty=${(d) => d.groups.length === 0} none="No requests in this time.">${(d) => html`<${List} label="Providers" columns=${columns} rows=${d.groups} keyOf=${(g) => g.key} />`}<//>`;
}

function Ledger({ s }) {
  const x = s.exchanges;
  const sound = x.unaccounted === 0 && x.lost === 0 && !s.error;
  return html`<section class="panel ledger"><h2 class=${sound ? "good" : "bad"}><span aria-hidden="true">${sound ? "●" : "▲"}</span> ${
      s.error ? `The store refuses writes since ${fullMoment(s.failing_since)}: ${s.error}` : x.unaccounted ? `${count(x.unaccounted)} calls are unaccounted for: please report it` : x.lost ? `${count(x.lost)} calls have no record` : "Every call is accounted for"}</h2>
    <p class="equation"><span><b>${count(x.seen)}</b> seen</span> = <span><b>${count(x.recorded)}</b> recorded</span> + <span><b>${count(x.waiting)}</b> waiting</span> + <span><b>${count(x.in_flight)}</b> in flight</span> + <span class=${x.lost ? "bad" : ""}><b>${count(x.lost)}</b> lost</span></p>
    <p class="quiet">Calls that passed through Weir since the store began; those reported over OpenTelemetry are not counted.</p>
    <dl><dt>Store</dt><dd>${s.store}</dd><dt>Waiting for the database</dt><dd>${bytes(s.pending_bytes)}</dd><dt>Bodies on disk</dt><dd>${bytes(s.body_bytes)}</dd><dt>Records are kept</dt><dd>${age(s.retention)}</dd><dt>Bodies are kept</dt><dd>${age(s.content_retention || s.retention)}</dd><dt>Weir</dt><dd>${s.version}</dd><dt>Caddy</dt><dd>${s.caddy_version.split(" ")[0]}</dd></dl></section>`;
}

// age is of seconds that something is kept, 0 for ever.
const age = (seconds) => (seconds ? `${seconds % 86400 ? duration(seconds * 1000) : plural(seconds / 86400, "day")}` : "for ever");

const columns = [
  { title: "Provider", cell: (g) => html`<${Name} g=${g} field="provider" />` },
  { title: "Requests", number: true, cell: (g) => compact(g.totals.requests) },
  { title: "Errors", number: true, cell: (g) => html`<span class=${g.totals.errors ? "bad" : ""}>${percent(g.totals.requests ? g.totals.errors / g.totals.requests : null)}</span>` },
  { title: "p50", number: true, wide: true, cell: (g) => duration(g.totals.latency.p50) },
  { title: "p95", number: true, cell: (g) => duration(g.totals.latency.p95) },
  { title: "First token p95", number: true, wide: true, cell: (g) => duration(g.totals.time_to_first_token.p95) },
  { title: "Errors over time", wide: true, cell: (g) => html`<${Spark} values=${g.points.map((p) => p.errors)} />` },
];
