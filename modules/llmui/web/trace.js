// The trace of a session as rows: its conversations or paths as a tree, or its calls in
// the order of time. Pure functions, without a page.

// pathOf is the node of a session path, as the API spells it.
const pathOf = (r) => "/" + (r.properties["Service-Session-Path"] || "").split("/").filter(Boolean).join("/");

// grow puts calls, the oldest first, into the nodes that the API answers. A node's cost is
// the API's; its calls are those that are at hand.
export function grow(nodes, calls, byPath) {
  const all = new Map(nodes.map((n) => [n.id, { ...n, own_calls: [], beneath: [] }]));
  const roots = [];
  for (const node of all.values()) (all.get(node.parent_id)?.beneath || roots).push(node);
  const places = new Map();
  // A failed attempt begins before the call that it belongs to.
  for (const r of [...calls.filter((r) => !r.attempt_of), ...calls.filter((r) => r.attempt_of)]) {
    const node = all.get(byPath ? pathOf(r) : r.request_id) || places.get(r.attempt_of || r.parent_request_id);
    places.set(r.request_id, node);
    if (node) node.own_calls.push(r);
    else roots.push({ id: r.request_id, depth: 0, own_calls: [r], beneath: [], stray: true });
  }
  return roots;
}

const begins = (x) => Date.parse((x.own_calls ? x.own_calls[0] || x : x).request_created_at || x.created_at);
const costs = (x) => (x.own_calls ? x.total?.cost : x.cost) ?? -1;
const lasts = (x) => (x.own_calls ? x.own_calls.reduce((sum, r) => sum + (r.delay_ms || 0), 0) : x.delay_ms || 0);

// orders put what is beneath a node in its order.
const orders = {
  "": (a, b) => begins(a) - begins(b),
  "-cost": (a, b) => costs(b) - costs(a),
  "-latency": (a, b) => lasts(b) - lasts(a),
};
export const orderOf = (sort) => (Object.hasOwn(orders, sort) ? orders[sort] : orders[""]);

// rows are what is shown of a tree, in order: nodes, and the calls that `shown` lets
// through. The nodes in `closed` have nothing beneath them.
export function rows(roots, closed, sort, shown = () => true) {
  const out = [];
  const order = orderOf(sort);
  const visit = (node, depth, above) => {
    const at = out.length;
    // A conversation of one call, at the top, is that call.
    const bare = node.stray || (!above && node.own_calls.length === 1 && !node.beneath.length);
    if (!bare) out.push({ key: "node " + node.id, node, depth, above });
    if (closed.has(node.id)) return;
    const before = out.length;
    for (const child of [...node.own_calls.filter(shown), ...node.beneath].sort(order)) {
      if (child.own_calls) visit(child, depth + 1, node.id);
      else out.push({ key: child.request_id, request: child, depth: depth + (bare ? 0 : 1), above: bare ? above : node.id });
    }
    if (out.length === before && !node.own_calls.some(shown)) out.length = at; // nothing of it is shown
  };
  for (const root of [...roots].sort(order)) visit(root, 0);
  return out;
}

const folded = 0.02; // of the axis, for a gap
const long = 0.1; // of the whole, from which on a gap is folded

// axis places times of a session between 0 and 1. Where nothing runs for more than a tenth
// of the session, the axis is folded: gaps are [place, milliseconds].
export function axis(calls) {
  const spans = calls.map((r) => [Date.parse(r.request_created_at), Date.parse(r.request_created_at) + (r.delay_ms || 0)]).sort((a, b) => a[0] - b[0]);
  if (!spans.length) return { at: () => 0, gaps: [], from: 0, span: 0, busy: 0, ticks: [] };
  const busy = [];
  for (const [from, to] of spans) {
    const last = busy.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else busy.push([from, to]);
  }
  const from = busy[0][0], span = Math.max(1, busy.at(-1)[1] - from);
  const cuts = []; // [begins, ends] of each gap that is folded
  busy.forEach(([begin], i) => i > 0 && begin - busy[i - 1][1] > long * span && cuts.push([busy[i - 1][1], begin]));
  const kept = span - cuts.reduce((sum, [a, b]) => sum + b - a, 0);
  const scale = (1 - folded * cuts.length) / kept;
  const at = (time) => {
    let x = (time - from) * scale;
    for (const [a, b] of cuts) {
      if (time >= b) x += folded - (b - a) * scale;
      else if (time > a) x += ((time - a) / (b - a)) * folded - (time - a) * scale;
    }
    return Math.max(0, Math.min(1, x));
  };
  return { at, from, span, gaps: cuts.map(([a, b]) => [at(a), b - a]), busy: busy.reduce((sum, [a, b]) => sum + b - a, 0), ticks: ticks(from, span, at, cuts) };
}

const steps = [100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 2 * 3600e3, 6 * 3600e3, 12 * 3600e3, 86400e3];

// ticks are round times since the session began, about five, none within a folded gap.
function ticks(from, span, at, cuts) {
  const shown = span - cuts.reduce((sum, [a, b]) => sum + b - a, 0);
  const step = steps.find((s) => shown / s <= 5) || 7 * 86400e3;
  const out = [];
  for (let t = 0, last = -1; t <= span && out.length < 12; t += step) {
    const gap = cuts.find(([a, b]) => from + t > a && from + t < b);
    if (gap) t = Math.ceil((gap[1] - from) / step) * step - step;
    else if (at(from + t) - last > 0.09 && at(from + t) < 0.86 && !cuts.some(([a]) => at(a) - at(from + t) < 0.17 && at(from + t) - at(a) < 0.05)) {
      last = at(from + t);
      out.push([last, t]);
    }
  }
  return out;
}

const fine = 0.002; // of the axis: less than a pixel of a line
const few = 60; // calls whose waits for the first token are drawn apart

// strokes are what the line of some calls draws: [from, to, tone], with places on the axis.
// Of many calls, those that follow each other at once are one stroke.
export function strokes(calls, { at }, failed) {
  const span = (r) => [Date.parse(r.request_created_at), Date.parse(r.request_created_at) + (r.delay_ms || 0)];
  const tone = (r) => (failed(r) ? "failed" : "");
  if (calls.length <= few) return calls.flatMap((r) => {
    const [from, to] = span(r), first = failed(r) ? 0 : r.time_to_first_token || 0;
    return [...(first ? [[at(from), at(from + first), "wait"]] : []), [at(from + first), at(to), tone(r)]];
  });
  const last = {};
  return calls.map((r) => [...span(r).map(at), tone(r)]).sort((a, b) => a[0] - b[0]).filter((stroke) => {
    const [from, to, tone] = stroke;
    if (!last[tone] || from - last[tone][1] > fine) return (last[tone] = stroke);
    last[tone][1] = Math.max(last[tone][1], to);
  }).sort((a, b) => (a[2] > b[2] ? 1 : -1)); // failures in front
}

// tokensOf are the parts of a call's tokens, in the order of their bar.
export function tokensOf(r) {
  const read = r.prompt_cache_read_tokens || 0, write = r.prompt_cache_write_tokens || 0;
  return [["from the cache", read], ["written to the cache", write], ["new", Math.max(0, (r.prompt_tokens || 0) - read - write)], ["output", r.completion_tokens || 0]];
}
