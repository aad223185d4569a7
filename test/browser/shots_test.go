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
	w := quickstart(t)
	long := strings.Repeat("a-very-long-name-", 12)
	w.chat("echo-"+long, long, "Service-User-Id: "+long, "Service-Session-Id: "+long, "Service-Property-Customer: "+long)
	pictures := map[string]string{"nothing": "?v=requests&f=user_id:equals:nobody"}
	for _, view := range views {
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
			p.show("?v=requests")
			p.do(chromedp.Click(chromedp.CSS("#menu-views summary")))
			p.until(`document.querySelector(".saved")`)
			p.shoot(name("views"))
		}
	}
}
