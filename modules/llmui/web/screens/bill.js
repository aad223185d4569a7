// What did a provider bill, what was recorded, and where does each difference come from? For keys of
// the scope admin.
import { html, useState } from "../html.js";
import { elsewhere } from "../state.js";
import { post, useAnswer } from "../api.js";
import { Answer, To } from "../parts/basics.js";
import { Exported } from "../parts/csv.js";
import { compact, decimalsOf, dollarsWith, plural } from "../format.js";

// parts are the columns of what is billed and not recorded, with their reasons.
const parts = {
  "Other keys": ["outside"], Price: ["price", "discount", "unpriced"], Timing: ["timing", "time_zone"],
  Other: ["tier", "cache", "lost", "failed", "no_usage", "reasoning", "duplicate", "unbilled"], Unknown: ["unknown"],
};

const block = "bill openai {\n\tadmin_key {env.OPENAI_ADMIN_KEY}\n}";

// Bill compares a bill with the records of a month.
export function Bill() {
  const state = useAnswer("/v1/reconciliations/bills");
  return html`<${Answer} state=${state} empty=${(d) => !d.items.length} none=${html`There is no bill to compare yet. The Caddyfile names them in the block llm, because they need a key of an administrator of the provider:<pre tabindex="0" aria-label="What to add">${block}</pre>`}>${(d) => html`<${Compared} bills=${d.items} />`}<//>`;
}

const lastMonth = () => {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1)).toISOString().slice(0, 7);
};

function Compared({ bills }) {
  const [state, set] = useState({});
  const [bill, choose] = useState(bills[0]);
  const compare = (e) => {
    e.preventDefault();
    const month = e.target.elements.month?.value, [year, n] = month?.split("-").map(Number) || [];
    set({ waits: true });
    post("/v1/reconciliations", { bill: bill.name, ...(month && { since: `${month}-01`, until: new Date(Date.UTC(year, n)).toISOString().slice(0, 10) }) }).then((report) => set({ report }), (error) => set({ error }));
  };
  return html`<form class="bar-row" onSubmit=${compare}><label>Bill <select name="bill" onChange=${(e) => choose(bills.find((b) => b.name === e.target.value))}>${bills.map((b) => html`<option value=${b.name}>${b.name}${b.name !== b.provider && ` (${b.provider})`}</option>`)}</select></label>
      ${bill.first_day ? html`<span>from ${bill.first_day}, the first day that it still has</span>` : html`<label>Month <input name="month" type="month" required pattern="[0-9]{4}-[0-9]{2}" defaultValue=${lastMonth()} /></label>`}<button class="primary" disabled=${state.waits}>${state.waits ? "Comparing…" : "Compare"}</button></form>
    ${state.error && html`<p class="notice bad" role="alert">${state.error.message}</p>`}${state.report && html`<${Report} r=${state.report} />`}`;
}

function Report({ r }) {
  const [all, showAll] = useState(false);
  const money = dollarsWith(decimalsOf(r.lines.map((l) => l.billed.cost)));
  const of = (l) => r.differences.filter((d) => d.day === l.day && d.model === l.model);
  const sum = (l, reasons) => of(l).reduce((n, d) => (!reasons.includes(d.reason) ? n : n === null || d.cost === null ? null : n + d.cost), 0);
  const lines = r.lines.filter((l) => all || of(l).length);
  const columns = [
    { title: "Day", cell: (l) => l.day }, { title: "Model", cell: (l) => html`<span dir="auto">${l.model || "all"}</span>` },
    { title: "Billed", number: true, cell: (l) => money(l.billed.cost) }, { title: "Recorded", number: true, cell: (l) => money(l.recorded.cost) },
    ...Object.entries(parts).map(([title, reasons]) => ({ title, number: true, semi: true, cell: (l) => money(sum(l, reasons)) })),
    { title: "Rounding", number: true, mid: true, cell: (l) => money(l.rounding) },
  ];
  return html`<p role="status" class=${r.agrees ? "good" : "bad"}>${r.agrees ? "The bill and the records agree to the cent" : plural(r.differences.length, "difference")} from ${r.from} to ${r.to} (UTC): billed ${money(r.billed.cost)}, recorded ${money(r.recorded.cost)}.</p>
    ${r.differences.length > 0 && html`<h2>Where they come from</h2><${Exported} label="Differences" columns=${found(money)} rows=${r.differences} keyOf=${(d) => r.differences.indexOf(d)} />`}
    ${r.lines.some((l) => !l.model) && html`<p class="quiet">The bill has the costs of days alone: they stand in the lines of all models, and differences in those of their models.</p>`}
    <${Exported} label="Day by day" columns=${columns} rows=${lines} keyOf=${(l) => l.day + l.model}><h2>Day by day</h2><label class="bar-row"><input type="checkbox" checked=${all} onChange=${(e) => showAll(e.target.checked)} /> with the days that agree</label><//>
    ${r.incomparable.length > 0 && html`<h2>Not compared</h2><ul>${r.incomparable.map((i) => html`<li>${i.day} <span dir="auto">${i.description}</span>: ${money(i.amount)}</li>`)}</ul>`}`;
}

const found = (money) => [
  { title: "Day", cell: (d) => d.day }, { title: "Model", cell: (d) => html`<span dir="auto">${d.model || "all"}</span> <span class="quiet">${d.service_tier}</span>` },
  { title: "Reason", wrap: true, cell: (d) => html`<b>${d.reason.replaceAll("_", " ")}</b> <span class="quiet" dir="auto">${d.explanation}${d.key && ` (${d.key})`}</span>` },
  { title: "Tokens", number: true, mid: true, cell: (d) => compact(d.tokens.total) }, { title: "Cost", number: true, cell: (d) => money(d.cost) },
  { title: "Calls", cell: (d) => d.filter && html`<${To} change=${calls(d)} aria-label=${`Show the calls of ${d.day} ${d.model}`}>Show<//>` },
];

// calls is the change to the calls of a difference.
const calls = (d) => ({ ...elsewhere, v: "requests", f: [], any: "", json: JSON.stringify(d.filter), from: String(Date.parse(d.day)), to: String(Date.parse(d.day) + 864e5) });
