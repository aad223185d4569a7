// What a request adds to the one before it in its session, and where the two
// first differ, which is where the provider's cache ends.
import { html } from "../html.js";
import { filter } from "../state.js";
import { useAnswer } from "../api.js";
import { asked, answered } from "../conversation.js";
import { Answer, To } from "../parts/basics.js";
import { Messages } from "../parts/messages.js";
import { count, moment, plural } from "../format.js";
import { absent, note } from "./request.js";

// same tells whether two messages say the same, whatever the ids in them.
const same = (a, b) => a !== undefined && b !== undefined && said(a) === said(b);
const said = (m) => JSON.stringify([m.role, m.parts.map(({ id, ...part }) => part)]);

export function Turn({ r }) {
  const session = r.properties["Service-Session-Id"];
  const state = useAnswer("/v1/request/query-clickhouse", session ? {
    filter: filter({ f: [] }, { session_id: { equals: session } }, { request_created_at: { lt: r.request_created_at } }), sort: { created_at: "desc" }, limit: 1,
  } : null);
  if (!session) return html`<p class="notice">The request belongs to no session, so there is no turn before it.</p>`;
  return html`<${Answer} state=${state} empty=${(d) => d.length === 0} none="This is the first turn of its session.">${([before]) => {
    const missing = absent(r.request_body, r.request_omitted, "request") || absent(before.request_body, before.request_omitted, "request of the turn before");
    if (missing) return note(missing + " So what is new is not known.");
    const now = asked(r.request_body);
    const then = asked(before.request_body);
    let common = 0;
    while (same(now[common], then[common])) common++;
    const answer = answered(before.response_body);
    const repeated = answer.length > 0 && answer.every((m, i) => same(m, now[common + i])) ? answer.length : 0;
    const fresh = now.length - common - repeated;
    const link = html`<${To} change=${{ id: before.request_id }}>the turn before<//>`;
    return html`<p>${plural(common, "message")} as in ${link} of ${moment(before.request_created_at)}${repeated ? ", then its answer" : ""}. ${plural(fresh, "message")} ${fresh === 1 ? "is" : "are"} new.
        ${r.prompt_cache_read_tokens !== null && html` ${count(r.prompt_cache_read_tokens)} of ${count(r.prompt_tokens)} input tokens came from the cache.`}</p>
      ${common < then.length && html`<div class="notice bad">Message ${common + 1} differs from ${link}, which has ${plural(then.length, "message")}: a prompt cache serves nothing from there on.
        <${Difference} then=${text(then[common])} now=${now[common] ? text(now[common]) : ""} /></div>`}
      <${Messages} list=${now.slice(common + repeated)} />${note(absent(r.response_body, r.response_omitted, "response"))}<${Messages} list=${answered(r.response_body)} answer />`;
  }}<//>`;
}

// text is a message as one.
const text = (m) => `${m.role}: ` + m.parts.map((p) => p.text ?? JSON.stringify(p.args ?? p.value ?? p.kind)).join("\n");

const around = 80; // characters

// Difference shows two texts around the place from which on they differ.
function Difference({ then, now }) {
  let at = 0;
  while (at < now.length && then[at] === now[at]) at++;
  const begin = Math.max(0, at - around);
  const side = (name, text, Mark) => html`<dt>${name}</dt><dd><code>${begin > 0 && "…"}${text.slice(begin, at)}<${Mark}>${text.slice(at, at + around) || "(ends)"}<//></code></dd>`;
  return html`<dl>${side("Then", then, "del")}${side("Now", now, "ins")}</dl>`;
}
