package browser

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

func TestACallShowsWithinTwoSecondsOfAFreshStart(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	p := newTab(w)
	p.login(w.key)
	p.open("?v=requests")
	p.press("t")
	p.until(`document.querySelector("[aria-pressed=true]")`)
	called := time.Now()
	w.chat("echo-live", "hello", "Service-User-Id: ada")
	p.until(`document.body.innerText.includes("echo-live")`)
	if took := time.Since(called); took > 2*time.Second {
		t.Errorf("a call shows after %v", took)
	} else {
		t.Logf("a call shows after %v", took)
	}
}

func TestTheFirstLoadIsSmallAndFromOneOrigin(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	p.open("")
	p.mu.Lock()
	files := slices.DeleteFunc(slices.Clone(p.requests), func(r string) bool {
		return strings.Contains(r, "/api/") || strings.Contains(r, "data:")
	})
	p.mu.Unlock()
	slices.Sort(files)
	if files = slices.Compact(files); len(files) > 14 {
		t.Errorf("%d files: %q", len(files), files)
	}
	t.Logf("%d files", len(files))
	minute := func() time.Time { return time.Now().Truncate(time.Minute) }
	var began time.Time
	for began != minute() { // in another minute, the list asks anew
		began = minute()
		p.mu.Lock()
		p.requests = nil
		p.mu.Unlock()
		p.open("?v=requests")
	}
	if asked := p.asked("/api/v1/"); len(asked) > 3 {
		t.Errorf("the list asks the API %d times:\n%s", len(asked), strings.Join(asked, "\n"))
	}
}

func TestThePolicyOfThePages(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.open("")
	policy := js[string](p, `fetch("", {cache: "no-store"}).then((r) => r.headers.get("Content-Security-Policy"))`)
	for _, part := range []string{
		"default-src 'none'", "script-src 'self' 'sha256-", "style-src 'self'", "connect-src 'self'", "base-uri 'none'",
		"form-action 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
	} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy lacks %s: %s", part, policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
	// What the policy is for, and that the tests would see a violation.
	if js[bool](p, `(() => { try { document.body.innerHTML = "<b>"; return true } catch { return false } })()`) {
		t.Error("text can become markup")
	}
	p.until(`violations.length === 1`)
	js[int](p, `violations.splice(0).length`)
}

// Charts keep their place and size: under the pointer, and while a neighbour is a table.
func TestChartsKeepTheirSize(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	for _, width := range []int64{1440, 1280, 1230, 1180, 1130, 1080, 768} {
		p.do(chromedp.EmulateViewport(width, 900))
		p.open("?from=7d")
		const heights = `[...document.querySelectorAll(".charts figure")].map((f) => f.getBoundingClientRect().height)`
		before := js[[]float64](p, heights)
		for _, do := range []string{
			`document.querySelectorAll(".charts svg").forEach((svg) => { const at = svg.getBoundingClientRect(); svg.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: at.right - 30, clientY: at.top + 20})) })`,
			`document.querySelector(".charts figcaption button").click()`,
		} {
			js[bool](p, "("+do+", true)")
			p.settled()
			for i, height := range js[[]float64](p, heights) {
				if math.Abs(height-before[i]) > 1.5 {
					t.Errorf("at %d, chart %d of %v is of %v after %s", width, i, before[i], height, do)
				}
			}
		}
	}
}

// The values beside the list stay on a small laptop, a print has all of a long table, and a
// long text of instructions leaves the answer in reach.
func TestNothingIsOutOfReach(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	w.post("/echo/v1/chat/completions", map[string]any{"model": "echo-1", "messages": []any{
		map[string]string{"role": "system", "content": strings.Repeat("a long instruction ", 500)}, map[string]string{"role": "user", "content": "hello"},
	}})
	w.until(1)
	p := newTab(w)
	p.login(w.key)
	p.do(chromedp.EmulateViewport(1024, 768))
	p.show("?v=requests")
	p.until(`document.querySelector(".facets .value")?.checkVisibility()`)
	js[bool](p, `((field) => (field.value = "latency", field.dispatchEvent(new Event("change", {bubbles: true}))))(document.querySelector("[aria-label=Field]"))`)
	p.until(`document.querySelector("#filter").placeholder === "value in ms"`)
	js[bool](p, `((field) => (field.value = "property.", field.dispatchEvent(new Event("change", {bubbles: true}))))(document.querySelector("[aria-label=Field]"))`)
	p.do(chromedp.SendKeys(chromedp.CSS("[name=name]"), "never seen"), chromedp.SendKeys(chromedp.CSS("#filter"), "x\r"))
	p.until(`document.querySelector(".chip")?.innerText.startsWith("never seen")`)
	p.show("?v=requests")
	js[bool](p, `(document.activeElement.blur(), true)`)
	p.press("j")
	p.until(`document.querySelector(".message.system details") && !document.querySelector(".message.system details").open`)
	p.until(`document.querySelector(".message.answer").getBoundingClientRect().top < innerHeight`)
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}); err != nil {
		t.Fatal(err)
	}
	if cut := js[string](p, `["main", ".table", "dialog.drawer"].filter((s) => getComputedStyle(document.querySelector(s)).overflow !== "visible").join()`); cut != "" {
		t.Errorf("a print cuts off %s", cut)
	}
}
