// What a request adds to the turn before it, and where the two first differ.
import { html } from "../html.js";
import { filter } from "../filter.js";
import { useAnswer } from "../api.js";
import { answered, asked } from "../conversation.js";
import { Answer, To, failed } from "./basics.js";
import { Texts, text } from "./difference.js";
import { Messages, Settings } from "./messages.js";
import { count, moment, plural } from "../format.js";

const note = (text) => text && html`<p class="notice">${text}</p>`;

// absent says why there is no content.
export function absent(body, omitted, side) {
  if (body !== null) return null;
  return omitted ? `The ${side} is not kept: the caller or the configuration omits it.` : `There is no ${side}. It was empty, or its retention has ended.`;
}

// First is a turn of which all is new.
const First = ({ r, words, says }) => html`<p class="quiet">${says}</p><${Settings} body=${r.request_body} />${note(absent(r.request_body, r.request_omitted, "request"))}<${Messages} list=${asked(r.request_body)} words=${words} />
  ${note(absent(r.response_body, r.response_omitted, "response"))}<${Messages} list=${answered(r.response_body, failed(r))} words=${words} answer />`;

// same tells whether two messages say the same, whatever the ids in them.
const same = (a, b) => a !== undefined && b !== undefined && said(a) === said(b);
const said = (m) => JSON.stringify([m.role, m.parts.map(({ id, ...part }) => part)]);

// Turn is what a request adds to the one before it, and where the two first differ,
// which is where the provider's cache ends.
export function Turn({ r, words }) {
  const session = r.properties["Service-Session-Id"];
  const before = r.parent_request_id ? [{ request_id: { equals: r.parent_request_id } }] : session && [{ session_id: { equals: session } }, { request_created_at: { lt: r.request_created_at } }];
  const state = useAnswer("/v1/request/query-clickhouse", before ? { filter: filter({ f: [] }, ...before), sort: { created_at: "desc" }, limit: 1 } : null);
  if (!before) return html`<${First} r=${r} words=${words} says="The request continues no other call, and belongs to no session: all of it is new." />`;
  return html`<${Answer} state=${state} empty=${(d) => d.length === 0} none=${html`<${First} r=${r} words=${words} says="This is the first turn, or the one before is gone: all of it is new." />`}>${([before]) => {
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
        <${Texts} then=${text(then[common])} now=${now[common] ? text(now[common]) : ""} /></div>`}
      <${Settings} body=${r.request_body} /><${Messages} list=${now.slice(common + repeated)} words=${words} />${note(absent(r.response_body, r.response_omitted, "response"))}<${Messages} list=${answered(r.response_body, failed(r))} words=${words} answer />`;
  }}<//>`;
}
