package browser

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "the folder for pictures of all screens; the README's is written, too")

// shoot takes a picture, if there is a folder for them.
func (p *tab) shoot(name string) {
	p.t.Helper()
	if *shots == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.MkdirAll(*shots, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, name+".png"), picture, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// TestPictures judges nothing: the pictures are for eyes.
func TestPictures(t *testing.T) {
	t.Parallel()
	if *shots == "" {
		t.Skip("run with -shots=<folder>")
	}
	text, err := os.ReadFile("../../examples/quickstart/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "Caddyfile")
	const key = "\t\tkey {$WEIR_API_KEY:weir-quickstart}\n"
	more := key + "\t\tkey the-administrator-0123456789 admin query gateway write log\n\t\talias pool {\n\t\t\tstrategy weight\n\t\t\tmodel echo/echo-1 {\n\t\t\t\tarm plain\n\t\t\t\tlimit max_tokens 4000\n\t\t\t}\n\t\t\tmodel openai/gpt-5-mini\n\t\t}\n" +
		"\t\tchannel ops webhook http://127.0.0.1:9/ {\n\t\t\tsecret whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz\n\t\t}\n"
	if err := os.WriteFile(config, []byte(strings.Replace(string(text), key, more, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWeir(t, config)
	w.demo("--days", "9")
	w.key = "the-administrator-0123456789"
	long := strings.Repeat("a-very-long-name-", 12)
	w.chat("echo-"+long, long, "Service-User-Id: "+long, "Service-Session-Id: "+long, "Service-Property-Customer: "+long)
	administrator := "Authorization: Bearer " + w.key
	for _, team := range []string{"search", "billing", "support"} {
		w.post("/v1/organization/projects", map[string]any{"name": team}, administrator)
		for i, person := range []string{"ada", "bo", "chi"} {
			w.post("/v1/keys", map[string]any{"name": fmt.Sprintf("%s's laptop, %s", person, team), "owner": person + "@example.com", "project": team, "scopes": [][]string{{"gateway"}, {"gateway", "metrics"}, {"gateway", "query", "write"}}[i], "models": [][]string{{}, {"gpt-5*", "claude-*"}, {"echo-1"}}[i]}, administrator)
		}
	}
	w.post("/v1/organization/invites", map[string]any{"email": "ada@example.com", "role": "reader"}, administrator)
	for _, b := range []map[string]any{{"name": "each user", "limit": "3", "per": "user"}, {"name": "all teams", "limit": "60", "stages": []any{map[string]any{"at": 80}}}, {"name": "Opus, observed", "limit": "2", "window": "week", "observe": true}} {
		b["since"] = "2026-11-01"
		b["trust"] = true
		w.post("/v1/budgets", b, administrator)
	}
	w.post("/v1/alerts/rules", map[string]any{"name": "dear hour", "total": "cost", "operator": ">", "threshold": 0.01, "over": "1h", "to": []string{"ops"}}, administrator)
	w.post("/v1/alerts/rules", map[string]any{"name": "errors of a user", "total": "errors", "operator": ">", "threshold": 100, "over": "1h", "per": "user", "to": []string{"ops"}}, administrator)
	w.post("/v1/holds", map[string]any{"filter": map[string]any{"request_response_rmt": map[string]any{"user_id": map[string]any{"equals": "ada"}}}, "reason": "case 4711"}, administrator)
	w.post("/v1/erasures", map[string]any{"filter": map[string]any{"request_response_rmt": map[string]any{"user_id": map[string]any{"equals": "nobody"}}}, "what": "content"}, administrator)
	pictures := map[string]string{"nothing": "?v=requests&f=user_id:equals:nobody"}
	for _, view := range append([]string{"errors", "routes", "mine", "connect", "alerts", "budgets", "projects", "people", "keys", "audit", "privacy"}, views...) {
		pictures[view] = "?v=" + view
	}
	list := states(w)
	pictures["compare"] = "?v=compare&by=model&a=gpt-5-mini&b=gpt-4o-mini"
	pictures["page"] = "?from=7d&f=user_id:equals:ada"
	pictures["search"] = "?v=requests&f=body:contains:refund"
	pictures["session"] = list[11]
	pictures["one"] = "?v=requests&f=user_id:equals:" + long
	pictures["long-session"] = "?v=sessions&session=" + long
	for _, side := range sides {
		pictures["request-"+side] = list[12] + "&tab=" + side
	}
	for width, height := range map[int64]int64{1440: 900, 1280: 860, 768: 1024, 390: 844} {
		for _, theme := range []string{"light", "dark"} {
			p := w.tab(t)
			p.do(chromedp.EmulateViewport(width, height), chromedp.Navigate(w.url))
			js[bool](p, fmt.Sprintf(`(localStorage.setItem("theme", %q), true)`, theme))
			name := func(screen string) string { return fmt.Sprintf("%s-%d-%s", screen, width, theme) }
			p.until(`document.querySelector("input[name=key]")`)
			p.shoot(name("login"))
			p.login(w.key)
			for screen, address := range pictures {
				p.show(address)
				p.shoot(name(screen))
			}
			for screen, button := range map[string]string{"budgets": "Create a budget", "keys": "Create a key", "alerts": "Create a rule", "projects": "search"} {
				p.show("?v=" + screen)
				click := `[...document.querySelectorAll("main :is(button, td a)")].find((b) => b.innerText === ` + quote(button) + `)`
				p.until(`%s != null`, click)
				js[bool](p, `(`+click+`.click(), true)`)
				p.settled()
				js[bool](p, `(document.querySelectorAll("dialog details").forEach((d) => (d.open = true)), true)`)
				p.shoot(name(screen + "-form"))
			}
			p.show("?v=requests")
			p.do(chromedp.Click(chromedp.CSS("#menu-views summary")))
			p.until(`document.querySelector(".saved")`)
			p.shoot(name("views"))
		}
	}
}
