// How does a client call through Weir? It turns green with the first call.
import { html, useEffect, useState } from "../html.js";
import { beat, caller, post, useAnswer } from "../api.js";
import { elsewhere } from "../state.js";
import { Outcome, To, useChange } from "../parts/basics.js";
import { Setup } from "../parts/clients.js";
import { moment } from "../format.js";

const opened = new Date().toISOString();

// Connect makes a key on the spot for whoever may. Others paste theirs.
export function Connect() {
  const [key, setKey] = useState();
  const [change, failed] = useChange(setKey);
  const models = useAnswer("/v1/facets/query", { filter: "all", fields: ["model"] }).data?.fields[0].values;
  const since = { request_response_rmt: key ? { key_id: { equals: key.id } } : { request_created_at: { gte: opened } } };
  const calls = useAnswer("/v1/metrics/query", { filter: since, bucket: "none" }).data?.totals.requests;
  const first = useAnswer("/v1/request/query-clickhouse", calls ? { filter: since, includeContent: false, limit: 1 } : null).data?.[0];
  useEffect(() => {
    const timer = setInterval(() => calls || document.hidden || beat(), 2000);
    return () => clearInterval(timer);
  }, [calls]);
  const create = (e) => {
    e.preventDefault();
    change(post("/v1/keys", { name: new FormData(e.target).get("name").trim(), scopes: ["gateway", "log"] }));
  };
  return html`<ol class="steps"><li><h2>A key</h2>${key ? html`<p>The key <b dir="auto">${key.name}</b> is made. Its secret is in the lines below, and is not shown again.</p>` : caller.admin ? html`<form class="bar-row" onSubmit=${create}><input name="name" required aria-label="Name of the key" placeholder="whose, such as Ada's laptop" /><button class="primary">Create a key</button></form>` : html`<p>Put the key that you were given in place of <code>${"<your key>"}</code>.</p>`}${failed}</li>
    <li><h2>A client</h2><${Setup} secret=${key?.secret} model=${models?.[0]?.value} /></li>
    <li><h2>The first call</h2><p role="status" class=${first ? "good" : "quiet"}>${first ? html`● ${moment(first.request_created_at)}: ${first.model || first.request_path} <${Outcome} record=${first} /> <${To} change=${{ ...elsewhere, v: "requests", from: "24h", to: "", id: first.request_id }}>Look at it<//>` : "○ Waiting for the first call…"}</p></li></ol>`;
}
