// Where do the calls of an alias go, how are its targets, and what would another policy cost?
import { html, useEffect, useRef, useState } from "../html.js";
import { timeFilter, useView } from "../state.js";
import { lines, post, useAnswer } from "../api.js";
import { Answer, Bar } from "../parts/basics.js";
import { Exported } from "../parts/csv.js";
import { count, dollars, percent } from "../format.js";

const strategies = { order: "The models are tried in this order", weight: "The calls are divided by weight", least_busy: "The least busy goes first", fastest: "The fastest goes first", cheapest: "The cheapest goes first" };
const states = { well: ["good", "well"], limited: ["bad", "at its limit"], open: ["bad", "fails"] };

const is = (field, value) => ({ request_response_rmt: { [field]: { equals: value } } });
const and = (all) => all.reduceRight((right, left) => ({ left, operator: "and", right }));

// filterOf takes the calls of an alias, or of one of its targets: of an account and an arm.
const filterOf = (alias, t) => and([is("request_model", alias), ...(t ? [is("account", t.account), is("arm", t.arm)] : [])]);

export function Routes() {
  const state = useAnswer("/v1/routes");
  return html`<${Answer} state=${state} empty=${(d) => !d.length} none=${html`There is no alias yet. The Caddyfile names them in the block llm: <code>alias fast openai/gpt-5-mini</code>`}>${(d) => d.map((alias) => html`<${Alias} key=${alias.alias} alias=${alias} />`)}<//>`;
}

// useTotals asks what the calls of each target add up to.
function useTotals(alias) {
  const v = useView();
  const [totals, set] = useState({});
  const window = timeFilter(v);
  const key = JSON.stringify([alias.targets.map((t) => [t.target, t.arm]), window]);
  useEffect(() => {
    const abort = new AbortController();
    (async () => {
      for (const t of alias.targets) {
        const found = await post("/v1/metrics/query", { filter: filterOf(alias.alias, t), timeFilter: window, bucket: "none" }, abort.signal);
        set((all) => ({ ...all, [keyOf(t)]: found.totals }));
      }
    })().catch(() => {}); // the columns stay empty
    return () => abort.abort();
  }, [key]);
  return totals;
}

const keyOf = (t) => t.target + " " + t.arm;

// parameters says what becomes of the calls that get a target.
const parameters = (t) => [t.when && "when " + t.when, ...Object.entries(t.set || {}).map(([field, value]) => `${field} is ${JSON.stringify(value)}`), ...Object.entries(t.limit || {}).map(([field, most]) => `${field} at most ${most}`)].filter(Boolean).join("; ");

function Alias({ alias }) {
  const totals = useTotals(alias);
  const of = (t) => totals[keyOf(t)] || {};
  const all = alias.targets.reduce((sum, t) => sum + (of(t).requests || 0), 0);
  const share = (t) => (all ? (of(t).requests || 0) / all : null);
  const columns = [
    { title: "Target", wrap: true, cell: (t) => html`<b dir="auto">${t.target}</b>${t.arm !== t.target && html` <span class="quiet" dir="auto">${t.arm}</span>`}${parameters(t) && html`<br /><span class="quiet" dir="auto">${parameters(t)}</span>`}` },
    { title: "Now", cell: (t) => html`<span class=${states[t.state][0]}>${states[t.state][1]}</span>${t.under_way > 0 && html` <span class="quiet">${count(t.under_way)} under way</span>`}` },
    ...(alias.strategy === "order" ? [] : [{ title: "Weight", number: true, mid: true, cell: (t) => count(t.weight) }]),
    { title: "Calls", number: true, cell: (t) => count(of(t).requests) },
    { title: "Share", number: true, cell: (t) => percent(share(t)) },
    { title: "Bar", unseen: true, wide: true, cell: (t) => html`<${Bar} share=${share(t)} />` },
    { title: "Errors", number: true, mid: true, cell: (t) => count(of(t).errors) },
    { title: "Cached input", number: true, mid: true, cell: (t) => percent(of(t).prompt_tokens ? of(t).prompt_cache_read_tokens / of(t).prompt_tokens : null) },
    { title: "First token, p50", semi: true, ms: (t) => of(t).time_to_first_token?.p50 ?? null },
    { title: "Cost", number: true, cell: (t) => dollars(of(t).cost) },
    { title: "Saved by routing", mid: true, dollars: (t) => of(t).routing_savings ?? null },
  ];
  return html`<h2 dir="auto">${alias.alias}</h2><p class="quiet">${strategies[alias.strategy]}${alias.split && `, the same one for each ${alias.split.replace("property.", "")}`}. ${!alias.split && alias.strategy !== "cheapest" && "A conversation stays where the provider's cache has it, among models that are as good."}</p>
    ${alias.targets.length ? html`<${Exported} label=${"Targets of " + alias.alias} columns=${columns} rows=${alias.targets} keyOf=${keyOf} />` : html`<p class="bad">No provider that you can use serves its models.</p>`}
    ${alias.shadows.length > 0 && html`<${Shadows} alias=${alias.alias} />`}<${Trial} alias=${alias.alias} />`;
}

// Shadows shows what shadows make of the calls, beside what callers got.
function Shadows({ alias }) {
  const ask = (arm) => ({ filter: and([is("request_model", alias), { request_response_rmt: { arm } }]), timeFilter: timeFilter(useView()), bucket: "none", groupBy: "model", limit: 20 });
  const got = useAnswer("/v1/metrics/query", ask({ "not-equals": "shadow" })), state = useAnswer("/v1/metrics/query", ask({ equals: "shadow" }));
  const all = got.data?.totals || {};
  const columns = [
    { title: "Shadow", cell: (g) => html`<b dir="auto">${g.key}</b>` }, { title: "Calls", number: true, cell: (g) => count(g.totals.requests) }, { title: "Share", number: true, cell: (g) => percent(all.requests ? g.totals.requests / all.requests : null) },
    { title: "Latency, p50", mid: true, ms: (g) => g.totals.latency?.p50 ?? null },
    { title: "Cost of a call", dollars: ({ totals: t }) => (t.requests ? t.cost / t.requests : null) }, { title: "Cost", mid: true, dollars: (g) => g.totals.cost ?? null },
  ];
  return html`<p class="quiet">Shadows, which no caller sees or pays for</p>
    <${Answer} state=${state} empty=${(d) => !d.groups.length} none="No shadow in this time.">${(d) => html`<${Exported} label=${"Shadows of " + alias} columns=${columns} rows=${[{ key: "what callers got", totals: all }, ...d.groups.filter((g) => g.key !== null)]} keyOf=${(g) => g.key} />`}<//>`;
}

// policyOf reads models with commas between them, or an alias as JSON.
const policyOf = (text) => (/^\s*[[{]/.test(text) ? JSON.parse(text) : text.split(",").map((model) => model.trim()));

// Trial says what the calls of an alias would have cost under another policy.
function Trial({ alias }) {
  const v = useView();
  const [found, set] = useState({});
  const abort = useRef(new AbortController()); // of the trial under way
  useEffect(() => () => abort.current.abort(), []);
  const ask = async (e) => {
    e.preventDefault();
    set({ asking: true });
    abort.current = new AbortController();
    const { signal } = abort.current;
    try {
      const policy = policyOf(new FormData(e.target).get("policy"));
      for await (const line of lines("/v1/whatif", { filter: filterOf(alias), timeFilter: timeFilter(v), policy }, signal)) set(line.data || { asking: true, calls: line.calls });
    } catch (error) {
      if (!signal.aborted) set({ error: error.message });
    }
  };
  const cancel = () => {
    abort.current.abort();
    set({});
  };
  const columns = [
    { title: "Of", cell: (a) => html`<span dir="auto">${a.value}</span>` },
    { title: "Calls", number: true, cell: (a) => count(a.calls) },
    { title: "Recorded", number: true, cell: (a) => dollars(a.compared_cost) },
    { title: "Expected", number: true, cell: (a) => html`<b class=${a.expected_cost < a.compared_cost ? "good" : a.expected_cost > a.compared_cost ? "bad" : ""}>${dollars(a.expected_cost)}</b>` },
    { title: "At least", number: true, mid: true, cell: (a) => dollars(a.low_cost) },
    { title: "At most", number: true, mid: true, cell: (a) => dollars(a.high_cost) },
    { title: "Unknown", number: true, semi: true, cell: (a) => count(a.unknown_calls) },
    ...(found.budgets?.length ? [{ title: "Refused", number: true, cell: (a) => count(a.refused_calls) }] : []),
  ];
  return html`<details><summary>Try another policy on these calls</summary><form class="bar-row" onSubmit=${ask}>
      <input name="policy" required aria-label=${"Policy for the calls of " + alias} placeholder='openai/gpt-5-mini, or {"strategy": "weight", "models": […]}' size="60" /><button class="primary" disabled=${found.asking}>Try</button></form>
    ${found.asking && html`<p class="quiet" role="status">${found.calls ? `${count(found.calls)} calls read …` : "Reading the calls …"} <button type="button" onClick=${cancel}>Cancel</button></p>`}${found.error && html`<p class="bad" role="alert">${found.error}</p>`}
    ${found.total && html`<${Exported} label=${"What the calls of " + alias + " would have cost"} columns=${columns} rows=${[{ value: "All calls", ...found.total }, ...["Model", "User", "Session", "Day"].flatMap((by) => (found.by[by.toLowerCase()] || []).filter((a) => a.value).slice(0, 10).map((a) => ({ ...a, value: by + " " + a.value })))]} keyOf=${(a) => a.value} />
      ${found.budgets.map((b) => html`<p>The budget <b dir="auto">${b.name}</b> would have refused ${count(b.refused)} of ${count(b.calls)} calls, of ${count(b.callers)} ${b.callers === 1 ? "caller" : "callers"}. They would have cost ${dollars(b.saved_cost)}.</p>`)}
      <details><summary>What this assumes</summary><ul>${found.assumptions.map((text) => html`<li>${text}</li>`)}</ul></details>`}</details>`;
}
