// One request: what was said, what it cost and why, how it went.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { sought } from "../filter.js";
import { elsewhere, go, having, useView } from "../state.js";
import { caller, useAnswer } from "../api.js";
import { answered, asked } from "../conversation.js";
import { command } from "../curl.js";
import { Answer, Copy, Mark, Outcome, Tabs, To, compare, failed, typing } from "../parts/basics.js";
import { Json } from "../parts/json.js";
import { Cost, Labels, Timing } from "../parts/details.js";
import { Messages, Settings } from "../parts/messages.js";
import { Rating } from "../parts/rating.js";
import { Turn, absent } from "../parts/difference.js";
import { count, dollars, duration, fullMoment } from "../format.js";

const tabs = [["conversation", "Conversation"], ["turn", "New in this turn"], ["cost", "Cost"], ["timing", "Timing"], ["labels", "Labels"], ["raw", "Raw"]];
const panels = { conversation: Conversation, turn: Turn, cost: Cost, timing: Timing, labels: Labels, raw: Raw };

// Request shows the request of an id over the list, and keeps the focus until it is
// closed.
export function Request({ id, tab }) {
  const dialog = useRef();
  const state = useAnswer(`/v1/request/${encodeURIComponent(id)}`);
  const v = useView();
  const current = Object.hasOwn(panels, tab) ? tab : "conversation";
  const words = sought({ f: [...v.f, ...(v.find ? [{ field: "body", value: v.find }] : [])] });
  const body = useRef();
  useMarks(body, words);
  useLayoutEffect(() => {
    if (dialog.current.open) return;
    dialog.current.showModal();
    dialog.current.focus();
  }, [id]);
  // Whoever closes the drawer is at the row of its request.
  const close = () => {
    if (dialog.current?.open !== false) return;
    go({ id: "", tab: "" });
    document.querySelector(`tr[data-id="${CSS.escape(id)}"] button`)?.focus();
  };
  // A click beside the drawer closes it, one on another request opens that.
  const beside = (e) => {
    if (e.target !== dialog.current || e.clientX >= dialog.current.getBoundingClientRect().left) return;
    dialog.current.close();
    document.elementFromPoint(e.clientX, e.clientY)?.closest("tr[data-id]")?.querySelector("button.open").click();
  };
  useEffect(() => {
    const press = (e) => {
      const step = { "[": -1, "]": 1 }[e.key];
      if (typing(e)) return;
      if (e.key === "c") compare(id);
      if (!step) return;
      const at = tabs.findIndex(([key]) => key === current);
      go({ tab: tabs[(at + step + tabs.length) % tabs.length][0] }, true);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [current, id]);
  return html`<dialog ref=${dialog} class="drawer" data-id=${id} aria-label="Request" tabindex="-1" onClick=${beside} onClose=${close}>
    <header><h2>Request</h2><code title=${id}>${id.slice(0, 8)}…</code> <${Copy} text=${() => id} label="Copy id" />
      ${state.data && html`<${Copy} text=${() => command(state.data)} label="Copy as curl" /><${Copy} text=${() => location.href} label="Copy link" /><${Mark} id=${id} />`}<button class="quiet close" aria-label="Close" onClick=${() => dialog.current.close()}>×</button></header>
    <${Answer} state=${state}>${(r) => html`<${Summary} r=${r} /><${Missed} r=${r} />${caller.write && html`<${Rating} key=${r.request_id} r=${r} />`}<${Tabs} tabs=${tabs} current=${current} />
      <div class="body" ref=${body} role="tabpanel" id="panel" aria-labelledby=${"tab-" + current} tabindex="0"><${panels[current]} key=${r.request_id + current} r=${r} words=${words} /></div>`}<//>
  </dialog>`;
}

// useMarks marks words in what an element shows, without changing it.
function useMarks(element, words) {
  useEffect(() => {
    if (!words.length || !globalThis.Highlight) return;
    const mark = () => {
      const found = new Highlight();
      const walk = document.createTreeWalker(element.current || document.createElement("p"), NodeFilter.SHOW_TEXT);
      for (let node; found.size < 500 && (node = walk.nextNode()); )
        for (const word of words) {
          const text = node.data.toLowerCase(), wanted = word.toLowerCase();
          for (let at = -1; (at = text.indexOf(wanted, at + 1)) >= 0 && at + wanted.length <= node.length; ) {
            const range = new Range();
            range.setStart(node, at);
            range.setEnd(node, at + wanted.length);
            if (!found.size) node.parentElement.scrollIntoView({ block: "center" });
            found.add(range);
          }
        }
      CSS.highlights.set("find", found);
    };
    const timer = setTimeout(mark, 60);
    const again = setInterval(() => element.current && !CSS.highlights.get("find")?.size && mark(), 300);
    return () => (clearTimeout(timer), clearInterval(again), CSS.highlights.delete("find"));
  });
}

const Summary = ({ r }) => html`<p class="summary"><${Outcome} record=${r} /> <b>${r.model || "unknown model"}</b> <span>${r.provider}</span>
  <time title=${fullMoment(r.request_created_at)}>${fullMoment(r.request_created_at)}</time> <span>${duration(r.delay_ms)}</span> <span>${count(r.prompt_tokens)} in, ${count(r.completion_tokens)} out</span> <b>${dollars(r.cost)}</b>
  ${r.request_user_id && html`<${To} change=${having("user_id", r.request_user_id, [])} dir="auto">${r.request_user_id}<//>`}
  ${r.session_id ? html`<${To} change=${{ ...elsewhere, v: "sessions", session: r.session_id, derived: "" }} dir="auto">session ${r.properties["Service-Session-Name"] || r.session_id}<//>`
    : (r.root_request_id || r.turn === 1) && html`<${To} change=${{ ...elsewhere, v: "sessions", session: r.root_request_id || r.request_id, derived: "1" }}>all calls of its agents<//>`}</p>`;

const reasons = {
  below_minimum: "the provider does not cache so little", never_marked: "nothing was marked for the cache", model: "the turn before asked another model", other_key: "the turn before used another account or cache key",
  tools_changed: "the tools have changed", system_changed: "the instructions have changed", history_edited: "an earlier message has changed", ttl: "the turn before is older than the cache lives", unexplained: "nothing has changed: the provider did not keep it",
};

// Missed says why the provider's cache missed, and leads to what has changed.
const Missed = ({ r }) => r.cache_miss_reason && html`<p class="notice bad missed">⚠ <b>The cache missed:</b> ${reasons[r.cache_miss_reason] || r.cache_miss_reason}${r.cache_miss_at ? html` at <code>${r.cache_miss_at}</code>` : ""}. ${count(r.cache_missed_tokens)} tokens${r.cache_loss ? html` cost <b>${dollars(r.cache_loss)}</b> more than from the cache` : ""}. ${r.parent_request_id && html`<${To} change=${{ ...elsewhere, v: "compare", a: r.parent_request_id, b: r.request_id }}>What has changed<//>`}</p>`;

const note = (text) => text && html`<p class="notice">${text}</p>`;

function Conversation({ r, words }) {
  const answer = useRef();
  const said = asked(r.request_body);
  const toAnswer = () => answer.current.scrollIntoView({ block: "start" });
  return html`<div class="jump"><${Settings} body=${r.request_body} />${said.length > 0 && html`<button class="quiet" onClick=${toAnswer}>To the answer ↓</button>`}</div>
    ${note(absent(r.request_body, r.request_omitted, "request"))}<${Messages} list=${said} words=${words} />
    ${r.request_truncated && note("The request was cut at the largest size that is kept.")}
    <div ref=${answer}></div>${note(absent(r.response_body, r.response_omitted, "response"))}<${Messages} list=${answered(r.response_body, failed(r))} words=${words} answer />
    ${r.response_truncated && note("The response was cut at the largest size that is kept.")}`;
}

function Raw({ r }) {
  const [find, setFind] = useState("");
  const wait = useRef();
  // A large body is looked through when the typing rests.
  const look = (text) => (clearTimeout(wait.current), (wait.current = setTimeout(setFind, 150, text)));
  return html`<input type="search" class="find" placeholder="Search in both bodies" aria-label="Search in both bodies" onInput=${(e) => look(e.target.value.trim().toLowerCase())} />
    ${[["Request", r.request_body, r.request_omitted], ["Response", r.response_body, r.response_omitted]].map(
    ([name, body, omitted]) => html`<section><h3>${name} ${body !== null && html`<${Copy} text=${() => typeof body === "string" ? body : JSON.stringify(body, null, 2)} />`}</h3>
      ${body === null ? note(absent(body, omitted, name.toLowerCase())) : html`<${Json} value=${body} find=${find} />`}</section>`,
  )}`;
}
