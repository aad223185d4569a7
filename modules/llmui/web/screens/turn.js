// What a request adds to the one before it in its session, and where the two
// first differ, which is where the provider's cache ends.
import { html } from "../html.js";
import { filter } from "../state.js";
import { useAnswer } from "../api.js";
import { asked, answered } from "../conversation.js";
import { Answer, To } from "../parts/basics.js";
import { Messages } from "../parts/messages.js";
import { count, moment, plural } from "../format.js";

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
    const now = asked(r.request_body);
    const then = asked(before.request_body);
    let common = 0;
    while (same(now[common], then[common])) common++;
    const answer = answered(before.response_body);
    const repeated = answer.length > 0 && answer.every((m, i) => same(m, now[common + i])) ? answer.length : 0;
    const link = html`<${To} change=${{ id: before.request_id }}>the turn before<//>`;
    return html`<p>${plural(common, "message")} as in ${link} of ${moment(before.request_created_at)}${repeated ? ", then its answer" : ""}. ${plural(now.length - common - repeated, "message")} ${now.length - common - repeated === 1 ? "is" : "are"} new.
        ${r.prompt_cache_read_tokens !== null && html` ${count(r.prompt_cache_read_tokens)} of ${count(r.prompt_tokens)} input tokens came from the cache.`}</p>
      ${common < then.length && html`<p class="notice bad">Message ${common + 1} differs from ${link}, which has ${plural(then.length, "message")}: a prompt cache serves nothing from there on.</p>`}
      <${Messages} list=${now.slice(common + repeated)} /><${Messages} list=${answered(r.response_body)} answer />`;
  }}<//>`;
}
