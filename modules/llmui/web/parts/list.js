// Lists that are read as a whole: searched and sorted in the page, with the rows in sight drawn alone.
import { html, useMemo } from "../html.js";
import { go, useView } from "../state.js";
import { Answer, Table, sorting } from "./basics.js";
import { Export } from "./csv.js";
import { count } from "../format.js";

// List shows the rows of a state: those in whose textOf is each word of the search, sorted by the
// column of the view, else of first. A column with a key sorts by `by`, what it has of a row. A noun
// names what is counted: the rows, or what thingOf has of them. find is an example of what to search for,
// remark stands beside the number, and children are what can be done.
export function List({ label, noun, nouns = noun + "s", thingOf = (row) => row, find, remark, columns, first, state, rows, textOf, keyOf, none, children }) {
  const v = useView(), sort = v.sort || first;
  const shown = useMemo(() => {
    const words = v.find.toLowerCase().split(/\s+/), { key, descending } = sorting(sort);
    const { by } = columns.find((c) => c.key === key) || { by: () => 0 };
    const found = (rows || []).filter((row) => words.every((w) => textOf(row).toLowerCase().includes(w))).map((row) => [by(row), row]);
    return found.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (descending ? -1 : 1)).map(([, row]) => row);
  }, [rows, columns, v.find, sort]);
  const number = (some) => new Set(some.map(thingOf)).size;
  return html`<div class="requests"><div class="bar-row"><input type="search" aria-label=${`Find ${nouns}`} placeholder=${find} value=${v.find} onInput=${(e) => go({ find: e.target.value }, true)} />
      <span class="quiet" role="status">${rows && html`${shown.length === rows.length ? "" : `${count(number(shown))} of `}${count(number(rows))} ${number(rows) === 1 ? noun : nouns}${remark}`}</span><span class="spring"></span><${Export} name=${nouns} columns=${columns} rows=${shown} />${children}</div>
    <${Answer} state=${state} empty=${() => rows?.length === 0} none=${none}>${() => html`<div class="results"><${Table} label=${label} columns=${columns} rows=${shown} sort=${sort} keyOf=${keyOf} onSight=${() => {}} /></div>`}<//></div>`;
}
