// The rows of a list: page after page, and at its top those that come in.
import { useEffect, useRef, useState } from "./html.js";
import { page as getPage, post } from "./api.js";

const pageSize = 100;
const path = "/v1/request/query-clickhouse";
const pause = 1000; // milliseconds between two looks for new rows

// usePages asks for a page after the other. While it is live, new rows go to the
// top; they wait there while somebody reads, which is when the list is scrolled or
// a request is open.
export function usePages(question, live) {
  const [state, set] = useState({ rows: [], fresh: [], loading: true, ended: true });
  const asking = useRef();
  const next = useRef(); // the cursor behind the last row
  const ask = (rows) => {
    if (asking.current && rows.length) return;
    asking.current?.abort();
    const abort = (asking.current = new AbortController());
    getPage(path, { ...question, includeContent: false, limit: pageSize, after: rows.length ? next.current : undefined }, abort.signal).then(
      (page) => {
        asking.current = null;
        next.current = page.next;
        set((old) => ({ rows: rows.length ? [...old.rows, ...page.data] : page.data, fresh: rows.length ? old.fresh : [], ended: !page.next }));
      },
      (error) => {
        if (error.name !== "AbortError") set({ rows, fresh: [], error, ended: true });
      },
    );
  };
  useEffect(() => {
    set((old) => ({ ...old, loading: true, ended: true }));
    ask([]);
    return () => {
      asking.current?.abort();
      asking.current = null;
    };
  }, [question]);

  useEffect(() => {
    if (!live) return;
    const abort = new AbortController();
    let timer;
    const look = () =>
      post(path, { ...question, includeContent: false, limit: pageSize }, abort.signal).then(
        (page) => {
          set((old) => {
            const known = new Set([...old.fresh, ...old.rows].map((r) => r.request_id));
            const fresh = [...page.filter((r) => !known.has(r.request_id)), ...old.fresh];
            return reading() ? { ...old, fresh } : { ...old, rows: [...fresh, ...old.rows], fresh: [] };
          });
          timer = setTimeout(look, pause);
        },
        (error) => error.name !== "AbortError" && (timer = setTimeout(look, 3 * pause)),
      );
    look();
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [question, live]);

  const take = () => set((old) => ({ ...old, rows: [...old.fresh, ...old.rows], fresh: [] }));
  return { ...state, waiting: state.fresh.length, take, more: () => !state.ended && ask(state.rows) };
}

const reading = () => document.querySelector("dialog.drawer") || document.querySelector(".table")?.scrollTop > 0;
