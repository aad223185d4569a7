package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// exported is a record of an export.
type exported struct {
	Status *int     `json:"response_status"`
	Cost   *float64 `json:"cost"`
	Input  float64  `json:"prompt_tokens"`
	Cached float64  `json:"prompt_cache_read_tokens"`
	End    string   `json:"end_state"`
}

func (w *weir) export(filter any) (records []exported) {
	lines := bufio.NewScanner(bytes.NewReader(w.post("/v1/export", map[string]any{"filter": filter, "includeContent": false}, "Authorization: Bearer "+w.key)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r exported
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			w.t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

func TestTheOverviewAddsUpWhatAnExportHas(t *testing.T) {
	t.Parallel()
	w := quickstart(t)
	p := w.tab(t)
	p.login(w.key)
	for view, filter := range map[string]any{
		"?from=7d": "all",
		"?from=7d&f=model%3Aequals%3Agpt-4o-mini":          map[string]any{"request_response_rmt": map[string]any{"model": map[string]string{"equals": "gpt-4o-mini"}}},
		"?from=7d&f=model%3Aequals%3Aqwen3-coder-internal": map[string]any{"request_response_rmt": map[string]any{"model": map[string]string{"equals": "qwen3-coder-internal"}}},
		"?from=7d&f=property.Team%3Aequals%3Agrowth":       map[string]any{"request_response_rmt": map[string]any{"properties": map[string]any{"Team": map[string]string{"equals": "growth"}}}},
	} {
		requests, failed, cost, unpriced := 0, 0, 0.0, 0
		input, cached := 0.0, 0.0
		for _, r := range w.export(filter) {
			requests++
			input, cached = input+r.Input, cached+r.Cached
			if r.Status != nil && *r.Status >= 400 || r.End != "complete" {
				failed++
			}
			if r.Cost == nil {
				unpriced++
			} else {
				cost += *r.Cost
			}
		}
		p.open(view)
		tiles := js[[]string](p, `[...document.querySelectorAll(".tile")].map((tile) => tile.innerText)`)
		number := func(text string) float64 {
			n, _ := strconv.ParseFloat(strings.NewReplacer("$", "", ",", "").Replace(text), 64)
			return n
		}
		figure := func(i, line int) string { return strings.Split(tiles[i], "\n")[line] }
		if got := number(figure(0, 1)); got != float64(requests) {
			t.Errorf("%s shows %v requests of %d", view, got, requests)
		}
		if got := number(figure(1, 1)); math.Abs(got-cost) > 0.005*math.Max(cost, 0.01) && cost > 0 {
			t.Errorf("%s shows $%v of $%v", view, got, cost)
		}
		if unpriced > 0 && !strings.Contains(strings.ReplaceAll(tiles[1], ",", ""), fmt.Sprintf("%d unpriced", unpriced)) {
			t.Errorf("%s does not say that %d have no price: %q", view, unpriced, tiles[1])
		}
		if !strings.Contains(tiles[2], fmt.Sprintf("%d failed", failed)) {
			t.Errorf("%s shows %q of %d errors", view, tiles[2], failed)
		}
		if got := figure(5, 1); math.Abs(number(strings.TrimSuffix(got, "%"))-100*cached/input) > 0.51 {
			t.Errorf("%s shows that %s of %v tokens came from the cache, which are %v", view, got, input, cached)
		}
		for _, list := range []string{"Models", "Users"} { // name, cost, requests
			if list == "Models" && strings.Contains(view, "model%3Aequals") {
				continue // the page of one
			}
			if got := js[int](p, `[...document.querySelectorAll("[aria-label=`+list+`] tbody td:nth-child(3)")].reduce((sum, cell) => sum + Number(cell.innerText.replace(",", "")), 0)`); got != requests {
				t.Errorf("%s shows %d requests of %s, which are %d", view, got, list, requests)
			}
		}
		// What the tile leads to is what it counts.
		p.do(chromedp.Click(chromedp.CSS(".tile:nth-child(3)")))
		p.until(`document.querySelector("figcaption")?.innerText.startsWith(%s)`, quote(fmt.Sprintf("%d request", failed)))
	}
}

func TestASessionAddsUpItsCosts(t *testing.T) {
	t.Parallel()
	w := newWeir(t, "../../examples/quickstart/Caddyfile")
	random := rand.New(rand.NewPCG(7, 0))
	const trees = 50
	calls := 0
	for tree := range trees {
		for range 1 + random.IntN(6) {
			path := ""
			for range random.IntN(4) {
				path += "/" + string(rune('a'+random.IntN(3)))
			}
			headers := []string{fmt.Sprintf("Service-Session-Id: tree-%d", tree), "Service-Session-Name: Tree"}
			if path != "" {
				headers = append(headers, "Service-Session-Path: "+path)
			}
			model := "echo-1"
			if random.IntN(5) == 0 {
				model = "unpriced-model"
			}
			w.chat(model, strings.Repeat("word ", 1+random.IntN(200)), headers...)
			calls++
		}
	}
	w.until(calls)
	var sessions []struct {
		ID   string   `json:"session_id"`
		Cost *float64 `json:"total_cost"`
	}
	w.query("/v1/session/query", map[string]any{"limit": 100}, &sessions)
	if len(sessions) != trees {
		t.Fatalf("%d sessions of %d", len(sessions), trees)
	}
	p := newTab(w)
	p.login(w.key)
	for _, s := range sessions {
		p.show("?v=sessions&name=Tree&session=" + s.ID)
		p.until(`document.querySelector(".trace tr[data-id]") && new URLSearchParams(location.search).get("session") === %s`, quote(s.ID))
		sums := js[[]float64](p, `[[...document.querySelectorAll("[data-own]")].reduce((sum, cell) => sum + Number(cell.dataset.own), 0), Number(document.querySelector("[data-all]").dataset.all)]`)
		want := 0.0
		if s.Cost != nil {
			want = *s.Cost
		}
		if math.Abs(sums[0]-want) > 1e-9 || math.Abs(sums[1]-want) > 1e-9 {
			t.Errorf("%s: own costs are %v, the root's %v, the API's %v", s.ID, sums[0], sums[1], want)
		}
	}
}
