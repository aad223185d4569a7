package browser

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// TestEveryoneCanReadTheScreens asks axe, which knows the rules of WCAG 2.2 that
// a program can check, and the best practices beside them, on every page in both themes.
func TestEveryoneCanReadTheScreens(t *testing.T) {
	t.Parallel()
	axe := requireAxe(t)
	w := quickstart(t)
	p := w.tab(t)
	p.open("")
	p.obeys(axe, "login")
	p.login(w.key)
	all := []string{}
	for _, view := range views {
		all = append(all, "?v="+view+"&from=3h")
	}
	for _, side := range sides {
		all = append(all, states(w)[12]+"&tab="+side)
	}
	var missed []struct {
		ID     string `json:"request_id"`
		Parent string `json:"parent_request_id"`
	}
	w.query("/v1/request/query-clickhouse", map[string]any{"filter": map[string]any{"request_response_rmt": map[string]any{"cache_miss_reason": map[string]any{"equals": "tools_changed"}}}, "limit": 1}, &missed)
	all = append(all, states(w)[11], states(w)[11]+"&by=path", states(w)[11]+"&by=time", "?v=requests&f=body:contains:refund", "?v=requests&from=7d&id="+missed[0].ID,
		"?v=compare&by=model&a=gpt-5-mini&b=gpt-4o-mini", "?v=compare&by=period", "?v=compare&by=property.Team&a=growth&b=support", "?v=compare&a="+missed[0].Parent+"&b="+missed[0].ID,
		"?from=7d&f=user_id:equals:ada", "?from=7d&f=model:equals:gpt-5-mini", "?from=today", "?from=1767225600000&to=1767312000000", "?v=requests&f=user_id:equals:nobody")
	p.looks(all, func(name string, width int64) { p.obeys(axe, name) })
	p.show(states(w)[12] + "&tab=raw") // the last tab, on a phone
	p.until(`document.querySelector("[role=tab][aria-selected=true]").getBoundingClientRect().right <= innerWidth`)
}

// requireAxe reads axe's script.
func requireAxe(t *testing.T) string {
	t.Helper()
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil && os.Getenv("REQUIRE_BROWSER") != "1" {
		t.Skip("run npm ci for axe-core")
	} else if err != nil {
		t.Fatal(err)
	}
	return string(axe)
}

// obeys asks axe for violations of all its rules.
func (p *tab) obeys(axe, name string) {
	p.t.Helper()
	if !js[bool](p, `Boolean(window.axe)`) {
		p.do(chromedp.Evaluate[chromedp.Void](axe + ";0"))
	}
	for _, found := range js[[]string](p, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.map((v) => v.id + ": " + v.help + " " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | ")))`) {
		p.t.Errorf("%s: %s", name, found)
	}
}

// looks shows views in the widths of screens and in both themes. None is wider than the
// screen.
func (p *tab) looks(addresses []string, check func(name string, width int64)) {
	p.t.Helper()
	for _, look := range []struct {
		theme string
		width int64
	}{{"light", 1440}, {"dark", 390}, {"dark", 1280}, {"light", 768}} {
		p.do(chromedp.EmulateViewport(look.width, 900))
		js[bool](p, fmt.Sprintf(`(localStorage.setItem("theme", %q), true)`, look.theme))
		p.open(addresses[0])
		for _, address := range addresses {
			p.show(address)
			check(fmt.Sprintf("%s %d %s", address, look.width, look.theme), look.width)
			if wide := js[float64](p, `document.documentElement.scrollWidth`); wide > float64(look.width) {
				p.t.Errorf("%s at %d is %v wide", address, look.width, wide)
			}
		}
	}
}

// Administrators can read and use their pages, too, whatever the names in them.
func TestEveryoneCanReadTheAdministration(t *testing.T) {
	t.Parallel()
	axe := requireAxe(t)
	w := newAdministered(t, "\t\talias pool {\n\t\t\tstrategy weight\n\t\t\tmodel echo/echo-1 {\n\t\t\t\tarm plain\n\t\t\t\twhen tokens<100000 images=false\n\t\t\t\tlimit max_tokens 4000\n\t\t\t}\n\t\t}")
	long := strings.Repeat("a-long-name-", 20)
	for _, settings := range []map[string]any{
		{"name": "build robot", "owner": "ada@example.com", "scopes": []string{"gateway"}},
		{"name": long, "owner": long, "scopes": []string{"gateway", "query", "write", "admin"}},
	} {
		w.post("/v1/keys", settings, "Authorization: Bearer "+w.key)
	}
	p := newTab(w)
	p.login(w.key)
	w.post("/v1/organization/invites", map[string]any{"email": "ada@example.com", "role": "reader"}, "Authorization: Bearer "+w.key)
	w.post("/v1/holds", map[string]any{"filter": map[string]any{"request_response_rmt": map[string]any{"user_id": map[string]any{"equals": long}}}, "reason": "case 4711"}, "Authorization: Bearer "+w.key)
	w.post("/v1/erasures", map[string]any{"filter": "all", "what": "record"}, "Authorization: Bearer "+w.key)
	p.looks([]string{"?v=keys", "?v=people", "?v=audit", "?v=budgets", "?v=alerts", "?v=privacy", "?v=projects", "?v=connect", "?v=mine", "?v=errors", "?v=routes"}, func(name string, width int64) {
		p.shoot(strings.NewReplacer("?v=", "", " ", "-").Replace(name))
		p.obeys(axe, name)
		if cut := js[[]string](p, `[...document.querySelectorAll("main td button, main td summary")].filter((e) => e.checkVisibility() && (e.scrollWidth > e.clientWidth + 1 || e.getBoundingClientRect().right > Math.min(innerWidth, e.closest(".scroll, .table").getBoundingClientRect().right))).map((e) => e.innerText)`); len(cut) > 0 {
			t.Errorf("%s cuts off %q", name, cut)
		}
	})
}

func TestTheKeyboardReachesEverything(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	for key, title := range map[string]string{"r": "Requests", "s": "Sessions", "u": "Users", "m": "Models & cache", "p": "Properties", "c": "Scores", "y": "System", "o": "Overview"} {
		p.press("g")
		p.press(key)
		p.until(`document.querySelector("h1").innerText === %s`, quote(title))
	}
	p.open("")
	p.press("\t") // past the bars, to the first row
	p.until(`document.activeElement.className === "skip"`)
	p.press("\r")
	p.until(`document.activeElement.id === "content" || document.activeElement.closest("tbody")`)
	p.slash()
	p.until(`document.activeElement?.role === "combobox"`)
	p.press("gpt-4o-mini")
	p.until(`document.querySelector("[role=option][aria-selected=true]")?.innerText.includes("Model")`)
	p.press("\r")
	p.until(`location.search.includes("f=model")`)
	p.settled()
	js[bool](p, `(document.activeElement.blur(), true)`)
	p.press("j")
	p.until(`document.querySelector("dialog.drawer [role=tabpanel]") && document.querySelector("dialog.drawer").contains(document.activeElement)`)
	p.press("]")
	p.until(`document.querySelector("[role=tab][aria-selected=true]").innerText === "New in this turn"`)
	p.press("\x1b")
	p.until(`!document.querySelector("dialog.drawer")`)
	p.press("?")
	p.until(`document.querySelector("dialog.help[open]")`)
}

func TestALargeRequestOpensAtOnce(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	image := "data:image/png;base64," + strings.Repeat("iVBORw0K", 50_000)
	var messages []any
	for i := range 400 {
		if i%2 == 1 {
			messages = append(messages, map[string]string{"role": "assistant", "content": strings.Repeat("a **long** answer with `code` and [links](https://example.com)\n\n- item\n", 60)})
			continue
		}
		content := []any{map[string]string{"type": "text", "text": strings.Repeat("a long question ", 400)}}
		if i < 6 {
			content = append(content, map[string]any{"type": "image_url", "image_url": map[string]string{"url": image}})
		}
		messages = append(messages, map[string]any{"role": "user", "content": content})
	}
	// Arguments of a call may be as long as a file: text of many lines, or many small values.
	for i, argument := range []any{strings.Repeat("a line of the file that is written\n", 16_000), slices.Repeat([]int{1}, 284_000)} {
		arguments, err := json.Marshal(map[string]any{"path": "a", "content": argument})
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("call_", i)
		messages = slices.Insert(messages, 1+2*i,
			any(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": id, "type": "function", "function": map[string]string{"name": "write", "arguments": string(arguments)}}}}),
			any(map[string]any{"role": "tool", "tool_call_id": id, "content": "done"}))
	}
	w.post("/echo/v1/chat/completions", map[string]any{"model": "echo-large", "messages": messages})
	w.until(1)
	p := newTab(w)
	p.login(w.key)
	p.open("?v=requests")
	js[bool](p, `(window.longest = 0, new PerformanceObserver((list) => list.getEntries().forEach((e) => (longest = Math.max(longest, e.duration)))).observe({type: "longtask"}), true)`)
	opened := time.Now()
	p.press("j")
	p.until(`document.querySelectorAll("article.message").length > 10`)
	promise(t, "a request of 6 MB is open after", []float64{float64(time.Since(opened).Milliseconds())}, 700)
	promise(t, "the longest task of that", []float64{js[float64](p, `longest`)}, 200)
	if shown := js[int](p, `document.querySelectorAll("article.message").length`); shown > 40 {
		t.Errorf("%d messages are drawn at once", shown)
	}
	if strings.Contains(p.text(), "iVBORw0KiVBORw0K") {
		t.Error("an image stands as text")
	}
	p.press("[")
	p.until(`document.querySelector(".find")`)
	if shown := len(p.text()); shown > 200_000 {
		t.Errorf("the raw view draws %d bytes at once", shown)
	}
}

func TestALongListDrawsTheRowsInSight(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	p.open("?v=requests&from=7d")
	seen := map[string]bool{}
	most := 0
	for range 12 {
		ids := p.ids()
		most = max(most, len(ids))
		for _, id := range ids {
			seen[id] = true
		}
		js[bool](p, `(() => { const box = document.querySelector(".table"); box.scrollTop += box.clientHeight; return true })()`)
		p.settled()
	}
	if most > 60 || len(seen) < 150 {
		t.Errorf("%d rows in the document, %d seen", most, len(seen))
	}
}
