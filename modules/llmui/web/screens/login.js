// The way in: an API key, exchanged once for a cookie that scripts cannot read.
import { html, useState } from "../html.js";
import { login } from "../api.js";

export function Login({ onDone }) {
  const [error, setError] = useState("");
  const submit = async (e) => {
    e.preventDefault();
    const field = e.target.elements.key;
    try {
      const session = await login(field.value.trim());
      onDone(session);
    } catch (failure) {
      setError(failure.message);
      field.select();
    }
  };
  return html`<main class="login">
    <form onSubmit=${submit}>
      <h1>Weir</h1>
      <label>API key <input name="key" type="password" autocomplete="off" required autofocus aria-describedby="why" /></label>
      <p id="why" class="quiet">A key with the scope <code>query</code>. The browser does not keep it.</p>
      ${error && html`<p class="notice bad" role="alert">${error}</p>`}
      <button class="primary">Open the dashboard</button>
    </form>
  </main>`;
}
