package browser

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Those who cost most are shown, however few requests they have.
func TestGroupsAreThoseThatCostMost(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	calls := 0
	for user := range 12 {
		for range 3 {
			w.chat("echo-1", "hello", fmt.Sprintf("Service-User-Id: user-%d", user), fmt.Sprintf("Service-Property-Tenant: tenant-%d", user))
			calls++
		}
	}
	w.chat("echo-1", strings.Repeat("word ", 4000), "Service-User-Id: whale", "Service-Property-Tenant: whale")
	w.until(calls + 1)
	p := newTab(w)
	p.login(w.key)
	p.until(`document.querySelector("[aria-label=Users] tbody tr")?.innerText.startsWith("whale")`)
	p.do(chromedp.Click(chromedp.CSS("[aria-label=Users] tbody tr:last-child a"))) // all others
	p.until(`document.querySelectorAll("[aria-label=Users] tbody tr").length === 13`)
	p.show("?v=properties&by=Tenant")
	p.until(`document.querySelector("[aria-label=Tenant] tbody tr")?.innerText.startsWith("whale")`)
	p.until(`document.querySelector(".legend").innerText.startsWith("whale")`)
}

// A session is a tree of its agents: with turns, tools, and what went wrong.
func TestASessionIsTheTreeOfItsAgents(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	var sessions []struct {
		ID string `json:"session_id"`
	}
	w.query("/v1/session/query", map[string]any{"search": "Fix billing", "limit": 20}, &sessions)
	p := w.tab(t)
	p.login(w.key)
	whole := slices.ContainsFunc(sessions, func(s struct {
		ID string `json:"session_id"`
	}) bool {
		p.show("?v=sessions&from=7d&session=" + s.ID)
		return js[int](p, `[...document.querySelectorAll(".trace .step b")].filter((b) => /^(main|searcher|tester)$/.test(b.innerText)).length`) == 3 &&
			strings.Contains(p.text(), "tools changed at tools")
	})
	if !whole {
		t.Fatalf("none of %d sessions shows its three agents", len(sessions))
	}
	if deep := js[[]float64](p, `["main", "searcher"].map((name) => [...document.querySelectorAll(".trace .step")].find((s) => s.querySelector("b")?.innerText === name).getBoundingClientRect().left + parseFloat(getComputedStyle([...document.querySelectorAll(".trace .step")].find((s) => s.querySelector("b")?.innerText === name)).paddingLeft))`); deep[1] <= deep[0] {
		t.Error("a sub-agent is not beneath the one that asked for it")
	}
	p.until(`document.querySelector(".trace").innerText.includes("grep") && document.querySelector(".trace").innerText.includes("1 tool result")`)
	// h folds an agent, l unfolds it; $ sorts by cost; Enter opens what is new.
	// How many rows are drawn depends on the room for them.
	rows := js[int](p, `Number(document.querySelector(".trace [aria-rowcount]").ariaRowCount)`)
	p.press("j")
	p.until(`document.querySelector(".trace tr.selected")`)
	// A call without an agent has nothing to fold, and may be the first.
	if above := js[string](p, `import("./trace.js").then(({rows}) => String(rows([{ id: "alone", own_calls: [{ request_id: "alone" }], beneath: [] }], new Set())[0].above))`); above != "undefined" {
		t.Errorf("a call without an agent folds into %s", above)
	}
	for js[bool](p, `!document.querySelector(".trace tr.selected").dataset.id.startsWith("node")`) {
		p.press("j")
		p.settled()
	}
	p.press("h")
	p.until(`Number(document.querySelector(".trace [aria-rowcount]").ariaRowCount) < %d`, rows)
	p.press("l")
	p.until(`Number(document.querySelector(".trace [aria-rowcount]").ariaRowCount) === %d`, rows)
	p.press("$")
	p.until(`location.search.includes("sort=-cost")`)
	p.settled()
	for js[bool](p, `!document.activeElement.closest(".trace tr.selected") || document.activeElement.closest("tr").dataset.id.startsWith("node")`) {
		p.press("j")
		p.settled()
	}
	p.press("\r")
	p.until(`document.querySelector("[role=tab][aria-selected=true]")?.innerText === "New in this turn"`)
	p.press("\x1b")
	p.show("?v=sessions&from=7d&show=misses&session=" + js[string](p, `new URLSearchParams(location.search).get("session")`))
	p.until(`[...document.querySelectorAll(".trace tr[data-id]")].filter((r) => !r.dataset.id.startsWith("node")).every((r) => r.innerText.includes("⚠"))`)
}

// The totals of a session are those of all of its calls.
func TestASessionOfManyCallsIsWhole(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	const calls = 1100
	for range calls {
		w.chat("echo-1", "hello", "Service-Session-Id: long")
	}
	w.until(calls)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=sessions&session=long&by=time")
	p.until(`document.querySelector(".heading").innerText.includes("1,100 calls") && document.querySelector(".trace [aria-rowcount]").ariaRowCount === "1100"`)
	var sessions []struct {
		Cost float64 `json:"total_cost"`
	}
	w.query("/v1/session/query", map[string]any{}, &sessions)
	if got := js[float64](p, `Number(document.querySelector("[data-all]").dataset.all)`); got != sessions[0].Cost {
		t.Errorf("the session costs %v, and shows %v", sessions[0].Cost, got)
	}
	if drawn := js[int](p, `document.querySelectorAll(".trace tr[data-id]").length`); drawn > 80 {
		t.Errorf("%d rows are drawn at once", drawn)
	}
}

// What people look for first is in sight on a laptop.
func TestColumnsFitTheScreen(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	for width, titles := range map[int64]string{1280: "Time,Outcome,Model,User,In,Out,Cost,Latency", 1440: "Time,Outcome,Model,User,In,Out,Cost,Latency", 390: "Time,Outcome,Model,Cost"} {
		p.do(chromedp.EmulateViewport(width, 860))
		p.show("?v=requests&from=7d")
		p.until(`(() => {
			const box = document.querySelector(".table").getBoundingClientRect()
			const seen = [...document.querySelectorAll(".table th")].filter((th) => th.checkVisibility() && th.getBoundingClientRect().right <= box.right + 1).map((th) => th.innerText.replace(/ [↑↓]/, ""))
			return %s.split(",").every((title) => seen.includes(title))
		})()`, quote(titles))
		p.show("?v=models&from=7d")
		p.until(`(() => { const box = document.querySelector("[aria-label=Model]").getBoundingClientRect(); return [...document.querySelectorAll("[aria-label=Model] th")].some((th) => th.innerText.startsWith("Cost") && th.getBoundingClientRect().right <= box.right) })()`)
	}
	// What was chosen stays, and a long name leaves room for the numbers.
	p.do(chromedp.EmulateViewport(1280, 860))
	p.show("?v=requests&from=7d")
	js[bool](p, `(document.querySelector("#menu-columns summary").click(), [...document.querySelectorAll("#menu-columns label")].find((l) => l.innerText.trim() === "Prompt").click(), true)`)
	p.until(`location.search.includes("cols=") && [...document.querySelectorAll(".table th")].some((th) => th.innerText === "Prompt")`)
	p.until(`(() => { const at = [...document.querySelectorAll(".table th")].findIndex((th) => th.innerText === "Prompt"); return [...document.querySelectorAll(".table tbody tr")].some((tr) => tr.cells[at]?.innerText.split(" ").length > 2) })()`)
	p.open("?v=requests&from=7d")
	p.until(`[...document.querySelectorAll(".table th")].some((th) => th.innerText === "Prompt")`)
}

// An address says what the API's documentation says, and what it cannot say is told.
func TestAddressesOfOtherHands(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	w.chat("echo-1", "hello")
	w.until(1)
	put := func(path, body string) {
		t.Helper()
		request, err := http.NewRequest(http.MethodPut, w.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+w.key)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode >= 300 {
			t.Fatalf("%s: %s", path, response.Status)
		}
	}
	put("/v1/view/failed", `{"screen":"requests","state":"f=status>=400&from=-24h"}`)
	p := newTab(w)
	p.login(w.key)
	p.do(chromedp.Click(chromedp.CSS("#menu-views summary")), chromedp.Click(chromedp.CSS(".saved a")))
	p.until(`document.querySelector("h1").innerText === "Requests" && document.querySelector(".chip").innerText.includes("400") && document.querySelector("main").innerText.includes("No request matches")`)
	p.open("?from=abc&f=colour:is:red&json={")
	p.until(`document.querySelector(".tile") && document.querySelector(".chip.bad").innerText.includes("from=abc") && document.querySelector(".chip.bad").innerText.includes("colour")`)
	p.open("?v=requests&cols=constructor,model,toString")
	p.until(`document.querySelectorAll(".table th").length === 1 && document.querySelector(".table th").innerText === "Model"`)
	p.open("?v=constructor")
	p.until(`document.querySelector("h1").innerText === "Overview"`)
	// A property may have a colon, and two values may be excluded.
	w.chat("echo-1", "hello")
	w.until(2)
	var records []struct {
		ID string `json:"request_id"`
	}
	w.query("/v1/request/query-clickhouse", map[string]any{"filter": "all"}, &records)
	put("/v1/request/"+records[0].ID+"/property", `{"key":"a:b","value":"c:d"}`)
	p.open("?v=requests&f=property.a%253Ab:equals:c:d&f=model:not-equals:x&f=model:not-equals:y")
	p.until(`document.querySelectorAll(".chip").length === 3 && document.querySelectorAll(".table tr[data-id]").length === 1`)
	p.show("?v=requests&f=model:not-equals:x")
	p.do(chromedp.SetValue(chromedp.CSS("[name=op]"), "not-equals"), chromedp.SendKeys(chromedp.CSS("#filter"), " y \r"))
	p.until(`[...document.querySelectorAll(".chip q")].map((q) => q.innerText).join() === "x,y"`)
	p.show("?v=requests")
	js[bool](p, `(document.activeElement.blur(), true)`)
	p.press("e")
	p.until(`document.querySelector("#menu-export").open`)
	p.show(`?v=requests&f=model:in:echo-1,echo-2&any=1&f=status:gte:400`)
	p.until(`document.querySelectorAll(".table tr[data-id]").length === 2 && document.querySelector(".joint").innerText === "or"`)
}

// The content of every dialect is shown, never an empty message.
func TestContentOfEveryDialect(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	for name, c := range map[string][2]string{
		"a function call":     {`answered({choices:[{message:{role:"assistant",content:null,function_call:{name:"look",arguments:"{\"a\":1}"}}}]})`, `m[0].parts[0].type === "call" && m[0].parts[0].args.a === 1`},
		"audio":               {`answered({choices:[{message:{role:"assistant",content:null,audio:{data:"UklGRg==",transcript:"hello"}}}]})`, `m[0].parts[0].text === "hello" && m[0].parts[1].url.startsWith("data:audio/wav;base64,")`},
		"a picture":           {`answered({output:[{type:"image_generation_call",result:"iVBORw0K"}]})`, `m[0].parts[0].url.startsWith("data:image/png;base64,")`},
		"pictures":            {`answered({data:[{b64_json:"iVBORw0K",revised_prompt:"a cat"}]})`, `m[0].parts[0].text === "a cat" && m[0].parts[1].kind === "image/png"`},
		"embeddings":          {`answered({data:[{embedding:[1,2,3]},{embedding:[1,2,3]}]})`, `m[0].parts[0].count === 2 && m[0].parts[0].size === 3`},
		"an error page":       {`answered("<html>502 Bad Gateway</html>", true)`, `m[0].role === "error" && m[0].parts[0].text.includes("502")`},
		"an error in JSON":    {`answered({message:"denied"}, true)`, `m[0].role === "error" && m[0].parts[0].text === "denied"`},
		"MCP":                 {`answered({output:[{type:"mcp_call",server_label:"crm",name:"find",arguments:"{}",output:"3 rows"}]})`, `m[0].parts[0].name === "crm: find" && m[0].parts[1].text === "3 rows"`},
		"sources":             {`answered({content:[{type:"text",text:"so",citations:[{url:"https://example.com",title:"T"}]}]})`, `m[0].parts[0].sources[0].title === "T"`},
		"a file":              {`asked({messages:[{role:"user",content:[{type:"file",file:{file_id:"f_1"}}]}]})`, `m[0].parts[0].type === "media" && m[0].parts[0].remote === "f_1"`},
		"Gemini's picture":    {`answered({candidates:[{content:{role:"model",parts:[{inlineData:{mimeType:"image/png",data:"iVBORw0K"}}]}}]})`, `m[0].parts[0].url.startsWith("data:image/png")`},
		"an unknown message":  {`answered({choices:[{message:{role:"assistant",content:null,novelty:1}}]})`, `m[0].parts[0].type === "other" && m[0].parts[0].value.novelty === 1`},
		"an unknown answer":   {`answered({novelty:1})`, `m[0].parts[0].value.novelty === 1`},
		"an unknown question": {`asked({novelty:1})`, `m[0].parts[0].value.novelty === 1`},
		"tools":               {`[settings({temperature:1,tools:[{type:"function",function:{name:"f",parameters:{}}},{functionDeclarations:[{name:"g"}]},{toolSpec:{name:"h"}},{name:"i",input_schema:{}}]})]`, `m[0].tools.map((t) => t.name).join() === "f,g,h,i" && m[0].parameters.temperature === 1`},
	} {
		if !js[bool](p, `import("./conversation.js").then(({asked, answered, settings}) => { const m = `+c[0]+`; return Boolean(`+c[1]+`) })`) {
			t.Errorf("%s is %s", name, js[string](p, `import("./conversation.js").then(({asked, answered, settings}) => JSON.stringify(`+c[0]+`))`))
		}
	}
}

// The command of a call runs, whatever the size of its body, and asks whom the call asked.
func TestACallAsACommand(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	dir := t.TempDir()
	curl := "#!/bin/sh\nprintf '%s\\n' \"$1\" >" + dir + "/url\ncat >" + dir + "/body\n"
	if err := os.WriteFile(filepath.Join(dir, "curl"), []byte(curl), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ record, url string }{
		"a large body":         {`{target_url: "https://example.com/v1/messages", request_path: "/v1/messages", request_body: {text: "it's $HOME ".repeat(450000)}}`, "https://example.com/v1/messages"},
		"a text with traps":    {`{target_url: "https://example.com/v1/messages", request_path: "/v1/messages", request_body: "hello\rBODY\rtouch trap; # \r\n'$(touch trap)\u001b[2J\\"}`, "https://example.com/v1/messages"},
		"an imported call":     {`{target_url: "", provider: "openai", request_path: "/v1/chat/completions", request_body: {a: 1}}`, "https://api.openai.com/v1/chat/completions"},
		"one of who knows":     {`{target_url: "", provider: "own", request_path: "/v1/chat/completions", request_body: {a: 1}}`, "http://base/v1/chat/completions"},
		"one of the gateway's": {`{request_referrer: "gateway", end_state: "complete", response_status: 200, target_url: "https://api.anthropic.com/v1/messages", request_path: "/v1/messages", request_body: {input: "hi"}, response_body: {object: "response"}}`, w.url + "/v1/responses"},
	} {
		command := js[string](p, `import("./curl.js").then(({command}) => (window.r = `+c.record+`, command(r)))`)
		run := exec.Command("bash")
		run.Stdin = strings.NewReader(command)
		run.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "BASE_URL=http://base")
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", name, err, out)
			continue
		}
		url, _ := os.ReadFile(filepath.Join(dir, "url"))
		body, _ := os.ReadFile(filepath.Join(dir, "body"))
		if want := js[int](p, `(typeof r.request_body === "string" ? r.request_body : JSON.stringify(r.request_body)).length`); strings.TrimSpace(string(url)) != c.url || len(body) != want {
			t.Errorf("%s asks %s with %d bytes, want %s with %d", name, url, len(body), c.url, want)
		}
	}
}

// What is shown keeps up with what is recorded, and says when it cannot.
func TestTheViewIsAlive(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	w.chat("echo-1", "hello")
	w.until(1)
	p := newTab(w)
	p.login(w.key)
	p.until(`document.querySelector(".tile strong")?.innerText === "1"`)
	js[bool](p, `(window.stale = 0, new MutationObserver(() => (stale += document.querySelectorAll(".stale").length)).observe(document.body, {subtree: true, attributes: true, attributeFilter: ["class"]}), true)`)
	w.chat("echo-1", "hello")
	w.until(2)
	p.until(`document.querySelector(".tile strong")?.innerText === "2"`)
	if js[int](p, `stale`) > 0 {
		t.Error("the figures flicker")
	}
	// What has not changed is not sent again.
	js[bool](p, `(window.same = 0, ((ask) => (window.fetch = async (...how) => { const r = await ask(...how); same += r.status === 304; return r }))(fetch), true)`)
	p.until(`same > 0`)
	w.stop()
	p.until(`document.querySelector(".offline")?.innerText.includes("Disconnected") && document.querySelector(".tile strong").innerText === "2"`)
	w.start()
	p.until(`!document.querySelector(".offline")`)
}

// A search in a body sees all of it.
func TestASearchInABodySeesAllOfIt(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	var messages []any
	for i := range 500 {
		messages = append(messages, map[string]string{"role": "user", "content": fmt.Sprintf("word%d", i)})
	}
	messages = append(messages, map[string]string{"role": "user", "content": strings.Repeat("hay ", 100_000) + "needle"})
	w.post("/echo/v1/chat/completions", map[string]any{"model": "echo-1", "messages": messages})
	w.until(1)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=requests")
	p.press("j")
	p.until(`document.querySelector("[role=tabpanel]")`)
	p.press("[")
	p.until(`document.querySelector(".find")`)
	for _, wanted := range []string{"word444", "needle"} {
		p.do(chromedp.SetValue(chromedp.CSS(".find"), wanted))
		js[bool](p, `document.querySelector(".find").dispatchEvent(new Event("input", {bubbles: true}))`)
		p.until(`[...document.querySelectorAll("[role=tabpanel] mark")].some((m) => m.innerText === %s)`, quote(wanted))
	}
}

// Days begin at midnight, also behind the night in which the clock changes; one value of
// a series is seen; times have the same form everywhere.
func TestTimesAndNumbersHaveOneForm(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	w.chat("echo-1", "hello", "Service-User-Id: "+strings.Repeat("long-name-", 20))
	w.until(1)
	var records []struct {
		ID string `json:"request_id"`
	}
	w.query("/v1/request/query-clickhouse", map[string]any{"filter": "all"}, &records)
	w.post("/v1/request/"+records[0].ID+"/score", map[string]any{"scores": map[string]any{"alone": 0.5}}, "Authorization: Bearer "+w.key)
	p := newTab(w)
	if _, err := chromedp.Call(p.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "America/New_York"}); err != nil {
		t.Fatal(err)
	}
	p.login(w.key)
	p.show("?v=scores")
	p.until(`/M[\d. ]+(m-2 0h4|L)/.test(document.querySelector(".score path.line")?.getAttribute("d"))`)
	begin := time.Date(2026, 10, 29, 4, 0, 0, 0, time.UTC) // midnight, three days before the clock changes
	ticks := js[[]string](p, fmt.Sprintf(`import("./parts/chart.js").then(({moments}) => moments(%d, %d, 7).map((t) => new Date(t).toTimeString().slice(0, 5)))`, begin.UnixMilli(), begin.AddDate(0, 0, 6).UnixMilli()))
	if len(ticks) < 5 || slices.ContainsFunc(ticks, func(at string) bool { return at != "00:00" }) {
		t.Errorf("days begin at %q", ticks)
	}
	p.show("?v=requests&id=" + records[0].ID)
	p.until(`/\d\d:\d\d:\d\d\.\d{3}/.test(document.querySelector(".drawer .summary time")?.innerText)`)
	p.press("\x1b")
	p.until(`(() => { const b = document.querySelector(".facets .value b").getBoundingClientRect(); return b.width > 4 && [...document.querySelectorAll(".facets .value")].every((v) => v.lastElementChild.previousElementSibling.getBoundingClientRect().width > 4) })()`)
	if odd := js[[]string](p, `import("./format.js").then(({compact, duration}) => [compact(31000), compact(30300), duration(10000), duration(5000), duration(0)])`); !slices.Equal(odd, []string{"31.0K", "30.3K", "10.0 s", "5.0 s", "0 s"}) {
		t.Errorf("numbers are %q", odd)
	}
	// The times of a column have the unit of the longest, and a name its colour whatever its rank.
	if odd := js[[]string](p, `import("./format.js").then(({unitOf, durationIn}) => [[20, 999], [20, 7200, 0], [20, 1200000]].flatMap((times) => times.map(durationIn(unitOf(times)))))`); !slices.Equal(odd, []string{"20 ms", "999 ms", "<0.1 s", "7.2 s", "0 s", "<0.1 min", "20.0 min"}) {
		t.Errorf("times are %q", odd)
	}
	if same := js[bool](p, `import("./parts/chart.js").then(({coloursOf}) => { const a = coloursOf(["gpt-5", "opus", "haiku", null]), b = coloursOf(["haiku", null, "gpt-5", "opus"]); return new Set(a).size === 4 && a.join() === [b[2], b[3], b[0], b[1]].join() })`); !same {
		t.Error("a colour belongs to a rank")
	}
}
