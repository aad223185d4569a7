package browser

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A user and a model have a page: what they cost, how it went, and their costliest sessions.
func TestAUserAndAModelHaveAPage(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	for range 3 {
		w.chat("echo-1", "hello", "Service-User-Id: ada", "Service-Session-Id: long", "Service-Session-Name: Long")
	}
	w.chat("echo-2", "hello", "Service-User-Id: bo")
	w.until(4)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=users")
	p.do(chromedp.Click(chromedp.CSS("[aria-label=Users] [title=ada]")))
	p.until(`document.querySelector(".heading h2")?.innerText === "User ada" && document.querySelector(".tile strong")?.innerText === "3"`)
	p.until(`!document.querySelector("[aria-label=Users]") && document.querySelector("[aria-label=Models] tbody")?.innerText.startsWith("echo-1") && document.querySelector("[aria-label=Sessions] tbody")?.innerText.startsWith("Long")`)
	p.do(chromedp.Click(chromedp.CSS("[aria-label=Models] tbody a")))
	p.until(`document.querySelectorAll(".chip").length === 2 && document.querySelector(".tile strong")?.innerText === "3"`)
	p.show("?v=models")
	p.do(chromedp.Click(chromedp.CSS("[aria-label=Model] [title=echo-2]")))
	p.until(`document.querySelector(".heading h2")?.innerText === "Model echo-2" && document.querySelector("[aria-label=Users] tbody")?.innerText.startsWith("bo")`)
}

// Today is a view that everybody has, beside yesterday until the same time.
func TestTodayIsAView(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	w.chat("echo-1", "hello")
	w.until(1)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=requests&f=model:equals:none&from=7d")
	p.do(chromedp.Click(chromedp.CSS("#menu-views summary")))
	p.until(`document.querySelector("#menu-views a")?.innerText === "Today"`)
	p.do(chromedp.Click(chromedp.CSS("#menu-views a")))
	p.until(`document.querySelector("h1").innerText === "Overview" && document.querySelector("[aria-label=Time]").value === "today" && document.querySelector(".tile strong")?.innerText === "1"`)
	p.until(`document.querySelector("main").innerText.includes("Beside yesterday until this time")`)
}

// The forecast of the month names its basis, of which days before the first request are
// no part.
func TestTheForecastHasABasis(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	w.reportAt(rand.New(rand.NewPCG(1, 1)), "common", time.Now().AddDate(0, 0, -2), time.Now().AddDate(0, 0, -1))
	w.until(2)
	p := newTab(w)
	p.login(w.key)
	p.show("?from=7d")
	p.until(`document.querySelector(".tile:last-child")?.innerText.includes("in all")`)
	var metrics struct{ Totals struct{ Cost float64 } }
	w.query("/v1/metrics/query", map[string]any{"bucket": "none"}, &metrics)
	if metrics.Totals.Cost == 0 {
		t.Fatal("the calls cost nothing")
	}
	want := js[string](p, fmt.Sprintf(`import("./format.js").then(({dollars}) => "at " + dollars(%v / 2) + ", the mean of the 2 days before today")`, metrics.Totals.Cost))
	p.until(`document.querySelector(".tile:last-child [title*=mean]").title.includes(%s)`, quote(want))
}

// What no provider has billed is not unpriced.
func TestOnlyWhatIsBilledIsUnpriced(t *testing.T) {
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	broken.Close() // nobody is there
	t.Setenv("OPENAI_UPSTREAM", broken.URL)
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	_, _ = w.try("/openai/v1/chat/completions", []byte(`{"model":"gpt-5-mini","messages":[]}`))
	w.until(1)
	p := newTab(w)
	p.login(w.key)
	p.until(`document.querySelector(".tile strong")?.innerText === "1" && document.querySelector(".tiles").innerText.includes("1 failed")`)
	if js[bool](p, `document.querySelector(".tiles").innerText.includes("unpriced")`) {
		t.Error("a call that reached no provider is unpriced")
	}
}

// The calls of a session that call a tool are found by the tool's name.
func TestCallsOfASessionAreFoundByTool(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	session := states(w)[11]
	p := w.tab(t)
	p.login(w.key)
	p.show(session)
	p.until(`document.querySelector(".trace .tools b")`)
	p.do(chromedp.Click(chromedp.CSS("#menu-tools summary")))
	p.until(`document.querySelectorAll("#menu-tools .panel button").length > 1 && !document.querySelector("#menu-tools [role=status]")`)
	name := js[string](p, `(document.querySelector("#menu-tools .panel button").click(), document.querySelector("#menu-tools .panel button").innerText.split(" ")[0])`)
	p.until(`location.search.includes("tool=") && (() => { const calls = [...document.querySelectorAll(".trace tr[data-id]")].filter((r) => !r.dataset.id.startsWith("node")); return calls.length > 0 && calls.every((r) => r.querySelector(".tools")?.innerText.includes(%s)) })()`, quote(name))
	found := js[int](p, `document.querySelectorAll(".trace tr[data-id]").length`)
	p.leave("location.reload()")
	p.until(`document.querySelectorAll(".trace tr[data-id]").length === %d`, found)
}

// Several scores are given, and taken back at any time, as a rating is.
func TestScoresAreTakenBack(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	w.chat("echo-1", "hello")
	w.until(1)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=requests")
	p.press("j")
	p.until(`document.querySelector(".rating")`)
	type record struct {
		ID     string             `json:"request_id"`
		Rating *bool              `json:"feedback_rating"`
		Scores map[string]float64 `json:"scores"`
	}
	// kept leaves the request, which sends what waits, and opens it again.
	kept := func(what string, is func(record) bool) {
		t.Helper()
		p.press("\x1b")
		p.until(`!document.querySelector("dialog.drawer")`)
		var found []record
		for deadline := time.Now().Add(limit); len(found) == 0 || !is(found[0]); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %+v", what, found)
			}
			found = nil // a map that is decoded into keeps what it has
			w.query("/v1/request/query-clickhouse", map[string]any{"filter": "all"}, &found)
		}
		p.press("j")
		p.until(`document.querySelector(".rating")`)
	}
	for name, value := range map[string]string{"tone": "2", "accuracy": "0.5"} {
		p.do(chromedp.Click(chromedp.CSS("#menu-score summary")), chromedp.SendKeys(chromedp.CSS("#menu-score [name=name]"), name), chromedp.SendKeys(chromedp.CSS("#menu-score [name=value]"), value+"\r"))
		p.until(`document.querySelector("#menu-score").textContent.includes(%s)`, quote(name))
		js[bool](p, `((menu) => (menu.open = false, true))(document.querySelector("#menu-score"))`)
	}
	p.do(chromedp.Click(chromedp.CSS(".feedback button")))
	kept("given", func(r record) bool { return len(r.Scores) == 3 && r.Rating != nil })
	p.do(chromedp.Click(chromedp.CSS("#menu-score summary")), chromedp.Click(chromedp.CSS("[aria-label='Remove the score tone']")))
	p.until(`document.querySelector(".rating [role=status]").innerText.includes("Removed tone")`)
	p.do(chromedp.Click(chromedp.CSS(".feedback button")))
	kept("taken back", func(r record) bool { return len(r.Scores) == 1 && r.Scores["accuracy"] == 0.5 && r.Rating == nil })
}

// A comment of somebody else is not replaced by who has not seen it.
func TestACommentOfSomebodyElseStays(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	w.chat("echo-1", "hello")
	w.until(1)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=requests")
	p.press("j")
	p.until(`document.querySelector(".remark input")`)
	comment := func(text string) {
		js[bool](p, `fetch("api/v1/request/"+new URLSearchParams(location.search).get("id")+"/property", {method: "PUT", headers: {"Content-Type": "application/json"}, body: JSON.stringify({key: "Comment", value: `+quote(text)+`})}).then((r) => r.ok)`)
	}
	comment("theirs")
	p.do(chromedp.SendKeys(chromedp.CSS(".remark input"), "mine\r"))
	p.until(`document.querySelector(".rating [role=alert]")?.innerText.includes('"theirs"')`)
	var found []struct{ Properties map[string]string }
	w.query("/v1/request/query-clickhouse", map[string]any{"filter": "all"}, &found)
	if found[0].Properties["Comment"] != "theirs" {
		t.Errorf("the comment is %q", found[0].Properties["Comment"])
	}
}

// All users are reached, page after page.
func TestAllUsersAreReached(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	const users = 250
	for i := range users {
		w.chat("echo-1", "hello", fmt.Sprintf("Service-User-Id: user-%04d", i), fmt.Sprintf("Service-Session-Id: session-%04d", i))
	}
	w.until(users)
	p := newTab(w)
	p.login(w.key)
	for _, screen := range []string{"users", "sessions"} {
		p.show("?v=" + screen)
		seen := map[string]bool{}
		for range 3 {
			for _, name := range js[[]string](p, `[...document.querySelectorAll("main tbody tr td:first-child a")].map((a) => a.innerText)`) {
				seen[name] = true
			}
			js[bool](p, `(document.querySelector(".pager button:last-child").click(), true)`)
			p.settled()
		}
		if len(seen) != users {
			t.Errorf("%s shows %d of %d", screen, len(seen), users)
		}
	}
}

// Names of any length leave room for what stands beside them.
func TestLongNamesLeaveRoom(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	long := strings.Repeat("long-name-", 20)
	w.chat("echo-1", "hello", "Service-User-Id: "+long, "Service-Session-Id: "+long)
	w.until(1)
	p := newTab(w)
	p.login(w.key)
	for _, width := range []int64{1280, 390} {
		p.do(chromedp.EmulateViewport(width, 860))
		p.show("?v=requests&f=user_id:equals:" + long)
		p.until(`document.querySelector(".chip button")?.getBoundingClientRect().right < innerWidth`)
		p.show("?v=sessions&session=" + long)
		p.until(`document.querySelector(".heading")?.getBoundingClientRect().height < 150`)
		p.show("?v=compare&by=model&a=echo-1&b=echo-2")
		p.until(`document.querySelector("[aria-label=Figures] tbody td")?.getBoundingClientRect().width > 75`)
	}
}

// The lowest of all scores are shown, not those of the newest requests alone.
func TestTheLowestScoresAreThoseOfAll(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	const calls = 505 // the distribution is of the newest 500
	score := func(value float64) {
		t.Helper()
		var records []struct {
			ID string `json:"request_id"`
		}
		w.query("/v1/request/query-clickhouse", map[string]any{"filter": "all", "isScored": false, "limit": 1000, "includeContent": false}, &records)
		for _, r := range records {
			w.post("/v1/request/"+r.ID+"/score", map[string]any{"scores": map[string]float64{"tone": value}}, "Authorization: Bearer "+w.key)
		}
	}
	w.chat("echo-1", "the first")
	w.until(1)
	score(-2)
	for range calls - 1 {
		w.chat("echo-1", "hello")
	}
	w.until(calls)
	score(1)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=scores")
	p.until(`document.querySelector("[aria-label='Lowest by tone'] tbody td.number")?.innerText === "-2.00"`)
	js[bool](p, `((order) => (order.value = "desc", order.dispatchEvent(new Event("change", {bubbles: true}))))(document.querySelector(".score .choose select"))`)
	p.until(`document.querySelector("[aria-label='Highest by tone'] tbody td.number")?.innerText === "1.00"`)
	// Of all time, which has no bounds of its own, the page asks once and not with each answer.
	p.show("?v=scores&from=all")
	p.until(`document.querySelector("[aria-label$=' by tone'] tbody td.number")`)
	if asked := js[int](p, `new Promise((done) => {
		const asked = () => performance.getEntriesByType("resource").filter((r) => r.name.includes("/scores/")).length, before = asked();
		setTimeout(() => done(asked() - before), 500);
	})`); asked > 1 {
		t.Errorf("the page asks for the scores %d times in half a second", asked)
	}
}

// A request is found by the id that its provider gave the answer, whenever that was, and
// also if nothing of its content is kept.
func TestAProvidersIDIsFoundAtAnyTime(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	w.chat("echo-1", "hello", "Service-Omit-Request: true", "Service-Omit-Response: true")
	w.until(1)
	var records []struct {
		ID       string `json:"request_id"`
		Provided string `json:"response_id"`
	}
	w.query("/v1/request/query-clickhouse", map[string]any{"filter": "all"}, &records)
	p := newTab(w)
	p.login(w.key)
	p.show("?from=1767225600000&to=1767312000000") // a day long ago
	p.slash()
	p.until(`document.activeElement?.role === "combobox"`)
	p.press(records[0].Provided)
	p.until(`document.querySelector("[role=option][aria-selected=true]")?.innerText.includes("Request")`)
	p.press("\r")
	p.until(`document.querySelector("dialog.drawer")?.dataset.id === %s`, quote(records[0].ID))
	p.open("?v=requests&f=response_id:equals:" + records[0].Provided)
	p.until(`document.querySelectorAll(".table tr[data-id]").length === 1`)
	p.show("?v=requests&f=response_id:not-equals:" + records[0].Provided)
	p.until(`document.querySelector("main").innerText.includes("No request matches")`)
}
