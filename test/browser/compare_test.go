package browser

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// figure waits for a row of the table of figures: what the two sides have, and the change.
func (p *tab) figure(title string, cells ...string) {
	p.t.Helper()
	p.until(`(() => {
		const row = [...document.querySelectorAll("[aria-label=Figures] tbody tr")].find((tr) => tr.cells[0].innerText === %s)
		return row && [...row.cells].slice(1).map((td) => td.innerText).join() === %s.join()
	})()`, quote(title), quoteAll(cells))
}

func quoteAll(texts []string) string {
	list := "["
	for _, text := range texts {
		list += quote(text) + ","
	}
	return list + "]"
}

// Two values of a property stand side by side, and so do two periods, as the address says.
func TestValuesAndPeriodsSideBySide(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	for i := range 5 {
		w.chat("echo-1", "hello", fmt.Sprintf("Service-Property-Plan: %s", []string{"free", "paid"}[min(i/2, 1)]))
	}
	now := time.Now()
	random := rand.New(rand.NewPCG(1, 1))
	w.reportAt(random, "common", now.Add(-30*time.Hour), now.Add(-31*time.Hour), now.Add(-32*time.Hour), now.Add(-33*time.Hour))
	w.reportAt(random, "common", now.Add(-7*24*time.Hour-time.Hour))
	w.until(10)
	p := newTab(w)
	p.login(w.key)

	p.show("?v=properties&by=Plan")
	for _, plan := range []string{"free", "paid"} {
		js[bool](p, `([...document.querySelectorAll("[aria-label=Plan] tbody tr")].find((tr) => tr.innerText.startsWith(`+quote(plan)+`)).querySelector(".mark").click(), true)`)
		p.settled()
	}
	p.figure("Requests", "2", "3", "+50%")
	js[bool](p, `import("./api.js").then(async ({post}) => {
		const [paid] = await post("/v1/request/query", {filter: {request_response_rmt: {properties: {Plan: {equals: "paid"}}}}, limit: 1});
		await post("/v1/request/" + paid.request_id + "/score", {scores: {constructor: 3}}); // as a caller may name it
		return true;
	})`)
	p.leave("location.reload()")
	p.figure("constructor", "—", "3.00", "—")
	var metrics struct{ Totals struct{ Cost float64 } }
	w.query("/v1/metrics/query", map[string]any{"bucket": "none", "filter": map[string]any{"request_response_rmt": map[string]any{"properties": map[string]any{"Plan": map[string]string{"equals": "paid"}}}}}, &metrics)
	dollars := js[string](p, fmt.Sprintf(`import("./format.js").then(({dollars}) => dollars(%v))`, metrics.Totals.Cost))
	p.until(`[...document.querySelectorAll("[aria-label=Figures] tbody tr")].find((tr) => tr.cells[0].innerText === "Cost").cells[2].innerText === %s`, quote(dollars))
	p.do(chromedp.Click(chromedp.CSS(".bar-row button"))) // swap
	p.figure("Requests", "3", "2", "−33%")
	p.leave("location.reload()")
	p.figure("Requests", "3", "2", "−33%")

	p.show("?from=24h")
	p.do(chromedp.Click(chromedp.CSS(".compare a")))
	p.figure("Requests", "4", "5", "+25%")
	p.until(`document.querySelectorAll(".chart .plot path").length === 4`) // two sides of two charts
	js[bool](p, `([...document.querySelectorAll(".bar-row button")].find((b) => b.innerText === "A week ago").click(), true)`)
	p.figure("Requests", "1", "5", "+400%")
	p.leave("location.reload()")
	p.figure("Requests", "1", "5", "+400%")
}
