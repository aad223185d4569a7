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

// TestOmission plants canaries in everything that must not be kept, and looks
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
			g := &garden{owner: newCanary(), plants: map[canary]plant{}}
			g.plants[g.owner] = plant{"Service-Auth", "any", nowhere}
			c := logs.config(w)
			c.llm = "key " + string(g.owner)
			c.site += "\nhandle_path /nowhere/* {\nllm_proxy openai http://127.0.0.1:1\n}"
			testOmission(t, p, w, c, g)
		})
	}
}

func testOmission(t *testing.T, p *provider, w *weir, config config, g *garden) {
	w.start(config)
	temporary := watch(t, filepath.Join(w.dir, "tmp"))
	since := time.Now()
	var calls []*call
	for _, omit := range omissions {
		for _, fate := range fates {
			for range rounds(1, 16) {
				for _, d := range dialects {
					c := p.call(d)
					c.encoding = encodings[len(calls)%len(encodings)]
					g.plant(c, omit, fate)
					calls = append(calls, c)
				}
			}
		}
	}
	ids := map[*call]string{}
	for i, c := range calls {
		c.stream = c.stream || i/len(encodings)%2 == 0
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		o := c.do(ctx, w)
		cancel()
		ids[c] = o.id
		if want := c.fate.answered(c); o.status != want {
			t.Errorf("%s, %s: status %d, want %d: %v", c.name(), c.fate.name, o.status, want, o.err)
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
	flying := g.fly(t, p, w, hold)
	g.check(t, w, "with requests in flight", false)
	w.kill()
	g.check(t, w, "after the kill", false)
	w.start(config)
	w.await("the journal is compressed", func() bool { return w.status().SealedSegments > 0 && w.status().RawSegments <= 1 })
	w.flush()
	g.check(t, w, "after the restart", true)
	// Of those in flight, some had their finish reason, and thus a record.
	all := w.records(since)
	w.wantBalance(len(all), map[string]int64{"interrupted": int64(len(records) + flying - len(all))})
	if names := temporary.names(); len(names) > 0 {
		t.Errorf("temporary files were made: %v", names)
	}
	t.Logf("%d calls, %d more in flight, %d canaries", len(calls), flying, len(g.plants))
}

// omission is what a client asks to be omitted.
type omission struct{ request, response bool }

var omissions = []omission{{true, true}, {true, false}, {false, true}, {false, false}}

// fate is what becomes of a call.
type fate struct {
	name string
	doom func(*call)
	// heard and said tell that the whole request arrived and that the whole
	// answer was given, so that they are kept unless omitted.
	heard, said bool
	// status is what Weir answers by itself.
	status int
}

var (
	complete   = &fate{name: "complete", doom: func(*call) {}, heard: true, said: true}
	unknownKey = &fate{name: "unknown key", doom: func(*call) {}, status: http.StatusUnauthorized}
	fates      = []*fate{complete, unknownKey,
		{name: "refused by the provider", doom: func(c *call) { c.status = http.StatusBadRequest }, heard: true, said: true},
		{name: "cut off by the provider", doom: func(c *call) { c.stream, c.cut = true, true }, heard: true},
		{name: "left by the client", doom: func(c *call) { c.stream, c.reads, c.pause = true, 60, time.Millisecond }, heard: true},
		{name: "nobody there", doom: func(c *call) { c.site = "/nowhere" }, status: http.StatusBadGateway},
	}
)

func (f *fate) answered(c *call) int {
	if f.status != 0 {
		return f.status
	}
	return c.answerStatus()
}

// stand is where a canary may stand.
type stand int

const (
	nowhere stand = iota
	anywhere
	somewhere // must
)

// plant is a canary's place: what it was put into, and of which call.
type plant struct {
	what, call string
	stand      stand
}

// garden is what was planted.
type garden struct {
	// owner is a key that Weir knows.
	owner  canary
	plants map[canary]plant
}

// plant puts canaries into a call, and settles its fate.
func (g *garden) plant(c *call, omit omission, f *fate) {
	c.fate = f
	f.doom(c)
	call := fmt.Sprintf("%s, %s, encoded %q, omit %+v", c.dialect, f.name, c.encoding, omit)
	add := func(what string, s stand) string {
		token := newCanary()
		g.plants[token] = plant{what, call, s}
		return string(token)
	}
	standing := func(omitted, sure bool) stand {
		switch {
		case omitted:
			return nowhere
		case sure:
			return somewhere
		default:
			return anywhere
		}
	}
	c.prompt = add("request body", standing(omit.request, f.heard)) + " ?"
	c.header.Set("Service-Prompt-Input-Name", add("prompt input", standing(omit.request, f.heard)))
	c.text = add("response body", standing(omit.response, f.said)) + " !"
	for _, name := range []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie"} {
		c.header.Set(name, add(name, nowhere))
	}
	c.header.Set("Authorization", "Bearer "+add("Authorization", nowhere))
	c.header.Set("Service-Auth", "Bearer "+string(g.owner))
	if f == unknownKey {
		c.header.Set("Service-Auth", "Bearer "+add("Service-Auth", nowhere))
	}
	c.cookie = add("Set-Cookie", nowhere)
	c.query = url.Values{"key": {add("?key=", nowhere)}}
	if omit.request {
		c.header.Set("Service-Omit-Request", "true")
	}
	if omit.response {
		c.header.Set("Service-Omit-Response", "true")
	}
}

// check looks for canaries where none may be; with all, also for those that
// must be somewhere.
func (g *garden) check(t *testing.T, w *weir, when string, all bool) {
	t.Helper()
	found := w.search()
	type leak struct{ what, file string }
	leaks := map[leak][]string{}
	for token, file := range found {
		if p := g.plants[token]; p.stand == nowhere {
			leaks[leak{p.what, file}] = append(leaks[leak{p.what, file}], p.call)
		}
	}
	for l, calls := range leaks {
		t.Errorf("%s: the %s of %d calls stands in %s, like that of (%s)", when, l.what, len(calls), l.file, calls[0])
	}
	if !all {
		return
	}
	for token, p := range g.plants {
		if _, ok := found[token]; !ok && p.stand == somewhere {
			t.Errorf("%s: the %s of (%s) is not found: is the search blind?", when, p.what, p.call)
		}
	}
}

// fly starts streams that do not end, with content omitted, and returns how
// many.
func (g *garden) fly(t *testing.T, p *provider, w *weir, hold <-chan struct{}) int {
	var flying []*call
	for i := range 24 {
		c := p.call(dialects[i%len(dialects)])
		g.plant(c, omission{true, true}, complete)
		c.encoding = []string{"", "gzip"}[i%2]
		c.stream, c.hold, c.pieces = true, hold, 20
		flying = append(flying, c)
		go c.do(t.Context(), w)
	}
	w.await("all streams run", func() bool { return p.answering(flying) })
	time.Sleep(50 * time.Millisecond)
	return len(flying)
}

// checkOmission reports what is wrong with the record of a call of any fate.
func (c *call) checkOmission(t *testing.T, r *record, id string) {
	t.Helper()
	if c.fate == complete {
		c.check(t, r, id)
		return
	}
	if c.fate == unknownKey {
		if r != nil {
			t.Errorf("%s has a record, and was refused", c.name())
		}
		return
	}
	if r == nil || r.ID != id {
		t.Errorf("%s, %s: no record has the id %s", c.name(), c.fate.name, id)
		return
	}
	if r.Status == nil || *r.Status != c.fate.answered(c) || r.Latency == nil {
		t.Errorf("%s, %s: status %s, latency %s", c.name(), c.fate.name, number(r.Status), number(r.Latency))
	}
	for side, omitted := range map[string]bool{
		"request":  c.header.Get("Service-Omit-Request") == "true" && (!r.RequestOmitted || string(r.RequestBody) != "null" || has(r.Inputs, "c4nary")),
		"response": c.header.Get("Service-Omit-Response") == "true" && (!r.ResponseOmitted || string(r.ResponseBody) != "null"),
	} {
		if omitted {
			t.Errorf("%s, %s: the %s was not omitted", c.name(), c.fate.name, side)
		}
	}
}
