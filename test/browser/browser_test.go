package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// scratch is a folder for the whole run.
var scratch string

// browser is the one Chromium, of which each tab is a profile of its own.
var browser context.Context

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if scratch, err = os.MkdirTemp("", "weir-browser"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	chromium, err := exec.LookPath("chromium")
	if err != nil && os.Getenv("REQUIRE_BROWSER") == "1" {
		fmt.Fprintln(os.Stderr, "chromium is not installed: apt-get install chromium, or unset REQUIRE_BROWSER")
		return 1
	}
	if err == nil {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU,
			// Nothing but Weir can be reached.
			chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE 127.0.0.2"))
		allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
		defer end()
		ctx, stop := chromedp.NewContext(allocator)
		defer stop()
		if err := chromedp.Do(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "chromium does not start:", err)
			return 1
		}
		browser = ctx
	}
	defer func() {
		if shared.weir != nil {
			shared.stop()
		}
	}()
	return m.Run()
}

func requireBrowser(t testing.TB) {
	if browser == nil {
		t.Skip("chromium is not installed")
	}
}

// tab is a page in a profile of its own. When the test ends, nothing may have
// violated the policy of the pages, failed in a script, or gone to another origin.
type tab struct {
	t    testing.TB
	ctx  context.Context
	weir *weir
	// beside is another origin that the page may lead to, such as that of an issuer.
	beside string

	mu       sync.Mutex
	requests []string // method and URL
	troubles []string
}

// watch collects what violates the Content-Security-Policy, and counts the questions without an
// answer.
const watch = `window.violations = []
addEventListener("securitypolicyviolation", (e) => violations.push(e.violatedDirective + " " + e.blockedURI + " " + e.sourceFile))
window.pending = 0
for (const [owner, name] of [[window, "fetch"], [Response.prototype, "text"]]) {
	const call = owner[name]
	owner[name] = function (...args) {
		pending++
		return call.apply(this, args).finally(() => pending--)
	}
}`

func newTab(w *weir) *tab {
	w.t.Helper()
	return w.tab(w.t)
}

func (w *weir) tab(t testing.TB) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	deadline := 10 * limit
	if *full {
		deadline = time.Hour
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	p := &tab{t: t, ctx: ctx, weir: w}
	p.do(chromedp.EmulateViewport(1440, 900))
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: watch}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.checkPolicy()
		cancel()
		end()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, trouble := range p.troubles {
			t.Error(trouble)
		}
		for _, request := range p.requests {
			_, url, _ := strings.Cut(request, " ")
			if p.beside != "" && strings.HasPrefix(url, p.beside) {
				continue
			}
			if !strings.HasPrefix(url, w.url) && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
				t.Errorf("the page asks another origin: %s", url)
			}
		}
	})
	return p
}

func (p *tab) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.Method+" "+e.Request.URL)
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.troubles = append(p.troubles, "a script fails: "+text)
	}
}

// checkPolicy is called before a document is left, with its list of violations.
func (p *tab) checkPolicy() {
	p.t.Helper()
	if found := js[[]string](p, `window.violations || []`); len(found) > 0 {
		p.t.Errorf("the policy is violated: %q", found)
	}
}

// asked are the requests since the last call whose method and URL contain a text.
func (p *tab) asked(text string) (found []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, request := range p.requests {
		if strings.Contains(request, text) {
			found = append(found, request)
		}
	}
	return found
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// js evaluates an expression, and waits for a promise.
func js[T any](p *tab, expression string) T {
	p.t.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// until waits for an expression to be true.
func (p *tab) until(format string, args ...any) {
	p.t.Helper()
	expression := fmt.Sprintf(format, args...)
	for deadline := time.Now().Add(limit); !js[bool](p, "Boolean("+expression+")"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("never true: %s\nthe page is at %s and shows\n%s", expression, js[string](p, "location.href"), p.text())
		}
	}
}

// settled waits until the view is complete.
func (p *tab) settled() {
	p.t.Helper()
	// A change is drawn, its questions are asked, and their answers drawn, each some
	// frames after the other: the view has settled when nothing in it changes. Frames are
	// counted beside the time, since a loaded machine draws few.
	const still = `new Promise((done) => {
		let since, frames
		const change = () => { since = performance.now(), frames = 0 }
		change()
		const watch = new MutationObserver(change)
		watch.observe(document, {subtree: true, childList: true, characterData: true, attributes: true})
		const look = () => {
			if (window.pending || !document.querySelector("main") || document.querySelector("[aria-busy=true], .stale")) change()
			if (frames++ > 3 && performance.now() - since > 60) return watch.disconnect(), done(true)
			requestAnimationFrame(() => setTimeout(look))
		}
		look()
	})`
	js[bool](p, still)
}

// open goes to a view.
func (p *tab) open(address string) {
	p.t.Helper()
	p.do(chromedp.Navigate(p.weir.url + "/" + address))
	p.settled()
}

// show goes to a view within the document, as a link of it does.
func (p *tab) show(address string) {
	p.t.Helper()
	js[bool](p, `(history.pushState(null, "", `+quote(address)+`), dispatchEvent(new PopStateEvent("popstate")))`)
	p.settled()
}

// leave waits until a script has led to another document, and its view.
func (p *tab) leave(script string) {
	p.t.Helper()
	p.checkPolicy()
	js[bool](p, "Boolean(window.left = true)")
	js[bool](p, "Boolean(setTimeout(() => "+script+"))")
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		left, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("!window.left && document.readyState === 'complete'"))
		if err == nil && left {
			break
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("%s leads nowhere: %v", script, err)
		}
	}
	p.settled()
}

// login opens the dashboard with an API key.
func (p *tab) login(key string) {
	p.t.Helper()
	p.open("")
	p.until(`document.querySelector("input[name=key]")`)
	p.do(chromedp.SendKeys(chromedp.CSS("input[name=key]"), key+"\r"))
	p.until(`document.querySelector("nav")`)
	p.settled()
}

func (p *tab) press(keys string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(keys))
}

// slash presses the key, without the character that chromedp types beside it whatever
// the page makes of the key.
func (p *tab) slash() {
	p.t.Helper()
	for _, k := range []input.DispatchKeyEventParams{{Type: input.DispatchKeyEventTypeKeyDown, Key: "/", Code: "Slash", Text: "/"}, {Type: input.DispatchKeyEventTypeKeyUp, Key: "/", Code: "Slash"}} {
		if _, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, k); err != nil {
			p.t.Fatal(err)
		}
	}
}

// reach moves the focus to the element that an expression finds, by Tab or Shift+Tab alone.
func (p *tab) reach(find string) {
	p.t.Helper()
	p.until("%s", find)
	for range 400 {
		switch js[string](p, `((e, at) => e === at ? "there" : at !== document.body && e.compareDocumentPosition(at) & Node.DOCUMENT_POSITION_FOLLOWING ? "before" : "behind")(`+find+`, document.activeElement)`) {
		case "there":
			return
		case "before":
			p.do(chromedp.KeyEvent("\t", chromedp.KeyModifiers(chromedp.ModifierShift)))
		default:
			p.press("\t")
		}
	}
	p.t.Fatalf("no key reaches %s, the focus is at %s", find, js[string](p, `document.activeElement.outerHTML.slice(0, 300)`))
}

// text is what a reader sees.
func (p *tab) text() string { return js[string](p, `document.body.innerText`) }

// ids are the requests that the list shows, from the top.
func (p *tab) ids() []string {
	return js[[]string](p, `[...document.querySelectorAll("tr[data-id]")].map((row) => row.dataset.id)`)
}

// quote is a Go string as one of JavaScript.
func quote(text string) string {
	quoted, _ := json.Marshal(text)
	return string(quoted)
}
