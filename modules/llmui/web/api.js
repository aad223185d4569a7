// Calls of the public API, with the organisation of the session.
import { useEffect, useState } from "./html.js";
import { filter } from "./filter.js";
import { bucket, timeFilter } from "./state.js";
import { offset } from "./format.js";

// Failure is an answer other than success, with what it has beside the message.
export class Failure extends Error {
  constructor(status, message, data) {
    super(message);
    this.status = status;
    this.data = data;
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
  if (response.ok && !("data" in body)) body = { data: body }; // an object of /v1/organization
  if (response.ok) return whole ? body : body.data;
  if (response.status === 401) onLogout();
  throw new Failure(response.status, body.error?.message || body.error || `The server answered ${response.status}.`, body.data);
}

// Offline is the failure of a request that reached no server.
export class Offline extends Failure {}

// online tells whether the last request reached the server. Watchers hear of a change.
let online = true;
const watchers = new Set();
function reached(yes) {
  if (yes === online) return;
  online = yes;
  for (const watcher of watchers) watcher(yes);
}

// useOnline is online as it changes.
export function useOnline() {
  const [value, set] = useState(online);
  useEffect(() => {
    watchers.add(set);
    set(online);
    return () => watchers.delete(set);
  }, []);
  return value;
}

async function request(path, options) {
  try {
    const response = await fetch("api" + path, options);
    reached(true);
    return response;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    reached(false);
    throw new Offline(0, "Weir cannot be reached.");
  }
}

// post asks an endpoint, get reads one. put, patch and remove change what it keeps.
const send = (path, body, signal, method = "POST", headers = {}) => request(path, { method, signal, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(body) });
export const post = async (path, body, signal) => answer(await send(path, body, signal));
export const put = async (path, body) => answer(await send(path, body, undefined, "PUT"));
export const patch = async (path, body) => answer(await send(path, body, undefined, "PATCH"));
export const remove = async (path) => answer(await request(path, { method: "DELETE" }));
export const get = async (path, signal, whole) => answer(await request(path, { signal }), whole);

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

// changed asks as page does, or reads an endpoint without a body. It answers null if the
// answer is still that of a tag, which it replaces.
async function changed(path, body, signal, last) {
  const headers = last.tag ? { "If-None-Match": last.tag } : {};
  const response = await (body === undefined ? request(path, { signal, headers }) : send(path, body, signal, "POST", headers));
  if (response.status === 304) return null;
  last.tag = ""; // an error is no answer to come back to
  const data = await answer(response, true);
  last.tag = response.headers.get("ETag");
  return data;
}

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
export const login = (key) => post("/session", { key }).then(know);
export const logout = () => remove("/session");
export const session = () => get("/session").then(know);

// caller is whose session it is: {organization, login}, and what it may do: {admin, content, write}.
export const caller = {};
const know = (who) => Object.assign(caller, who);

// pace is how often a view that ends now is asked again, and retry how often a server
// that cannot be reached is, in milliseconds.
export const pace = 10e3, retry = 2e3;

const asking = new Set();

// quiet is until when a question that changes is another beat of the same view.
let quiet = 0;

// beat asks the questions of the view again.
export function beat() {
  quiet = performance.now() + 300;
  for (const ask of asking) ask();
}

// useAnswer asks whenever the question changes, and abandons the one before. The
// last answer stays until the next one comes. A question of null asks nothing. Questions
// about many requests are asked again with every beat, without a sign of it.
export function useAnswer(path, body) {
  const [state, set] = useState({ loading: true });
  const key = body === null ? null : path + JSON.stringify(body);
  useEffect(() => {
    if (key === null) return set({});
    const abort = new AbortController();
    const last = { tag: "" };
    const ask = () =>
      changed(path, body, abort.signal, last).then(
        (found) => found && set({ data: found.data, next: found.next }),
        (error) => error.name !== "AbortError" && ((last.tag = ""), set((old) => ({ data: old.data, error }))),
      );
    if (performance.now() > quiet) set((old) => ({ ...old, error: undefined, loading: true }));
    const first = setTimeout(ask, 25); // after the rows of a list: a key has few turns
    if (repeated.test(path)) asking.add(ask);
    return () => {
      clearTimeout(first);
      asking.delete(ask);
      abort.abort();
    };
  }, [key]);
  return state;
}

const repeated = /^\/(system|v1\/(metrics|facets|users?|session|dashboard|keys?|routes|organization|budgets|alerts|audit|erasures|holds)\b.*)$/;

// useCosts are the totals of all values of a field in the time of the view, by the value.
export function useCosts(v, by) {
  const [state, set] = useState();
  const time = JSON.stringify(timeFilter(v));
  useEffect(() => {
    const abort = new AbortController();
    (async () => {
      const groups = new Map();
      for (let after; after !== null; ) {
        const part = await page("/v1/metrics/query", { groupBy: by, bucket: "none", timeFilter: timeFilter(v), limit: 100, after }, abort.signal);
        for (const g of part.data.groups) if (g.key !== null) groups.set(g.key, g.totals);
        after = part.next || null;
      }
      set(groups);
    })().catch(() => {}); // the list shows no costs
    return () => abort.abort();
  }, [by, time]);
  return state;
}

// itemsOf are the pages of a list of the control API. cursor names what the page begins behind.
export async function* itemsOf(path, cursor = "after", signal) {
  for (let after = ""; after !== null; ) {
    const page = await get(`${path}${path.includes("?") ? "&" : "?"}limit=200&${cursor}=${encodeURIComponent(after)}`, signal, true);
    const { items, next } = page.data.items ? page.data : { items: page.data, next: page.data.length === 200 ? page.data.at(-1).id : null };
    yield items;
    after = next || null;
  }
}

// useAll reads all pages of a list: it is searched and sorted here.
export function useAll(path) {
  const [state, set] = useState({ loading: true });
  useEffect(() => {
    const abort = new AbortController();
    const ask = async () => {
      try {
        const items = [];
        for await (const some of itemsOf(path, "after", abort.signal)) items.push(...some);
        set({ data: items });
      } catch (error) {
        if (error.name !== "AbortError") set((old) => ({ data: old.data, error }));
      }
    };
    ask();
    asking.add(ask);
    return () => (asking.delete(ask), abort.abort());
  }, [path]);
  return state;
}

// useRequests asks for requests without their content.
export const useRequests = (filter, rest) => useAnswer("/v1/request/query-clickhouse", { filter, includeContent: false, ...rest });

// asked is a question for totals and series of the view, which useMetrics asks.
export const asked = (v, question) => ({ filter: filter(v), timeFilter: timeFilter(v), timezoneDifference: offset(), bucket: bucket(v), ...question });
export const useMetrics = (v, question) => useAnswer("/v1/metrics/query", asked(v, question));

// cached is the share of the input that came from the provider's cache.
export const cached = (x) => (x?.prompt_tokens && x.prompt_cache_read_tokens != null ? x.prompt_cache_read_tokens / x.prompt_tokens : null);
