// What narrows a view: a bar that adds a condition, and the values there are.
import { html, useState } from "../html.js";
import { fields, filter, go, isOf, kindOf, operators, timeFilter, withCondition } from "../state.js";
import { useAnswer } from "../api.js";
import { Answer, Bar } from "./basics.js";
import { compact } from "../format.js";

const shown = ["model", "provider", "status", "end_state", "user_id", "finish_reason", "stream", "error_type", "request_path"];

// useFacets asks for the values of the fields that the view has, unless they are not
// shown.
export const useFacets = (v, hidden) =>
  useAnswer("/v1/facets/query", hidden ? null : { filter: filter(v), fields: [...shown, ...(v.by ? ["property:" + v.by] : []), "property_key"], timeFilter: timeFilter(v) });

// properties are the names of those that callers set.
export const properties = (d) => d?.fields.find((f) => f.field === "property_key")?.values.map((p) => p.value).filter((n) => n && !n.startsWith("Service-Session-")) || [];

// FilterBar adds a condition, and helps with the values that the facets know.
export function FilterBar({ v, facets }) {
  const [field, setField] = useState("model");
  const [raw, setRaw] = useState(false);
  const kind = kindOf(field);
  const known = facets.data?.fields.find((f) => f.field === field.replace(/^property\./, "property:"));
  const add = (e) => {
    e.preventDefault();
    const { op, value } = e.target.elements;
    go({ f: withCondition(v.f, { field, op: op.value, value: value.value }) });
    value.value = "";
  };
  const names = [...Object.keys(fields), ...properties(facets.data).map((n) => "property." + n)];
  return html`<form class="filterbar" onSubmit=${add}>
      <select aria-label="Field" value=${field} onChange=${(e) => setField(e.target.value)}>${names.map((name) => html`<option value=${name}>${name}</option>`)}</select>
      <select name="op" aria-label="Operator">${Object.entries(operators[kind]).map(([op, text]) => html`<option value=${op}>${text}</option>`)}</select>
      ${kind === "boolean"
        ? html`<select name="value" aria-label="Value"><option>true</option><option>false</option></select>`
        : html`<input id="filter" name="value" aria-label="Value" placeholder="value (press /)" list="values" autocomplete="off" type=${kind === "number" ? "number" : "text"} step="any" />
          <datalist id="values">${known?.values.map((value) => html`<option value=${value.value} />`)}</datalist>`}
      <button>Filter</button>
      <button type="button" class="quiet" aria-expanded=${raw} onClick=${() => setRaw(!raw)}>JSON</button>
    </form>
    ${raw && html`<${RawFilter} v=${v} onDone=${() => setRaw(false)} />`}`;
}

// RawFilter edits the whole filter as the API takes it.
function RawFilter({ v, onDone }) {
  const [error, setError] = useState("");
  const apply = (e) => {
    e.preventDefault();
    const text = e.target.elements.json.value.trim();
    try {
      if (text) JSON.parse(text);
      go({ json: text, f: [] });
      onDone();
    } catch (problem) {
      setError(problem.message);
    }
  };
  const now = filter(v);
  return html`<form class="rawfilter" onSubmit=${apply}><textarea name="json" rows="6" aria-label="The filter as JSON" spellcheck="false">${now === "all" ? "" : JSON.stringify(now, null, 2)}</textarea>
    ${error && html`<p class="bad" role="alert">${error}</p>`}<button>Apply</button></form>`;
}

// Facets are the values that the fields have under the filter.
export function Facets({ v, facets }) {
  const add = (field, value) => go({ f: withCondition(v.f, isOf(field, value)) });
  return html`<aside class="facets panel" aria-label="Values" tabindex="0">
    <${Answer} state=${facets}>${(data) => html`${data.fields.filter((f) => f.field !== "property_key" && f.values.some((value) => value.value !== "")).map((facet) => {
      const field = facet.field.replace("property:", "property.");
      return html`<section key=${facet.field}><h2>${facet.field.replace("property:", "").replace(/_id$/, "").replace(/_/g, " ")}</h2>
        <ul>${facet.values.slice(0, 8).map((value) => html`<li><button onClick=${() => add(field, value.value)}>
          <span>${value.value === "" ? "(none)" : value.value}</span><b>${compact(value.count)}</b><${Bar} share=${value.count / data.count} /></button></li>`)}
          ${facet.others + rest(facet) > 0 && html`<li class="quiet more-values">${compact(facet.others + rest(facet))} with others</li>`}</ul></section>`;
    })}
      <section><h2>Property</h2><select aria-label="Property" value=${v.by} onChange=${(e) => go({ by: e.target.value }, true)}><option value="">choose…</option>${properties(data).map((n) => html`<option value=${n}>${n}</option>`)}</select></section>`}<//>
  </aside>`;
}

const rest = (facet) => facet.values.slice(8).reduce((sum, value) => sum + value.count, 0);
