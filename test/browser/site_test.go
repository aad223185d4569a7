package browser

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// The documentation can be read from a disk: its search needs no server, and its pages ask no
// other host. Programs that read have it as Markdown.
func TestTheDocumentationOnADisk(t *testing.T) {
	t.Parallel()
	requireBrowser(t)
	const mkdocs = "../../packaging/site/.venv/bin/mkdocs"
	if _, err := os.Stat(mkdocs); err != nil && os.Getenv("REQUIRE_BROWSER") != "1" {
		t.Skip("MkDocs is not installed: packaging/site/mkdocs.yml says how")
	}
	w := &weir{t: t, url: "file://" + t.TempDir()}
	out, err := exec.Command(mkdocs, "build", "--strict", "--config-file", "../../packaging/site/mkdocs.yml", "--site-dir", w.url[len("file://"):]+"/site").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, line := range []string{"## Tasks", "(https://weirhq.github.io/weir/tasks/slow.md)"} {
		if index, err := os.ReadFile(w.url[len("file://"):] + "/site/llms.txt"); err != nil || !strings.Contains(string(index), line) {
			t.Errorf("llms.txt lacks %s: %v", line, err)
		}
	}
	if page, err := os.ReadFile(w.url[len("file://"):] + "/site/tasks/slow.md"); err != nil || !strings.HasPrefix(string(page), "# ") {
		t.Errorf("a page as Markdown: %.80s, %v", page, err)
	}
	p := w.tab(t)
	p.do(chromedp.Navigate(w.url + "/site/cluster.html"))
	p.until(`document.querySelector("div.mermaid")?.offsetHeight > 100`) // drawn, where its text was
	p.shoot("site-cluster")
	p.do(chromedp.Navigate(w.url + "/site/tasks/slow.html"))
	p.until(`document.querySelector(".md-search__input").offsetWidth > 0`)
	for word, page := range map[string]string{"budget": "budgets", "slack": "alerts", "gdpr": "privacy", "sso": "llm_ui", "cursor": "coding-agents"} {
		js[bool](p, `(document.querySelector(".md-search__input").value = "", true)`)
		p.do(chromedp.SendKeys(chromedp.CSS(".md-search__input"), word))
		p.until(`document.querySelector("a.md-search-result__link")?.href.includes(%s)`, quote("/site/"+page+".html"))
	}
}
