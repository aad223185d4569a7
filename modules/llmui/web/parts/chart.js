// Time series as SVG: at most a few hundred points, as the API answers them, with
// a table for those who cannot see it.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { go } from "../state.js";
import { Cut, Table } from "./basics.js";
import { fullMoment, minuteOf, offset, tick } from "../format.js";

const left = 56, bottom = 20, top = 6; // pixels around the plot

// cursors are the charts of the page: they show the same moment.
const cursors = new Set();

const known = (values) => values.filter((v) => v !== null && v !== undefined);

// says is a chart in words.
const says = (title, series, format) =>
  `${title}: ${series.map((s) => (known(s.values).length ? `${s.name} between ${format(Math.min(...known(s.values)))} and ${format(Math.max(...known(s.values)))}` : `${s.name} unknown`)).join(", ")}.`;

// step is the round number not below a rough one.
function step(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
}

const minutes = [1, 5, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7 * 1440, 14 * 1440, 28 * 1440];

// moments are round times of day between two, about as many as fit. Days have 23 or 25
// hours where the clock changes: each moment has the offset of its own time.
export function moments(from, to, fit) {
  const width = (minutes.find((m) => (to - from) / (m * 60e3) <= fit) || 90 * 1440) * 60e3;
  const zone = offset(from) * 60e3;
  const out = [];
  for (let local = Math.ceil((from - zone) / width) * width; ; local += width) {
    const guess = local + zone, t = local + offset(guess) * 60e3;
    if (t >= to) return out;
    if (t >= from) out.push(t);
  }
}

// paths draws bars that stand on those of the series before, or lines that break where
// nothing is known. A value between two gaps is a dot. There are no series before there is a group.
function paths(series, stacked, x, y, width) {
  const base = series[0]?.values.map(() => 0);
  return series.map((s) => {
    let d = "";
    s.values.forEach((v, i) => {
      if (v === null || v === undefined || (stacked && !v)) return;
      if (stacked) d += `M${x(i)} ${y(base[i])}V${y((base[i] += v))}h${width}V${y(base[i] - v)}Z`;
      else {
        const known = (j) => s.values[j] !== null && s.values[j] !== undefined;
        const at = `${x(i) + width / 2} ${y(v)}`;
        d += known(i - 1) ? "L" + at : known(i + 1) ? "M" + at : `M${at}m-2 0h4`;
      }
    });
    return d;
  });
}

function Plot({ times, series, format, stacked, height, plain, colour, label, at, setAt }) {
  const box = useRef();
  const [width, setWidth] = useState(0);
  const [drag, setDrag] = useState(null);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const margin = plain ? 0 : left;
  const drawn = useMemo(() => {
    const slot = Math.max(1, width - margin) / times.length;
    const high = Math.max(...times.map((_, i) => (stacked ? series.reduce((sum, s) => sum + (s.values[i] || 0), 0) : Math.max(0, ...known(series.map((s) => s.values[i]))))), 0) || 1;
    const each = step(high / 4);
    const x = (i) => Math.round((margin + i * slot) * 10) / 10;
    const y = (v) => Math.round((height - bottom - (v / (high * 1.04)) * (height - bottom - top)) * 10) / 10;
    const span = times.length > 1 ? times[1] - times[0] : 60e3;
    return {
      slot, x, shapes: paths(series, stacked, x, y, Math.max(0.5, slot - (slot > 3 ? 1 : 0.2))),
      rows: plain ? [] : Array.from({ length: Math.floor(high / each) + 1 }, (_, i) => [y(i * each), format(i * each).replace(/\.0+(?=\D|$)/, "").replace(/(\.\d\d\d*?)0+$/, "$1")]).filter(([, text], i, all) => text !== all[i - 1]?.[1]),
      columns: moments(times[0], times.at(-1) + span, width / 90).map((t) => [x((t - times[0]) / span), tick(t)]).filter(([x]) => x < width - 16 && x > 20),
    };
  }, [times, series, stacked, width]);
  const index = (e) => Math.max(0, Math.min(times.length - 1, Math.floor((e.clientX - box.current.getBoundingClientRect().left - margin) / drawn.slot)));
  const move = (e) => {
    setAt(index(e));
    if (drag !== null && e.buttons) setDrag({ ...drag, to: index(e) });
  };
  const drop = () => {
    const [from, to] = drag ? [Math.min(drag.from, drag.to), Math.max(drag.from, drag.to)] : [0, 0];
    setDrag(null);
    if (to > from) go({ from: String(times[from]), to: String(times[to] + times[1] - times[0]) });
  };
  return html`<div ref=${box} class="plot" aria-busy=${width === 0}><svg height=${height} width=${width} role="img" aria-label=${label}
      onPointerMove=${move} onPointerLeave=${() => (setAt(null), setDrag(null))} onPointerDown=${(e) => setDrag({ from: index(e), to: index(e) })} onPointerUp=${drop}>
    ${width > 0 && html`${drawn.rows.map(([y, text]) => html`<line class="grid" x1=${margin} x2=${width} y1=${y} y2=${y} /><text x=${margin - 8} y=${y + 4} class="row">${text}</text>`)}
      ${drawn.columns.map(([x, text]) => html`<line class="grid" x1=${x} x2=${x} y1=${top} y2=${height - bottom} /><text x=${x} y=${height - 5}>${text}</text>`)}
      ${drawn.shapes.map((d, i) => html`<path class=${`${colour(i)} ${stacked ? "" : "line"}`} d=${d} />`)}
      ${drag && drag.to !== drag.from && html`<rect class="select" x=${drawn.x(Math.min(drag.from, drag.to))} width=${(Math.abs(drag.to - drag.from) + 1) * drawn.slot} y=${top} height=${height - bottom - top} />`}
      ${at !== null && at < times.length && html`<line class="cursor" x1=${drawn.x(at) + drawn.slot / 2} x2=${drawn.x(at) + drawn.slot / 2} y1=${top} y2=${height - bottom} />`}`}
  </svg>${width > 0 && at !== null && at < times.length && html`<${Tip} time=${times[at]} left=${at < times.length / 2 ? drawn.x(at) + drawn.slot + 8 : null} right=${width - drawn.x(at) + 8} rows=${series.map((s, i) => [colour(i), s.name, format(s.values[at])])} />`}</div>`;
}

// Tip has the values at a moment, beside it.
const Tip = ({ time, left, right, rows }) => html`<div class="tip panel" aria-hidden="true" style=${left === null ? { right: right + "px" } : { left: left + "px" }}><time>${minuteOf(time)}</time>${rows.map(([colour, name, value]) => html`<span><i class=${"key " + colour}></i><span>${name}</span><b>${value}</b></span>`)}</div>`;

// coloursOf gives each name a colour that it has whatever its rank: others that are there matter
// only if two names want the same. null is the rest.
export function coloursOf(names) {
  const taken = new Map();
  for (const name of names.filter((n) => n !== null).sort()) {
    let at = [...name].reduce((sum, c) => (sum * 31 + c.codePointAt(0)) % 6007, 7) % 6;
    while (taken.size < 6 && [...taken.values()].includes(at)) at = (at + 1) % 6;
    taken.set(name, at);
  }
  return names.map((name) => (name === null ? "rest" : "c" + (taken.get(name) + 1)));
}

// Chart draws series of {name, values} over times in milliseconds, stacked bars or
// lines, and nothing without times. Dragging over it narrows the view's time.
export function Chart({ title, times, series, format, stacked, height = 150, colours = [], plain }) {
  const [asTable, setAsTable] = useState(false);
  const [at, setAt] = useState(null);
  useEffect(() => {
    cursors.add(setAt);
    return () => cursors.delete(setAt);
  }, []);
  const colour = (i) => colours[i] || "c" + ((i % 6) + 1);
  return times.length > 0 && html`<figure class="chart panel ${plain ? "plain" : ""}" style=${{ "--height": height + "px" }}>
    <figcaption><span>${title}</span><span class="spring"></span>
      ${series.length > 1 && html`<span class="legend">${series.map((s, i) => html`<span key=${s.name}><i class=${"key " + colour(i)} aria-hidden="true"></i><${Cut} text=${s.name} /></span>`)}</span>`}
      <button class="quiet" aria-pressed=${asTable} aria-label=${`${title} as a table`} onClick=${() => setAsTable(!asTable)}>${asTable ? "Chart" : "Table"}</button>
    </figcaption>
    ${asTable
      ? html`<${Table} label=${title} rows=${times} keyOf=${(t) => t} columns=${[{ title: "Time", cell: fullMoment }, ...series.map((s) => ({ title: s.name, number: true, cell: (_, i) => format(s.values[i]) }))]} />`
      : html`<${Plot} times=${times} series=${series} format=${format} stacked=${stacked} height=${height} plain=${plain} colour=${colour} label=${says(title, series, format)}
          at=${at} setAt=${(i) => cursors.forEach((set) => set(i))} />`}
  </figure>`;
}
