// Differences of lists and of texts, as steps [kind, then, now]: "same", "gone", "new", or
// "edited" for two that stand for each other. Pure functions.

const most = 1500; // elements of a list that are compared with each other

// compare pairs two lists by an equality, with as many pairs as possible in order.
export function compare(then, now, same) {
  let head = 0, tail = 0;
  while (head < Math.min(then.length, now.length) && same(then[head], now[head])) head++;
  while (tail < Math.min(then.length, now.length) - head && same(then.at(-1 - tail), now.at(-1 - tail))) tail++;
  const a = then.slice(head, then.length - tail), b = now.slice(head, now.length - tail);
  const steps = then.slice(0, head).map((x, i) => ["same", x, now[i]]);
  if (a.length * b.length > most * most) steps.push(...a.map((x) => ["gone", x]), ...b.map((x) => ["new", undefined, x]));
  else {
    const width = b.length + 1, longest = new Uint16Array((a.length + 1) * width);
    for (let i = a.length - 1; i >= 0; i--)
      for (let j = b.length - 1; j >= 0; j--) longest[i * width + j] = same(a[i], b[j]) ? longest[(i + 1) * width + j + 1] + 1 : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    for (let i = 0, j = 0; i < a.length || j < b.length; ) {
      if (i < a.length && j < b.length && same(a[i], b[j])) steps.push(["same", a[i++], b[j++]]);
      else if (i < a.length && (j === b.length || longest[(i + 1) * width + j] >= longest[i * width + j + 1])) steps.push(["gone", a[i++]]);
      else steps.push(["new", undefined, b[j++]]);
    }
  }
  for (let i = tail; i > 0; i--) steps.push(["same", then.at(-i), now.at(-i)]);
  return steps;
}

// paired makes "edited" of what is gone and what has come in its place.
export function paired(steps) {
  const out = [];
  for (let i = 0; i < steps.length; ) {
    if (steps[i][0] === "same") {
      out.push(steps[i++]);
      continue;
    }
    const end = steps.findIndex(([kind], j) => j > i && kind === "same");
    const run = steps.slice(i, end < 0 ? steps.length : end);
    const gone = run.filter(([kind]) => kind === "gone"), fresh = run.filter(([kind]) => kind === "new");
    for (let j = 0; j < Math.max(gone.length, fresh.length); j++) out.push(gone[j] && fresh[j] ? ["edited", gone[j][1], fresh[j][2]] : gone[j] || fresh[j]);
    i += run.length;
  }
  return out;
}

// words is the difference of two texts, by words: [kind, text] with neighbours joined.
export function words(then, now) {
  const split = (text) => text.split(/(\s+|[^\p{L}\p{N}\s])/u).filter(Boolean);
  const out = [];
  for (const [kind, a, b] of compare(split(then), split(now), (x, y) => x === y)) {
    if (out.at(-1)?.[0] === kind) out.at(-1)[1] += b ?? a;
    else out.push([kind, b ?? a]);
  }
  return out;
}
