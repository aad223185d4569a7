package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// reportCustomers reports one call of each customer from the first number until before the second. A later
// customer costs more.
func (w *weir) reportCustomers(from, to int) {
	w.t.Helper()
	var out strings.Builder
	out.WriteString(`{"resourceSpans":[{"scopeSpans":[{"spans":[`)
	at := time.Now().Add(-time.Hour)
	for i := from; i < to; i++ {
		if i > from {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"traceId":"%032x","spanId":"%016x","name":"chat","startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[`, i+1, i+1, at.UnixNano(), at.Add(time.Second).UnixNano())
		for _, a := range [][2]string{
			{"gen_ai.operation.name", "chat"}, {"gen_ai.provider.name", "openai"}, {"gen_ai.request.model", "gpt-5-mini"}, {"gen_ai.response.model", "gpt-5-mini"},
			{"traceloop.association.properties.Service-User-Id", fmt.Sprintf("customer-%06d", i)}, {"traceloop.association.properties.Service-Property-Customer", fmt.Sprintf("customer-%06d", i)},
		} {
			fmt.Fprintf(&out, `{"key":%q,"value":{"stringValue":%q}},`, a[0], a[1])
		}
		fmt.Fprintf(&out, `{"key":"gen_ai.usage.input_tokens","value":{"intValue":"10"}},{"key":"gen_ai.usage.output_tokens","value":{"intValue":"%d"}}]}`, i+1)
	}
	out.WriteString(`]}]}]}`)
	w.send("/v1/traces", []byte(out.String()), "Authorization: Bearer "+w.key)
}

// A field of very many values shows those that cost most, and leads to all others; with
// -full 100,000 values.
func TestManyValuesOfAGroup(t *testing.T) {
	t.Parallel()
	values := 1500
	if *full {
		values = 100_000
	}
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	const batch = 500
	for from := 0; from < values; from += batch {
		w.reportCustomers(from, from+batch)
	}
	for deadline := time.Now().Add(10 * time.Minute); w.recorded() < values && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	p := newTab(w)
	p.login(w.key)
	customer := func(rank int) string { return fmt.Sprintf("customer-%06d", values-rank) }
	for _, screen := range []struct{ address, label string }{{"?v=properties&by=Customer", "Customer"}, {"?v=users", "Users"}} { // the last stays
		label := screen.label
		began := time.Now()
		p.show(screen.address)
		p.until(`document.querySelector("[aria-label=%s] tbody tr")?.innerText.startsWith(%s)`, label, quote(customer(1)))
		promise(t, fmt.Sprintf("%s of %d values, in milliseconds", label, values), []float64{float64(time.Since(began).Milliseconds())}, 2000)
		if drawn := js[int](p, `document.querySelectorAll("main tbody tr").length`); drawn > 110 {
			t.Errorf("%s draws %d rows at once", label, drawn)
		}
		js[bool](p, `(document.querySelector(".pager button:last-child").click(), true)`)
		p.until(`document.querySelector("[aria-label=%s] tbody tr")?.innerText.startsWith(%s)`, label, quote(customer(101)))
	}
	p.until(`[...document.querySelectorAll("main .quiet")].some((e) => e.innerText.replace(",", "") === %s)`, quote(fmt.Sprintf("%d users", values)))
	p.show("?v=properties&by=Customer")
	p.until(`[...document.querySelectorAll(".legend > span")].some((e) => e.textContent.replace(",", "").includes(%s))`, quote(fmt.Sprintf("%d others", values-5)))
	p.show("?v=requests&by=Customer")
	p.until(`document.querySelectorAll(".facets li").length < 120 && document.querySelector(".facets").innerText.includes("requests with other values")`)
}
