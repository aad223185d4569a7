// Keys from a table, as `weir key import` takes it: a key for each row. If one fails, those before it are deleted again.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { beat, post, remove } from "../api.js";
import { Copy, Table } from "./basics.js";
import { Dialog } from "./form.js";
import { quoted } from "./csv.js";
import { count, plural } from "../format.js";

const columns = ["name", "scopes", "owner", "project", "user", "models", "providers", "trust", "mask", "expires"];
const lists = new Set(["scopes", "models", "providers", "trust"]); // with spaces between their elements
const units = { d: 864e5, h: 36e5, m: 6e4 };

// rowsOf reads CSV, or what a spreadsheet copies, which has tabs for commas.
function rowsOf(text) {
  const comma = text.split("\n", 1)[0].includes("\t") ? "\t" : ",";
  const cell = new RegExp(`("(?:[^"]|"")*"|[^"${comma}\r\n]*)(${comma}|\r?\n|$)`, "y");
  const rows = [[]];
  for (let end = comma; cell.lastIndex < text.length || end === comma; ) {
    const found = cell.exec(text);
    if (!found) throw new Error(`Row ${rows.length}: a quotation mark stands alone. Write it twice, within quotation marks.`);
    end = found[2];
    rows.at(-1).push(found[1].replace(/^"([^]*)"$/, "$1").replaceAll('""', '"').trim());
    if (end !== comma) rows.push([]);
  }
  return rows.filter((row) => row.some(Boolean));
}

// timeOf reads a time, or how long it is until then, as in 90d.
function timeOf(text) {
  const [, n, unit] = /^(\d+)([dhm])$/.exec(text) || [];
  const time = n ? Date.now() + n * units[unit] : /^\d{4}-/.test(text) ? Date.parse(text) : NaN;
  if (Number.isNaN(time)) throw new Error(`expires is a time such as 2027-01-31T12:00:00Z, or 90d, not “${text}”`);
  return new Date(time).toISOString();
}

// settingsOf are those of a row, as the API takes them.
function settingsOf(names, row) {
  if (row.length !== names.length) throw new Error(`it has ${plural(row.length, "field")}, and the first row names ${plural(names.length, "column")}`);
  const body = { scopes: ["gateway", "log"] };
  names.forEach((name, i) => {
    const value = row[i], list = value.split(/\s+/);
    if (value) body[name === "expires" ? "expires_at" : name] = name === "expires" ? timeOf(value) : name === "mask" ? [{ kinds: list }] : lists.has(name) ? list : value;
  });
  if (!body.name) throw new Error("the name is missing");
  return body;
}

// keysOf are the keys of a text, {error} if it has a mistake.
function keysOf(text) {
  try {
    const [names = [], ...rows] = rowsOf(text.replace("\uFEFF", ""));
    const unknown = names.find((name) => !columns.includes(name));
    if (unknown !== undefined) throw new Error(`There is no column “${unknown}”. The first row names columns: ${columns.join(", ")}.`);
    if (!names.includes("name")) throw new Error("The first row names no column “name”.");
    const keys = rows.map((row, i) => {
      try {
        return settingsOf(names, row);
      } catch (error) {
        throw new Error(`Row ${i + 2}: ${error.message}.`);
      }
    });
    return { names, keys };
  } catch (error) {
    return { error: error.message };
  }
}

const shown = 5; // keys of a preview
const textOf = (value) => (Array.isArray(value) ? value.map((v) => v.kinds?.join(" ") ?? v).join(", ") : value) || "—";

export const ImportKeys = ({ onClose }) => html`<${Dialog} label="Import keys" onClose=${onClose}>${(close) => html`<${Steps} close=${close} />`}<//>`;

function Steps({ close }) {
  const [text, write] = useState("");
  const [{ done, error, created }, set] = useState({}); // done is a number of keys, created their secrets as CSV
  const read = useMemo(() => keysOf(text), [text]);
  const gone = useRef(false);
  useEffect(() => () => (gone.current = true), []);
  const create = async (e) => {
    e.preventDefault();
    const made = [];
    let uncertain = []; // names of keys that there may be
    try {
      for (const [i, body] of read.keys.entries()) {
        set({ done: i });
        const key = await post("/v1/keys", body).catch((failure) => {
          if (!(failure.status < 500)) uncertain = [body.name]; // nobody knows whether it was created
          throw new Error(`Row ${i + 2}: ${failure.message}`);
        });
        made.push(key);
        if (gone.current) throw new Error("");
      }
      set({ created: ["name,id,secret", ...made.map((k) => [k.name, k.id, k.secret].map(quoted).join(","))].join("\r\n") + "\r\n" });
    } catch (failure) {
      for (const { id, name } of made) await remove("/v1/keys/" + id).catch(() => uncertain.push(name));
      set({ error: `${failure.message} ${uncertain.length ? `These keys may have been created. Look for them in the list, and delete them: ${uncertain.join(", ")}.` : "No key is created."}` });
    }
    beat();
  };
  if (created) return html`<form method="dialog"><h2>${plural(read.keys.length, "key")} created</h2><p role="status">This is the only time that the secrets are shown. Save the file, and give each person theirs.</p>
      <p class="bar-row"><a href=${"data:text/csv;charset=utf-8," + encodeURIComponent(created)} download="secrets.csv">Save secrets.csv</a> <${Copy} text=${() => created} /></p><p class="bar-row"><button class="primary">Done</button></p></form>`;
  const problem = error || (text.trim() && read.error);
  return html`<form onSubmit=${create}><h2>Import keys</h2>
      <label>Rows of CSV, or of a spreadsheet. The first names the columns: ${columns.join(", ")}.<textarea name="rows" rows="7" required autofocus spellcheck="false" disabled=${done !== undefined} placeholder=${"name,owner,user,project\nada,ada@example.com,ada@example.com,search"} value=${text} onInput=${(e) => (write(e.target.value), set({}))}></textarea></label>
      <label>or a file <input type="file" accept=".csv,.tsv,text/csv" onChange=${(e) => e.target.files[0]?.text().then((file) => (write(file), set({})))} /></label>
      ${problem ? html`<p class="notice bad" role="alert">${problem}</p>` : text.trim() && html`<p role="status">${done === undefined ? `${plural(read.keys.length, "key")}. If one fails, the others are deleted again.` : `${count(done)} of ${plural(read.keys.length, "key")}. They are deleted again if you close this.`}</p>
      <${Table} label="Preview" keyOf=${(k) => k.name} rows=${read.keys.slice(0, shown)} columns=${read.names.map((name) => ({ title: name, cell: (k) => textOf(k[name === "expires" ? "expires_at" : name]) }))} />`}
      <p class="bar-row"><button class="primary" disabled=${!read.keys?.length || done !== undefined}>${read.keys?.length ? `Create ${plural(read.keys.length, "key")}` : "Create"}</button><button type="button" onClick=${close}>Cancel</button></p></form>`;
}
