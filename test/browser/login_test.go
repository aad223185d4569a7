package browser

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// organisations are a site with keys of two of them.
const organisations = `{
	admin 127.0.0.1:{$WEIR_ADMIN_PORT}
	persist_config off
	llm {
		store sqlite {$WEIR_DATA}/weir.db
		org acme {
			key acme-reader-0123456789 query
			key acme-logger-0123456789 log
		}
		org bravo {
			key bravo-0123456789
		}
	}
}

http://127.0.0.1:{$WEIR_PORT} {
	handle_path /echo/* {
		llm_log echo {
			require_key
		}
		llm_echo
	}
	llm_query
	llm_ui
}
`

// The link that `weir run` prints logs in, and the address does not keep the key.
func TestLoginLink(t *testing.T) {
	t.Parallel()
	p := newTab(newWeir(t, "../../examples/quickstart/Caddyfile"))
	p.do(chromedp.Navigate(p.weir.url + "/#key=weir-quickstart"))
	p.until(`document.querySelector("nav .brand") && location.hash === ""`)
}

func TestTheKeyStaysWithTheServer(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte(organisations), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWeir(t, config)
	w.key = "bravo-0123456789"
	w.chat("echo-bravo", "hello", "Service-Auth: Bearer bravo-0123456789")
	var records []struct {
		ID string `json:"request_id"`
	}
	w.until(1)
	w.query("/v1/request/query-clickhouse", map[string]any{"filter": "all"}, &records)

	p := newTab(w)
	p.open("")
	p.do(chromedp.SendKeys(chromedp.CSS("input[name=key]"), "acme-logger-0123456789\r"))
	p.until(`document.querySelector("[role=alert]")?.innerText.includes("query")`)

	p.login("acme-reader-0123456789")
	p.open("?v=requests&id=" + records[0].ID)
	if text := p.text(); strings.Contains(text, "echo-bravo") || !strings.Contains(text, "no such record") {
		t.Errorf("the link of another organisation shows\n%s", text)
	}
	if kept := js[string](p, `JSON.stringify([localStorage, sessionStorage, location.href, document.cookie, history.state])`); strings.Contains(kept, "acme-reader") || strings.Contains(kept, "weir=") {
		t.Errorf("the browser keeps %s", kept)
	}
	if asked := p.asked("acme-reader"); len(asked) > 0 {
		t.Errorf("the key stands in %q", asked)
	}
	cookies, err := chromedp.Call(p.ctx, network.GetCookies, network.GetCookiesParams{})
	if err != nil {
		t.Fatal(err)
	}
	if len(cookies.Cookies) != 1 {
		t.Fatalf("the cookies are %+v", cookies.Cookies)
	}
	if !cookies.Cookies[0].HTTPOnly || cookies.Cookies[0].SameSite != "Strict" {
		t.Errorf("the cookies are %+v", cookies.Cookies)
	}

	var heap bytes.Buffer
	if err := chromedp.Listen(p.ctx, func(event any) {
		if chunk, ok := event.(*heapprofiler.EventAddHeapSnapshotChunk); ok {
			heap.WriteString(chunk.Chunk)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(p.ctx, heapprofiler.TakeHeapSnapshot, heapprofiler.TakeHeapSnapshotParams{}); err != nil {
		t.Fatal(err)
	}
	if heap.Len() == 0 || bytes.Contains(heap.Bytes(), []byte("acme-reader")) {
		t.Errorf("the heap of %d bytes has the key", heap.Len())
	}

	request, _ := http.NewRequest(http.MethodPost, w.url+"/api/v1/request/query-clickhouse", strings.NewReader(`{"filter":"all"}`))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	request.AddCookie(&http.Cookie{Name: cookies.Cookies[0].Name, Value: cookies.Cookies[0].Value})
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("another site's request answers %s", response.Status)
	}
}
