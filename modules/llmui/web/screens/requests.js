// Which calls match? A table of requests; one of them is opened in a drawer.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { fields, filter, go, kindOf, operators, range, useView, view, withCondition } from "../state.js";
import { post } from "../api.js";
import { Outcome } from "../parts/basics.js";
import { Table } from "../parts/table.js";
import { compact, dollars, duration, fullMoment, moment } from "../format.js";
import { Drawer } from "./request.js";

const pageSize = 50;

const columns = [
  { title: "Time", sort: "created_at", cell: (r) => html`<time datetime=${r.request_created_at} title=${fullMoment(r.request_created_at)}>${moment(r.request_created_at)}</time>` },
  { title: "Outcome", cell: (r) => html`<${Outcome} record=${r} />` },
  { title: "Model", sort: "body_model", cell: (r) => r.model || "—" },
  { title: "Provider", cell: (r) => r.provider, wide: true },
  { title: "User", sort: "user_id", cell: (r) => r.request_user_id || "—" },
  { title: "Session", cell: (r) => r.properties["Service-Session-Name"] || r.properties["Service-Session-Id"] || "—", wide: true },
  { title: "Latency", sort: "latency", number: true, cell: (r) => duration(r.delay_ms) },
  { title: "First token", sort: "time_to_first_token", number: true, cell: (r) => duration(r.time_to_first_token), wide: true },
  { title: "In", sort: "prompt_tokens", number: true, cell: (r) => compact(r.prompt_tokens) },
  { title: "Out", sort: "completion_tokens", number: true, cell: (r) => compact(r.completion_tokens) },
  { title: "Cost", sort: "cost", number: true, cell: (r) => dollars(r.cost) },
];

const within = (v, now) => {
  const { from, to } = range(v, now);
  return [{ request_created_at: { gte: new Date(from).toISOString() } }, { request_created_at: { lte: new Date(to).toISOString() } }];
};

// usePages asks for a page after the other. The window of time is fixed when the
// question changes, so that pages do not overlap while requests come in.
function usePages(question) {
  const [state, set] = useState({ rows: [], loading: true });
  const asking = useRef();
  const ask = (rows) => {
    if (asking.current && rows.length) return;
    asking.current?.abort();
    const abort = (asking.current = new AbortController());
    post("/v1/request/query-clickhouse", { ...question, limit: pageSize, offset: rows.length }, abort.signal).then(
      (page) => {
        asking.current = null;
        set({ rows: [...rows, ...page], ended: page.length < pageSize });
      },
      (error) => {
        if (error.name !== "AbortError") set({ rows, error, ended: true });
      },
    );
  };
  useEffect(() => {
    set((old) => ({ ...old, loading: true, ended: true }));
    ask([]);
    return () => {
      asking.current?.abort();
      asking.current = null;
    };
  }, [question]);
  return { ...state, more: () => !state.ended && ask(state.rows) };
}

// FilterBar adds a condition.
export function FilterBar({ v }) {
  const [field, setField] = useState("model");
  const kind = kindOf(field);
  const add = (e) => {
    e.preventDefault();
    const { op, value } = e.target.elements;
    go({ f: withCondition(v.f, { field, op: op.value, value: value.value }) });
    value.value = "";
  };
  const choose = (e) => {
    const property = e.target.value === "property" ? prompt("Name of the property") : "";
    setField(property ? "property." + property : e.target.value === "property" ? field : e.target.value);
  };
  return html`<form class="filterbar" onSubmit=${add}>
    <select aria-label="Field" value=${field} onChange=${choose}>
      ${Object.keys(fields).map((name) => html`<option value=${name}>${name}</option>`)}
      ${field.startsWith("property.") && html`<option value=${field}>${field.slice(9)}</option>`}
      <option value="property">a property…</option>
    </select>
    <select name="op" aria-label="Operator">${Object.entries(operators[kind]).map(([op, text]) => html`<option value=${op}>${text}</option>`)}</select>
    ${kind === "boolean"
      ? html`<select name="value" aria-label="Value"><option>true</option><option>false</option></select>`
      : html`<input id="filter" name="value" aria-label="Value" placeholder="value  ( / )" type=${kind === "number" ? "number" : "text"} step="any" />`}
    <button>Add</button>
  </form>`;
}

export function Requests() {
  const v = useView();
  const question = useMemo(() => {
    const sort = v.sort || "-created_at";
    return {
      filter: filter(v.f, ...within(v)),
      sort: { [sort.replace("-", "")]: sort.startsWith("-") ? "desc" : "asc" },
    };
  }, [JSON.stringify(v.f), v.sort, v.from, v.to]);
  const { rows, error, loading, ended, more } = usePages(question);
  const selected = v.id ? rows.findIndex((r) => r.request_id === v.id) : -1;

  useEffect(() => {
    const press = (e) => {
      if (e.target.matches("input, select, textarea") || e.metaKey || e.ctrlKey || e.altKey) return;
      const step = { j: 1, k: -1 }[e.key];
      const row = step && rows[Math.max(0, Math.min(rows.length - 1, selected + step))];
      if (row) go({ id: row.request_id }, Boolean(view().id));
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [rows, selected]);

  return html`<div class="requests">
    <${FilterBar} v=${v} />
    <section class="results">
        ${error && html`<p class="notice bad" role="alert">${error.message}</p>`}
        ${!error && !loading && ended && rows.length === 0
          ? html`<p class="notice">No request matches. Widen the time or remove a condition.</p>`
          : html`<${Table} label="Requests" columns=${columns} rows=${rows} selected=${selected} keyOf=${(r) => r.request_id}
              onOpen=${(r) => go({ id: r.request_id })} onMore=${more} sort=${v.sort || "-created_at"} onSort=${(sort) => go({ sort })} />`}
    </section>
    ${v.id && html`<${Drawer} key=${v.id} id=${v.id} tab=${v.tab || "conversation"} />`}
  </div>`;
}
