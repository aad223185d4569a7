// Which calls match? A table of requests, and the values they have beside it.
import { html, useEffect, useMemo, useState } from "../html.js";
import { filter, go, kindOf, range, useView } from "../state.js";
import { Drawer, Menu, Outcome, typing, useSteps } from "../parts/basics.js";
import { Chart } from "../parts/chart.js";
import { FilterBar, Facets, properties, useFacets } from "../parts/filters.js";
import { Table } from "../parts/table.js";
import { compact, count, dollars, duration, fullMoment, moment } from "../format.js";
import { usePages } from "../pages.js";
import { download } from "../api.js";
import { useMetrics } from "./overview.js";

const property = (name) => (r) => r.properties[name] || "—";

// all columns by their key; those without `extra` are shown unless others are chosen.
const all = {
  time: { title: "Time", key: "created_at", cell: (r) => html`<time datetime=${r.request_created_at} title=${fullMoment(r.request_created_at)}>${moment(r.request_created_at)}</time>` },
  outcome: { title: "Outcome", cell: (r) => html`<${Outcome} record=${r} />` },
  model: { title: "Model", key: "body_model", cell: (r) => r.model || "—" },
  provider: { title: "Provider", cell: (r) => r.provider || "—", wide: true },
  user: { title: "User", key: "user_id", cell: (r) => r.request_user_id || "—", mid: true },
  session: { title: "Session", cell: (r) => r.properties["Service-Session-Name"] || r.properties["Service-Session-Id"] || "—", wide: true },
  path: { title: "Path", cell: property("Service-Session-Path"), extra: true },
  endpoint: { title: "Endpoint", cell: (r) => r.request_path || "—", extra: true },
  finish: { title: "Finish", cell: (r) => r.finish_reason || r.error_type || "—", extra: true },
  latency: { title: "Latency", key: "latency", number: true, cell: (r) => duration(r.delay_ms), mid: true },
  first: { title: "First token", key: "time_to_first_token", number: true, cell: (r) => duration(r.time_to_first_token), wide: true },
  input: { title: "In", key: "prompt_tokens", number: true, cell: (r) => compact(r.prompt_tokens), wide: true },
  cached: { title: "Cached", number: true, cell: (r) => compact(r.prompt_cache_read_tokens), extra: true },
  output: { title: "Out", key: "completion_tokens", number: true, cell: (r) => compact(r.completion_tokens), wide: true },
  reasoning: { title: "Reasoning", number: true, cell: (r) => compact(r.reasoning_tokens), extra: true },
  cost: { title: "Cost", key: "cost", number: true, cell: (r) => dollars(r.cost) },
  id: { title: "Id", cell: (r) => r.request_id, extra: true },
};
const usual = Object.keys(all).filter((key) => !all[key].extra);
const columnOf = (key) => all[key] || (key.startsWith("property.") && { title: key.slice(9), cell: property(key.slice(9)) });

function Columns({ chosen, facets }) {
  const keys = [...Object.keys(all), ...properties(facets.data).map((n) => "property." + n)];
  const toggle = (key) => {
    const next = keys.filter((k) => chosen.includes(k) !== (k === key));
    go({ cols: next.join() === usual.join() ? "" : next.join() }, true);
  };
  return html`<${Menu} label="Columns">${keys.map((key) => html`<label><input type="checkbox" checked=${chosen.includes(key)} disabled=${chosen.length === 1 && chosen[0] === key} onChange=${() => toggle(key)} /> ${columnOf(key).title}</label>`)}<//>`;
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
  return points.length > 0 && html`<${Chart} title=${`${compact(state.data.totals.requests)} requests, ${dollars(state.data.totals.cost)}`} times=${times} series=${series} format=${compact} stacked plain height=${72} colours=${["c1", "error"]} />`;
}

export function Requests() {
  const v = useView();
  const [live, setLive] = useState(false);
  const sort = v.sort || "-created_at";
  // To look into all bodies takes long: it is done once, and what it finds is shown
  // as it is found.
  const search = sort === "-created_at" && v.f.some((c) => kindOf(c.field) === "content");
  const facets = useFacets(v, search);
  const question = useMemo(() => {
    const { from, to } = range(v);
    const time = [{ request_created_at: { gte: new Date(from).toISOString() } }];
    if (v.to) time.push({ request_created_at: { lte: new Date(to).toISOString() } });
    return { search, filter: filter(v, ...time), sort: { [sort.replace("-", "")]: sort.startsWith("-") ? "desc" : "asc" } };
  }, [JSON.stringify(v.f), v.json, sort, v.from, v.to]);
  const newest = sort === "-created_at" && !v.to;
  const list = usePages(question, live && newest);
  const { rows, fresh, error, loading } = list;
  const selected = v.id ? rows.findIndex((r) => r.request_id === v.id) : -1;
  const chosen = useMemo(() => (v.cols ? v.cols.split(",") : usual).filter(columnOf), [v.cols]);
  const columns = useMemo(() => chosen.map(columnOf), [chosen]);
  const show = () => {
    list.take();
    document.querySelector(".table").scrollTop = 0;
  };
  const save = (format) => download("/v1/export", { filter: question.filter, format }, `requests.${format}`);

  useEffect(() => {
    const press = (e) => {
      if (typing(e)) return;
      if (e.key === "t") setLive((on) => !on);
      else if (e.key === "e") document.getElementById("export").firstChild.click();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  useSteps(rows);

  return html`<div class="requests">
    <div class="bar-row"><${FilterBar} v=${v} facets=${facets} /><span class="spring"></span>
      <button aria-pressed=${live && newest} disabled=${!newest} title=${newest ? "Show requests as they end (t)" : "Live is for the newest first, up to now"} onClick=${() => setLive(!live)}>${live && newest ? "● Live" : "Live"}</button>
      <${Columns} chosen=${chosen} facets=${facets} />
      <span id="export"><${Menu} label="Export"><button onClick=${() => save("ndjson")}>NDJSON, with bodies</button><button onClick=${() => save("csv")}>CSV, metrics</button><//></span></div>
    ${!search && html`<${Histogram} v=${v} />`}
    <div class="split">${!search && html`<${Facets} v=${v} facets=${facets} />`}
      <section class="results" aria-busy=${loading || Boolean(search && list.asking)}>
        ${search && html`<p class="quiet" role="status">${list.asking ? `Searching the bodies${list.searched ? `, back to ${moment(list.searched)}` : ""}…` : list.next ? "There is more further down." : "All bodies are searched."}</p>`}
        ${fresh.length > 0 && html`<button class="waiting" onClick=${show}>${count(fresh.length)}${list.missed ? "+" : ""} new</button>`}
        ${error && html`<p class="notice bad" role="alert">${error.message}</p>`}
        ${!error && !loading && !list.asking && rows.length === 0
          ? html`<p class="notice">No request matches. Widen the time or remove a condition.</p>`
          : html`<${Table} label="Requests" columns=${columns} rows=${rows} selected=${selected} keyOf=${(r) => r.request_id}
              onOpen=${(r) => go({ id: r.request_id })} onSight=${(first, last) => list.see?.(first, last)} sort=${sort} />`}
      </section></div>
    <${Drawer} v=${v} />
  </div>`;
}
