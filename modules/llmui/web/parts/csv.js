// A table as CSV: its columns, order, sort and filter, and all of its rows.
import { html, useState } from "../html.js";
import { page } from "../api.js";
import { Menu, Table } from "./basics.js";

// textOf is what a cell shows. Buttons and pictures show nothing.
function textOf(node) {
  if (node == null || typeof node === "boolean") return "";
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (typeof node !== "object") return String(node);
  const { type, props } = node;
  if (type === "time") return props.datetime;
  if (props["aria-hidden"] || type === "button" || type === "svg") return "";
  return typeof type === "function" && props.children === undefined ? textOf(type(props)) : textOf(props.children);
}

// quoted is a field of CSV that no spreadsheet takes for a formula, unless it is a number.
export function quoted(text) {
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? "'" + text : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// valueOf is a number as it is, and all else as the table shows it.
const valueOf = (c, row, i) => (c.dollars || c.ms || c.raw ? ((c.dollars || c.ms || c.raw)(row) ?? "") : textOf(c.cell(row, i)).trim().replace(/^—$/, ""));

// pagesOf asks an endpoint for all pages of a question. rowsOf takes the rows out of an answer.
export const pagesOf = (path, body, rowsOf = (d) => d) =>
  async function* () {
    for (let after; after !== null; ) {
      const answer = await page(path, { ...body, after });
      yield rowsOf(answer.data);
      after = answer.next || null;
    }
  };

// Export saves a table, in a menu. pages yields lists of rows; more are further buttons.
export function Export({ name, columns, rows, pages, children }) {
  const [state, set] = useState("");
  const shown = columns.filter((c) => !c.unseen && c.title !== "Change");
  const save = async (mark) => {
    set("Exporting…");
    try {
      const lines = [shown.map((c) => quoted(c.title)).join(",")];
      for await (const some of pages ? pages() : [rows]) lines.push(...some.map((row, i) => shown.map((c) => quoted(String(valueOf(c, row, i)))).join(",")));
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([mark, lines.join("\r\n"), "\r\n"], { type: "text/csv" }));
      link.download = name + ".csv";
      link.click();
      URL.revokeObjectURL(link.href);
      set("");
    } catch (error) {
      set(error.message);
    }
  };
  return html`<${Menu} label="Export"><button onClick=${() => save("")}>CSV, as the table</button><button onClick=${() => save("\uFEFF")}>CSV for Excel</button>${children}${state && html`<span role="status">${state}</span>`}<//>`;
}

// Exported is a table with what saves it, in a row with its children. pages are those of Export.
export const Exported = ({ pages, children, ...table }) => html`<div class="bar-row">${children}<span class="spring"></span><${Export} name=${table.label.toLowerCase()} columns=${table.columns} rows=${table.rows} pages=${pages} /></div><${Table} ...${table} />`;
