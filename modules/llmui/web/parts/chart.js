// Time series, drawn by uPlot on a canvas, with a table for those who cannot see it.
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { go } from "../state.js";
import { fullMoment } from "../format.js";

const sum = (values) => values.reduce((a, b) => (b == null ? a : (a ?? 0) + b), null);

// stack adds each series to those below it, which is what stacked areas draw.
function stack(series) {
  const total = series[0].values.map(() => 0);
  return series.map((s) => s.values.map((v, i) => (total[i] += v ?? 0)));
}

// Chart draws series of {name, values} over times in milliseconds. Dragging over
// it narrows the view's time. Charts with the same sync share their cursor.
export function Chart({ title, times, series, format, stacked, sync = "time", height = 150 }) {
  const box = useRef();
  const [asTable, setAsTable] = useState(false);
  const data = useMemo(() => {
    const drawn = stacked ? stack(series).reverse() : series.map((s) => s.values);
    return [times.map((t) => t / 1000), ...drawn];
  }, [times, series, stacked]);

  useEffect(() => {
    if (asTable) return;
    const figure = box.current.closest("figure");
    const ink = getComputedStyle(figure.querySelector(".legend")).color;
    const colours = [...figure.querySelectorAll(".legend i")].map((i) => getComputedStyle(i).backgroundColor);
    const named = stacked ? [...series].reverse() : series;
    const axis = { stroke: ink, grid: { stroke: "rgb(128 128 128 / .15)", width: 1 }, ticks: { show: false }, font: "11px system-ui" };
    const plot = new uPlot(
        {
          width: box.current.clientWidth,
          height,
          legend: { show: false },
          cursor: { sync: { key: sync }, drag: { x: true, y: false, setScale: false }, y: false },
          scales: { y: { range: (_, min, max) => [Math.min(0, min ?? 0), max > 0 ? max * 1.08 : 1] } },
          axes: [{ ...axis }, { ...axis, size: 62, values: (_, ticks) => ticks.map(format) }],
          series: [{}, ...named.map((s) => {
            const i = series.indexOf(s);
            return { label: s.name, stroke: colours[i], width: 1.5, fill: stacked ? colours[i] : undefined, points: { show: times.length < 3 }, spanGaps: false };
          })],
          hooks: {
            setSelect: [(u) => {
              if (u.select.width < 4) return;
              go({ from: String(Math.round(u.posToVal(u.select.left, "x") * 1000)), to: String(Math.round(u.posToVal(u.select.left + u.select.width, "x") * 1000)) });
            }],
          },
        },
        data,
        box.current,
      );
    const watch = new ResizeObserver(() => plot.setSize({ width: box.current.clientWidth, height }));
    watch.observe(box.current);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [data, asTable]);

  const sentence = `${title}: ${series.map((s) => `${s.name} ${format(sum(s.values))}`).join(", ")} in total.`;
  return html`<figure class="chart">
    <figcaption><span>${title}</span>
      <span class="legend">${series.map((s, i) => html`<span><i class=${"c" + ((i % 6) + 1)} aria-hidden="true"></i>${s.name}</span>`)}</span>
      <button class="quiet" aria-pressed=${asTable} onClick=${() => setAsTable(!asTable)}>${asTable ? "Chart" : "Table"}</button>
    </figcaption>
    ${asTable
      ? html`<div class="scroll"><table><thead><tr><th scope="col">Time</th>${series.map((s) => html`<th scope="col" class="number">${s.name}</th>`)}</tr></thead>
          <tbody>${times.map((t, i) => html`<tr><td>${fullMoment(t)}</td>${series.map((s) => html`<td class="number">${format(s.values[i])}</td>`)}</tr>`)}</tbody></table></div>`
      : html`<div ref=${box} class="plot" role="img" aria-label=${sentence}></div>`}
  </figure>`;
}
