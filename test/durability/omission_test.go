//go:build linux

package durability

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"
)

// TestOmission puts canaries into everything that must not be kept, and looks
// for them in all that Weir wrote: while it runs, after kill -9 with requests
// in flight, and once the journal is compressed. What may be kept proves that
// the search finds things.
func TestOmission(t *testing.T) {
	for _, logs := range []struct {
		name   string
		config func(w *weir) config
	}{
		{"the quickstart's log", func(*weir) config { return config{global: "log {\nformat llm\n}"} }},
		{"access and debug logs", func(w *weir) config {
			return config{
				global: "debug\nlog {\nformat llm\n}",
				site:   "log {\noutput file " + filepath.Join(w.dir, "logs", "access.log") + "\nformat llm json\n}",
			}
		}},
	} {
		t.Run(logs.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			w := newWeir(t, p)
			g := &canarySet{owner: newCanary(), placed: map[canary]placement{}}
			g.placed[g.owner] = placement{"Service-Auth", "any", forbidden}
			c := logs.config(w)
			c.llm = "key " + string(g.owner)
			c.site += "\nhandle_path /down/* {\nllm_proxy openai http://127.0.0.1:1\n}"
			testOmission(t, p, w, c, g)
		})
	}
}

func testOmission(t *testing.T, p *provider, w *weir, config config, g *canarySet) {
	w.start(config)
	temporary := watch(t, filepath.Join(w.dir, "tmp"))
	since := time.Now()
	var calls []*call
	for _, omit := range omissions {
		for _, ending := range endings {
			for range rounds(1, 16) {
				for _, d := range dialects {
					c := p.call(d)
					c.encoding = encodings[len(calls)%len(encodings)]
					g.place(c, omit, ending)
					calls = append(calls, c)
				}
			}
		}
	}
	ids := map[*call]string{}
	for i, c := range calls {
		c.stream = c.stream || i/len(encodings)%2 == 0
		ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
		o := c.do(ctx, w)
		cancel()
		ids[c] = o.id
		if want := c.ending.answered(c); o.status != want {
			t.Errorf("%s, %s: status %d, want %d: %v", c.name(), c.ending.name, o.status, want, o.err)
		}
	}
	w.flush()
	g.check(t, w, "the running process", false)
	records := w.records(since)
	for _, c := range calls {
		c.checkOmission(t, records[c.name()], ids[c])
	}

	hold := make(chan struct{})
	defer close(hold)
	streams := g.startStreams(t, p, w, hold)
	g.check(t, w, "with requests in flight", false)
	w.kill()
	g.check(t, w, "after the kill", false)
	w.start(config)
	w.await("the journal is compressed", func() bool { return w.status().SealedSegments > 0 && w.status().RawSegments <= 1 })
	w.flush()
	g.check(t, w, "after the restart", true)
	// Of those in flight, some had their finish reason, and thus a record.
	all := w.records(since)
	w.wantBalance(len(all), map[string]int64{"interrupted": int64(len(records) + streams - len(all))})
	if names := temporary.names(); len(names) > 0 {
		t.Errorf("temporary files were made: %v", names)
	}
	t.Logf("%d calls, %d more in flight, %d canaries", len(calls), streams, len(g.placed))
}

// omission is what a client asks to be omitted.
type omission struct{ request, response bool }

var omissions = []omission{{true, true}, {true, false}, {false, true}, {false, false}}

// ending is how a call ends. prepare makes it end so.
type ending struct {
	name    string
	prepare func(*call)
	// These tell that the whole request arrived and that the whole answer was
	// given, so that they are kept unless omitted.
	requestKept, responseKept bool
	// status is what Weir answers by itself.
	status int
}

var (
	complete   = &ending{name: "complete", prepare: func(*call) {}, requestKept: true, responseKept: true}
	unknownKey = &ending{name: "unknown key", prepare: func(*call) {}, status: http.StatusUnauthorized}
	endings    = []*ending{complete, unknownKey,
		{name: "refused by the provider", prepare: func(c *call) { c.status = http.StatusBadRequest }, requestKept: true, responseKept: true},
		{name: "cut off by the provider", prepare: func(c *call) { c.stream, c.cut = true, true }, requestKept: true},
		{name: "left by the client", prepare: func(c *call) { c.stream, c.reads, c.pause = true, 60, time.Millisecond }, requestKept: true},
		{name: "nobody there", prepare: func(c *call) { c.site = "/down" }, status: http.StatusBadGateway},
	}
)

func (f *ending) answered(c *call) int {
	if f.status != 0 {
		return f.status
	}
	return c.answerStatus()
}

// presence reports whether a canary may be in a file.
type presence int

const (
	forbidden presence = iota
	allowed
	required
)

// placement tells what a canary was put into, and of which call.
type placement struct {
	what, call string
	presence   presence
}

// canarySet are the canaries of a test.
type canarySet struct {
	// owner is a key that Weir knows.
	owner  canary
	placed map[canary]placement
}

// place puts canaries into a call that ends in some way.
func (g *canarySet) place(c *call, omit omission, f *ending) {
	c.ending = f
	f.prepare(c)
	call := fmt.Sprintf("%s, %s, encoded %q, omit %+v", c.dialect, f.name, c.encoding, omit)
	add := func(what string, s presence) string {
		token := newCanary()
		g.placed[token] = placement{what, call, s}
		return string(token)
	}
	kept := func(omitted, sure bool) presence {
		switch {
		case omitted:
			return forbidden
		case sure:
			return required
		default:
			return allowed
		}
	}
	c.prompt = add("request body", kept(omit.request, f.requestKept)) + " ?"
	c.header.Set("Service-Prompt-Input-Name", add("prompt input", kept(omit.request, f.requestKept)))
	c.text = add("response body", kept(omit.response, f.responseKept)) + " !"
	for _, name := range []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie"} {
		c.header.Set(name, add(name, forbidden))
	}
	c.header.Set("Authorization", "Bearer "+add("Authorization", forbidden))
	c.header.Set("Service-Auth", "Bearer "+string(g.owner))
	if f == unknownKey {
		c.header.Set("Service-Auth", "Bearer "+add("Service-Auth", forbidden))
	}
	c.cookie = add("Set-Cookie", forbidden)
	c.query = url.Values{"key": {add("?key=", forbidden)}}
	if omit.request {
		c.header.Set("Service-Omit-Request", "true")
	}
	if omit.response {
		c.header.Set("Service-Omit-Response", "true")
	}
}

// check looks for canaries where none may be; with all, also for those that
// are required.
func (g *canarySet) check(t *testing.T, w *weir, when string, all bool) {
	t.Helper()
	found := w.search()
	type leak struct{ what, file string }
	leaks := map[leak][]string{}
	for token, file := range found {
		if p := g.placed[token]; p.presence == forbidden {
			leaks[leak{p.what, file}] = append(leaks[leak{p.what, file}], p.call)
		}
	}
	for l, calls := range leaks {
		t.Errorf("%s: the %s of %d calls is in %s, like that of (%s)", when, l.what, len(calls), l.file, calls[0])
	}
	if !all {
		return
	}
	for token, p := range g.placed {
		if _, ok := found[token]; !ok && p.presence == required {
			t.Errorf("%s: the %s of (%s) is not found: is the search blind?", when, p.what, p.call)
		}
	}
}

// startStreams starts streams that do not end, with content omitted, and returns how
// many.
func (g *canarySet) startStreams(t *testing.T, p *provider, w *weir, hold <-chan struct{}) int {
	var streams []*call
	for i := range 24 {
		c := p.call(dialects[i%len(dialects)])
		g.place(c, omission{true, true}, complete)
		c.encoding = []string{"", "gzip"}[i%2]
		c.stream, c.hold, c.pieces = true, hold, 20
		streams = append(streams, c)
		go c.do(t.Context(), w)
	}
	w.await("all streams run", func() bool { return p.answering(streams) })
	time.Sleep(50 * time.Millisecond)
	return len(streams)
}

// checkOmission reports what is wrong with the record of a call, however it ended.
func (c *call) checkOmission(t *testing.T, r *record, id string) {
	t.Helper()
	if c.ending == complete {
		c.check(t, r, id)
		return
	}
	if c.ending == unknownKey {
		if r != nil {
			t.Errorf("%s has a record, and was refused", c.name())
		}
		return
	}
	if r == nil || r.ID != id {
		t.Errorf("%s, %s: no record has the id %s", c.name(), c.ending.name, id)
		return
	}
	if r.Status == nil || *r.Status != c.ending.answered(c) || r.Latency == nil {
		t.Errorf("%s, %s: status %s, latency %s", c.name(), c.ending.name, number(r.Status), number(r.Latency))
	}
	for side, omitted := range map[string]bool{
		"request":  c.header.Get("Service-Omit-Request") == "true" && (!r.RequestOmitted || string(r.RequestBody) != "null" || has(r.Inputs, "c4nary")),
		"response": c.header.Get("Service-Omit-Response") == "true" && (!r.ResponseOmitted || string(r.ResponseBody) != "null"),
	} {
		if omitted {
			t.Errorf("%s, %s: the %s was not omitted", c.name(), c.ending.name, side)
		}
	}
}
