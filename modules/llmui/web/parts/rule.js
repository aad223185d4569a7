// The form of an alert rule: a new one about the calls of a view, or one that is changed.
import { html, useState } from "../html.js";
import { filter, sayOf } from "../filter.js";
import { post, useAnswer } from "../api.js";
import { Dialog, useChange } from "./basics.js";
import { count, dollars, duration } from "../format.js";

// totals are what a rule compares, with the unit of its threshold.
const totals = {
  cost: ["cost", "dollars"], errors: ["errors", ""], requests: ["calls", ""], "latency.p95": ["latency p95", "milliseconds"], "time_to_first_token.p95": ["first token p95", "milliseconds"], total_tokens: ["tokens", ""],
  requests_without_cost: ["calls without a price", ""], budget_percent: ["spent of a budget", "percent"], budget_forecast_percent: ["forecast of a budget", "percent"], key_days_left: ["days until a key ends", "days"], lost_records: ["lost records", ""], bill_differences: ["differences of a bill", ""], bill_difference_cost: ["differences of a bill", "dollars"],
};
// minutes are those of a rule's window, such as 1h30m.
const minutes = (over) => [...over.matchAll(/(\d+)([dhm])/g)].reduce((sum, [, n, unit]) => sum + n * { d: 1440, h: 60, m: 1 }[unit], 0);
const lengths = { 5: "5 minutes", 15: "15 minutes", 60: "an hour", 1440: "a day", 10080: "a week" };
const days = { 1440: "a day", 10080: "a week", 40320: "4 weeks" }; // of bills
export const subjects = { "": "all calls together", user: "each user", session: "each session", project: "each project", key: "each key", model: "each model", provider: "each provider", tree: "each agent run" };

const choice = (all, chosen) => Object.entries(all).map(([value, text]) => html`<option value=${value} selected=${value === String(chosen)}>${text}</option>`);

// withOne are choices, with one that a rule has and they have not.
const withOne = (all, one, text) => (Object.hasOwn(all, one) ? all : { ...all, [one]: text });

// suggested is the rule that a view is most likely about.
function suggested(v) {
  const per = { users: "user", sessions: "session", models: "model", properties: v.by && "property." + v.by }[v.v] || "";
  const total = v.v === "errors" ? "errors" : v.v === "requests" ? "requests" : /latency|time_to_first/.test(v.sort) ? v.sort.replace("-", "").replace(/^(latency|time_to_first_token)$/, "$1.p95") : "cost";
  return { total: Object.hasOwn(totals, total) ? total : "cost", per, filter: filter(v) };
}

// Rule makes a rule about the calls of the view v, or changes r.
export function Rule({ r, v, onClose }) {
  const { data, error } = useAnswer("/v1/alerts/channels");
  if (!data && !error) return html`<span aria-busy="true"></span>`;
  return html`<${Dialog} label=${r ? "Edit the rule " + r.name : "Create a rule"} onClose=${onClose}>${(close) => html`<h2>${r ? r.name : "Tell me when…"}</h2>
    ${data?.items.length ? html`<${Form} r=${r || suggested(v)} channels=${data.items} close=${close} />`
      : html`<p class="notice">${error?.message || html`There is no channel to tell yet. The Caddyfile names them in the block llm, because their addresses are secrets: <code>channel ops slack {env.SLACK_URL}</code>`}</p><form method="dialog"><button>Close</button></form>`}`}<//>`;
}

function Form({ r, channels, close }) {
  const [change, failed] = useChange(close);
  const [total, setTotal] = useState(r.total);
  const [over, setOver] = useState(r.over ? minutes(r.over) : 60);
  const [than, setThan] = useState(Boolean(r.than));
  const windowed = !["budget_percent", "budget_forecast_percent", "key_days_left"].includes(total), ofBill = /^bill_/.test(total), ofCalls = windowed && !ofBill && total !== "lost_records";
  const save = (e) => {
    e.preventDefault();
    const form = new FormData(e.target), text = (name) => (form.get(name) || "").trim();
    change(post("/v1/alerts/rules", {
      name: r.name || text("name"), total, operator: text("operator"), threshold: Number(text("threshold")), to: form.getAll("to"),
      ...(windowed && { over: (ofBill && over % 1440 ? 1440 : over) + "m" }), ...(ofCalls && { per: text("per"), ...(than && { than: "last_week" }), ...(r.filter && r.filter !== "all" && { filter: r.filter }) }),
    }));
  };
  return html`<form onSubmit=${save}>
      ${!r.name && html`<label>Name <input name="name" required maxlength="100" autofocus placeholder="dear day" /></label>`}
      <label>When <span class="bar-row"><select aria-label="What is compared" value=${total} onChange=${(e) => setTotal(e.target.value)}>${choice(withOne(Object.fromEntries(Object.entries(totals).map(([key, [text]]) => [key, text])), r.total, r.total), total)}</select><select name="operator" aria-label="Comparison">${choice({ ">": "above", ">=": "at least", "<": "below", "<=": "at most" }, r.operator || (total === "key_days_left" ? "<=" : ">"))}</select><input name="threshold" required inputmode="decimal" pattern="-?[0-9]+([.][0-9]+)?" aria-label="Threshold" placeholder="100" defaultValue=${r.threshold ?? ""} /> ${than ? "times as much" : totals[total]?.[1]}</span></label>
      ${windowed && html`<label>Over <select value=${over} onChange=${(e) => setOver(Number(e.target.value))}>${choice(ofBill ? (over % 1440 ? days : withOne(days, over, over / 1440 + " days")) : withOne(lengths, over, over + " minutes"), over)}</select></label>`}
      ${ofCalls && html`${r.filter && r.filter !== "all" && html`<p><span class="quiet">Of the calls where</span> <span dir="auto">${sayOf(r.filter)}</span></p>`}
      <label>Of <select name="per">${choice(withOne(subjects, r.per || "", "each " + r.per), r.per || "")}</select></label>
      <p><label class="bar-row"><input type="checkbox" checked=${than} onChange=${(e) => setThan(e.target.checked)} /> compared with the same time a week before</label></p>
      <${Now} total=${total} over=${over} of=${r.filter || "all"} />`}
      <fieldset><legend>Tell</legend>${channels.map((c, i) => html`<label class="bar-row"><input type="checkbox" name="to" value=${c.name} defaultChecked=${r.to ? r.to.includes(c.name) : i === 0} /> ${c.name} <span class="quiet">${c.kind}</span></label>`)}</fieldset>${failed}
      <p class="bar-row"><button class="primary">${r.name ? "Save" : "Create"}</button><button type="button" onClick=${close}>Cancel</button></p>
    </form>`;
}

const written = (total) => (/cost$|savings$|loss$/.test(total) && total !== "requests_without_cost" ? dollars : /^(latency|time_to)/.test(total) ? duration : count);

// Now says what the total of all these calls is in the window that ends now: a threshold is
// found beside it.
function Now({ total, over, of }) {
  const end = Math.floor(Date.now() / 60e3) * 60e3;
  const found = useAnswer("/v1/metrics/query", { filter: of, timeFilter: { startTimeUnixMs: end - over * 60e3, endTimeUnixMs: end }, bucket: "none" }).data?.totals;
  return found ? html`<p class="quiet" role="status">All together in the last ${(lengths[over] || over + " minutes").replace(/^an? /, "")}: ${written(total)(total.split(".").reduce((t, key) => t?.[key], found))}</p>` : null;
}
