// What narrows a view: a bar that adds a condition, and the values there are.
import { html, useState } from "../html.js";
import { fields, filter, isOf, kindOf, listed, operators, unitOf, withCondition } from "../filter.js";
import { go, timeFilter } from "../state.js";
import { caller, useAnswer } from "../api.js";
import { Answer, Bar, Cut } from "./basics.js";
import { compact, plural } from "../format.js";

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
    go({ f: withCondition(v.f, { field: name(e.target), op: op.value, value: value.value.trim() }) });
    value.value = "";
  };
  // The facets have the names of the most frequent properties alone: another is typed.
  const name = (form) => (field === "property." ? "property." + form.elements.name.value.trim() : field);
  const names = [...Object.keys(fields).filter((name) => caller.content || fields[name] !== "content"), ...properties(facets.data).map((n) => "property." + n)];
  const unit = unitOf(field);
  return html`<form class="filterbar" onSubmit=${add}>
      <select aria-label="Field" value=${field} onChange=${(e) => setField(e.target.value)}>${names.map((name) => html`<option value=${name}>${name}</option>`)}<option value="property.">another property…</option></select>
      ${field === "property." && html`<input name="name" aria-label="Name of the property" placeholder="its name" required autocomplete="off" />`}
      <select name="op" aria-label="Operator">${Object.entries(operators[kind]).map(([op, text]) => html`<option value=${op}>${text}</option>`)}</select>
      ${kind === "boolean"
        ? html`<select name="value" aria-label="Value"><option>true</option><option>false</option></select>`
        : html`<input id="filter" name="value" aria-label="Value" placeholder=${unit ? `value in ${unit}` : "value (f)"} dir="auto" required=${kind !== "text"} list="values" autocomplete="off" type=${kind === "number" ? "number" : "text"} step="any" />
          <datalist id="values">${known?.values.map((value) => html`<option value=${value.value} />`)}</datalist>`}
      <button>Add</button>
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

// FilterMenu is the bar in the menu of a screen that has no room for one.
export function FilterMenu({ v }) {
  return html`<${FilterBar} v=${v} facets=${useFacets(v)} />`;
}

export const titles = { error_type: "Error", error_group: "Error message", end_state: "Ended", finish_reason: "Finish", request_path: "Endpoint", user_id: "User", status: "Status", stream: "Stream", model: "Model", provider: "Provider" };

const few = 8; // values of a facet

// Facets are the values that the fields have under the filter.
export function Facets({ v, facets }) {
  return html`<aside class="facets panel" aria-label="Values" tabindex="0">
    <${Answer} state=${facets}>${(data) => html`${data.fields.filter((f) => f.field !== "property_key" && f.values.some((value) => value.value !== "")).map((facet) => html`<${Facet} key=${facet.field} v=${v} facet=${facet} count=${data.count} />`)}
      <section><h2>Property</h2><select aria-label="Property" value=${v.by} onChange=${(e) => go({ by: e.target.value }, true)}><option value="">choose…</option>${properties(data).map((n) => html`<option value=${n}>${n}</option>`)}</select></section>`}<//>
  </aside>`;
}

function Facet({ v, facet, count }) {
  const [all, setAll] = useState(false);
  const field = facet.field.replace("property:", "property.");
  const shown = all ? facet.values : facet.values.slice(0, few);
  const rest = facet.others + facet.values.slice(shown.length).reduce((sum, value) => sum + value.count, 0);
  const others = plural(rest, "request") + " with other values";
  const one = v.f.find((c) => c.field === field && (c.op === "equals" || c.op === "in"));
  const add = (condition) => go({ f: withCondition(v.f, condition) });
  // or adds a value to those that the field may have.
  const or = (value) => go({ f: v.f.map((c) => (c === one ? { field, op: "in", value: [...listed(c.value).filter((x) => x !== value), value].join(",") } : c)) });
  return html`<section><h2>${titles[facet.field] || facet.field.replace("property:", "")}</h2>
    <ul>${shown.map(({ value, count: n }) => html`<li><button class="value" onClick=${() => add(isOf(field, value))}>
        <${Cut} text=${value || "(none)"} /><b>${compact(n)}</b><${Bar} share=${n / count} /></button>
      ${one && one.value !== value && value !== "" && kindOf(field) === "text" && html`<button class="quiet" aria-label=${`Also ${value}`} title="Also this value" onClick=${() => or(value)}>+</button>`}
      ${value !== "" && kindOf(field) !== "boolean" && html`<button class="quiet" aria-label=${`Without ${value}`} title="Without this value" onClick=${() => add({ field, op: "not-equals", value })}>−</button>`}</li>`)}
      ${rest > 0 && html`<li>${!all && facet.values.length > few ? html`<button class="quiet" onClick=${() => setAll(true)}>${others}…</button>` : html`<span class="quiet">${others}</span>`}</li>`}</ul></section>`;
}
