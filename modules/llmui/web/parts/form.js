// What changes something: dialogues with forms, buttons that ask once more, and what came of it.
import { html, useEffect, useRef, useState } from "../html.js";
import { beat } from "../api.js";

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

// useChange returns a function that waits for a change, and the error of the last change as
// a notice. done gets what a change answers.
export function useChange(done) {
  const [error, setError] = useState("");
  const change = (made) => made.then((what) => (done?.(what), setError(""), beat()), (failure) => setError(failure.message));
  return [change, error && html`<p class="notice bad" role="alert">${error}</p>`];
}

// Warnings are what may be wrong with what a change has made.
export const Warnings = ({ of }) => of?.warnings?.map((w) => html`<p class="notice warn" role="status">${w}</p>`);

// Delete asks once more.
export function Delete({ onSure, what = "Delete" }) {
  const [sure, set] = useState();
  return html`<button class=${sure ? "bad" : "quiet"} onClick=${() => (sure ? onSure() : set(true))}>${sure ? what + " for good" : what}</button>`;
}
