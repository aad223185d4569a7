package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// views are all screens.
var views = []string{"overview", "requests", "sessions", "users", "models", "properties", "scores", "system"}

// sides are the tabs of a request.
var sides = []string{"conversation", "turn", "cost", "timing", "labels", "raw"}

// states are addresses of views, with what the store of the quickstart has.
func states(w *weir) []string {
	var records []struct {
		ID         string            `json:"request_id"`
		Properties map[string]string `json:"properties"`
	}
	w.query("/v1/request/query-clickhouse", map[string]any{"filter": map[string]any{"request_response_rmt": map[string]any{"properties": map[string]any{"Feature": map[string]string{"equals": "research"}}}}, "limit": 1}, &records)
	id, session := records[0].ID, records[0].Properties["Service-Session-Id"]
	list := []string{
		"?v=requests&from=7d", "?v=requests&from=7d&sort=-cost", "?v=requests&from=7d&sort=latency", "?v=requests&from=7d&f=status%3Agte%3A400",
		"?v=requests&from=7d&f=model%3Aequals%3Agpt-4o-mini", "?v=requests&from=7d&f=model%3Acontains%3Aclaude&f=cost%3Agt%3A0.01",
		"?v=requests&from=7d&f=property.Team%3Aequals%3Agrowth", "?v=requests&from=7d&f=response_body%3Acontains%3Atransit",
		"?v=requests&from=7d&f=user_id%3Aequals%3Anobody", "?v=sessions&from=7d", "?v=sessions&from=7d&sort=-total_cost",
		"?v=sessions&from=7d&session=" + session, "?v=sessions&from=7d&session=" + session + "&id=" + id, "?v=users&from=7d&sort=-total_requests", "?v=scores&from=7d", "?from=7d", "?v=models&from=7d", "?v=models&from=7d&sort=requests",
		"?v=properties&from=7d&by=Team", "?v=properties&from=7d&by=Feature", "?v=requests&from=7d&cols=time%2Cid%2Cproperty.Team",
	}
	for _, side := range sides {
		list = append(list, "?v=requests&from=7d&id="+id+"&tab="+side)
	}
	// Two looks at a view show the same when its time does not move between them.
	now := time.Now()
	week := fmt.Sprintf("from=%d&to=%d", now.AddDate(0, 0, -7).UnixMilli(), now.Add(time.Hour).UnixMilli())
	for i := range list {
		list[i] = strings.Replace(list[i], "from=7d", week, 1)
	}
	return list
}

func TestAnAddressIsTheView(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	list := states(w)
	shown := make([]string, len(list))
	for i, address := range list {
		p.show(address)
		shown[i] = p.view()
	}
	for i := len(list) - 2; i >= 0; i-- {
		js[bool](p, `(history.back(), true)`)
		p.until(`location.search === %s`, quote(list[i]))
		p.settled()
		if got := p.view(); got != shown[i] {
			t.Errorf("%s, gone back to: %s", list[i], difference(shown[i], got))
		}
	}
	for i, address := range list {
		if i > 0 {
			js[bool](p, `(history.forward(), true)`)
			p.until(`location.search === %s`, quote(address))
		}
		if i%2 > 0 {
			continue // a colleague loads it
		}
		p.leave("location.reload()")
		if again := p.view(); again != shown[i] {
			t.Errorf("%s, reloaded: %s", address, difference(shown[i], again))
		}
	}
	if same := len(list) - len(slices.Compact(slices.Sorted(slices.Values(shown)))); same > 0 {
		t.Errorf("%d addresses show what another does", same)
	}
	colleague := w.tab(t)
	colleague.login(w.key)
	for i := 1; i < len(list); i += 2 {
		colleague.open(list[i])
		if got := colleague.view(); got != shown[i] {
			t.Errorf("%s, of a colleague: %s", list[i], difference(shown[i], got))
		}
	}
}

func TestKeysVisitTheShownRequestsInOrder(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	p.open("?v=requests&from=7d&f=status%3Agte%3A400&sort=latency")
	ids := p.ids()
	if len(ids) < 5 {
		t.Fatalf("%d requests", len(ids))
	}
	ids = ids[:min(len(ids), 20)]
	at := func() string { return js[string](p, `new URLSearchParams(location.search).get("id")`) }
	var down, up []string
	for range ids {
		p.press("j")
		down = append(down, at())
	}
	for range ids[1:] {
		p.press("k")
		up = append(up, at())
	}
	slices.Reverse(up)
	if !slices.Equal(down, ids) || !slices.Equal(up, ids[:len(ids)-1]) {
		t.Errorf("j visits %q, k %q; the list is %q", down, up, ids)
	}
	p.settled()
	p.press("\x1b")
	p.until(`!document.querySelector("dialog.drawer")`)
	if strings.Contains(js[string](p, "location.search"), "id=") {
		t.Error("the address names a request that is closed")
	}
}

// view is the text of a view whose tables are where they begin: an open request has
// scrolled them to its row, and which rows are drawn depends on that.
func (p *tab) view() string {
	p.t.Helper()
	if js[bool](p, `[...document.querySelectorAll(".table")].filter((table) => table.scrollTop > 0).map((table) => (table.scrollTop = 0)).length > 0`) {
		p.settled()
	}
	return p.text()
}

// difference is the first line in which two texts differ.
func difference(a, b string) string {
	lines, others := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(lines), len(others)) {
		if lines[i] != others[i] {
			return fmt.Sprintf("line %d is %q, and was %q", i, others[i], lines[i])
		}
	}
	return fmt.Sprintf("%d lines, and were %d", len(others), len(lines))
}
