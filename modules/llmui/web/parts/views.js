// Views that were saved under a name, for everybody in the organisation.
import { html, useEffect, useState } from "../html.js";
import { elsewhere, open, pin, pins, useView, view } from "../state.js";
import { caller, get, put, remove } from "../api.js";
import { To } from "./basics.js";

// given are the views that everybody has.
const today = { ...elsewhere, from: "today", to: "", f: [], json: "", any: "" };
const given = { Today: { ...today, v: "overview" }, "Errors today": { ...today, v: "requests", f: [{ field: "failed", op: "equals", value: "true" }] }, "Costliest requests today": { ...today, v: "requests", sort: "-cost" }, "Costliest sessions of the week": { ...today, v: "sessions", from: "7d", sort: "-total_cost" } };

// addressOf is the address of a saved view. One that was saved by the API may name its
// screen outside of its state.
const addressOf = ({ screen, state }) => (new URLSearchParams(state).has("v") || !screen ? state : `v=${encodeURIComponent(screen)}&${state}`);

export function Saved() {
  const [views, setViews] = useState();
  const [error, setError] = useState("");
  useView(); // a pin is drawn with it
  const pinned = pins(caller.organization);
  const load = () => get("/v1/view").then(setViews).then(() => setError(""), (failure) => setError(failure.message));
  const change = (done) => done.then(load, (failure) => setError(failure.message));
  useEffect(() => void load(), []);
  const path = (name) => "/v1/view/" + encodeURIComponent(name);
  const save = (e) => {
    e.preventDefault();
    const field = e.target.elements.name;
    change(put(path(field.value.trim()), { screen: view().v, state: location.search.slice(1) }));
    field.value = "";
  };
  return html`${Object.entries(given).map(([name, change]) => html`<${To} change=${change}>${name}<//>`)}
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    ${views?.map((saved) => html`<div class="saved" key=${saved.name}><a href=${"?" + addressOf(saved)} onClick=${(e) => (e.preventDefault(), open(addressOf(saved)))}>${saved.name}</a>
      <span><button class="quiet" aria-label=${`Show ${saved.name} in the navigation`} title="Show it in the navigation" aria-pressed=${Object.hasOwn(pinned, saved.name)} onClick=${() => pin(caller.organization, saved.name, Object.hasOwn(pinned, saved.name) ? undefined : addressOf(saved))}>Pin</button>
      ${caller.write && html`<button class="quiet" aria-label=${`Delete the view ${saved.name}`} onClick=${() => (pin(caller.organization, saved.name), change(remove(path(saved.name))))}>×</button>`}</span></div>`)}
    ${views?.length === 0 && html`<p class="quiet">Nothing is saved yet.</p>`}
    ${caller.write && html`<form class="saved" onSubmit=${save}><input name="name" aria-label="Name of this view" placeholder="name of this view" required maxlength="100" /><button>Save</button></form>`}`;
}
