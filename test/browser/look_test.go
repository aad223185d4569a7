package browser

import (
	"slices"
	"strings"
	"testing"
	"time"
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
