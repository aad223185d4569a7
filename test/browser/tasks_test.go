package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// actions counts what a person does: a click, or a text and Enter.
type actions struct {
	*tab
	n int
	// keyboard is true of a person who has no mouse: Tab leads to what is to be used, and
	// Enter uses it.
	keyboard bool
}

// click clicks the first element that a selector finds, of those that show a text.
func (a *actions) click(selector, text string) {
	a.t.Helper()
	a.use(`[...document.querySelectorAll(` + quote(selector) + `)].find((e) => e.checkVisibility() && (e.innerText + e.title + e.ariaLabel).includes(` + quote(text) + `))`)
}

// clickAt clicks one of the elements that a selector finds, the last one at -1.
func (a *actions) clickAt(selector string, at int) {
	a.t.Helper()
	a.use(fmt.Sprintf(`[...document.querySelectorAll(%s)].at(%d)`, quote(selector), at))
}

// use uses the element that an expression finds.
func (a *actions) use(find string) {
	a.t.Helper()
	a.n++
	a.until("%s", find)
	if !a.keyboard {
		js[bool](a.tab, `(`+find+`.click(), true)`)
	} else {
		a.reach(find)
		a.press("\r")
	}
	a.settled()
}

// choose picks an option of a list.
func (a *actions) choose(selector, value string) {
	a.t.Helper()
	a.n++
	if a.keyboard {
		a.reach(`document.querySelector(` + quote(selector) + `)`)
		a.press(value)
	} else {
		js[bool](a.tab, `((list) => (list.value = `+quote(value)+`, list.dispatchEvent(new Event("change", {bubbles: true}))))(document.querySelector(`+quote(selector)+`))`)
	}
	a.settled()
}

// find types into the search box, and takes what it finds of a kind.
func (a *actions) find(text, kind string) {
	a.t.Helper()
	a.n++
	a.slash()
	a.until(`document.activeElement?.role === "combobox"`)
	a.press(text)
	a.until(`[...document.querySelectorAll("#found b")].some((b) => b.innerText === %s)`, quote(kind))
	for !js[bool](a.tab, `document.querySelector("#found [aria-selected=true] b").innerText === `+quote(kind)) {
		a.press("\ue015") // down
	}
	a.press("\r")
	a.settled()
}

// enter writes a text into a field, write also presses Enter.
func (a *actions) enter(selector, text string) {
	a.t.Helper()
	a.n++
	if a.keyboard {
		a.reach(`document.querySelector(` + quote(selector) + `)`)
		a.press(text)
	} else {
		a.do(chromedp.SendKeys(chromedp.CSS(selector), text))
	}
	a.settled()
}

func (a *actions) write(selector, text string) {
	a.t.Helper()
	a.enter(selector, text+"\r")
}

func (a *actions) key(keys string) {
	a.t.Helper()
	a.n++
	a.press(keys)
	a.settled()
}

func (a *actions) shows(texts ...string) {
	a.t.Helper()
	for _, text := range texts {
		a.until(`document.body.innerText.includes(%s)`, quote(text))
	}
}

// Each of the questions that people have takes at most three actions from the screen that
// it begins at, with a mouse and without.
func TestQuestionsTakeThreeActions(t *testing.T) {
	t.Parallel()
	t.Run("with a mouse", func(t *testing.T) { t.Parallel(); askAll(t, false) })
	t.Run("with keys", func(t *testing.T) { t.Parallel(); askAll(t, true) })
}

func askAll(t *testing.T, keyboard bool) {
	w := quickstart(t)
	var failed, missed, spoken []struct {
		ID      string `json:"request_id"`
		User    string `json:"request_user_id"`
		Session string `json:"session_id"`
		Parent  string `json:"parent_request_id"`
		// Provided is the provider's id of the answer.
		Provided string `json:"response_id"`
	}
	where := func(field string, operand map[string]any) map[string]any {
		return map[string]any{"filter": map[string]any{"request_response_rmt": map[string]any{field: operand}}, "limit": 5, "includeContent": false}
	}
	w.query("/v1/request/query-clickhouse", where("status", map[string]any{"equals": 429}), &failed)
	w.query("/v1/request/query-clickhouse", where("cache_miss_reason", map[string]any{"equals": "tools_changed"}), &missed)
	w.query("/v1/request/query-clickhouse", where("response_body", map[string]any{"contains": "refund"}), &spoken)
	if len(failed) == 0 || len(missed) == 0 || len(spoken) == 0 {
		t.Fatal("the demo has no such calls")
	}
	p := w.tab(t)
	p.login(w.key)
	p.show("?from=7d")
	for name, do := range map[string]func(a *actions){
		"the costliest session, and why": func(a *actions) {
			a.click("nav a", "Sessions")
			a.click("th button", "Cost")
			a.click("[aria-label=Sessions] tbody a", "")
			a.shows("from the cache", "calls")
			a.until(`document.querySelector(".trace [data-node]")`)
		},
		"what a user was refused": func(a *actions) {
			a.find(failed[0].User, "User")
			a.click(".facets .value", "429")
			a.until(`document.querySelectorAll(".table tr[data-id]").length > 0 && [...document.querySelectorAll(".table .outcome")].every((o) => o.innerText.includes("429"))`)
		},
		"two models side by side": func(a *actions) {
			a.click("nav a", "Models")
			a.click("[aria-label=Model] .mark", "Compare")
			a.clickAt("[aria-label=Model] .mark", 1)
			a.until(`document.querySelectorAll("[aria-label=Figures] th.number").length === 3`)
			a.shows("Cost", "Latency p95")
		},
		"the prompt and the tools of a turn": func(a *actions) {
			a.show("?v=sessions&from=7d&session=" + missed[0].Session)
			a.until(`document.querySelectorAll(".trace tr[data-id]").length > 5`)
			a.clickAt(".trace tr[data-id] .open", -1)
			a.click(".settings summary", "tool")
			a.shows("Parameters", "temperature")
		},
		"the difference of two requests": func(a *actions) {
			a.show("?v=sessions&from=7d&session=" + missed[0].Session)
			a.until(`document.querySelectorAll(".trace .mark").length > 2`)
			a.click(".trace .mark", "Compare")
			a.clickAt(".trace .mark", 2)
			a.shows("Two requests", "Parameters", "Instructions", "Messages", "Answer")
			a.until(`document.querySelector(".differences ins")`)
		},
		"answers with a word": func(a *actions) {
			a.find("refund", "In bodies")
			a.until(`document.querySelector(".table mark")?.innerText.toLowerCase() === "refund"`)
			a.click(".table tr[data-id] .open", "")
			a.until(`CSS.highlights.get("find")?.size > 0`)
		},
		"a rating with a comment, taken back": func(a *actions) {
			a.show("?v=requests&from=7d&id=" + spoken[0].ID)
			a.until(`document.querySelector(".feedback button")`)
			a.click(".feedback button", "a good answer")
			a.write(".remark input", "well said")
			a.shows("Commented")
			a.click(".rating button", "Undo")
			a.until(`document.querySelector(".remark input").value === ""`)
		},
		"a link to what is seen": func(a *actions) {
			a.show("?v=requests&from=7d&id=" + spoken[0].ID)
			a.until(`document.querySelector(".drawer > header button")`)
			js[bool](a.tab, `(navigator.clipboard.writeText = async (text) => (window.copied = text), true)`)
			a.click(".drawer > header button", "Copy link")
			a.until(`window.copied === location.href`)
			js[bool](a.tab, `delete window.copied`)
		},
		"a table as it is shown": func(a *actions) {
			a.show("?v=requests&from=7d&cols=user,cost,property.Customer")
			js[bool](a.tab, `(URL.createObjectURL = (blob) => (blob.text().then((text) => (window.csv = text)), "blob:"), HTMLAnchorElement.prototype.click = () => {}, true)`)
			a.click("#menu-export summary", "Export")
			a.click("#menu-export button", "CSV")
			a.until(`window.csv?.startsWith("User,Cost,Customer\r\n")`)
			js[bool](a.tab, `(delete HTMLAnchorElement.prototype.click, true)`)
			a.leave("location.reload()")
		},
		"why the cache missed": func(a *actions) {
			a.show("?v=requests&from=7d&id=" + missed[0].ID)
			a.shows("The cache missed", "the tools have changed", "more than from the cache")
			a.click(".missed a", "What has changed")
			a.until(`document.querySelector(".differences .step ins")?.innerText.includes("late_")`)
		},
		"which customer costs most": func(a *actions) {
			a.click("nav a", "Properties")
			a.choose(".choose select", "Customer")
			a.until(`document.querySelector("[aria-label=Customer] tbody tr")?.innerText.includes("northwind-trading")`)
		},
		"what comes in": func(a *actions) {
			a.click("nav a", "Requests")
			a.key("t")
			a.shows("● Live")
			a.press("t")
		},
		"a call to run again": func(a *actions) {
			a.show("?v=requests&from=7d&id=" + spoken[0].ID)
			a.until(`document.querySelector(".drawer > header button")`)
			js[bool](a.tab, `(navigator.clipboard.writeText = async (text) => (window.copied = text), true)`)
			a.click(".drawer > header button", "Copy as curl")
			a.until(`window.copied?.startsWith("printf ") && window.copied.includes("' | curl ")`)
			js[bool](a.tab, `delete window.copied`)
		},
		"an id of a log line, at any time": func(a *actions) {
			a.show("?from=15m")
			a.find(spoken[len(spoken)-1].ID, "Request")
			a.until(`document.querySelector("dialog.drawer")?.dataset.id === %s`, quote(spoken[len(spoken)-1].ID))
		},
		"a provider's id, at any time": func(a *actions) {
			a.show("?from=15m")
			a.find(spoken[0].Provided, "Request")
			a.until(`document.querySelector("dialog.drawer")?.dataset.id === %s`, quote(spoken[0].ID))
		},
		"the waterfall of an agent": func(a *actions) {
			a.find(missed[0].Session, "Session")
			a.until(`[...document.querySelectorAll(".trace .step b")].some((b) => b.innerText === "searcher")`)
			a.until(`document.querySelectorAll(".trace .axis text").length > 2 && document.querySelectorAll(".trace .line rect").length > 5`)
		},
	} {
		a := &actions{tab: p, keyboard: keyboard}
		p.show("?from=7d")
		do(a)
		if a.n > 3 {
			t.Errorf("%s takes %d actions", name, a.n)
		}
		t.Logf("%s: %d actions", name, a.n)
	}
	if !strings.Contains(js[string](p, "location.href"), w.url) {
		t.Error("the page has left Weir")
	}
}
