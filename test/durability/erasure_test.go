//go:build linux

package durability

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

var erasures = flag.Int("erasures", 0, "how many persons TestErasures erases; by default 10, 1000 with -full")

// eraserKey may erase and place holds.
const eraserKey = "eraser-key"

// person is who calls are of. The canary body is in what the calls say, the canary name in what
// names the person; the tag chooses the person's records and is no secret.
type person struct {
	body, name canary
	tag        string
	calls      map[*call]string // with the ids of their records
	// alone is the id of a conversation that nobody else uses.
	alone string
	// what is the scope of an erasure, "" before one was requested. It is acknowledged once its
	// answer was read.
	what         string
	acknowledged bool
	hold         string // the id of the hold that keeps the records, "" for none
	requested    bool   // an erasure may have been taken, though its answer was not read
}

// gone lists the canaries that an erasure has removed.
func (p *person) gone() []canary {
	switch {
	case !p.acknowledged || p.hold != "":
		return nil
	case p.what == "content":
		return []canary{p.body}
	}
	return []canary{p.body, p.name}
}

// erasureRun is the state of TestErasures.
type erasureRun struct {
	t *testing.T
	p *provider
	w *weir
	c config
	// copies is the folder of the store that copies go to: what was erased after a copy stays there.
	copies string

	mu sync.Mutex // guards the rest
	// persons are those whose calls have all come to their ends; waiting are those of them that
	// are to be erased.
	persons, waiting []*person
	holds, erased    int
	// conversations are the ids of those that persons share.
	conversations []string
	// kept and old are the users of imported calls that a hold keeps, and of those that retention
	// deletes.
	kept, old []string
}

// sharedText is what the requests of all persons have in common.
var sharedText = strings.Repeat("You are a patient assistant of a large library. ", 80)

// TestErasures erases persons while calls are recorded, segments are sealed, retention deletes
// imported calls, backups and copies are made, and the process is killed. Nothing of what was
// erased is in any file, compressed or open, nor in what is restored from a backup of before; and
// everything else is there as it was.
func TestErasures(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	next := t.TempDir()
	r := &erasureRun{t: t, p: p, w: w, copies: next, c: config{
		store: "retention 24h", site: "llm_control\nllm_otlp\nllm_gateway",
		llm: "provider echo\nkey " + eraserKey + " admin query write log gateway\nstore next sqlite " + filepath.Join(next, "next.db"),
	}}
	backups := t.TempDir()
	began := time.Now()
	wanted := cmp.Or(*erasures, rounds(10, 1000))
	round := 0
	w.start(r.c)
	if _, err := r.control(t.Context(), "POST", "/v1/holds", `{"filter":{"request_response_rmt":{"user_id":{"contains":"held"}}},"reason":"test"}`); err != nil {
		t.Fatal(err)
	}
	for ; (r.erased < wanted || len(made(t, backups)) == 0) && !t.Failed(); round++ {
		r.live(round, backups, time.Duration(rounds(500, 4000))*time.Millisecond+lifetime())
		w.start(r.c)
	}
	for len(r.waiting) > 0 {
		if err := r.eraseOne(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	lifted := 0
	for _, one := range r.persons { // every other hold
		if one.hold != "" && lifted%2 == 0 {
			if _, err := r.control(t.Context(), "DELETE", "/v1/holds/"+one.hold, ""); err != nil {
				t.Fatal(err)
			}
			one.hold = ""
		}
		if one.hold != "" || one.acknowledged {
			lifted++
		}
	}
	r.awaitErased()
	w.flush()
	r.check(w, began.Add(-72*time.Hour), r.persons)
	r.checkConversations()
	r.wantGone("the running process", w.search())
	w.settled()
	w.terminate()
	w.wait()
	r.wantGone("the data", w.search())
	w.command("check", filepath.Dir(w.database()))
	r.restore(backups, began)
	t.Logf("%d erasures of %d persons, %d of them under hold, %d kills", r.erased, len(r.persons), r.holds, round)
}

// live has everything happen at once, and kills the process after a while.
func (r *erasureRun) live(round int, backups string, while time.Duration) {
	var killed atomic.Bool
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(r.t.Context(), waitLimit)
	defer cancel()
	repeat := func(do func() error) {
		group.Go(func() {
			for !killed.Load() {
				if err := do(); err != nil && !killed.Load() {
					r.t.Error(err)
					return
				}
			}
		})
	}
	for range 6 {
		repeat(func() error { return r.calls(ctx) })
	}
	for range 4 {
		repeat(func() error { return r.eraseOne(ctx) })
	}
	group.Go(func() { r.importOld(ctx, round) })
	group.Go(func() {
		from := filepath.Join(backups, fmt.Sprint(round))
		if output, err := r.run(ctx, "backup", from); err != nil && !killed.Load() {
			r.t.Errorf("%v: %s", err, output)
		}
		if output, err := r.run(ctx, "store", "copy", "--from", "default", "--to", "next"); err != nil && !killed.Load() {
			r.t.Errorf("%v: %s", err, output)
		}
	})
	time.Sleep(while)
	killed.Store(true)
	r.w.kill()
	group.Wait()
}

// run runs a command of Weir, which a kill may end.
func (r *erasureRun) run(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, r.w.program, args...)
	c.Env = append(os.Environ(), asWeir+"=1", "WEIR_ADMIN="+r.w.admin, "WEIR_API_KEY="+eraserKey)
	return c.CombinedOutput()
}

// calls makes the calls of a new person.
func (r *erasureRun) calls(ctx context.Context) error {
	one := &person{body: newCanary(), name: newCanary(), calls: map[*call]string{}}
	for i := range 3 {
		c := r.p.call(dialects[rand.N(len(dialects))])
		if i == 0 {
			one.tag = c.name()
		}
		if c.stream = rand.N(2) == 0; c.stream { // a first version may be in an earlier segment than the last
			c.linger = rand.N(200 * time.Millisecond)
		}
		c.encoding = encodings[rand.N(len(encodings))]
		c.prompt, c.text = sharedText+string(one.body), string(one.body)+" ! "
		c.header.Set("Service-Prompt-Input-Name", string(one.body))
		c.header.Set("Service-Session-Id", string(one.name))
		c.header.Set("Service-Property-Person", string(one.name))
		c.header.Set("Service-Property-Tag", one.tag)
		o := c.do(ctx, r.w)
		if o.err != nil || !o.ended {
			return fmt.Errorf("%s: %w", c.name(), o.err)
		}
		one.calls[c] = o.id
	}
	if err := r.converse(ctx, one); err != nil {
		return ignoreBusy(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.persons = append(r.persons, one)
	const mostWaiting = 50 // more would be left for the end, when nothing is killed
	if rand.N(4) > 0 && len(r.waiting) < mostWaiting {
		one.what = []string{"content", "identity", "record"}[rand.N(3)]
		r.waiting = append(r.waiting, one)
	}
	return nil
}

// converse has a person say something in a conversation of many persons, and in one that nobody
// else uses.
func (r *erasureRun) converse(ctx context.Context, one *person) error {
	const sharedBy = 50
	say := func(conversation string, text canary, header ...string) error {
		body := fmt.Sprintf(`{"model":"echo/echo-1","input":%q,"conversation":%q}`, text, conversation)
		_, err := r.control(ctx, "POST", "/v1/responses", body, header...)
		return err
	}
	begin := func(text string) (string, error) {
		answer, err := r.control(ctx, "POST", "/v1/conversations", fmt.Sprintf(`{"items":[{"role":"user","content":%q}]}`, text))
		return gjson.Get(answer, "id").Str, err
	}
	r.mu.Lock()
	shared, isNew := "", len(r.persons) >= sharedBy*len(r.conversations)
	if !isNew {
		shared = r.conversations[len(r.conversations)-1]
	}
	r.mu.Unlock()
	if isNew {
		var err error
		if shared, err = begin("the first"); err == nil {
			err = say(shared, "somebody who stays") // else the conversation goes with the first who is erased
		}
		if err != nil {
			return err
		}
		r.mu.Lock()
		r.conversations = append(r.conversations, shared)
		r.mu.Unlock()
	}
	alone, err := begin("nobody's call") // a backup may lack the calls
	for _, conversation := range []string{shared, alone} {
		if err == nil {
			err = say(conversation, one.body, "Service-Property-Person", string(one.name), "Service-Property-Tag", one.tag)
		}
	}
	one.alone = alone
	return err
}

// checkConversations compares conversations with who was erased.
func (r *erasureRun) checkConversations() {
	r.t.Helper()
	items := make(map[canary]int)
	for _, id := range r.conversations {
		for after, more := "", true; more; {
			answer, err := r.control(r.t.Context(), "GET", "/v1/conversations/"+id+"/items?limit=100&after="+after, "")
			if err != nil {
				r.t.Fatal(err)
			}
			for _, item := range gjson.Get(answer, "data").Array() {
				for _, text := range canaries.FindAllString(item.Raw, -1) {
					items[canary(text)]++
				}
			}
			after, more = gjson.Get(answer, "last_id").Str, gjson.Get(answer, "has_more").Bool()
		}
	}
	for _, one := range r.persons {
		want := 2 // what the person said, and the answer
		if len(one.gone()) > 0 {
			want = 0
		}
		if items[one.body] != want {
			r.t.Errorf("%s has %d items in a conversation with others, want %d", one.tag, items[one.body], want)
		}
		if _, err := r.control(r.t.Context(), "GET", "/v1/conversations/"+one.alone, ""); (err == nil) != (want > 0) || err != nil && !strings.Contains(err.Error(), "404") {
			r.t.Errorf("the conversation of %s alone: %v", one.tag, err)
		}
	}
}

// eraseOne has a person erased, some of them after a hold is placed. What had no answer is
// requested again.
func (r *erasureRun) eraseOne(ctx context.Context) error {
	const mostHolds = 40
	r.mu.Lock()
	if len(r.waiting) == 0 {
		r.mu.Unlock()
		time.Sleep(5 * time.Millisecond)
		return nil
	}
	one := r.waiting[0]
	r.waiting = r.waiting[1:]
	holds := one.hold == "" && !one.requested && r.holds < mostHolds && rand.N(10) == 0
	if holds {
		r.holds++
	}
	r.mu.Unlock()
	err := func() error {
		filter := fmt.Sprintf(`{"request_response_rmt":{"properties":{"Tag":{"equals":%q}}}}`, one.tag)
		if holds {
			// The kill may come before the answer: then the hold is not known, and the person is not erased.
			answer, err := r.control(ctx, "POST", "/v1/holds", `{"filter":`+filter+`,"reason":"test"}`)
			if err != nil {
				one.what = ""
				return err
			}
			one.hold = gjson.Get(answer, "data.id").Str
		}
		one.requested = true
		answer, err := r.control(ctx, "POST", "/v1/erasures", `{"filter":`+filter+`,"what":"`+one.what+`"}`)
		if err == nil && !gjson.Get(answer, "data.id").Exists() {
			err = fmt.Errorf("an erasure without an id: %s", answer)
		}
		return err
	}()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		one.acknowledged = true
		r.erased++
	case one.what != "":
		r.waiting = append(r.waiting, one)
	}
	return ignoreBusy(err)
}

// ignoreBusy returns err, but nil if the database is behind: what asked for it is tried again.
func ignoreBusy(err error) error {
	if err != nil && strings.Contains(err.Error(), "503") {
		return nil
	}
	return err
}

// control asks for what an administrator may.
func (r *erasureRun) control(ctx context.Context, method, path, body string, header ...string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+r.w.site+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+eraserKey)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err := exchange(request)
	return string(answer), err
}

// importOld imports calls that are older than retention. The hold of TestErasures keeps every other.
func (r *erasureRun) importOld(ctx context.Context, round int) {
	tag := fmt.Sprintf("old-%d-", round)
	var text strings.Builder
	var kept, old []string
	for i := range 20 {
		user := fmt.Sprintf("%s%d", tag, i)
		if i%2 == 0 {
			user = fmt.Sprintf("%sheld-%d", tag, i)
			kept = append(kept, user)
		} else {
			old = append(old, user)
		}
		at := time.Now().UTC().Add(time.Duration(i)*time.Second - 48*time.Hour).Format(time.RFC3339Nano)
		_ = json.NewEncoder(&text).Encode(map[string]any{
			"request_id": user, "call_type": "acompletion", "model": "gpt-4o-mini", "custom_llm_provider": "openai",
			"startTime": at, "endTime": at, "end_user": user, "status": "success", "spend": 0.001,
			"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15,
			"messages": []any{map[string]any{"role": "user", "content": "text of " + user}},
		})
	}
	file := filepath.Join(r.w.dir, "old.jsonl")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		r.t.Error(err)
		return
	}
	_, err := r.run(ctx, "import", "litellm", file, "--keep-old", "--address", "http://"+r.w.site)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.old = append(r.old, old...)
	if err == nil {
		r.kept = append(r.kept, kept...)
	}
}

// awaitErased waits until no erasure has anything left to do.
func (r *erasureRun) awaitErased() {
	r.t.Helper()
	var last string
	done := func() bool {
		for after := ""; ; {
			answer, err := r.control(r.t.Context(), "GET", "/v1/erasures?limit=200&after="+after, "")
			if err != nil {
				r.t.Fatal(err)
			}
			for _, e := range gjson.Get(answer, "data.items").Array() {
				if state := e.Get("state").Str; state != "done" && (state != "held" || r.releases(e)) {
					last = e.Raw
					return false
				}
			}
			if after = gjson.Get(answer, "data.next").Str; after == "" {
				return true
			}
		}
	}
	for end := time.Now().Add(time.Duration(rounds(1, 10)) * time.Minute); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("an erasure does not end: %s", last)
		}
	}
}

// releases reports whether none of an erasure's holds is in force.
func (r *erasureRun) releases(e gjson.Result) bool {
	for _, hold := range e.Get("held.holds").Array() {
		if slices.ContainsFunc(r.persons, func(p *person) bool { return p.hold == hold.Str }) {
			return false
		}
	}
	return true
}

// check compares what can be queried with what was called and erased.
func (r *erasureRun) check(w *weir, since time.Time, persons []*person) {
	r.t.Helper()
	named := w.records(since)
	records := make(map[string]*record, len(named)) // by id
	for _, one := range named {
		records[one.ID] = one
	}
	for _, one := range persons {
		for c, id := range one.calls {
			found := records[id]
			switch {
			case !one.acknowledged || one.hold != "":
				c.check(r.t, found, id)
			case one.what == "record":
				if found != nil {
					r.t.Errorf("%s was erased, and has the record %s", c.name(), id)
				}
			case found == nil:
				r.t.Errorf("%s went with its %s", c.name(), one.what)
			case string(found.RequestBody) != "null" || string(found.ResponseBody) != "null" || len(found.Inputs) > len("null"):
				r.t.Errorf("%s was erased, and has %s, %s and %s", c.name(), found.RequestBody, found.ResponseBody, found.Inputs)
			case found.User != map[string]string{"content": c.name()}[one.what]:
				r.t.Errorf("%s is the call of %q after its %s was erased", c.name(), found.User, one.what)
			case found.PromptTokens == nil || *found.PromptTokens != c.input() || found.CompletionTokens == nil || *found.CompletionTokens != c.output() || found.Cost == nil || *found.Cost <= 0:
				r.t.Errorf("%s was erased, and has tokens %s and %s", c.name(), number(found.PromptTokens), number(found.CompletionTokens))
			}
		}
	}
	for _, user := range r.kept {
		if found := named[user]; found == nil || !has(found.RequestBody, user) {
			r.t.Errorf("%s is under hold, and is %+v", user, found)
		}
	}
	for _, user := range r.old {
		if named[user] != nil {
			r.t.Errorf("%s has outlived its retention", user)
		}
	}
}

// wantGone fails if files have what was erased, or lack what was not.
func (r *erasureRun) wantGone(where string, found findings) {
	r.t.Helper()
	leaks := 0
	for _, one := range r.persons {
		gone := one.gone()
		for _, token := range gone {
			if file, there := found[token]; there && !strings.Contains(file, r.copies) {
				if leaks++; leaks < 10 {
					r.t.Errorf("%s: after an erasure of the %s of %s, %s is in %s", where, one.what, one.tag, token, file)
				}
			}
		}
		for _, token := range []canary{one.body, one.name} {
			if _, there := found[token]; !there && !slices.Contains(gone, token) {
				r.t.Errorf("%s: %s of %s is not found: is the search blind?", where, token, one.tag)
			}
		}
	}
	if leaks > 0 {
		r.t.Errorf("%s: %d texts remain", where, leaks)
	}
}

// made lists the backups that came to their ends, each by a file in it.
func made(t *testing.T, backups string) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(backups, "*", "*", "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// restore starts another Weir on a backup, which is told of the erasures after it.
func (r *erasureRun) restore(backups string, began time.Time) {
	all := made(r.t, backups)
	restored := newWeir(r.t, r.p)
	data := filepath.Dir(restored.database())
	r.w.command("restore", filepath.Dir(all[len(all)/2]), data, "--store", "default", "--erasures", filepath.Dir(r.w.database()))
	restored.start(r.c)
	restored.flush()
	of := &erasureRun{t: r.t, p: r.p, w: restored, persons: r.persons}
	of.awaitErased()
	there := restored.records(began)
	ids := make(map[string]bool)
	for _, one := range there {
		ids[one.ID] = true
	}
	var known []*person // those whose calls are all in the backup
	for _, one := range r.persons {
		if len(one.gone()) == 0 && !slices.ContainsFunc(slices.Collect(maps.Values(one.calls)), func(id string) bool { return !ids[id] }) {
			known = append(known, one)
		}
	}
	of.check(restored, began, known)
	restored.terminate()
	restored.wait()
	found := restored.search()
	for _, one := range r.persons {
		for _, token := range one.gone() {
			if file, there := found[token]; there {
				r.t.Errorf("restored: after an erasure of the %s of %s, %s is in %s", one.what, one.tag, token, file)
			}
		}
	}
	r.t.Logf("the backup has %d records, and %d persons that were not erased", len(there), len(known))
}
