// Is Weir healthy, and is anything lost?
import { html } from "../html.js";
import { useAnswer } from "../api.js";
import { Answer } from "../parts/basics.js";
import { bytes, count, duration, fullMoment, plural } from "../format.js";
import { Breakdown } from "./breakdown.js";

export function System() {
  const state = useAnswer("/system");
  return html`<${Answer} state=${state}>${(s) => html`<${Ledger} s=${s} />`}<//>
    <h2>Providers</h2><${Breakdown} by="provider" title="Provider" />`;
}

function Ledger({ s }) {
  const x = s.exchanges;
  const sound = x.unaccounted === 0 && x.lost === 0 && !s.error;
  return html`<section class="panel ledger"><h2 class=${sound ? "good" : "bad"}><span aria-hidden="true">${sound ? "●" : "▲"}</span> ${
      s.error ? `The store refuses writes since ${fullMoment(s.failing_since)}: ${s.error}` : x.unaccounted ? `${count(x.unaccounted)} calls are unaccounted for: please report it` : x.lost ? `${count(x.lost)} calls have no record` : "Every call is accounted for"}</h2>
    <p class="equation"><span><b>${count(x.seen)}</b> seen</span> = <span><b>${count(x.recorded)}</b> recorded</span> + <span><b>${count(x.waiting)}</b> waiting</span> + <span><b>${count(x.in_flight)}</b> in flight</span> + <span class=${x.lost ? "bad" : ""}><b>${count(x.lost)}</b> lost</span></p>
    <p class="quiet">Calls that passed through Weir since the store began; those reported over OpenTelemetry are not counted.</p>
    <dl><dt>Store</dt><dd>${s.store}</dd><dt>Waiting for the database</dt><dd>${bytes(s.pending_bytes)}</dd><dt>Bodies on disk</dt><dd>${bytes(s.body_bytes)}</dd><dt>Records are kept</dt><dd>${age(s.retention)}</dd><dt>Bodies are kept</dt><dd>${age(s.content_retention || s.retention)}</dd><dt>Prices are of</dt><dd>${s.prices}, ${plural(daysSince(s.prices), "day")} old</dd><dt>Weir</dt><dd>${s.version}</dd><dt>Caddy</dt><dd>${s.caddy_version.split(" ")[0]}</dd></dl></section>`;
}

// daysSince is the age of a version of the catalogue, which begins with its day.
const daysSince = (version) => Math.max(0, Math.floor((Date.now() - Date.parse(version.slice(0, 10))) / 86400e3));

// age is of seconds that something is kept, 0 for ever.
const age = (seconds) => (seconds ? `${seconds % 86400 ? duration(seconds * 1000) : plural(seconds / 86400, "day")}` : "for ever");
