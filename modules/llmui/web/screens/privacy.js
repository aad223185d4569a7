// What was erased, what is kept from that, and what the filter of the view would erase. For keys of
// the scope admin.
import { html, useEffect, useState } from "../html.js";
import { useView } from "../state.js";
import { filter, sayOf } from "../filter.js";
import { caller, itemsOf, post, remove, useAnswer } from "../api.js";
import { Answer, useCursor } from "../parts/basics.js";
import { Exported } from "../parts/csv.js";
import { Delete, Dialog, Form, useChange } from "../parts/form.js";
import { bytes, count, moment, plural } from "../format.js";

// parts are what can be erased of a call.
const parts = {
  content: ["the content", "bodies and the inputs of templates go; the call stays"],
  identity: ["the content and the identity", "user, session, properties and error messages go, too; numbers stay, and totals stay equal"],
  record: ["the call", "nothing stays; totals go down"],
};

// Privacy shows holds and erasures, and makes them of the calls that match the filter of the view, of
// all time.
export function Privacy() {
  const v = useView(), chosen = filter(v);
  const [form, open] = useState(v.show);
  const close = () => open();
  return html`<div class="bar-row"><p><span class="quiet">About</span> <span dir="auto">${sayOf(chosen)}</span><span class="quiet">, of all time</span></p><span class="spring"></span>
      ${caller.admin && html`<button class="primary" onClick=${() => open("hold")}>Place a hold…</button><button onClick=${() => open("erase")}>Erase…</button>`}</div>
    ${form === "hold" && html`<${Dialog} label="Place a hold" onClose=${close}>${(done) => html`<${Hold} chosen=${chosen} close=${done} />`}<//>`}
    ${form === "erase" && html`<${Dialog} label="Erase calls" onClose=${close}>${(done) => html`<${Erase} chosen=${chosen} close=${done} />`}<//>`}
    <${Holds} /><${Erasures} />`;
}

function Hold({ chosen, close }) {
  const [change, failed] = useChange(close);
  const save = (e) => {
    e.preventDefault();
    change(post("/v1/holds", { filter: chosen, reason: e.target.elements.reason.value }));
  };
  return html`<${Form} title="Place a hold" action="Place the hold" close=${close} failed=${failed} onSubmit=${save}>
      <p>Neither retention nor an erasure deletes <b dir="auto">${sayOf(chosen)}</b>, recorded so far or later, until the hold is lifted.</p>
      <label>Reason <input name="reason" required maxlength="500" autofocus placeholder="case 4711" /></label><//>`;
}

// Erase shows what would be erased, and erases it.
function Erase({ chosen, close }) {
  const [what, choose] = useState("content");
  const [seen, see] = useState(); // the preview
  const [error, fail] = useState("");
  const [change, failed] = useChange(close);
  const body = { filter: chosen, what };
  useEffect(() => {
    const abort = new AbortController();
    see();
    post("/v1/erasures", { ...body, dry_run: true }, abort.signal).then(see, (failure) => failure.name !== "AbortError" && fail(failure.message));
    return () => abort.abort();
  }, [what]);
  return html`<${Form} title="Erase calls" action=${`Erase ${seen ? plural(seen.records, "call") : "them"} for good`} tone="bad" disabled=${!seen?.records} close=${close} failed=${failed} onSubmit=${(e) => (e.preventDefault(), change(post("/v1/erasures", body)))}>
      <p><span class="quiet">Of</span> <b dir="auto">${sayOf(chosen)}</b></p>
      <div role="radiogroup" aria-label="What is erased">${Object.entries(parts).map(([value, [name, says]]) => html`<label class="bar-row"><input type="radio" name="what" value=${value} checked=${what === value} onChange=${() => choose(value)} /> <span>${name} <span class="quiet">${says}</span></span></label>`)}</div>
      ${error ? html`<p class="notice bad" role="alert">${error}</p>` : !seen ? html`<p class="quiet" role="status">Counting the calls…</p>` : html`<p role="status">${plural(seen.records, "call")} with ${bytes(seen.bytes)} of bodies${seen.conversation_items > 0 && html` and ${plural(seen.conversation_items, "item")} of conversations`}${seen.held && html`, of which <b>${count(seen.held.records)}</b> under hold stay until the holds are lifted`}.</p>
      <details><summary>What remains</summary><ul>${seen.remains.map((r) => html`<li>${r}</li>`)}</ul></details>`}<//>`;
}

function Holds() {
  const state = useAnswer("/v1/holds?limit=200");
  const [change, failed] = useChange();
  const columns = [
    { title: "Reason", wrap: true, cell: (h) => html`<b dir="auto">${h.reason}</b>` },
    { title: "Calls", wrap: true, cell: (h) => html`<span dir="auto">${sayOf(h.filter)}</span>` },
    { title: "Placed", cell: (h) => moment(h.placed_at) },
    { title: "By", semi: true, cell: (h) => h.placed_by },
    { title: "Change", cell: (h) => html`<${Delete} what="Lift" onSure=${() => change(remove("/v1/holds/" + encodeURIComponent(h.id)))} />` },
  ];
  return html`<h2>Holds</h2>${failed}<${Answer} state=${state} empty=${(d) => !d.items.length} none="Nothing is under hold. A hold keeps the calls that match a filter from retention and from erasures.">${(d) => html`<${Exported} label="Holds" columns=${columns} rows=${d.items} keyOf=${(h) => h.id} />`}<//>`;
}

const states = { pending: "waits", running: "runs", held: "waits for holds", done: "done" };

const columns = [
  { title: "State", cell: (e) => html`<span class=${e.state === "done" ? "good" : "warn"}>${states[e.state]}</span>` },
  { title: "Erased", cell: (e) => parts[e.what][0] },
  { title: "Of calls by", wrap: true, mid: true, cell: (e) => html`<span dir="auto">${e.searched.join(", ") || "all"}</span>` },
  { title: "Calls", number: true, cell: (e) => html`${count(e.erased)} <span class="quiet">of ${count(e.records)}</span>` },
  { title: "Under hold", number: true, semi: true, cell: (e) => (e.held ? count(e.held.records) : "—") },
  { title: "Requested", semi: true, cell: (e) => html`${moment(e.requested_at)} <span class="quiet">by ${e.requested_by}</span>` },
  { title: "Done", mid: true, cell: (e) => (e.done_at ? moment(e.done_at) : "—") },
  { title: "Certificate", cell: (e) => html`<a href=${"api/v1/erasures/" + e.id} download=${`erasure-${e.id}.json`} aria-label=${"Download the certificate of " + e.id}>Download</a>` },
];

function Erasures() {
  const [{ limit, after = "" }, pager] = useCursor(useView());
  const state = useAnswer(`/v1/erasures?limit=${limit}&after=${after}`);
  return html`<h2>Erasures</h2><${Answer} state=${state} empty=${(d) => !d.items.length} none="Nothing was erased yet.">${(d) => html`<${Exported} label="Erasures" pages=${() => itemsOf("/v1/erasures")} columns=${columns} rows=${d.items} keyOf=${(e) => e.id} />${pager(d.next)}`}<//>`;
}
