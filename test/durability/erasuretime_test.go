//go:build linux

package durability

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
	"github.com/weirhq/weir/storage/sqlite"
	"github.com/weirhq/weir/test/prose"
)

// TestErasureBesideCalls erases one user of many, from a store of conversations whose turns repeat
// nine tenths of the turn before. Calls must pass almost as fast as without it.
func TestErasureBesideCalls(t *testing.T) {
	records := min(*seeded, 2000)
	if *full {
		records = *seeded
	}
	p := newProvider(t)
	w := newWeir(t, p)
	erased, other := newCanary(), newCanary()
	began := time.Now()
	w.seedConversations(records, map[int]canary{0: erased, 1: other})
	t.Logf("%d records in %v", records, time.Since(began).Round(time.Second))
	w.start(config{site: "llm_control", llm: "key " + eraserKey + " admin"})
	r := &erasureRun{t: t, w: w}
	call := func() { p.call(chat).must(t, w) }
	phase := time.Duration(rounds(100, 20_000)) * time.Millisecond
	during(after(phase), 0, call) // connections and caches
	alone := during(after(phase), 10*time.Millisecond, call)
	began = time.Now()
	made, err := r.control(t.Context(), "POST", "/v1/erasures", `{"filter":{"request_response_rmt":{"user_id":{"equals":"user-0"}}},"what":"record"}`)
	if err != nil {
		t.Fatal(err)
	}
	chosen := time.Since(began)
	var took time.Duration
	done := make(chan struct{})
	go func() {
		defer close(done)
		for state := ""; state != "done" && t.Context().Err() == nil; time.Sleep(50 * time.Millisecond) {
			answer, _ := r.control(t.Context(), "GET", "/v1/erasures/"+gjson.Get(made, "data.id").Str, "")
			state, took = gjson.Get(answer, "data.state").Str, time.Since(began)
		}
	}()
	beside := during(done, 10*time.Millisecond, call)
	t.Logf("%s records chosen in %v and erased after %v; calls alone %v; beside %v", gjson.Get(made, "data.records").Raw, chosen, took, alone, beside)
	if *full && beside.at(0.99) > 2*alone.at(0.99) {
		t.Errorf("of 100 calls, one takes %v beside the erasure, and %v without", beside.at(0.99), alone.at(0.99))
	}
	found := w.search()
	if file, there := found[erased]; there {
		t.Errorf("the erased user is in %s", file)
	}
	if _, there := found[other]; !there {
		t.Error("another user is not found: is the search blind?")
	}
}

// seedConversations has a journal record calls before the process starts: those of 1,000 users, or
// fewer, in conversations of 20 turns. Each user says a canary of its own, if it has one.
func (w *weir) seedConversations(records int, canaries map[int]canary) {
	w.t.Helper()
	dir := w.database() + ".segments"
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		w.t.Fatal(err)
	}
	j, err := journal.Open(w.t.Context(), sqlite.New(w.database()), journal.Options{Dir: dir, MaxBytes: 1 << 40})
	if err != nil {
		w.t.Fatal(err)
	}
	const turns = 20
	users := min(1000, records/turns)
	words := prose.New(1)
	texts := make([]string, 1000)
	for i := range texts {
		texts[i] = words.Text(500)
	}
	conversations := make([][]byte, users)
	start := time.Now().Add(-24 * time.Hour)
	for i := range records {
		user, turn := i%users, i/users
		if turn%turns == 0 { // 10 messages, of which the canary is one
			conversations[user] = fmt.Appendf(nil, `{"model":"gpt-5","messages":[{"role":"user","content":"%s"}`, canaries[user])
		}
		for range max(1, 10-turn%turns*10) {
			conversations[user] = fmt.Appendf(conversations[user], `,{"role":"user","content":"%d: %s"}`, i, texts[(i*31+len(conversations[user]))%len(texts)])
		}
		r := &storage.Record{
			Org: "default", CreatedAt: storage.Millis(start.Add(time.Duration(i) * 20 * time.Millisecond)), Provider: "openai", Dialect: plugins.Chat,
			Model: "gpt-5", Path: "/v1/chat/completions", Status: plugins.Known(200), EndState: storage.Complete,
			UserID: fmt.Sprint("user-", user), SessionID: fmt.Sprint("session-", user, "-", turn/turns), Properties: map[string]string{"Said": string(canaries[user])},
		}
		binary.BigEndian.PutUint64(r.ID[8:], uint64(i)+1)
		c := &storage.Content{
			Request:  storage.Body{Type: "application/json", Data: append(conversations[user], "]}"...)},
			Response: storage.Body{Type: "application/json", Data: fmt.Appendf(nil, `{"choices":[{"message":{"role":"assistant","content":"%d: %s"}}]}`, i, texts[i%len(texts)])},
		}
		if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := j.Close(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}
