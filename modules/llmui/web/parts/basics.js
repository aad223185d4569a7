// Small components that several screens use.
import { Component, html, useEffect, useMemo, useRef, useState } from "../html.js";
import { filter, operators, kindOf } from "../filter.js";
import { elsewhere, go, view, link } from "../state.js";
import { Offline, beat } from "../api.js";
import { change, decimalsOf, dollars, dollarsWith, duration, durationIn, percent, unitOf } from "../format.js";

// Answer shows what a question came to: an error, a first wait, nothing, or what
// its child makes of the data.
export function Answer({ state, empty, none = "Nothing matches.", children }) {
  if (state.error && !(state.error instanceof Offline && state.data !== undefined)) return html`<p class="notice bad" role="alert">${state.error.message} <button onClick=${beat}>Try again</button></p>`;
  if (state.data === undefined) return html`<p class="notice" aria-busy="true">Loading…</p>`;
  if (empty?.(state.data)) return none && html`<p class="notice">${none}</p>`;
  return html`<div class=${state.loading ? "stale" : ""}>${children(state.data)}</div>`;
}

// Later is a component of a screen's file, which is loaded when it is first shown.
export function Later({ file, name, ...props }) {
  const [loaded, show] = useState({});
  const [again, setAgain] = useState(0);
  useEffect(() => {
    let left; // for another, which may be loaded sooner
    // The browser remembers a module that it could not load under its address.
    import(`../screens/${file}.js${again ? `?${again}` : ""}`).then((module) => left || show({ name, component: module[name] }), () => left || show({ failed: true }));
    return () => (left = true);
  }, [name, again]);
  if (loaded.failed) return html`<p class="notice bad" role="alert">Weir cannot be reached. <button onClick=${() => setAgain(again + 1)}>Try again</button></p>`;
  return loaded.name === name ? html`<${loaded.component} ...${props} />` : html`<span aria-busy="true"></span>`;
}

// Drawer shows the request that the view names, if it names one.
export const Drawer = ({ v }) => v.id && html`<${Later} file="request" name="Request" id=${v.id} tab=${v.tab || "conversation"} />`;

// failed tells whether a call is an error, as the API counts them.
export const failed = (r) => r.response_status >= 400 || r.end_state !== "complete";

// providerOf is the provider of a call, "" if it reached none.
export const providerOf = (r) => (r.provider === "custom" && !r.target_url ? "" : r.provider);

// Outcome says how a call ended, in a word, a shape and a colour; and whether it was tried again,
// or is another try.
export function Outcome({ record }) {
  const { response_status: status, end_state: end } = record;
  const good = !failed(record);
  const text = end === "complete" || status >= 400 ? (status ?? "—") : end.replace("_", " ");
  return html`<span class="outcome ${good ? "good" : "bad"}"><i aria-hidden="true">${good ? "●" : "▲"}</i> ${text}</span>${record.attempt_of ? html` <span class="quiet">tried again</span>` : record.attempt > 1 && html` <span class="quiet" title="Attempts before it failed">attempt ${record.attempt}</span>`}`;
}

// Conditions are the filter of the view, each with a way to drop it.
export function Conditions({ v }) {
  return html`${v.f.map(
    (c, i) => html`${i > 0 && html`<button class="quiet joint" aria-label=${v.any ? "Any condition is enough. Ask for all" : "All conditions must hold. Ask for any"} onClick=${() => go({ any: v.any ? "" : "1" })}>${v.any ? "or" : "and"}</button>`}<span class="chip ${/^not/.test(c.op) ? "not" : ""}"><b>${c.field.replace("property.", "")}</b> ${operators[kindOf(c.field)][c.op]} <q dir="auto" title=${c.value}>${c.value || "(none)"}</q>
      <button aria-label=${`Remove the condition on ${c.field}`} onClick=${() => go({ f: v.f.filter((_, j) => j !== i) })}>×</button></span>`,
  )}${v.json && html`<span class="chip"><b>JSON</b> <code>${v.json.slice(0, 60)}</code><button aria-label="Remove the JSON filter" onClick=${() => go({ json: "" })}>×</button></span>`}
  ${v.problems.length > 0 && html`<span class="chip bad" role="alert">Not understood, and left out: <code>${v.problems.join(" ")}</code></span>`}`;
}

// To is a link to another view, which opens in place.
export function To({ change, children, ...rest }) {
  const follow = (e) => {
    if (e.metaKey || e.ctrlKey || e.shiftKey || e.button) return;
    e.preventDefault();
    e.stopPropagation();
    go(change);
  };
  return html`<a href=${link(change)} onClick=${follow} ...${rest}>${children}</a>`;
}

// Tabs are the views of one thing.
export function Tabs({ tabs, current }) {
  useEffect(() => document.getElementById("tab-" + current).scrollIntoView({ block: "nearest", inline: "nearest" }), [current]);
  return html`<div role="tablist" class="tabs">
    ${tabs.map(
      ([key, name]) => html`<button role="tab" id=${"tab-" + key} aria-controls="panel" aria-selected=${key === current} onClick=${() => go({ ...view(), tab: key }, true)}>${name}</button>`,
    )}
  </div>`;
}

// typing tells whether a key is for a field, or for the browser.
export const typing = (e) => e.target.matches("input, select, textarea") || e.metaKey || e.ctrlKey || e.altKey;

// useSteps opens the next request of a list, or the one before, by j and k.
export function useSteps(rows) {
  useEffect(() => {
    const press = (e) => {
      const step = { j: 1, k: -1 }[e.key];
      if (!step || typing(e)) return;
      const at = rows.findIndex((r) => r.request_id === view().id) + step;
      const row = rows[Math.max(0, Math.min(rows.length - 1, at))];
      if (row) go({ id: row.request_id }, Boolean(view().id));
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [rows]);
}

// Mark marks a request for a comparison, or a value of the field `by`, and compares it
// with the one that is marked.
export function Mark({ id, by = "" }) {
  const [field, marked] = markOf();
  const other = marked !== undefined && field === by && marked !== id;
  const press = (e) => {
    e.stopPropagation();
    compare(id, by);
  };
  return html`<button class="quiet mark" title=${other ? "Compare with the marked one (c)" : "Mark for a comparison (c)"} aria-label=${other ? "Compare with the marked one" : "Compare"} aria-pressed=${marked === id && field === by} onClick=${press}>⇄</button>`;
}

const markOf = () => (view().mark ? [view().mark.slice(0, view().mark.indexOf(":")), view().mark.slice(view().mark.indexOf(":") + 1)] : []);

// compare marks, or compares with what is marked of the same kind.
export function compare(id, by = "") {
  const [field, marked] = markOf();
  if (marked !== undefined && field === by && marked !== id) go({ ...elsewhere, v: "compare", by, a: marked, b: id, mark: "" });
  else go({ mark: marked === id ? "" : `${by}:${id}` }, true);
}

// Copy puts what a function makes on the clipboard, and says so for a moment.
export function Copy({ text, label = "Copy" }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    const timer = done && setTimeout(setDone, 1500, false);
    return () => clearTimeout(timer);
  }, [done]);
  return html`<button class="quiet" onClick=${() => navigator.clipboard.writeText(text()).then(() => setDone(true))}>${done ? "Copied" : label}</button>`;
}

// Menu is a button that opens a panel below it, and closes on Escape or a click
// elsewhere.
export function Menu({ label, onOpen, children }) {
  const box = useRef();
  useEffect(() => {
    const close = (e) => {
      if (box.current?.open && (e.key === "Escape" || (e.type === "click" && !box.current.contains(e.target)))) box.current.open = false;
    };
    addEventListener("keydown", close);
    addEventListener("click", close);
    return () => (removeEventListener("keydown", close), removeEventListener("click", close));
  }, []);
  return html`<details class="menu" id=${`menu-${label.toLowerCase()}`} ref=${box} onToggle=${() => box.current?.open && onOpen?.()}><summary>${label}</summary><div class="panel">${children}</div></details>`;
}

// Tile is one figure, beside that of the period before. growth says whether more
// of it is good or bad. A share differs by percentage points. past is its course.
export function Tile({ label, value, now, before, share, growth, detail, to, past }) {
  const delta = share ? (now == null || before == null ? null : now - before) : change(now, before);
  const tone = !growth || delta === null || Math.abs(delta) < 0.005 ? "" : (delta > 0) === (growth === "good") ? "good" : "bad";
  const size = (x) => (share ? `${(x * 100).toFixed(1)} points` : x > 9.99 ? "over 10×" : percent(x));
  return html`<div class="tile panel"><span class="label">${to ? html`<${To} change=${to}>${label}<//>` : label}</span><strong>${value}</strong>
    <span class="delta ${tone}">${delta !== null && html`<span title="Compared with the period before">${delta > 0 ? "▲" : delta < 0 ? "▼" : "="} ${size(Math.abs(delta))}</span> `}${detail && html`<span class="quiet">${detail}</span>`}</span>${past && html`<${Spark} values=${past} />`}</div>`;
}

// Bar shows a share of a whole.
export const Bar = ({ share, tone = "" }) => html`<span class="bar ${tone}" aria-hidden="true"><i style=${{ width: `${Math.max(0, Math.min(1, share || 0)) * 100}%` }}></i></span>`;

// Cut is a name that loses its middle where it has no room, so that names which begin alike differ.
const end = 6; // characters
export const Cut = ({ text }) => html`<span class="cut" dir="auto" title=${text}>${text.length > end + 4 ? html`<span aria-hidden="true">${text.slice(0, -end)}</span><span aria-hidden="true">${text.slice(-end)}</span>` : text}</span>`;

// Spark shows the course of a number in a cell.
export function Spark({ values }) {
  const top = Math.max(...values, 0) || 1;
  const points = values.map((v, i) => `${(i / Math.max(1, values.length - 1)) * 100},${19 - ((v || 0) / top) * 18}`).join(" ");
  return html`<svg class="spark" viewBox="0 0 100 20" preserveAspectRatio="none" aria-hidden="true"><polyline points=${points} /></svg>`;
}

// mark puts what was searched for into a <mark>.
export function mark(text, find) {
  if (!find) return text;
  const lower = text.toLowerCase();
  const out = [];
  let from = 0;
  for (let at; (at = lower.indexOf(find, from)) >= 0 && out.length < 400; from = at + find.length) out.push(text.slice(from, at), html`<mark>${text.slice(at, at + find.length)}</mark>`);
  return [...out, text.slice(from)];
}

// Marked is a line of text with the first of some words marked.
export const Marked = ({ text, words }) => html`<span dir="auto" title=${text}>${mark(text, words.map((w) => w.toLowerCase()).find((w) => text.toLowerCase().includes(w)))}</span>`;

const rowHeight = 32, overscan = 10; // of rows that are drawn when they are in sight

// sorting reads a sort of the address: a key, with a minus before it to descend.
export const sorting = (text) => ({ key: text.replace("-", ""), descending: text.startsWith("-") });

// classOf are the classes of a column: the least room that it is shown in is vast, wide, semi
// or mid.
const classOf = (c) => ["number", "text", "wrap", "vast", "wide", "semi", "mid"].filter((name) => c[name]).join(" ");

function Headings({ columns, sort = "" }) {
  const { key, descending } = sorting(sort);
  return html`<thead><tr>${columns.map((c) => html`<th scope="col" class=${classOf(c)} aria-sort=${c.key && c.key === key ? (descending ? "descending" : "ascending") : null}>${
    c.key ? html`<button onClick=${() => go({ sort: c.key === key && descending ? c.key : "-" + c.key })}>${c.title}${c.key === key ? (descending ? " ↓" : " ↑") : ""}</button>` : c.unseen ? html`<span class="hidden">${c.title}</span>` : c.title}</th>`)}</tr></thead>`;
}

// Row is drawn again only when it shows something else.
class Row extends Component {
  shouldComponentUpdate(next) {
    return ["row", "columns", "index", "selected"].some((name) => next[name] !== this.props[name]);
  }

  render({ row, columns, onOpen, id, index, selected }) {
    const open = onOpen && (() => onOpen(row));
    const cell = (c, at) => (at === 0 && open ? html`<button class="open" onClick=${(e) => (e.stopPropagation(), open())}>${c.cell(row, index)}</button>` : c.cell(row, index));
    return html`<tr data-id=${open && id} aria-rowindex=${open && index + 1} aria-selected=${open && selected} class=${selected ? "selected" : ""} onClick=${open}>
      ${row.gone ? html`<td colspan=${columns.length}>…</td>` : columns.map((c, at) => html`<td class=${classOf(c)}>${cell(c, at)}</td>`)}
    </tr>`;
  }
}

// measured are columns of one form: amounts with the same decimals, times in the same unit. Such
// a column has dollars or ms, the number of a row, in place of a cell; around puts the text into
// a link. A row without a number has undefined.
function measured(columns, rows) {
  const forms = columns.map((c) => (c.dollars ? decimalsOf : c.ms ? unitOf : () => "")((c.dollars || c.ms) ? rows.map((row) => (row.gone ? 0 : (c.dollars || c.ms)(row))) : []));
  return useMemo(
    () => columns.map((c, i) => {
      const value = c.dollars || c.ms, [text, exact] = c.dollars ? [dollarsWith(forms[i]), dollars] : c.ms ? [durationIn(forms[i]), duration] : [];
      return value ? { ...c, number: true, cell: (row) => (value(row) === undefined ? "" : (c.around || ((shown) => shown))(html`<span title=${exact(value(row))}>${text(value(row))}</span>`, row)) } : c;
    }),
    [columns, forms.join()],
  );
}

// Table shows rows by columns of {title, key, cell, dollars, ms, raw, number, text, wrap, vast,
// wide, semi, mid}. One with a key sorts. Of one that is unseen, the title is for those who hear the
// page. selected is the key of a row. A table with onSight draws the rows in sight alone, and
// tells which these are; those that are gone are drawn empty.
export function Table({ label, columns: described, rows, keyOf, sort, selected, onOpen, onSight }) {
  const columns = measured(described, rows);
  const frame = useRef();
  const [window, setWindow] = useState({ top: 0, height: 600 });
  const look = onSight && (() => frame.current && setWindow({ top: frame.current.scrollTop, height: frame.current.clientHeight }));
  useEffect(() => {
    if (!look) return;
    const watch = new ResizeObserver(look);
    watch.observe(frame.current);
    return () => watch.disconnect();
  }, []);
  const first = look ? Math.max(0, Math.floor(window.top / rowHeight) - overscan) : 0;
  const last = look ? Math.min(rows.length, Math.ceil((window.top + window.height) / rowHeight) + overscan) : rows.length;
  useEffect(() => onSight?.(first, last), [first, last, rows]);
  const at = look && selected ? rows.findIndex((row) => keyOf(row) === selected) : -1;
  useEffect(() => {
    const box = frame.current, top = at * rowHeight;
    if (at < 0) return;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + 3 * rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + 3 * rowHeight - box.clientHeight;
  }, [at]);

  const gap = (n) => n > 0 && html`<tr aria-hidden="true" class="gap"><td colspan=${columns.length} height=${n * rowHeight}></td></tr>`;
  return html`<div class=${look ? "table" : "scroll"} ref=${frame} onScroll=${look} tabindex="0" role="region" aria-label=${label}>
    <table aria-rowcount=${look && rows.length}><${Headings} columns=${columns} sort=${sort} /><tbody>${gap(first)}
      ${rows.slice(first, last).map((row, i) => html`<${Row} key=${keyOf(row)} id=${keyOf(row)} row=${row} index=${first + i} selected=${selected !== undefined && keyOf(row) === selected} columns=${columns} onOpen=${onOpen} />`)}
      ${gap(rows.length - last)}</tbody></table></div>`;
}

const pageSize = 100;

// useCursor is the place of the page of a list that is shown, with what turns pages. Another
// question of the view begins with the first page.
export function useCursor(v, ...rest) {
  const question = JSON.stringify([filter(v), v.from, v.to, rest]);
  const [at, set] = useState({});
  const cursors = at.question === question ? at.cursors : [undefined];
  const turn = (cursors) => set({ question, cursors });
  const pager = (next) => (cursors.length > 1 || next) && html`<p class="pager"><button disabled=${cursors.length === 1} onClick=${() => turn(cursors.slice(0, -1))}>Previous ${pageSize}</button> <button disabled=${!next} onClick=${() => turn([...cursors, next])}>Next ${pageSize}</button></p>`;
  return [{ limit: pageSize, after: cursors.at(-1) }, pager];
}
