// The rows of a list: page after page, and at its top those that come in.
import { useEffect, useLayoutEffect, useRef, useState } from "./html.js";
import { lines, page as getPage } from "./api.js";

const pageSize = 100;
const kept = 2000; // rows on each side of those in sight; others are asked for again
const most = 5000; // rows that come in before the list begins anew
const pace = 200; // milliseconds between two looks at what came in

// Pages are the rows of a question. top are those that came in since the first page,
// fresh those that wait until nobody reads.
class Pages {
  top = [];
  fresh = [];
  pages = [];
  known = new Set(); // ids
  loading = true;
  abort = new AbortController();

  constructor(question, before, draw) {
    Object.assign(this, { question, rows: before, draw });
    this.load();
  }

  // ask reads the page behind a cursor. A search in bodies answers it in parts.
  async ask(after, limit = pageSize, take = () => {}) {
    const body = { filter: this.question.filter, includeContent: false, includePreview: this.question.preview, limit, after };
    const data = [];
    let next;
    const part = (answer) => {
      data.push(...answer.data);
      next = answer.next;
      take(answer);
    };
    if (!this.question.search) part(await getPage("/v1/request/query-clickhouse", { ...body, sort: this.question.sort }, this.abort.signal));
    else for await (const line of lines("/v1/request/search", body, this.abort.signal)) part(line);
    return { data, next };
  }

  changed() {
    this.rows = [...this.top, ...this.pages.flatMap((page) => page.rows)];
    this.draw();
  }

  // unknown are the rows that the list does not have, which it has from now on.
  unknown(rows) {
    return rows.filter((r) => !this.known.has(r.request_id) && this.known.add(r.request_id));
  }

  // load asks for the next page.
  load() {
    if (this.asking) return;
    const { signal } = this.abort;
    const page = { after: this.next, rows: [] };
    const take = (answer) => {
      if (signal.aborted) return;
      this.loading = false;
      this.searched = answer.searched_back_to;
      page.rows = [...page.rows, ...this.unknown(answer.data)];
      this.changed();
    };
    this.pages.push(page);
    this.asking = this.ask(page.after, pageSize, take).then(({ next }) => ({ next }), (error) => ({ error, loading: false })).then((end) => {
      if (signal.aborted) return;
      Object.assign(this, end, { asking: null });
      this.draw();
    });
  }

  // retry asks for the page that failed.
  retry() {
    this.error = null;
    this.pages.pop();
    this.load();
  }

  // again begins with the first page.
  again() {
    this.abort.abort();
    Object.assign(this, { abort: new AbortController(), asking: null, top: [], fresh: [], pages: [], known: new Set(), next: undefined, missed: false });
    this.load();
  }

  // see is told which rows are in sight. Of pages far away it keeps the ids alone.
  see(first, last) {
    let at = this.top.length;
    let dropped = false;
    for (const page of this.pages) {
      const end = at + page.rows.length;
      if (page.gone && at < last && end > first) this.restore(page);
      else if (!page.gone && (at > last + kept || end < first - kept)) {
        page.rows = page.rows.map(({ request_id }) => ({ request_id, gone: true }));
        page.gone = dropped = true;
      }
      at = end;
    }
    if (dropped) this.changed();
    if (last >= this.rows.length - 10 && this.next && !this.error) this.load();
  }

  // restore asks for the rows of a page again. There may be more of them by now.
  async restore(page) {
    page.gone = false;
    const { data } = await this.ask(page.after, 2 * pageSize).catch((error) => {
      this.error = error;
      return { data: [] };
    });
    const rows = new Map(data.map((r) => [r.request_id, r]));
    page.rows = page.rows.map((r) => rows.get(r.request_id) || r);
    this.changed();
  }

  // add takes rows that came in. They wait while somebody reads, which is when the
  // list is scrolled or a request is open.
  add(rows) {
    const fresh = this.unknown(rows);
    if (!fresh.length) return;
    if (this.fresh.length < most) this.fresh = [...fresh, ...this.fresh].sort((a, b) => (a.request_created_at < b.request_created_at ? 1 : -1));
    else this.missed = true;
    if (reading()) this.draw();
    else this.take();
  }

  take() {
    if (this.missed || this.top.length > most) return this.again();
    this.top = [...this.fresh, ...this.top];
    this.fresh = [];
    this.changed();
  }

  // catchUp asks for what was recorded while nobody followed.
  async catchUp() {
    await this.asking;
    let next, fresh;
    for (let n = 0; n < most / pageSize; n++) {
      const page = await this.ask(next);
      fresh = page.data.filter((r) => !this.known.has(r.request_id));
      this.add(fresh);
      next = page.next;
      if (!next || fresh.length < pageSize) return;
    }
    this.missed = true;
  }

  // follow takes requests as they are recorded, until it is called off. The browser
  // comes again by itself, behind the last request that it got, unless it was refused.
  follow() {
    let source, refused, batch = [];
    const catchUp = () => this.catchUp().catch(() => {}); // the next page shows the error
    const open = () => {
      source = new EventSource(`api/v1/request/tail?filter=${encodeURIComponent(JSON.stringify(this.question.filter))}`);
      source.onmessage = (e) => batch.unshift(JSON.parse(e.data));
      source.onopen = () => (this.connect(true), catchUp());
      source.onerror = () => {
        this.connect(false);
        if (source.readyState !== EventSource.CLOSED) return;
        catchUp();
        refused = setTimeout(open, 3000);
      };
      source.addEventListener("skipped", catchUp);
    };
    open();
    const timer = setInterval(() => this.loading || this.add(batch.splice(0)), pace);
    return () => {
      clearInterval(timer);
      clearTimeout(refused);
      source.close();
      this.connect(false);
    };
  }

  // connect notes whether requests come in as they are recorded.
  connect(connected) {
    this.connected = connected;
    this.draw();
  }
}

// usePages are the rows of a question, and those that come in while it is live.
export function usePages(question, live) {
  const list = useRef();
  const [, draw] = useState(0);
  useLayoutEffect(() => {
    list.current = new Pages(question, list.current?.rows || [], () => draw((n) => n + 1));
    draw((n) => n + 1);
    return () => list.current.abort.abort();
  }, [question]);
  useEffect(() => (live ? list.current.follow() : undefined), [question, live]);
  return list.current || { rows: [], fresh: [], loading: true };
}

const reading = () => document.querySelector("dialog.drawer") || document.querySelector(".table")?.scrollTop > 0;
