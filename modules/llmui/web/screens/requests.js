// Which calls match? A table of requests, and the values they have beside it.
import { html, useEffect, useMemo, useState } from "../html.js";
import { filter, sought } from "../filter.js";
import { during, go, range, useView, view } from "../state.js";
import { Drawer, failed, Marked, Menu, Outcome, providerOf, Table, typing, useSteps } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { Export, pagesOf } from "../parts/csv.js";
import { FilterBar, Facets, properties, useFacets } from "../parts/filters.js";
import { compact, count, dollars, fullMoment, moment, plural } from "../format.js";
import { usePages } from "../pages.js";
import { caller, download, useMetrics } from "../api.js";

const text = (value) => html`<span dir="auto" title=${value}>${value || "—"}</span>`;
const property = (name) => (r) => text(r.properties[name]);

// all columns by their key. Those without `extra` are shown unless others are chosen.
const all = {
  time: { title: "Time", key: "created_at", cell: (r) => html`<time datetime=${r.request_created_at} title=${fullMoment(r.request_created_at)}>${moment(r.request_created_at)}</time>` },
  outcome: { title: "Outcome", cell: (r) => html`<${Outcome} record=${r} />` },
  model: { title: "Model", key: "body_model", cell: (r) => r.model || "—" },
  provider: { title: "Provider", cell: (r) => providerOf(r) || "—", wide: true },
  account: { title: "Account", cell: (r) => text(r.account), extra: true },
  arm: { title: "Arm", cell: (r) => text(r.arm), extra: true },
  user: { title: "User", key: "user_id", cell: (r) => text(r.request_user_id), mid: true },
  session: { title: "Session", cell: (r) => text(r.properties["Service-Session-Name"] || r.session_id), wide: true },
  path: { title: "Path", cell: property("Service-Session-Path"), extra: true },
  endpoint: { title: "Endpoint", cell: (r) => r.request_path || "—", extra: true },
  error: { title: "Error", cell: (r) => (failed(r) ? text(r.error_message || r.error_type) : ""), semi: true },
  finish: { title: "Finish", cell: (r) => r.finish_reason || "—", extra: true },
  prompt: { title: "Prompt", cell: (r) => text(r.preview?.asked || (r.preview?.results ? plural(r.preview.results, "tool result") : "")), extra: true, preview: true, text: true },
  answer: { title: "Answer", cell: (r) => text(r.preview?.answered || (r.preview?.calls.length ? `→ ${r.preview.calls.map((c) => c.name).join(", ")}` : "")), extra: true, preview: true, text: true },
  input: { title: "In", key: "prompt_tokens", number: true, raw: (r) => r.prompt_tokens, cell: (r) => compact(r.prompt_tokens), semi: true },
  cached: { title: "Cached", number: true, raw: (r) => r.prompt_cache_read_tokens, cell: (r) => compact(r.prompt_cache_read_tokens), extra: true },
  output: { title: "Out", key: "completion_tokens", number: true, raw: (r) => r.completion_tokens, cell: (r) => compact(r.completion_tokens), semi: true },
  reasoning: { title: "Reasoning", number: true, raw: (r) => r.reasoning_tokens, cell: (r) => compact(r.reasoning_tokens), extra: true },
  cost: { title: "Cost", key: "cost", dollars: (r) => r.cost },
  latency: { title: "Latency", key: "latency", ms: (r) => r.delay_ms, mid: true },
  first: { title: "First token", key: "time_to_first_token", ms: (r) => r.time_to_first_token, wide: true },
  miss: { title: "Cache missed", cell: (r) => (r.cache_miss_reason ? r.cache_miss_reason.replaceAll("_", " ") : "—"), extra: true },
  id: { title: "Id", cell: (r) => r.request_id, extra: true },
};
const usual = Object.keys(all).filter((key) => !all[key].extra);
const match = { title: "Match", cell: (r) => html`<${Marked} text=${r.preview?.match || ""} words=${sought(view())} />`, text: true };

// columnOf is a column that was chosen, which is shown whatever room there is. It is
// undefined for a name that no column has.
function columnOf(key) {
  if (Object.hasOwn(all, key)) return { ...all[key], wide: false, semi: false };
  if (key.startsWith("property.")) return { title: key.slice(9), cell: property(key.slice(9)) };
}

function Columns({ chosen, facets }) {
  const keys = [...new Set([...Object.keys(all), ...chosen, ...properties(facets.data).map((n) => "property." + n)])];
  const toggle = (key) => {
    const next = keys.filter((k) => chosen.includes(k) !== (k === key));
    choose(next.join() === usual.join() ? "" : next.join());
  };
  return html`<${Menu} label="Columns">${keys.filter((key) => caller.content || !columnOf(key).preview).map((key) => html`<label><input type="checkbox" checked=${chosen.includes(key)} disabled=${chosen.length === 1 && chosen[0] === key} onChange=${() => toggle(key)} /> ${columnOf(key).title}</label>`)}<//>`;
}

// choose shows columns, now and when the browser comes again.
function choose(cols) {
  localStorage.setItem("cols", cols);
  go({ cols }, true);
}

// Histogram is when the requests were.
function Histogram({ v }) {
  const state = useMetrics(v, {});
  const points = state.data?.points;
  const [times, series] = useMemo(() => [
    points?.map((p) => Date.parse(p.range_start)),
    points && [{ name: "answered", values: points.map((p) => p.requests - p.errors) }, { name: "errors", values: points.map((p) => p.errors) }],
  ], [state.data]);
  if (!points) return html`<div class="chart panel plain" aria-busy=${!state.error}></div>`;
  const { requests, cost } = state.data.totals;
  const title = requests ? `${compact(requests)} request${requests === 1 ? "" : "s"}, ${dollars(cost)}` : "0 requests";
  return points.length > 0 && html`<div class=${state.loading ? "stale" : ""}><${Chart} title=${title} times=${times} series=${series} format=${compact} stacked plain height=${72} colours=${["c1", "error"]} /></div>`;
}

export function Requests() {
  const v = useView();
  const [live, setLive] = useState(false);
  const sort = v.sort || "-created_at";
  // To look into all bodies takes long: it is done once, and what it finds is shown
  // as it is found.
  const search = sort === "-created_at" && sought(v).length > 0 && !v.any;
  const facets = useFacets(v, search);
  const [wrong, setWrong] = useState(false); // a call that is listed has failed
  const chosen = useMemo(() => v.cols.split(",").filter(columnOf), [v.cols]);
  const columns = useMemo(() => {
    const shown = chosen.length ? chosen.map(columnOf) : usual.filter((key) => key !== "error" || wrong).map((key) => all[key]);
    return search ? [shown[0], ...shown.slice(1, 3).map((c) => ({ ...c, mid: true })), match, ...shown.slice(3).filter((c) => !c.wide).map((c) => ({ ...c, wide: true }))] : shown;
  }, [chosen, search, wrong]);
  const preview = search || columns.some((c) => c.preview);
  const question = useMemo(() => {
    const { from, to } = range(v);
    const time = v.from === "all" ? [] : [{ request_created_at: { gte: new Date(from).toISOString() } }];
    if (v.to) time.push({ request_created_at: { lte: new Date(to).toISOString() } });
    return { search, preview, filter: filter(v, ...time), sort: { [sort.replace("-", "")]: sort.startsWith("-") ? "desc" : "asc" } };
  }, [JSON.stringify(v.f), v.json, v.any, sort, v.from, v.to, preview]);
  const newest = sort === "-created_at" && !v.to;
  const list = usePages(question, live && newest);
  const { rows, fresh, error, loading } = list;
  const show = () => {
    list.take();
    document.querySelector(".table").scrollTop = 0;
  };
  const [failure, setFailure] = useState("");
  // What is exported is of the time that is shown now.
  const save = () => download("/v1/export", { filter: filter(v, ...during(v)), format: "ndjson" }, "requests.ndjson").then(() => setFailure(""), (error) => setFailure(error.message));

  useEffect(() => {
    const press = (e) => {
      if (typing(e)) return;
      if (e.key === "t") setLive((on) => !on);
      else if (e.key === "e") document.querySelector("#menu-export summary").click();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  useSteps(rows);
  useEffect(() => setWrong(rows.some((r) => !r.gone && failed(r))), [rows]);

  return html`<div class="requests">
    <div class="bar-row"><${FilterBar} v=${v} facets=${facets} /><span class="spring"></span>
      <button aria-pressed=${live && newest} disabled=${!newest} title=${newest ? "Show requests as they end (t)" : "Live is for the newest first, up to now"} onClick=${() => setLive(!live)}>${live && newest ? (list.connected ? "● Live" : "○ Connecting…") : "Live"}</button>
      <${Columns} chosen=${chosen.length ? chosen : usual} facets=${facets} />
      <${Export} name="requests" columns=${columns.filter((c) => c !== match)} pages=${pagesOf("/v1/request/query-clickhouse", { filter: filter(v, ...during(v)), sort: question.sort, includeContent: false, includePreview: preview, limit: preview ? 100 : 1000 })}><button onClick=${save}>NDJSON${caller.content && ", with bodies"}</button><//></div>
    ${!search && html`<${Histogram} v=${v} />`}
    <div class="split">${!search && html`<${Facets} v=${v} facets=${facets} />`}
      <section class="results" aria-busy=${loading || Boolean(search && list.asking)}>
        ${search && html`<p class="quiet" role="status">${list.asking ? `Searching the bodies${list.searched ? `, back to ${moment(list.searched)}` : ""}…` : list.next ? "There is more further down." : "All bodies are searched."}</p>`}
        ${fresh.length > 0 && html`<button class="waiting" onClick=${show}>${count(fresh.length)}${list.missed ? "+" : ""} new</button>`}
        ${(failure || error) && html`<p class="notice bad" role="alert">${failure || error.message} ${!failure && html`<button onClick=${() => list.retry()}>Try again</button>`}</p>`}
        ${!error && !loading && !list.asking && rows.length === 0
          ? html`<p class="notice">No request matches. Widen the time or remove a condition.</p>`
          : html`<${Table} label="Requests" columns=${columns} rows=${rows} selected=${v.id} keyOf=${(r) => r.request_id}
              onOpen=${(r) => go({ id: r.request_id })} onSight=${(first, last) => list.see?.(first, last)} sort=${sort} />`}
      </section></div>
    <${Drawer} v=${v} />
  </div>`;
}
