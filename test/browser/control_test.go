package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// administered is a site with an administrator, and a budget.
const administered = `{
	admin 127.0.0.1:{$WEIR_ADMIN_PORT}
	persist_config off
	llm {
		store sqlite {$WEIR_DATA}/weir.db
		provider echo
		key the-administrator-0123456789 admin query gateway write
		key the-reader-0123456789 query
		budget team 25 month {
			per user
		}
	}
}

http://127.0.0.1:{$WEIR_PORT} {
	llm_query
	llm_control
	llm_gateway
	llm_ui
}
`

// newAdministered starts the site, with more options in the block llm.
func newAdministered(t *testing.T, options ...string) *weir {
	t.Helper()
	config := filepath.Join(t.TempDir(), "Caddyfile")
	text := strings.Replace(administered, "\tllm {\n", "\tllm {\n"+strings.Join(options, "\n")+"\n", 1)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWeir(t, config)
	w.key = "the-administrator-0123456789"
	return w
}

// respond calls a model through the gateway.
func (w *weir) respond(model, input string) {
	w.t.Helper()
	w.post("/v1/responses", map[string]any{"model": model, "input": input}, "Authorization: Bearer "+w.key)
}

// An administrator creates a key, whose secret is shown once with what to paste, changes, rotates,
// disables and deletes the key, and finds each of these changes in the audit.
func TestKeysAreAdministered(t *testing.T) {
	t.Parallel()
	p := newTab(newAdministered(t))
	p.login("the-administrator-0123456789")
	press := func(name string) {
		t.Helper()
		button := `[...document.querySelectorAll("dialog[open] button, main button")].find((b) => b.innerText === ` + quote(name) + `)`
		p.until(`Boolean(%s)`, button)
		js[bool](p, `(`+button+`.click(), true)`)
		p.settled()
	}
	const secret = `document.querySelector("dialog[open] [role=status] code")?.innerText`
	p.show("?v=keys")
	press("Create a key")
	p.do(chromedp.SendKeys(chromedp.CSS("dialog input[name=name]"), "build robot\r"))
	p.until(`%s?.startsWith("weir_")`, secret)
	first := js[string](p, secret)
	p.until(`document.querySelector("dialog[open] pre").innerText.includes("ANTHROPIC_AUTH_TOKEN=" + %s)`, quote(first))
	press("Done")
	p.until(`document.querySelector("[aria-label='API keys'] tbody")?.innerText.includes("build robot")`)
	p.until(`document.querySelector("[aria-label='API keys'] tbody td.number").innerText === "$0"`)
	p.do(chromedp.Click(chromedp.CSS("[aria-label='API keys'] tbody a")))
	press("Edit")
	p.do(chromedp.SendKeys(chromedp.CSS("dialog input[name=models]"), "echo*"), chromedp.SendKeys(chromedp.CSS("dialog input[name=owner]"), "ci\r"))
	p.until(`document.querySelector("dl.facts")?.innerText.includes("echo*") && document.querySelector("dl.facts").innerText.includes("ci")`)
	press("Rotate")
	p.until(`Boolean(%s)`, secret)
	second := js[string](p, secret)
	if second == first {
		t.Error("the secret is the same after its rotation")
	}
	press("Done")
	p.show("?v=overview")
	p.show("?v=keys")
	if text := p.text(); strings.Contains(text, first) || strings.Contains(text, second) {
		t.Error("a secret is shown again")
	}
	choose := func() {
		t.Helper()
		p.until(`document.querySelector("[aria-label='Choose build robot']")?.checked === false`)
		p.do(chromedp.Click(chromedp.CSS("[aria-label='Choose build robot']")))
	}
	choose()
	press("Disable 1")
	p.until(`document.querySelector("[aria-label='API keys'] tbody").innerText.includes("disabled")`)
	choose()
	press("Delete")
	press("Delete for good")
	p.until(`!document.querySelector("[aria-label='API keys']")`)
	p.show("?v=audit")
	p.until(`document.querySelectorAll("[aria-label=Audit] tbody tr").length === 5`)
	js[bool](p, `(document.querySelectorAll("[aria-label=Audit] summary")[1].click(), true)`)
	p.until(`document.querySelector("[aria-label=Audit] details[open] ins")?.innerText === "true"`)
	p.do(chromedp.Click(chromedp.CSS("[aria-label=Audit] tbody a")))
	p.until(`location.search.includes("find=key_") && document.querySelectorAll("[aria-label=Audit] tbody tr").length === 5`)
	if text := p.text(); strings.Contains(text, first) || strings.Contains(text, second) {
		t.Error("the audit shows a secret")
	}
	p.show("?v=people")
	p.until(`document.querySelector("main").innerText.includes("Nobody owns a key")`)
	p.show("?v=budgets")
	p.until(`document.querySelector("[aria-label=Budgets] tbody tr")?.innerText.startsWith("team all calls\teach user\t")`)
}

// An administrator sets up 500 developers in 20 teams, with budgets. The page tells all secrets, or
// creates no key. Of 500 keys or people, those in sight are drawn alone, all are found, and a column
// sorts them.
func TestFiveHundredDevelopersAreSetUp(t *testing.T) {
	t.Parallel()
	w := newAdministered(t)
	p := newTab(w)
	p.login(w.key)
	var teams []string
	for i := range 20 {
		teams = append(teams, fmt.Sprintf("team-%02d", i))
	}
	rows := "name,owner,user,project,scopes,expires\n"
	for i := range 500 {
		rows += fmt.Sprintf("laptop %d,dev-%d,dev-%d,team-%02d,gateway metrics,90d\n", i, i, i, i%20)
	}
	paste := func(rows string) {
		t.Helper()
		p.until(`document.querySelector("dialog [name=rows]:enabled")`)
		js[bool](p, `((field) => (field.value = `+quote(rows)+`, field.dispatchEvent(new Event("input", {bubbles: true}))))(document.querySelector("dialog [name=rows]"))`)
	}
	press := func(name string) {
		t.Helper()
		button := `[...document.querySelectorAll("main button")].find((b) => b.innerText === ` + quote(name) + ` && !b.disabled)`
		p.until(`%s`, button)
		js[bool](p, `(`+button+`.click(), true)`)
	}
	// Rows with a mistake create nothing.
	p.show("?v=keys")
	press("Import…")
	paste("name,ownr\nx,y\n")
	p.until(`document.querySelector("dialog [role=alert]").innerText.startsWith("There is no column “ownr”")`)
	paste("name\tscopes\nthe \"first\"\tgateway\n\"a \"\"second\"\"\"\tnothing\n")
	p.until(`document.querySelector("dialog [role=alert]").innerText.startsWith("Row 2: a quotation mark stands alone")`)
	paste("name\tscopes\nthe first\tgateway\n\"a \"\"second\"\"\"\tnothing\n")
	press("Create 2 keys")
	p.until(`/^Row 3: .*nothing.* No key is created/.test(document.querySelector("dialog [role=alert]")?.innerText)`)
	press("Cancel")

	a, began := &actions{tab: p}, time.Now()
	a.click("nav a", "Projects")
	a.click("main button", "Create projects")
	a.enter("dialog [name=name]", strings.Join(teams, ", "))
	a.write("dialog [name=amount]", "2000")
	a.until(`document.querySelector("main [role=status]")?.innerText === "20 projects" && !document.querySelector("dialog[open]")`)
	a.click("nav a", "API keys")
	a.click("main button", "Import…")
	paste(rows)
	a.n++
	a.click("dialog button", "Create 500 keys")
	const secrets = `decodeURIComponent(document.querySelector("dialog a[download]")?.href.split(",").slice(1).join(","))`
	p.until(`%s.startsWith("name,id,secret\r\nlaptop 0,key_")`, secrets)
	list := js[string](p, secrets)
	if n := strings.Count(list, ",weir_"); n != 500 {
		t.Errorf("the page tells %d secrets", n)
	}
	a.n++ // the file is saved
	a.click("dialog button", "Done")
	a.click("nav a", "Budgets")
	a.click("main button", "Create a budget")
	a.enter("dialog [name=name]", "each developer")
	a.enter("dialog [name=limit]", "100")
	a.choose("dialog [name=per]", "user")
	a.click("dialog button.primary", "Create")
	a.until(`/each developer all calls\teach user\t/.test(document.querySelector("[aria-label=Budgets] tbody")?.innerText)`)
	t.Logf("%d actions and %v", a.n, time.Since(began).Round(time.Millisecond))
	if a.n > 16 {
		t.Errorf("%d actions", a.n)
	}

	secret := strings.TrimSpace(list[strings.LastIndex(list, ",")+1:])
	w.post("/v1/messages", map[string]any{"model": "echo-1", "max_tokens": 9, "messages": []any{map[string]string{"role": "user", "content": "hello"}}}, "X-Api-Key: "+secret)
	p.until(`/each developer all calls\tdev-499\t/.test(document.querySelector("[aria-label=Budgets] tbody")?.innerText)`)
	p.show("?v=projects&from=all")
	p.until(`/^team-19\t25\t1\t/m.test(document.querySelector("[aria-label=Projects] tbody")?.innerText)`)
	fewRows := func(label string) {
		t.Helper()
		if drawn := js[int](p, `document.querySelectorAll("[aria-label='`+label+`'] tbody tr:not(.gap)").length`); drawn > 80 {
			t.Errorf("%d rows of %s are drawn", drawn, label)
		}
	}
	p.show("?v=people")
	p.until(`document.querySelector("main [role=status]")?.innerText === "500 people"`)
	fewRows("People")
	p.do(chromedp.SendKeys(chromedp.CSS("[aria-label='Find people']"), "dev-499"))
	p.until(`document.querySelector("main [role=status]").innerText === "1 of 500 people"`)
	p.show("?v=keys")
	p.until(`document.querySelector("main [role=status]")?.innerText === "500 keys"`)
	fewRows("API keys")
	p.do(chromedp.SendKeys(chromedp.CSS("[aria-label='Find keys']"), "dev-499"))
	p.until(`document.querySelector("main [role=status]").innerText === "1 of 500 keys"`)
	js[bool](p, `(document.activeElement.blur(), true)`)
	p.slash()
	p.until(`document.activeElement?.role === "combobox"`)
	p.press("laptop 498")
	p.until(`[...document.querySelectorAll("#found li")].some((li) => li.innerText.startsWith("Key laptop 498 dev-498"))`)
	p.press("\x1b")
	p.show("?v=keys&sort=-owner")
	p.until(`document.querySelector("[aria-label='API keys'] tbody tr a")?.innerText === "laptop 99"`)
}

// A project has a limit, which the page sets and shows.
func TestProjectsAreAdministered(t *testing.T) {
	t.Parallel()
	p := newTab(newAdministered(t))
	p.login("the-administrator-0123456789")
	p.show("?v=projects")
	p.do(chromedp.Click(chromedp.CSS("main .bar-row button.primary")), chromedp.SendKeys(chromedp.CSS("dialog input[name=name]"), "search\r"))
	p.until(`document.querySelector("[aria-label=Projects] tbody a")?.innerText === "search"`)
	p.do(chromedp.Click(chromedp.CSS("[aria-label=Projects] tbody a")), chromedp.WaitVisible(chromedp.CSS("input[name=amount]")))
	p.do(chromedp.SendKeys(chromedp.CSS("input[name=amount]"), "500\r"))
	p.until(`document.querySelector(".tiles").innerText.includes("$500")`)
	js[bool](p, `(location.reload(), true)`)
	p.until(`document.querySelector("input[name=amount]")?.value === "500"`)
	p.show("?v=budgets")
	p.until(`document.querySelector("[aria-label=Budgets]")?.innerText.includes("search: spend limit")`)
}

// Someone new makes a key, pastes the lines, and sees the first call.
func TestAClientIsConnected(t *testing.T) {
	t.Parallel()
	w := newAdministered(t)
	p := newTab(w)
	p.login("the-administrator-0123456789")
	p.show("?v=connect")
	p.do(chromedp.SendKeys(chromedp.CSS("main input[name=name]"), "laptop\r"))
	p.until(`document.querySelector(".setup pre").innerText.includes("weir_")`)
	secret := js[string](p, `document.querySelector(".setup pre").innerText.match(/weir_\w+/)[0]`)
	js[bool](p, `((lane) => (lane.value = "proxy", lane.dispatchEvent(new Event("change", {bubbles: true}))))([...document.querySelectorAll(".steps select")][1])`)
	p.until(`document.querySelector(".setup pre").innerText.includes("/anthropic\nexport ANTHROPIC_CUSTOM_HEADERS=\"Service-Auth: Bearer %s\"")`, secret)
	if text := js[string](p, `document.querySelector(".steps [role=status]").innerText`); !strings.Contains(text, "Waiting") {
		t.Errorf("before the first call: %q", text)
	}
	w.key = secret
	w.respond("echo-1", "hello")
	p.until(`document.querySelector(".steps [role=status]").classList.contains("good")`)
	p.show("?v=mine")
	p.until(`document.querySelector("main").innerText.includes("the whole organisation")`)
}

// Errors of one cause are one line, which leads to their calls.
func TestErrorsAreGrouped(t *testing.T) {
	t.Parallel()
	w := newAdministered(t)
	for _, model := range []string{"nope-1", "nope-2", "nope-3"} {
		if _, err := w.try("/v1/responses", []byte(`{"model":"`+model+`","input":"hello"}`), "Authorization: Bearer "+w.key); err == nil {
			t.Fatalf("%s is served", model)
		}
	}
	p := newTab(w)
	p.login("the-administrator-0123456789")
	p.show("?v=errors")
	p.until(`document.querySelectorAll("[aria-label=Errors] tbody tr").length === 1 && document.querySelector("[aria-label=Errors] tbody td.number").innerText === "3"`)
	p.do(chromedp.Click(chromedp.CSS("[aria-label=Errors] tbody a")))
	p.until(`document.querySelectorAll("[aria-label=Requests] tr[data-id]").length === 3`)
	p.until(`document.querySelector("[aria-label=Requests] tbody").innerText.includes("'nope-2'")`)
}

// An administrator tries a budget on past calls, creates it, changes it and deletes it. One of the Caddyfile
// stays as it is.
func TestBudgetsAreAdministered(t *testing.T) {
	t.Parallel()
	w := newAdministered(t)
	w.post("/v1/organization/projects", map[string]any{"name": "search"}, "Authorization: Bearer "+w.key)
	var key struct{ Data struct{ Secret string } }
	if err := json.Unmarshal(w.post("/v1/keys", map[string]any{"name": "robot", "project": "search", "scopes": []string{"gateway"}}, "Authorization: Bearer "+w.key), &key); err != nil {
		t.Fatal(err)
	}
	w.post("/v1/responses", map[string]any{"model": "echo-1", "input": "hello"}, "Authorization: Bearer "+key.Data.Secret)
	w.until(1)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=budgets")
	press := func(name string) {
		t.Helper()
		p.until(`[...document.querySelectorAll("main button")].some((b) => b.innerText === %s)`, quote(name))
		js[bool](p, `([...document.querySelectorAll("main button")].find((b) => b.innerText === `+quote(name)+`).click(), true)`)
		p.settled()
	}
	row := `[...document.querySelectorAll("[aria-label=Budgets] tbody tr")].find((tr) => tr.innerText.startsWith("search team"))`
	press("Create a budget")
	p.do(
		chromedp.SendKeys(chromedp.CSS("dialog input[name=name]"), "search team"),
		chromedp.SendKeys(chromedp.CSS("dialog input[name=limit]"), "0.000001"),
		chromedp.SetValue(chromedp.CSS("dialog [aria-label='Which calls count']"), "project"),
	)
	js[bool](p, `(document.querySelector("dialog [aria-label='Which calls count']").dispatchEvent(new Event("change", {bubbles: true})), true)`)
	p.do(chromedp.SendKeys(chromedp.CSS("dialog input[name=value]"), "search"))
	press("Try it on past calls")
	p.until(`document.querySelector("dialog [role=status]")?.innerText.startsWith("Of 1 call, 1 would have been refused")`)
	js[bool](p, `(document.querySelector("dialog input[name=limit]").value = "", true)`)
	p.do(chromedp.SendKeys(chromedp.CSS("dialog input[name=limit]"), "500"))
	p.until(`!document.querySelector("dialog [role=status]")`)
	press("Create")
	p.until(`%s?.innerText.includes("project is search") && %[1]s.innerText.includes("$500.00 a month")`, row)
	press("Edit")
	p.until(`document.querySelector("dialog input[name=limit]")?.value === "500" && document.querySelector("dialog input[name=value]").value === "search" && document.querySelector("dialog input[name=at]").value === "80"`)
	press("Add a stage")
	js[bool](p, `((form) => (form.limit.value = "600", form.at[1].value = "95", form.trust.checked = form.cut.checked = true, form.wait.value = "5s", form.on_unpriced.value = "pass", form.timezone.value = "Europe/Berlin", form.since.value = "2026-11-01", true))(document.querySelector("dialog form").elements)`)
	press("Save")
	p.until(`%s?.innerText.includes("$600.00 a month")`, row)
	press("Edit")
	p.until(`((form) => [form.limit.value, form.at[0].value, form.at[1].value, form.trust.checked, form.cut.checked, form.wait.value, form.on_unpriced.value, form.timezone.value, form.since.value].join())(document.querySelector("dialog form").elements) === "600,80,95,true,true,5s,pass,Europe/Berlin,2026-11-01"`)
	press("Cancel")
	press("Delete")
	press("Delete for good")
	p.until(`!(%s)`, row)
	if n := js[int](p, `document.querySelectorAll("[aria-label=Budgets] tbody button").length`); n != 0 {
		t.Errorf("a budget of the Caddyfile has %d buttons", n)
	}
}

// An administrator tests a channel, makes a rule, and deletes it, and compares a bill.
func TestAlertsAreAdministered(t *testing.T) {
	t.Parallel()
	var messages atomic.Int64
	now := time.Now().UTC()
	billed := time.Date(now.Year(), now.Month()-1, 5, 0, 0, 0, 0, time.UTC)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		results := ""
		switch r.URL.Path {
		case "/v1/organization/usage/completions":
			results = `{"model": "gpt-4o-mini", "input_tokens": 2000, "output_tokens": 100, "num_model_requests": 1, "api_key_id": "key_a", "batch": false, "service_tier": "default"}`
		case "/v1/organization/costs":
			results = `{"amount": {"value": 0.00036, "currency": "usd"}, "line_item": "gpt-4o-mini, input"}`
		}
		if strings.HasPrefix(r.URL.Path, "/v1/organization/") {
			fmt.Fprintf(w, `{"object": "page", "data": [{"object": "bucket", "start_time": %d, "results": [%s]}], "has_more": false, "next_page": null}`, billed.Unix(), results)
			return
		}
		messages.Add(1)
	}))
	t.Cleanup(hook.Close)
	adminKey := filepath.Join(t.TempDir(), "admin-key")
	if err := os.WriteFile(adminKey, []byte("sk-admin"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newTab(newAdministered(t, "\t\tchannel ops webhook "+hook.URL+" {\n\t\t\tsecret whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\n\t\t}",
		"\t\tbill openai {\n\t\t\turl "+hook.URL+"\n\t\t\tadmin_key {file."+adminKey+"}\n\t\t}"))
	p.login("the-administrator-0123456789")
	p.show("?v=alerts")
	press := func(name string) {
		t.Helper()
		p.until(`[...document.querySelectorAll("main button")].some((b) => b.innerText === %s)`, quote(name))
		js[bool](p, `([...document.querySelectorAll("main button")].find((b) => b.innerText === `+quote(name)+`).click(), true)`)
	}
	press("Send a test")
	p.until(`document.querySelector("[aria-label=Channels] tbody").innerText.includes("taken")`)
	press("Create a rule")
	p.do(
		chromedp.SendKeys(chromedp.CSS("dialog input[name=name]"), "busy"),
		chromedp.SetValue(chromedp.CSS("dialog [aria-label='What is compared']"), "requests"),
	)
	js[bool](p, `(document.querySelector("dialog [aria-label='What is compared']").dispatchEvent(new Event("change", {bubbles: true})), true)`)
	p.do(chromedp.SendKeys(chromedp.CSS("dialog input[name=threshold]"), "100\r"))
	row := `document.querySelector("[aria-label=Rules] tbody")`
	p.until(`%s?.innerText.includes("busy requests > 100 over 1h") && %[1]s.innerText.includes("ops")`, row)
	press("Edit")
	p.until(`document.querySelector("dialog [name=threshold]")?.value === "100"`)
	js[bool](p, `((field) => (field.value = "1000", field.form.requestSubmit(), true))(document.querySelector("dialog [name=threshold]"))`)
	p.until(`%s.innerText.includes("busy requests > 1000 over 1h")`, row)
	press("Delete")
	press("Delete for good")
	p.until(`!(%s?.innerText.includes("busy"))`, row)
	// What is seen can be watched.
	p.show("?v=users&f=model:equals:echo-1")
	press("Tell me when…")
	p.do(chromedp.SendKeys(chromedp.CSS("dialog input[name=name]"), "dear"), chromedp.SendKeys(chromedp.CSS("dialog [name=threshold]"), "5\r"))
	p.until(`!document.querySelector("dialog[open]")`)
	p.show("?v=alerts")
	p.until(`/dear cost > 5 over 1h\s+model is echo-1\s+each user\s+ops/.test(%s?.innerText)`, row)
	if messages.Load() == 0 {
		t.Error("the channel got no message")
	}
	// A bill of which no call is recorded differs by all of it.
	p.show("?v=bill")
	press("Compare")
	p.until(`/^1 difference from [^]* billed \$0\.000360, recorded \$0/.test(document.querySelector("main [role=status]")?.innerText)`)
	p.until(`document.querySelector("[aria-label=Differences] tbody")?.innerText.includes(%s)`, quote(billed.Format(time.DateOnly)))
	p.until(`/gpt-4o-mini[^]*\$0\.000360/.test(document.querySelector("[aria-label='Day by day'] tbody")?.innerText)`)
	p.shoot("bill")
}

// An administrator places a hold on the calls of a filter, sees what an erasure would do, erases, and
// lifts the hold.
func TestPrivacyIsAdministered(t *testing.T) {
	t.Parallel()
	w := newAdministered(t)
	for range 3 {
		w.respond("echo-1", "hello")
	}
	w.until(3)
	p := newTab(w)
	p.login("the-administrator-0123456789")
	press := func(name string) {
		t.Helper()
		button := `[...document.querySelectorAll("main button, dialog button")].find((b) => b.innerText === ` + quote(name) + ` && !b.disabled)`
		p.until(`%s`, button)
		js[bool](p, `(`+button+`.click(), true)`)
	}
	table := func(name, pattern string) {
		t.Helper()
		p.until(`%s.test(document.querySelector("[aria-label=%s] tbody")?.innerText)`, pattern, name)
	}
	p.show("?v=privacy&f=model:equals:echo-1")
	press("Place a hold…")
	p.until(`document.querySelector("dialog input[name=reason]")`)
	p.do(chromedp.SendKeys(chromedp.CSS("dialog input[name=reason]"), "case 4711\r"))
	table("Holds", `/case 4711\s+model is echo-1/`)
	press("Erase…")
	js[bool](p, `(document.querySelector("dialog input[value=record]").click(), true)`)
	p.until(`/3 calls with .* of which 3 under hold stay/.test(document.querySelector("dialog [role=status]")?.innerText)`)
	press("Erase 3 calls for good")
	table("Erasures", `/waits for holds[^]*model equals[^]*0 of 3/`)
	press("Lift")
	press("Lift for good")
	table("Erasures", `/done[^]*3 of 3/`)
	p.until(`document.querySelector("[aria-label=Erasures] a[download]") && !document.querySelector("[aria-label=Holds]")`)
}

// Routes shows the targets of an alias with their calls, and tries another policy on these.
func TestRoutesAreTried(t *testing.T) {
	t.Parallel()
	w := newAdministered(t, "\t\talias pool {\n\t\t\tstrategy weight\n\t\t\tmodel echo/echo-1 {\n\t\t\t\tarm plain\n\t\t\t\tlimit max_tokens 50\n\t\t\t}\n\t\t\tshadow echo/echo-2 100%\n\t\t}\n\t\talias steps echo/echo-1 echo/echo-2")
	for _, model := range []string{"pool", "pool", "pool", "steps"} {
		w.post("/v1/chat/completions", map[string]any{"model": model, "messages": []map[string]string{{"role": "user", "content": "hello"}}}, "Authorization: Bearer "+w.key)
	}
	w.until(7) // with their shadows
	p := newTab(w)
	p.login(w.key)
	p.show("?v=routes")
	p.until(`/what callers got\s+3\s+100%%[^]*echo-2\s+3\s+100%%/.test(document.querySelector("[aria-label='Shadows of pool'] tbody")?.innerText)`)
	p.until(`/echo\/echo-1 plain[^]*max_tokens at most 50[^]*well[^]*3\s+100/.test(document.querySelector("[aria-label='Targets of pool'] tbody")?.innerText)`)
	p.until(`/echo\/echo-1[^]*well\s+1\s+100%%[^]*echo\/echo-2[^]*well\s+0\s+0%%/.test(document.querySelector("[aria-label='Targets of steps'] tbody")?.innerText)`)
	js[bool](p, `([...document.querySelectorAll("main details")].find((d) => d.innerText.startsWith("Try")).open = true)`)
	p.do(chromedp.SendKeys(chromedp.CSS("input[name=policy]"), "echo/echo-1\r"))
	p.until(`/^All calls[^]*Model echo-1[^]*Day 20/.test(document.querySelector("[aria-label='What the calls of pool would have cost'] tbody")?.innerText)`)
	p.shoot("routes")
	try := func(policy string) {
		js[bool](p, fmt.Sprintf(`((f) => ((f.policy.value = %q), f.requestSubmit(), true))(document.querySelector("main form:has([name=policy])"))`, policy))
	}
	try(`{"models": [{"model": "echo/echo-1"}], "budgets": [{"name": "pace", "limit": "1", "quantity": "requests", "window": "total"}]}`)
	p.until(`/budget pace would have refused 2 of 3 calls, of 1 caller/.test(document.querySelector("main").innerText)`)
	try("nobody/knows")
	p.until(`document.querySelector("main [role=alert]")?.innerText.includes("nobody")`)
}

// People are the members and the owners of keys, with what all of their keys may do, and cost.
func TestPeopleOwnKeys(t *testing.T) {
	t.Parallel()
	w := newAdministered(t)
	secrets := map[string]string{}
	for name, settings := range map[string]map[string]any{
		"first":  {"owner": "ada", "scopes": []string{"gateway"}},
		"second": {"owner": "ada", "scopes": []string{"query", "write"}},
		"third":  {"owner": "bo", "scopes": []string{"metrics", "gateway"}},
	} {
		settings["name"] = name
		var made struct{ Data struct{ Secret string } }
		if err := json.Unmarshal(w.post("/v1/keys", settings, "Authorization: Bearer "+w.key), &made); err != nil {
			t.Fatal(err)
		}
		secrets[name] = made.Data.Secret
	}
	w.post("/v1/responses", map[string]any{"model": "echo/echo-1", "input": "hello"}, "Authorization: Bearer "+secrets["first"])
	w.until(1)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=people")
	for _, person := range []string{"ada\tnot a member\t\t2\tgateway, query, write\t", "bo\tnot a member\t\t1\tgateway, metrics\t"} {
		p.until(`[...document.querySelectorAll("[aria-label=People] tbody tr")].some((tr) => tr.innerText.startsWith(%s))`, quote(person))
	}
	js[bool](p, `([...document.querySelectorAll("[aria-label=People] tbody tr")].find((tr) => tr.innerText.startsWith("ada")).querySelector("td:last-of-type a, td:nth-last-of-type(2) a").click(), true)`)
	p.until(`document.querySelector("h1").innerText === "Requests" && document.querySelectorAll(".table tr[data-id]").length === 1`)
}

// What a table shows is what its file has.
func TestTablesAreExported(t *testing.T) {
	t.Parallel()
	w := newAdministered(t, "\t\tchannel ops webhook http://127.0.0.1:9/ {\n\t\t\tsecret whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\n\t\t}")
	w.post("/v1/keys", map[string]any{"name": "laptop", "owner": "ada", "scopes": []string{"gateway"}}, "Authorization: Bearer "+w.key)
	w.post("/v1/responses", map[string]any{"model": "echo-1", "input": "hello"}, "Authorization: Bearer "+w.key, "Service-Session-Id: s-1", "Service-User-Id: ada")
	w.post("/v1/organization/invites", map[string]any{"email": "bo@example.com", "role": "reader"}, "Authorization: Bearer "+w.key)
	w.post("/v1/holds", map[string]any{"filter": map[string]any{"request_response_rmt": map[string]any{"user_id": map[string]any{"equals": "ada"}}}, "reason": "case 4711"}, "Authorization: Bearer "+w.key)
	w.post("/v1/alerts/rules", map[string]any{"name": "dear hour", "total": "cost", "operator": ">", "threshold": 5, "over": "1h", "to": []string{"ops"}}, "Authorization: Bearer "+w.key)
	w.until(1)
	var records []struct {
		ID string `json:"request_id"`
	}
	w.query("/v1/request/query-clickhouse", map[string]any{"filter": "all"}, &records)
	p := newTab(w)
	p.login(w.key)
	w.post("/v1/request/"+records[0].ID+"/score", map[string]any{"scores": map[string]any{"good": 0.5}}, "Authorization: Bearer "+w.key)
	js[bool](p, `(URL.createObjectURL = (blob) => (blob.text().then((text) => (window.csv = text)), "blob:"), HTMLAnchorElement.prototype.click = () => {}, true)`)
	for view, begins := range map[string]string{
		"sessions": "Session,Cost,Calls,Tokens,Duration,Mean latency,Began,Last call\r\ns-1,",
		"people":   "Person,Role,Projects,Keys,Keys may,Last seen,Cost\r\nbo@example.com,reader,,0,,never,0\r\nada,not a member,,1,gateway,never,",
		"audit":    "Time,What,Object,By,From,Before and after\r\n20",
		"scores":   "Request,good,Model,User,Cost\r\n20",
		"privacy":  "Reason,Calls,Placed,By\r\ncase 4711,user is ada,",
		"alerts":   "Rule,Calls,Whose,Tells\r\ndear hour ",
	} {
		p.show("?v=" + view)
		p.until(`document.querySelector("#menu-export summary")`)
		js[bool](p, `(delete window.csv, document.querySelector("#menu-export summary").click(), document.querySelector("#menu-export button").click(), true)`)
		p.until(`window.csv?.startsWith(%s)`, quote(begins))
	}
}

// A viewer, whose key has the scope metrics, meets no button that fails.
func TestAViewerMeetsNoButtonThatFails(t *testing.T) {
	t.Parallel()
	w := newAdministered(t, "\t\tkey the-viewer-0123456789 metrics")
	w.respond("echo-1", "hello")
	w.until(1)
	p := newTab(w)
	p.login("the-viewer-0123456789")
	p.show("?v=requests")
	p.press("j")
	p.until(`document.querySelector("dialog.drawer [role=tabpanel]")?.innerText.includes("does not read the request: that needs the scope query")`)
	if text := p.text(); strings.Contains(text, "+1") || strings.Contains(text, "Tell me when") || strings.Contains(text, "with bodies") {
		t.Errorf("a viewer is offered %s", text)
	}
	p.press("\x1b")
	p.until(`!document.querySelector("dialog.drawer") && document.activeElement.closest("tr[data-id]")`) // the focus is where it was
	p.slash()
	p.until(`document.activeElement?.role === "combobox"`)
	p.press("hello")
	p.until(`document.querySelector("#search").value === "hello" && document.querySelector("#found").hidden`)
	p.show("?v=requests")
	js[bool](p, `(document.querySelector("#menu-views summary").click(), true)`)
	p.until(`document.querySelector("#menu-views a") && !document.querySelector("#menu-views input")`)
}

// Who may not administer is not led to it, and no other site changes a key in the name of
// who may.
func TestWhoMayNotAdminister(t *testing.T) {
	t.Parallel()
	w := newAdministered(t)
	p := newTab(w)
	p.login("the-reader-0123456789")
	if text := js[string](p, `document.querySelector("nav").innerText`); strings.Contains(text, "Audit") || strings.Contains(text, "keys") {
		t.Errorf("a reader is led to %s", text)
	}
	p.show("?v=keys")
	p.until(`document.querySelector("[role=alert]")?.innerText.includes("admin")`)
	p.do(chromedp.Click(chromedp.CSS("main .bar-row button.primary")), chromedp.SendKeys(chromedp.CSS("dialog input[name=name]"), "mine\r"))
	p.until(`document.querySelector("dialog [role=alert]") && !document.querySelector("[role=status] code")`)

	admin := newTab(w)
	admin.login(w.key)
	cookies, err := chromedp.Call(admin.ctx, network.GetCookies, network.GetCookiesParams{})
	if err != nil || len(cookies.Cookies) != 1 || cookies.Cookies[0].SameSite != "Strict" {
		t.Fatalf("the cookies are %+v: %v", cookies, err)
	}
	send := func(method, path, body string, header http.Header) (status int, id string) {
		t.Helper()
		request, _ := http.NewRequest(method, w.url+"/api"+path, strings.NewReader(body))
		request.Header = header.Clone()
		request.Header.Set("Content-Type", "application/json")
		request.AddCookie(&http.Cookie{Name: cookies.Cookies[0].Name, Value: cookies.Cookies[0].Value})
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var answer struct {
			Data struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		_ = json.NewDecoder(response.Body).Decode(&answer) // an error of a proxy is no JSON
		return response.StatusCode, answer.Data.ID
	}
	const settings = `{"name":"k","scopes":["gateway"]}`
	status, id := send(http.MethodPost, "/v1/keys", settings, http.Header{"Sec-Fetch-Site": {"same-origin"}})
	if status != http.StatusCreated {
		t.Fatalf("the page itself: %d", status)
	}
	for name, header := range map[string]http.Header{
		"another site": {"Sec-Fetch-Site": {"cross-site"}}, "a sibling": {"Sec-Fetch-Site": {"same-site"}},
		"another origin": {"Origin": {"https://evil.example"}}, "no origin": {"Origin": {"null"}},
	} {
		for _, change := range [][3]string{
			{http.MethodPost, "/v1/keys", settings}, {http.MethodPatch, "/v1/keys/" + id, `{"disabled":true}`},
			{http.MethodPost, "/v1/keys/" + id + "/rotate", `{}`}, {http.MethodDelete, "/v1/keys/" + id, ""},
			{http.MethodPost, "/v1/organization/admin_api_keys", `{"name":"k"}`},
		} {
			if status, _ := send(change[0], change[1], change[2], header); status != http.StatusForbidden {
				t.Errorf("%s %s from %s: %d", change[0], change[1], name, status)
			}
		}
	}
	var events struct{ Items []struct{ Action string } }
	js[bool](admin, `fetch("api/v1/audit").then((r) => r.json()).then((a) => (window.audit = JSON.stringify(a.data), true))`)
	if err := json.Unmarshal([]byte(js[string](admin, `window.audit`)), &events); err != nil || len(events.Items) != 1 {
		t.Errorf("the audit has %+v: %v", events, err)
	}
}

// Where a project allows it, whoever logs in with one of its keys creates keys of their own at "My
// usage", whose secret is shown once, rotates and deletes them.
func TestKeysOfOnesOwn(t *testing.T) {
	t.Parallel()
	w := newAdministered(t)
	post := func(path string, body any) (answer struct {
		ID   string
		Data struct{ ID, Secret string }
	}) {
		if err := json.Unmarshal(w.post(path, body, "Authorization: Bearer "+w.key), &answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	project := post("/v1/organization/projects", map[string]any{"name": "search"}).ID
	key := post("/v1/keys", map[string]any{"name": "agents", "project": "search", "scopes": []string{"gateway", "metrics"}, "models": []string{"echo/*"}}).Data.Secret
	administrator := newTab(w)
	administrator.login(w.key)
	administrator.show("?v=projects&id=" + project)
	administrator.until(`document.querySelector("input[name=creator][value=keys]")`)
	administrator.do(chromedp.Click(chromedp.CSS("input[name=creator][value=keys]")))
	js[bool](administrator, `(document.querySelector("form:has([name=creator])").requestSubmit(), true)`)
	administrator.until(`performance.getEntriesByType("resource").filter((e) => e.name.endsWith("key_permissions")).length >= 3`) // read, changed, read
	administrator.shoot("project-keys")

	p := newTab(w)
	p.login(key)
	p.show("?v=mine")
	p.until(`document.querySelector("main button.primary")?.innerText === "Create a key"`)
	p.do(chromedp.Click(chromedp.CSS("main button.primary")), chromedp.SendKeys(chromedp.CSS("dialog input[name=name]"), "laptop"))
	p.shoot("own-key")
	js[bool](p, `(document.querySelector("dialog form").requestSubmit(), true)`)
	p.until(`document.querySelector("dialog code")?.innerText.startsWith("weir_")`)
	js[bool](p, `(document.querySelector("dialog form[method=dialog] button").click(), true)`)
	p.until(`document.querySelector("[aria-label='Your keys'] tbody")?.innerText.includes("laptop")`)
	p.shoot("own-keys")
	js[bool](p, `([...document.querySelectorAll("[aria-label='Your keys'] button")].find((b) => b.innerText === "Rotate").click(), true)`)
	p.until(`document.querySelector("dialog code")?.innerText.startsWith("weir_")`)
	js[bool](p, `(document.querySelector("dialog form[method=dialog] button").click(), true)`)
	for range 2 { // the second is sure
		js[bool](p, `([...document.querySelectorAll("[aria-label='Your keys'] button")].at(-1).click(), true)`)
	}
	p.until(`!document.querySelector("[aria-label='Your keys']")`)
}
