//go:build linux

package durability

import (
	"fmt"
	"testing"
	"time"
)

// TestRetention waits for content to expire: then it must be in no file, and
// the metrics still there.
func TestRetention(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{store: "content_retention 1h"})
	since := time.Now()
	g := &canarySet{owner: key, placed: map[canary]placement{}}
	var calls []*call
	ids := map[*call]string{}
	for i := range 20 {
		c := p.call(dialects[i%len(dialects)])
		c.stream = i%2 == 0
		g.place(c, omission{}, complete)
		calls = append(calls, c)
		ids[c] = c.must(t, w).id
	}
	w.flush()
	records := w.records(since)
	for _, c := range calls {
		c.check(t, records[c.name()], ids[c])
	}

	try := 0
	w.await("no content is left", func() bool {
		try++ // a new configuration makes the store tidy up at once
		if err := w.reload(config{store: "content_retention 1s", llm: fmt.Sprintf("key other-key-%d", try)}); err != nil {
			t.Fatal(err)
		}
		for token := range w.search() {
			if g.placed[token].presence == required {
				return false
			}
		}
		return true
	})
	w.wantBalance(len(calls), nil)
	records = w.records(since)
	for _, c := range calls {
		r := records[c.name()]
		switch {
		case r == nil:
			t.Errorf("%s: its record went with its content", c.name())
		case string(r.RequestBody) != "null" || string(r.ResponseBody) != "null":
			t.Errorf("%s: has bodies %s and %s", c.name(), r.RequestBody, r.ResponseBody)
		case r.PromptTokens == nil || *r.PromptTokens != c.input():
			t.Errorf("%s: has %s tokens", c.name(), number(r.PromptTokens))
		}
	}
}
