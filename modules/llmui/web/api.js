// Calls of the public API, with the organisation of the session.
import { useEffect, useState } from "./html.js";

// Failure is an answer other than success.
export class Failure extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let onLogout = () => {};
// whenLoggedOut sets what happens when the session has ended.
export const whenLoggedOut = (f) => (onLogout = f);

async function answer(response, whole) {
  const text = await response.text();
  let body = {};
  try {
    body = JSON.parse(text);
  } catch {
    throw new Failure(response.status, `The server answered ${response.status} without JSON.`);
  }
  if (response.ok) return whole ? body : body.data;
  if (response.status === 401) onLogout();
  throw new Failure(response.status, body.error?.message || body.error || `The server answered ${response.status}.`);
}

// post asks an endpoint, get reads one. put and remove change what it keeps.
const send = (path, body, signal, method = "POST") => fetch("api" + path, { method, signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
export const post = async (path, body, signal) => answer(await send(path, body, signal));
export const put = async (path, body) => answer(await send(path, body, undefined, "PUT"));
export const remove = async (path) => answer(await fetch("api" + path, { method: "DELETE" }));
export const get = async (path, signal) => answer(await fetch("api" + path, { signal }));

// download saves what an endpoint answers as a file.
export async function download(path, body, name) {
  const response = await send(path, body);
  if (!response.ok) return answer(response);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

// page asks for a page of a list: {data, next}.
export const page = async (path, body, signal) => answer(await send(path, body, signal), true);

// lines are the lines of JSON that an endpoint answers, as they come.
export async function* lines(path, body, signal) {
  const response = await send(path, body, signal);
  if (!response.ok) return answer(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = "", part; !(part = await reader.read()).done; ) {
    const complete = (rest + part.value).split("\n");
    rest = complete.pop();
    for (const line of complete.map((text) => JSON.parse(text))) {
      if (line.error) throw new Failure(response.status, line.error);
      yield line;
    }
  }
}

// login exchanges an API key for a session; the key is kept nowhere.
export const login = (key) => post("/session", { key });
export const logout = () => remove("/session");
export const session = () => get("/session");

// useAnswer asks whenever the question changes, and abandons the one before. The
// last answer stays until the next one comes. A question of null asks nothing.
export function useAnswer(path, body, every) {
  const [state, set] = useState({ loading: true });
  const key = body === null ? null : path + JSON.stringify(body);
  useEffect(() => {
    if (key === null) return set({});
    const abort = new AbortController();
    const ask = () =>
      (body === undefined ? get(path, abort.signal) : post(path, body, abort.signal)).then(
        (data) => set({ data }),
        (error) => error.name !== "AbortError" && set((old) => ({ data: old.data, error })),
      );
    set((old) => ({ ...old, error: undefined, loading: true }));
    const first = setTimeout(ask, 25); // after the rows of a list: a key has few turns
    const timer = every && setInterval(ask, every);
    return () => {
      clearTimeout(first);
      clearInterval(timer);
      abort.abort();
    };
  }, [key, every]);
  return state;
}
