// What changes something: dialogues with forms, buttons that ask once more, and what came of it.
import { html, useEffect, useRef, useState } from "../html.js";
import { beat } from "../api.js";
import { attributes, sayOf } from "../filter.js";

// Dialog is a form over the page until it is closed, which its child is given as a function.
export function Dialog({ label, onClose, children }) {
  const box = useRef();
  useEffect(() => box.current.showModal(), []);
  return html`<dialog ref=${box} class="help form" aria-label=${label} onClose=${onClose}>${children(() => box.current.close())}</dialog>`;
}

// Form is what a dialogue asks, with what is wrong, and the buttons that send and close it.
export const Form = ({ title, action = "Create", tone = "primary", disabled, close, failed, children, ...rest }) => html`<form ...${rest}><h2>${title}</h2>${children}${failed}
    <p class="bar-row"><button class=${tone} disabled=${disabled}>${action}</button><button type="button" onClick=${close}>Cancel</button></p></form>`;

// options are those of a select, by their values.
export const options = (all, chosen) => Object.entries(all).map(([value, text]) => html`<option value=${value} selected=${value === String(chosen)}>${text}</option>`);

// subjects are what has a limit or a total of its own, in words.
export const subjects = { ...Object.fromEntries(Object.keys(attributes).map((a) => [a, "each " + a])), tree: "each agent run" };

// Per chooses whose limit or total it is: `all` says that of all together.
export function Per({ per, all }) {
  const [chosen, choose] = useState(per?.startsWith("property.") ? "property" : per || "");
  return html`<span class="bar-row"><select name="per" value=${chosen} onChange=${(e) => choose(e.target.value)}>${options({ "": all, ...subjects, property: "each value of a property…" }, chosen)}</select>${chosen === "property" && html`<input name="property" required aria-label="Name of the property" placeholder="Team" defaultValue=${per?.slice(9) || ""} />`}</span>`;
}

// FilterText takes a filter as the API has it.
export const FilterText = ({ filter, ...rest }) => html`<label><span>Filter <span class="quiet">${filter && filter !== "all" && sayOf(filter)}</span></span><textarea name="filter" rows="2" spellcheck=${false} placeholder=${`{"request_response_rmt": {"model": {"contains": "opus"}}}`} defaultValue=${filter && filter !== "all" ? JSON.stringify(filter) : ""} ...${rest}></textarea></label>`;

// read returns a function of the texts of a form by their names, which has what Per and FilterText take, too.
export function read(form) {
  const data = new FormData(form), text = (name) => (data.get(name) || "").trim();
  return Object.assign(text, { all: (name) => data.getAll(name), per: () => (text("per") === "property" ? "property." + text("property") : text("per")), filter: () => (text("filter") ? JSON.parse(text("filter")) : undefined) });
}

// useChange returns a function that makes a change, or waits for one, and the error of the last change
// as a notice. done gets what a change answers.
export function useChange(done) {
  const [error, setError] = useState("");
  const change = (act) => Promise.resolve().then(() => (act.call ? act() : act)).then((what) => (done?.(what), setError(""), beat()), (failure) => setError(failure.message));
  return [change, error && html`<p class="notice bad" role="alert">${error}</p>`];
}

// Warnings are what may be wrong with what a change has made.
export const Warnings = ({ of }) => of?.warnings?.map((w) => html`<p class="notice warn" role="status">${w}</p>`);

// Delete asks once more.
export function Delete({ onSure, what = "Delete" }) {
  const [sure, set] = useState();
  return html`<button class=${sure ? "bad" : "quiet"} onClick=${() => (sure ? onSure() : set(true))}>${sure ? what + " for good" : what}</button>`;
}
