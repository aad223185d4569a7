package browser

import (
	"bytes"
	"flag"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"
)

// full makes the tests of speed as large as what they promise.
var full = flag.Bool("full", false, "use 1,000,000 records, and 1,000 in 10 seconds")

// reload loads the configuration again, as an operator does who has changed it.
func (w *weir) reload() {
	w.t.Helper()
	config, err := os.ReadFile(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	request, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:"+w.admin+"/load", bytes.NewReader(config))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "text/caddyfile")
	request.Header.Set("Cache-Control", "must-revalidate") // also without a change
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("the configuration is not loaded: %s", response.Status)
	}
	http.DefaultClient.CloseIdleConnections() // to the server that ends
}

// call makes a call, again where the listener that was closed by a reload had accepted
// its connection: it may have been recorded twice then.
func (w *weir) call() {
	w.t.Helper()
	body := []byte(`{"model":"echo-after","messages":[{"role":"user","content":"hello"}]}`)
	if _, err := w.try("/echo/v1/chat/completions", body); err != nil {
		w.send("/echo/v1/chat/completions", body)
	}
}

// Requests come in while somebody reads one, over two reloads of the configuration:
// the reader keeps the place, and gets each of them once.
func TestLiveRequestsWaitForTheirReader(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	before, coming, pace := 60, 200, 2*time.Millisecond
	if *full {
		coming, pace = 1000, 10*time.Millisecond
	}
	for range before {
		w.chat("echo-before", "hello")
	}
	w.until(before)
	p := newTab(w)
	p.login(w.key)
	p.show("?v=requests")
	p.press("t")
	p.until(`document.querySelector("[aria-pressed=true]")`)
	js[bool](p, `(document.querySelector(".table").scrollTop = 320, document.querySelectorAll("tr[data-id]")[16].querySelector("button").click(), true)`)
	p.settled()
	const place = `JSON.stringify([document.querySelector(".table").scrollTop, document.querySelector("tr.selected").dataset.id, document.querySelector("tr.selected").getBoundingClientRect().top])`
	kept := js[string](p, place)

	next := time.NewTicker(pace)
	defer next.Stop()
	for i := range coming {
		<-next.C
		w.call()
		if i == coming/3 || i == 2*coming/3 {
			w.reload()
		}
	}
	w.until(before + coming)
	total := w.recorded()
	const waiting = `document.querySelector(".waiting")?.innerText.startsWith(new Intl.NumberFormat("en").format(%d) + " ")`
	p.until(waiting, total-before)
	if now := js[string](p, place); now != kept {
		t.Errorf("the reader was at %s, and is at %s", kept, now)
	}

	w.reload()
	reloaded := time.Now()
	w.call()
	w.until(total + 1)
	total = w.recorded()
	p.until(waiting, total-before)
	t.Logf("a call after a reload shows %v later", time.Since(reloaded).Round(time.Millisecond))

	p.press("\x1b")
	p.until(`!document.querySelector("dialog.drawer")`)
	js[bool](p, `(document.querySelector(".waiting").click(), true)`)
	p.until(`document.querySelector("[aria-rowcount]").ariaRowCount === "%d"`, total)
	ids := p.allIDs()
	if different := len(slices.Compact(slices.Sorted(slices.Values(ids)))); len(ids) != total || different != total {
		t.Errorf("%d rows of %d requests, %d were recorded", len(ids), different, total)
	}
}

// allIDs are the requests of the list, from its top to its end.
func (p *tab) allIDs() []string {
	p.t.Helper()
	return js[[]string](p, `(async () => {
		const box = document.querySelector(".table"), ids = []
		for (box.scrollTop = 0; ; box.scrollTop += 320) {
			await new Promise((done) => requestAnimationFrame(() => setTimeout(done)))
			for (const row of document.querySelectorAll("tr[data-id]")) ids[row.ariaRowIndex - 1] = row.dataset.id
			if (box.scrollTop + box.clientHeight >= box.scrollHeight - 1) return ids
		}
	})()`)
}
