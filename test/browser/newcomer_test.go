package browser

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// What a newcomer wants to do takes at most three actions each, beside the questions of
// TestQuestionsTakeThreeActions.
func TestTasksOfANewcomerTakeThreeActions(t *testing.T) {
	t.Parallel()
	w := newAdministered(t, "\t\tkey the-viewer-0123456789 metrics",
		"\t\tchannel ops webhook http://127.0.0.1:9/ {\n\t\t\tsecret whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\n\t\t}")
	administrator := "Authorization: Bearer " + w.key
	for i, user := range []string{"ada", "ada", "bo", "bo"} {
		w.post("/v1/responses", map[string]any{"model": "echo-1", "input": "hello"}, administrator,
			"Service-User-Id: "+user, "Service-Session-Id: s-"+user, "Service-Prompt-Id: greeting", fmt.Sprint("Service-Prompt-Version: ", 1+i%2))
	}
	if _, err := w.try("/v1/responses", []byte(`{"model":"nope-1","input":"hello"}`), administrator); err == nil {
		t.Fatal("an unknown model is served")
	}
	w.until(5)
	var records []struct {
		ID   string  `json:"request_id"`
		Cost float64 `json:"cost"`
	}
	w.query("/v1/request/query-clickhouse", map[string]any{"filter": map[string]any{"request_response_rmt": map[string]any{"status": map[string]any{"equals": 200}}}}, &records)
	spent := 0.0
	for _, r := range records {
		spent += r.Cost
		w.post("/v1/request/"+r.ID+"/score", map[string]any{"scores": map[string]any{"helpful": 0.5}}, administrator)
	}
	w.post("/v1/budgets", map[string]any{"name": "all of us", "limit": fmt.Sprintf("%.6f", spent*1.1), "window": "year", "since": "2026-01-01"}, administrator)

	p, viewer := newTab(w), newTab(w)
	p.login(w.key)
	for _, task := range []struct {
		name, from string
		do         func(a *actions)
	}{
		{"the dearest user, and why", "?v=overview", func(a *actions) {
			a.click("nav a", "Users")
			a.click("[aria-label=Users] tbody a", "")
			a.until(`document.querySelector("[aria-label=Models] tbody").innerText.includes("echo-1") && document.querySelector("[aria-label=Sessions] tbody").innerText.includes("s-")`)
		}},
		{"two versions of a prompt, with their scores", "?v=properties", func(a *actions) {
			a.choose(".choose select", "@prompt_version")
			a.click("[aria-label='Prompt version'] .mark", "Compare")
			a.clickAt("[aria-label='Prompt version'] .mark", 1)
			a.until(`/helpful\s+0.50\s+0.50/.test(document.querySelector("[aria-label=Figures]")?.innerText)`)
		}},
		{"the errors of the last hour, with their messages", "?v=overview", func(a *actions) {
			a.click("nav a", "Errors")
			a.choose("[aria-label=Time]", "1h")
			a.until(`document.querySelector("[aria-label=Errors] tbody")?.innerText.includes("No provider that you can use serves")`)
		}},
		{"a team that may spend $500 a month", "?v=projects", func(a *actions) {
			a.click("main button", "Create projects")
			a.enter("dialog [name=name]", "search")
			a.write("dialog [name=amount]", "500")
			a.until(`document.querySelector("[aria-label=Projects] tbody")?.innerText.includes("search")`)
		}},
		{"a key for the team", "?v=projects", func(a *actions) {
			a.click("[aria-label=Projects] a", "search")
			a.until(`document.querySelector(".tiles").innerText.includes("$500")`)
			a.click("main button", "Create a key")
			a.write("dialog [name=name]", "laptop")
			a.until(`document.querySelector("dialog[open] code")?.innerText.startsWith("weir_")`)
		}},
		{"what is left of the limit of a key's project", "?v=overview", func(a *actions) {
			a.click("nav a", "API keys")
			a.until(`/laptop\tsearch\t.*\t\$500.00\t/.test(document.querySelector("[aria-label='API keys'] tbody")?.innerText)`)
		}},
		{"the calls of a team", "?v=projects", func(a *actions) {
			a.click("[aria-label=Projects] a", "search")
			a.click("main a", "Its calls")
			a.until(`document.querySelector(".chip:not(.bad)")?.innerText.startsWith("project\n") && document.querySelector("main").innerText.includes("No request matches")`)
		}},
		{"who changed a budget", "?v=budgets", func(a *actions) {
			a.write("[aria-label='Find budgets']", "all of")
			a.click("[aria-label=Budgets] a", "Audit")
			a.until(`document.querySelector("[aria-label=Audit] tbody")?.innerText.includes("rule.created\tall of us\t")`)
		}},
		{"the calls that a budget counts", "?v=budgets", func(a *actions) {
			a.click("[aria-label=Budgets] a", "all of us")
			a.until(`document.querySelectorAll("[aria-label=Requests] tr[data-id]").length === 5`)
		}},
		{"when an error came first", "?v=errors", func(a *actions) {
			a.choose("[aria-label=Time]", "30d") // its parts are days
			a.until(`/\t[A-Z]\w+ \d+, \d{4}\t/.test(document.querySelector("[aria-label=Errors] tbody")?.innerText)`)
		}},
		{"how the figures went over time", "?v=overview", func(a *actions) {
			a.until(`document.querySelectorAll(".tile .spark").length === 7`)
		}},
		{"what a key without calls has cost so far", "?v=mine", func(a *actions) {
			a.choose("[aria-label=Time]", "all")
			a.until(`document.querySelector(".tiles")?.innerText.includes("Calls")`)
		}},
		{"a key is rotated", "?v=keys", func(a *actions) {
			a.click("[aria-label='API keys'] a", "laptop")
			a.click("main button", "Rotate")
			a.until(`document.querySelector("dialog[open] code")?.innerText.startsWith("weir_")`)
		}},
		{"who is near a budget", "?v=overview", func(a *actions) {
			a.click("nav a", "Budgets")
			a.shows("1 near the limit")
		}},
		{"a view for a viewer", "?v=overview", func(a *actions) {
			a.show("?v=users&from=7d&f=user_id:equals:ada")
			viewer.open(js[string](a.tab, "location.search"))
			v := &actions{tab: viewer}
			v.write("input[name=key]", "the-viewer-0123456789")
			v.until(`document.querySelector(".chip").innerText.includes("ada") && document.querySelector("[aria-label=Users] tbody").innerText.includes("ada")`)
			a.n += v.n
		}},
		{"tell me when it costs too much", "?v=users", func(a *actions) {
			a.click("main button", "Tell me when")
			a.enter("dialog [name=name]", "dear")
			a.write("dialog [name=threshold]", "5")
			a.until(`!document.querySelector("dialog[open]")`)
		}},
		{"the calls of one person are erased", "?v=overview&f=user_id:equals:ada", func(a *actions) {
			a.click("main a", "Erase…")
			a.click("dialog input[value=record]", "")
			a.until(`document.querySelector("dialog button.bad:enabled")?.innerText === "Erase 2 calls for good"`)
			a.click("dialog button", "for good")
			a.until(`document.querySelector("[aria-label=Erasures] tbody")?.innerText.includes("done")`)
		}},
		{"a view in the navigation", "?v=requests&f=model:equals:echo-1", func(a *actions) {
			a.click("#menu-views summary", "Views")
			a.write("#menu-views [name=name]", "echoes")
			a.click("#menu-views button", "Pin")
			a.until(`document.querySelector("nav .pin")?.innerText === "echoes"`)
		}},
		{"what a call cost, on a phone", "?v=overview&f=status:equals:200", func(a *actions) {
			a.do(chromedp.EmulateViewport(390, 844))
			a.click("nav a", "Requests")
			a.click("[aria-label=Requests] tr[data-id] .open", "")
			a.click("[role=tab]", "Cost")
			a.until(`document.querySelector("[role=tabpanel]").innerText.includes("$") && document.documentElement.scrollWidth <= innerWidth`)
		}},
	} {
		p.show(task.from)
		a := &actions{tab: p}
		task.do(a)
		if a.n > 3 {
			t.Errorf("%s: %d actions", task.name, a.n)
		}
		t.Logf("%s: %d actions", task.name, a.n)
		js[bool](p, `(document.querySelector("dialog[open]:not(.drawer)")?.close(), true)`)
	}
}
