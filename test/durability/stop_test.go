//go:build linux

package durability

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestStop asks the process to end while streams run, and while calls wait for a
// provider that says nothing, through the proxy and through the gateway. With a grace
// period that is long enough, they end as if nothing was; otherwise they are cut when
// it is over, the process ends soon after, and every record is there all the same.
func TestStop(t *testing.T) {
	const soon = 15 * time.Second // after the grace period, as docs/operations.md has it
	for _, grace := range []struct {
		name   string
		period time.Duration
		long   bool
	}{
		{"long grace period", 30 * time.Second, true},
		{"short grace period", 100 * time.Millisecond, false},
		{"grace period of the examples", 30 * time.Second, false},
	} {
		t.Run(grace.name, func(t *testing.T) {
			if !*full && !grace.long && grace.period > time.Second {
				t.Skip("it is the grace period that takes long: use -full")
			}
			t.Parallel()
			p := newProvider(t)
			w := newWeir(t, p)
			upstream := httptest.NewServer(http.HandlerFunc(p.answerPrompt))
			t.Cleanup(func() {
				upstream.CloseClientConnections()
				upstream.Close()
			})
			c := config{
				global: "grace_period " + grace.period.String(),
				site:   "llm_gateway",
				llm: strings.ReplaceAll("provider openai {\nbase_url $/v1\napi_key x\n}\nprovider anthropic {\nbase_url $\napi_key x\n}\n", "$", upstream.URL) +
					"org payer {\nkey payer-key\n}",
			}
			w.start(c)
			since := time.Now()
			hold := make(chan struct{})
			release := sync.OnceFunc(func() { close(hold) })
			t.Cleanup(release)
			ctx, cancel := context.WithTimeout(t.Context(), grace.period+2*waitLimit)
			defer cancel()
			calls := make([]*call, rounds(24, 60))
			outcomes := make([]outcome, len(calls))
			var clients sync.WaitGroup
			for i := range calls {
				l := lanes[i/2%len(dialects)] // without echo, which does not wait
				c := p.call(l.dialect)
				gateway := i%2 == 1
				if !gateway {
					c = p.call(dialects[i/2%len(dialects)])
				}
				c.stream, c.hold, c.silent = true, hold, i/2%2 == 1
				calls[i] = c
				clients.Go(func() {
					if gateway {
						id, err := l.do(ctx, w, c)
						outcomes[i] = outcome{id: id, ended: err == nil, err: err}
					} else {
						outcomes[i] = c.do(ctx, w)
					}
				})
			}
			w.await("all streams run", func() bool { return p.holding(calls) })
			c.store = "retention 90d"
			if err := w.reload(c); err != nil {
				t.Fatal(err) // the streams belong to the configuration before
			}
			asked := time.Now()
			w.terminate()
			if grace.long {
				w.await("new connections are refused", func() bool { return !w.listens() })
				release()
			}
			clients.Wait()
			w.wait()
			took := time.Since(asked)
			if took > grace.period+soon {
				t.Errorf("the process took %v to end", took)
			}
			t.Logf("%d calls, %v to the end", len(calls), took)
			release()

			w.start(config{llm: c.llm})
			w.flush()
			records := w.records(since)
			maps.Copy(records, w.query("", payer, since))
			w.wantBalance(len(calls), nil)
			for i, c := range calls {
				r := records[c.name()]
				switch {
				case grace.long && !outcomes[i].ended:
					t.Errorf("%s: was cut: %v", c.name(), outcomes[i].err)
				case grace.long:
					c.check(t, r, outcomes[i].id)
				case r == nil:
					t.Errorf("%s: the record is lost", c.name())
				case outcomes[i].ended || r.EndState == "complete" || r.RequestBody == nil || !has(r.RequestBody, c.prompt):
					t.Errorf("%s: was to be cut, and is %s, with the request %s", c.name(), r.EndState, r.RequestBody)
				}
			}
		})
	}
}
