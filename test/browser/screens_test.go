package browser

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func TestAViewIsSavedUnderAName(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	p := newTab(w)
	p.login(w.key)
	p.show("?v=requests&f=model:equals:echo-1&from=1h")
	p.do(chromedp.Click(chromedp.CSS("#menu-views summary")), chromedp.SendKeys(chromedp.CSS(".saved input"), "only <echo>/1\r"))
	p.until(`document.querySelector(".saved a")?.innerText === "only <echo>/1"`)

	colleague := newTab(w)
	colleague.login(w.key)
	colleague.do(chromedp.Click(chromedp.CSS("#menu-views summary")), chromedp.Click(chromedp.CSS(".saved a")))
	colleague.until(`location.search.includes("from=1h") && document.querySelector(".chip").innerText.includes("echo-1") && document.querySelector("h1").innerText === "Requests"`)
	js[bool](colleague, `(document.querySelector(".saved [aria-label^=Delete]").click(), true)`)
	colleague.until(`document.querySelector("#menu-views").innerText.includes("Nothing is saved")`)
}

func TestTheDrawerKeepsTheFocus(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	p.show("?v=requests&from=7d")
	ids := p.ids()
	p.press("j")
	p.until(`document.querySelector("dialog.drawer [role=tabpanel]")`)
	for range 40 { // more than it has to stop at
		p.press("\t")
		if js[bool](p, `document.activeElement !== document.body && !document.querySelector("dialog.drawer").contains(document.activeElement)`) {
			t.Fatalf("the focus leaves the drawer for %s", js[string](p, `document.activeElement.outerHTML`))
		}
	}
	// A click on another request opens it, one beside the list closes the drawer.
	const click = `(() => { const at = document.querySelectorAll("tr[data-id]")[2].getBoundingClientRect(); return [at.left + 20, at.top + 16] })()`
	at := js[[]float64](p, click)
	p.do(chromedp.MouseClickXY(at[0], at[1]))
	p.until(`location.search.includes(%s) && document.querySelector("dialog.drawer[open]")?.dataset.id === %s`, quote(ids[2]), quote(ids[2]))
	p.settled()
	p.do(chromedp.MouseClickXY(20, 700))
	p.until(`!document.querySelector("dialog.drawer") && !location.search.includes("id=")`)
}

func TestATurnShowsWhereThePrefixBroke(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	turn := func(session string, headers []string, texts ...string) {
		var messages []any
		for i, text := range texts {
			messages = append(messages, map[string]string{"role": []string{"system", "user", "assistant"}[min(i, 1+(i+1)%2)], "content": text})
		}
		w.post("/echo/v1/chat/completions", map[string]any{"model": "echo-" + session, "messages": messages}, append(headers, "Service-Session-Id: "+session)...)
		time.Sleep(2 * time.Millisecond) // calls of one millisecond have no order
	}
	padding := strings.Repeat("the same words ", 40)
	turn("broken", nil, padding+"today is Monday", "hello")
	turn("broken", nil, padding+"today is Tuesday", "hello", "You said: hello", "and now?")
	turn("unanswered", nil, "you are helpful", "hello")
	turn("unanswered", []string{"Service-Omit-Response: true"}, "you are helpful", "hello", "You said: hello", "and now?")
	turn("omitted", []string{"Service-Omit-Request: true"}, "you are helpful", "hello")
	turn("omitted", nil, "you are helpful", "hello", "You said: hello", "and now?")
	w.until(6)
	p := newTab(w)
	p.login(w.key)
	for session, shows := range map[string]string{
		"broken":     `[...document.querySelectorAll("[role=tabpanel] :is(del, ins)")].map((m) => m.innerText).join() === "Monday,Tuesday"`,
		"unanswered": `document.querySelector("[role=tabpanel]").innerText.includes("The response is not kept")`,
		"omitted":    `document.querySelector("[role=tabpanel]").innerText.includes("The request of the turn before is not kept")`,
	} {
		p.show("?v=requests&f=session_id:equals:" + session)
		p.press("j")
		p.until(`document.querySelector("dialog.drawer [role=tabpanel]")`)
		p.press("]")
		p.until("%s", shows)
		p.press("\x1b")
		p.until(`!document.querySelector("dialog.drawer")`)
	}
}

func TestADrawerIsAboutItsRequest(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	call := func(id, city string) any {
		return map[string]any{"id": id, "type": "function", "function": map[string]string{"name": "weather", "arguments": `{"city":"` + city + `"}`}}
	}
	w.post("/echo/v1/chat/completions", map[string]any{"model": "echo-1", "messages": []any{
		map[string]string{"role": "user", "content": "hello"},
		map[string]any{"role": "assistant", "tool_calls": []any{call("a", "Oslo"), call("b", "Bergen")}},
		map[string]string{"role": "tool", "tool_call_id": "b", "content": "rain"},
		map[string]string{"role": "tool", "tool_call_id": "a", "content": "snow"},
	}})
	w.chat("echo-1", "it's another")
	w.until(2)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=requests&sort=created_at")
	p.press("j")
	p.until(`document.querySelectorAll(".call").length === 4`) // two calls with their results
	if said := js[string](p, `[...document.querySelectorAll(".call > .call")].map((result) => result.parentElement.innerText.match(/Oslo|Bergen/) + " " + result.querySelector("pre").innerText).join()`); said != "Oslo snow,Bergen rain" {
		t.Errorf("the calls have the results %s", said)
	}

	const pressed = `[...document.querySelectorAll(".feedback [aria-pressed=true]")].length`
	p.do(chromedp.Click(chromedp.CSS(".feedback button")))
	p.until(pressed + ` === 1`)
	p.press("j")
	p.until(`document.querySelector("[role=tabpanel]").innerText.includes("it's another")`)
	if js[int](p, pressed) != 0 {
		t.Error("a request shows the rating of the one before it")
	}

	js[bool](p, `(navigator.clipboard.writeText = async (text) => (window.copied = text), [...document.querySelectorAll(".drawer button")].find((button) => button.innerText === "Copy as curl").click(), true)`)
	p.until(`window.copied`)
	if curl := js[string](p, `copied`); !strings.HasPrefix(curl, `printf %s '{`) || !strings.Contains(curl, `' | curl "$BASE_URL"'/v1/chat/completions' `) || !strings.Contains(curl, `it'\''s another`) {
		t.Errorf("the command is %s", curl)
	}
}

func TestAScoreStandsAtItsTime(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	p.show("?v=scores&from=7d")
	js[bool](p, `(document.querySelector(".score [aria-pressed]").click(), true)`)
	p.until(`document.querySelector(".score figure tbody tr")`)
	times := js[[]float64](p, `[...document.querySelectorAll(".score figure tbody td:first-child")].map((cell) => Date.parse(cell.innerText))`)
	for i := range times {
		if i > 0 && times[i]-times[i-1] != float64(time.Hour.Milliseconds()) {
			t.Errorf("an hour of the chart is %v milliseconds after the one before it", times[i]-times[i-1])
		}
	}
	if len(times) < 12 {
		t.Errorf("%d hours have scores", len(times))
	}
}

func TestTimesAreThoseOfTheBrowserOrUTC(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	if _, err := chromedp.Call(p.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Kolkata"}); err != nil {
		t.Fatal(err)
	}
	p.login(w.key)
	p.show("?v=requests&from=1767225600000&to=1767312000000&sort=-cost") // all of New Year's Day, in UTC
	edges := func(want string) {
		t.Helper()
		p.until(`[...document.querySelectorAll(".times input")].map((field) => field.value).join(" – ") === %s`, quote(want))
	}
	edges("Jan 1, 2026, 05:30 – Jan 2, 2026, 05:30")
	p.leave(`[...document.querySelectorAll("nav button")].find((button) => button.innerText === "Times: Asia/Calcutta" || button.innerText === "Times: Asia/Kolkata").click()`)
	edges("Jan 1, 2026, 00:00 – Jan 2, 2026, 00:00")
	write := func(text string) {
		t.Helper()
		js[bool](p, `((field) => (field.value = `+quote(text)+`, field.dispatchEvent(new Event("change", {bubbles: true}))))(document.querySelector(".times input"))`)
	}
	write("tomorrow, perhaps")
	p.until(`document.querySelector(".times input").validationMessage.includes("Jan 1, 2026, 00:00")`)
	write("Jan 3, 2026, 00:00")
	p.until(`document.querySelector(".times input").validationMessage.includes("ends before it begins")`)
	for _, text := range []string{"2026-01-01 12:00", "Jan 1, 2026, 12:00"} {
		write(text)
		p.until(`location.search.includes("from=1767268800000")`)
		edges("Jan 1, 2026, 12:00 – Jan 2, 2026, 00:00")
		p.show("?v=requests&from=1767225600000&to=1767312000000&sort=-cost")
	}
}

func TestASearchInBodiesShowsWhatItFinds(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	for i := range 130 { // more than a page
		w.chat("echo-1", []string{"a needle", "hay"}[min(1, i%13%12)])
	}
	w.until(130)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=requests&f=request_body:contains:NEEDLE")
	p.until(`document.querySelector("[role=status]")?.innerText === "All bodies are searched." && document.querySelector("[aria-rowcount]").ariaRowCount === "20"`)
	p.show("?v=requests&f=request_body:contains:nothing")
	p.until(`document.querySelector("main").innerText.includes("No request matches")`)
	p.show("?v=requests&f=response_body:contains:said")
	p.until(`(document.querySelector(".table").scrollTop = 1e9, document.querySelector("[role=status]").innerText === "All bodies are searched.")`)
	if ids := p.allIDs(); len(ids) != 130 {
		t.Errorf("%d of 130 requests are found", len(ids))
	}
}

func TestACallShowsItsAttemptsAndCharges(t *testing.T) {
	t.Parallel()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(broken.Close)
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte(`{
	admin 127.0.0.1:{$WEIR_ADMIN_PORT}
	persist_config off
	llm {
		store sqlite {$WEIR_DATA}/weir.db
		key weir-quickstart
		provider broken vllm {
			base_url `+broken.URL+`/v1
			models m
		}
		provider echo
		alias pair broken/m echo/echo-1
	}
}

http://127.0.0.1:{$WEIR_PORT} {
	llm_gateway
	llm_query
	llm_ui
}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWeir(t, config)
	w.post("/v1/responses", map[string]any{"model": "pair", "input": "hello"}, "Authorization: Bearer "+w.key)
	type record struct {
		ID string `json:"request_id"`
		Of string `json:"attempt_of"`
	}
	var records []record
	for deadline := time.Now().Add(limit); len(records) < 2; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d records of two attempts", len(records))
		}
		records = nil // null leaves what an element of another answer had
		w.query("/v1/request/query-clickhouse", map[string]any{"filter": "all", "includeContent": false}, &records)
	}
	p := newTab(w)
	p.login(w.key)
	for _, r := range records { // the one that answered, and those that did not
		p.show("?v=requests&tab=timing&id=" + r.ID)
		p.until(`document.querySelectorAll("[aria-label=Attempts] tbody tr").length === %d`, len(records))
		if text := js[string](p, `document.querySelector("[aria-label=Attempts]").innerText`); len(records) < 2 || !strings.Contains(text, "503") || !strings.Contains(text, "200") {
			t.Errorf("%d attempts, and the page shows %s", len(records), text)
		}
	}
	answer := slices.IndexFunc(records, func(r record) bool { return r.Of == "" })
	if answer < 0 {
		t.Fatal("no attempt answered")
	}
	p.show("?v=requests&tab=cost&id=" + records[answer].ID)
	p.until(`/input\s+\d+\s+\$[\d.]+ a million\s+\$/.test(document.querySelector("[aria-label=Charges]")?.innerText)`)
	p.show("?v=requests&tab=cost&id=" + records[1-answer].ID)
	p.until(`document.querySelector(".drawer .notice")?.innerText.endsWith("cost nothing.")`)
}
