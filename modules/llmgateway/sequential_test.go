//go:build !race

package llmgateway

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/plugintest"
)

// The limit holds for a body that does not tell its length, of which nothing is
// sent on.
func TestLongRequest(t *testing.T) {
	for path, at := range byPath {
		r := at.methods["POST"]
		if r == nil || r.tag != "models" || r.native && path != "/v1/embeddings" { // those are read in the same way
			continue
		}
		s := serve(t, map[string][]upstream{"raw": {speaksResponses}})
		body := io.MultiReader(strings.NewReader(`{"model":"raw/m","input":"`), io.LimitReader(forever('x'), maxRequest))
		resp, answer := s.postTo(path, body)
		if resp.StatusCode != http.StatusRequestEntityTooLarge || gjson.Get(answer, "error.message").Str == "" {
			t.Errorf("%s: %d %.100s", path, resp.StatusCode, answer)
		}
		if records := s.kept.all(); len(records) != 1 || records[0].Status.N != http.StatusRequestEntityTooLarge || !records[0].RequestTruncated {
			t.Errorf("%s: %d records", path, len(records))
		}
	}
}

// What cannot be decoded is refused, and so is a small body that becomes a large one.
func TestEncodedRequestsAreBounded(t *testing.T) {
	s := serve(t, map[string][]upstream{"one": {hello}})
	bomb := append([]byte(`{"model":"one/m","input":"`), bytes.Repeat([]byte("0"), maxRequest)...)
	for name, c := range map[string]struct {
		encoding string
		wire     []byte
		status   int
	}{
		"a bomb":            {"gzip", encoded(t, "gzip", bomb), http.StatusRequestEntityTooLarge},
		"a bomb in a bomb":  {"zstd, gzip", encoded(t, "zstd, gzip", bomb), http.StatusRequestEntityTooLarge},
		"cut off":           {"zstd", encoded(t, "zstd", []byte(ask))[:20], http.StatusBadRequest},
		"another encoding":  {"gzip", encoded(t, "zstd", []byte(ask)), http.StatusBadRequest},
		"no encoding":       {"br", []byte(ask), http.StatusBadRequest},
		"unknown encoding":  {"compress", []byte(ask), http.StatusUnsupportedMediaType},
		"too many of them":  {"gzip,gzip,gzip,gzip", []byte(ask), http.StatusUnsupportedMediaType},
		"nothing is undone": {"identity", []byte(ask), http.StatusOK},
	} {
		resp, body := s.postTo("/v1/responses", bytes.NewReader(c.wire), "Content-Encoding", c.encoding)
		if resp.StatusCode != c.status || c.status != http.StatusOK && !gjson.Get(body, "error.message").Exists() {
			t.Errorf("%s: %d %.300s", name, resp.StatusCode, body)
		}
	}
}

// Whatever is asked, and whatever the provider makes of it, a call costs no more than what
// was set aside for it.
func TestNoCallCostsMoreThanIsSetAside(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var models []*catalog.Model
	for m := range catalog.Default().Models() {
		if cost := m.Cost(plugins.Usage{Input: plugins.Known(1), Output: plugins.Known(1)}, catalog.Conditions{At: time.Now()}); cost.Valid && cost.N > 0 {
			models = append(models, m)
		}
	}
	priced := 0
	for range 10_000 {
		m := models[r.IntN(len(models))]
		c := newRandomCall(r, m)
		at := time.Now().Add(time.Duration(r.IntN(1000)) * time.Minute)
		asked := gjson.Get(c.body, observe.OutputLimits(c.dialect)[0]).Int()
		d := bound.Of(c.dialect, plugintest.Object(t, c.body), nil)
		reserved := m.MaxCost(d.Usage(m, bound.UpperBound, int64(len(c.body)), asked, 1), catalog.Conditions{At: at, Tier: c.tier})
		served := []string{c.tier, ""}[r.IntN(2)]
		charged := m.Cost(c.used, catalog.Conditions{At: at, Tier: served, Geography: []string{"", "us"}[r.IntN(2)]})
		if !charged.Valid {
			continue
		}
		priced++
		if !reserved.Valid || reserved.N < charged.N {
			t.Fatalf("%s/%s, tier %q served as %q: %v is set aside, and %v charged for %+v of %.300s", m.Provider, m.ID, c.tier, served, reserved, charged, c.used, c.body)
		}
	}
	if priced < 5000 {
		t.Errorf("only %d calls have a price", priced)
	}
}

// However many calls a batch has, of whatever lengths, and wherever its calls stand, it costs no
// more than what was set aside for it.
func TestNoBatchCostsMoreThanIsSetAside(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var models []*catalog.Model
	for m := range catalog.Default().Models() {
		text := !slices.Contains(m.Output, "image") && !slices.Contains(m.Output, "audio")
		cost := m.Cost(plugins.Usage{Input: plugins.Known(1), Output: plugins.Known(1)}, catalog.Conditions{At: time.Now(), Tier: plugins.BatchTier})
		bounded := !(&bound.Call{Model: m}).RunsAgents() // where it counts, a call of another model is refused
		if found, ok := catalog.Default().Lookup(m.Provider, m.ID); text && bounded && cost.Valid && ok && found == m {
			models = append(models, m)
		}
	}
	priced, long := 0, 0
	for range 500 {
		m := models[r.IntN(len(models))]
		at := time.Now()
		inline := r.IntN(2) == 0
		var file, list []string
		charged, calls := plugins.KnownCost(0), 1+r.IntN(8)
		for range calls {
			c := newRandomCall(r, m)
			for c.tier != "" || inline && c.dialect != plugins.Messages || !inline && c.dialect == plugins.Messages {
				c = newRandomCall(r, m)
			}
			body := strings.Replace(c.body, `"model":"m"`, fmt.Sprintf(`"model":%q`, m.ID), 1)
			url := map[plugins.Dialect]string{plugins.Responses: "/v1/responses", plugins.Chat: "/v1/chat/completions"}[c.dialect]
			file = append(file, fmt.Sprintf(`{"custom_id":"a","method":"POST","url":%q,"body":%s}`, url, body))
			list = append(list, fmt.Sprintf(`{"custom_id":"a","params":%s}`, body))
			charged = charged.Both(m.Cost(c.used, catalog.Conditions{
				At: at.Add(time.Duration(r.IntN(24)) * time.Hour), Tier: plugins.BatchTier, Geography: []string{"", "us"}[r.IntN(2)],
			}))
		}
		adder := bound.Adder{Catalog: catalog.Default(), Provider: m.Provider}
		var batch bound.Batch
		if inline {
			object, _ := plugins.ParseObject([]byte(`{"requests":[` + strings.Join(list, ",") + `]}`))
			batch = adder.Inline("", object)
		} else {
			_, form := upload(t, strings.Join(file, "\n"), "purpose", "batch")
			u := bound.Upload{Adder: adder}
			for len(form) > 0 {
				n := min(len(form), 1+r.IntN(1<<r.IntN(14)))
				u.Write([]byte(form[:n]))
				form = form[n:]
			}
			batch = u.Batch()
		}
		if batch.Calls() != int64(calls) {
			t.Fatalf("%d calls of %d are counted of %.500s", batch.Calls(), calls, list)
		}
		if batch.Parts[0].Longest > 100_000 {
			long++
		}
		reserved := batch.MaxUsage(catalog.Default(), m.Provider, at)
		if !charged.Valid {
			continue
		}
		priced++
		if !reserved.Cost.Valid || reserved.Cost.N < charged.N {
			t.Fatalf("%s/%s: %v is set aside, and %v charged for %d calls: %s", m.Provider, m.ID, reserved.Cost, charged, calls, batch.Text())
		}
	}
	if priced < 300 || long < 50 {
		t.Errorf("only %d batches have a price, and %d are long", priced, long)
	}
}
