package browser

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var shots = flag.String("shots", "", "the folder for pictures of all screens, and that of the README")

// TestPictures judges nothing: the pictures are for eyes.
func TestPictures(t *testing.T) {
	t.Parallel()
	if *shots == "" {
		t.Skip("run with -shots=<folder>")
	}
	folder, err := filepath.Abs(*shots)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	w := quickstart(t)
	p := w.tab(t)
	shoot := func(name string) {
		t.Helper()
		picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pictures := map[string]string{"nothing": "?v=requests&f=user_id:equals:nobody"}
	for _, view := range views {
		pictures[view] = "?v=" + view
	}
	list := states(w)
	session := list[12]
	pictures["session"] = list[11]
	for _, side := range sides {
		pictures["request-"+side] = session + "&tab=" + side
	}
	each := func(do func(name string)) {
		for _, width := range []int64{1440, 768, 390} {
			for _, theme := range []string{"light", "dark"} {
				p.do(chromedp.EmulateViewport(width, map[int64]int64{1440: 900, 768: 1024, 390: 844}[width]))
				js[bool](p, fmt.Sprintf(`(localStorage.setItem("theme", %q), true)`, theme))
				p.leave("location.reload()")
				do(fmt.Sprintf("-%d-%s.png", width, theme))
			}
		}
	}
	p.do(chromedp.Navigate(w.url))
	p.until(`document.querySelector("input[name=key]")`)
	each(func(suffix string) { shoot(filepath.Join(folder, "login"+suffix)) })
	p.login(w.key)
	each(func(suffix string) {
		for name, address := range pictures {
			p.show(address)
			shoot(filepath.Join(folder, name+suffix))
		}
	})
	js[bool](p, `(localStorage.removeItem("theme"), true)`)
	p.do(chromedp.EmulateViewport(1280, 860))
	p.open("")
	shoot("../../docs/dashboard.png")
}
