// A table that draws only the rows in sight, and asks for more at its end.
import { Component, html, useEffect, useRef, useState } from "../html.js";
import { Headings, classOf } from "./basics.js";

const rowHeight = 32;
const overscan = 10;

// Row is drawn again only when it shows something else.
class Row extends Component {
  shouldComponentUpdate(next) {
    return ["row", "columns", "index", "selected"].some((name) => next[name] !== this.props[name]);
  }

  render({ row, columns, onOpen, id, index, selected }) {
    return html`<tr data-id=${id} aria-rowindex=${index + 1} aria-selected=${selected} class=${selected ? "selected" : ""} onClick=${() => onOpen(row)}>
      ${row.gone ? html`<td colspan=${columns.length}>…</td>` : columns.map((c, at) => html`<td class=${classOf(c)}>${
        at === 0 ? html`<button class="open" onClick=${(e) => (e.stopPropagation(), onOpen(row))}>${c.cell(row)}</button>` : c.cell(row)
      }</td>`)}
    </tr>`;
  }
}

// Table shows rows by columns of {title, key, cell, number, wide, mid}. onSight is told which rows are drawn; those that are gone are
// drawn empty. selected is the index of a row.
export function Table({ columns, rows, selected = -1, onOpen, onSight, sort, label, keyOf }) {
  const frame = useRef();
  const [window, setWindow] = useState({ top: 0, height: 600 });
  const look = () => frame.current && setWindow({ top: frame.current.scrollTop, height: frame.current.clientHeight });
  useEffect(() => {
    const watch = new ResizeObserver(look);
    watch.observe(frame.current);
    return () => watch.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(window.top / rowHeight) - overscan);
  const last = Math.min(rows.length, Math.ceil((window.top + window.height) / rowHeight) + overscan);
  useEffect(() => onSight(first, last), [first, last, rows]);
  useEffect(() => {
    const box = frame.current;
    if (selected < 0 || !box) return;
    const top = selected * rowHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + 3 * rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + 3 * rowHeight - box.clientHeight;
  }, [selected]);

  const gap = (n) => n > 0 && html`<tr aria-hidden="true" class="gap"><td colspan=${columns.length} height=${n * rowHeight}></td></tr>`;
  return html`<div class="table" ref=${frame} onScroll=${look} tabindex="0" role="region" aria-label=${label}>
    <table aria-rowcount=${rows.length}>
      <${Headings} columns=${columns} sort=${sort} />
      <tbody>
        ${gap(first)}
        ${rows.slice(first, last).map((row, i) => 
          html`<${Row} key=${keyOf(row)} id=${keyOf(row)} row=${row} index=${first + i} selected=${first + i === selected} columns=${columns} onOpen=${onOpen} />`)}
        ${gap(rows.length - last)}
      </tbody>
    </table>
  </div>`;
}
