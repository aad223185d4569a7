package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// canaryOf is in every text of the records of a person.
func canaryOf(person int) string { return fmt.Sprintf("c4nary-%03d-", person) }

// namesNobody are the texts that an erased identity leaves, each the word of a provider or of the operator.
var namesNobody = map[string]string{
	"provider": "openai", "account": "a", "arm": "a", "dialect": "openai_chat", "gateway_node": "n", "project": "p",
	"model": "gpt-5", "request_model": "gpt-5", "response_model": "gpt-5", "model_override": "gpt-5",
	"finish": "stop", "error_type": "rate_limit", "service_tier": "flex", "inference_geo": "us", "price_version": "1",
	"cache_miss": "ttl", "cache_miss_at": "system", "answer_cache": "hit",
}

// named returns records that have the canary of one of so many persons in every other text.
func named(r *rand.Rand, records, persons int) (all []*storage.Record) {
	for i := range records {
		canary := canaryOf(i % persons)
		record := &storage.Record{ID: uuid.UUID{15: byte(i), 14: byte(i >> 8), 0: byte(r.Uint32())}, Org: "acme", CreatedAt: 1_700_000_000_000 + storage.Timestamp(i)*60_000}
		for _, c := range storage.Schema {
			if text, ok := c.At(record).(*string); ok && c.Wire != 0 && c.Name != "org" {
				if *text = namesNobody[c.Name]; *text != "" {
					continue
				}
				*text = canary + fmt.Sprint(r.IntN(5)) + strings.Repeat("x", r.IntN(60))
			}
		}
		record.Dialect = plugins.Chat
		record.Properties = map[string]string{canary + "name": canary + fmt.Sprint(r.IntN(100)), "Env": "live"}
		record.SpanKeys = []string{canary + fmt.Sprint(i)}
		record.Assets = []string{canary + "asset"}
		record.Cost, record.Usage.Input = plugins.KnownCost(plugins.Nanodollars(r.IntN(1000))), plugins.Known(int64(r.IntN(1000)))
		all = append(all, record)
	}
	return all
}

// filesWith lists the files below a folder that have a text.
func filesWith(t *testing.T, dir, text string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte(text)) {
			files = append(files, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What only erased records have had is in no file of the store any more: neither in rows, nor in
// names that records share, nor in files of columns.
func TestErasedRecordsAreInNoFile(t *testing.T) {
	const persons = 40
	b := New(filepath.Join(t.TempDir(), "weir.db"))
	b.columns.ChunkRows = 64
	opened(t, b)
	dir := filepath.Dir(b.path)
	records := named(rand.New(rand.NewPCG(1, 2)), 1200, persons)
	for chunk := range 12 {
		batch := &storage.Batch{Records: records[chunk*100 : chunk*100+100]}
		for _, r := range batch.Records {
			batch.Annotations = append(batch.Annotations,
				&storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.CreatedAt, Scores: map[string]float64{"quality": 1}, Property: &storage.Property{Name: "Later", Value: r.UserID}},
				&storage.Annotation{Org: r.Org, SessionID: r.SessionID, At: r.CreatedAt, Tag: new(r.SessionID)})
		}
		write(t, b, batch)
	}
	if len(settle(t, b)) < 5 {
		t.Fatal("there are no files of columns")
	}
	erase(t, b)
	for person := range persons {
		if found := filesWith(t, dir, canaryOf(person)); len(found) < 2 {
			t.Fatalf("person %d is in %v before", person, found)
		}
	}
	totals := func() (all storage.GroupTotals) {
		err := b.Groups(t.Context(), &storage.GroupQuery{Org: "acme", Filter: storage.All{}}, func(g *storage.GroupTotals) error { all = *g; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	anonymous, gone := make(map[int]bool), make(map[int]bool)
	before := totals()
	for person := range persons {
		anonymous[person], gone[person] = person%4 == 1, person%4 == 2
	}
	eraseAll := func(scope storage.ErasureScope, of map[int]bool) {
		var ids []uuid.UUID
		for i, r := range records {
			if of[i%persons] {
				ids = append(ids, r.ID)
			}
		}
		if err := b.EraseRecords(t.Context(), "acme", ids, scope); err != nil {
			t.Fatal(err)
		}
		if err := b.EraseUnused(t.Context()); err != nil {
			t.Fatal(err)
		}
		erase(t, b)
	}
	eraseAll(storage.EraseIdentity, anonymous)
	if after := totals(); !reflect.DeepEqual(after, before) {
		t.Errorf("the totals are %+v, and were %+v", after, before)
	}
	eraseAll(storage.EraseRecord, gone)
	for person := range persons {
		found := filesWith(t, dir, canaryOf(person))
		if erased := anonymous[person] || gone[person]; erased && found != nil || !erased && len(found) < 2 {
			t.Errorf("person %d is in %v, erased: %v", person, found, erased)
		}
	}
	if problems, err := b.Verify(t.Context()); problems != nil || err != nil {
		t.Errorf("the file has the problems %q: %v", problems, err)
	}
}

// Copies that SQLite leaves when it moves rows are in no free part of a page any more, in no
// kind of table, whatever is written meanwhile; and what is not erased is as it was.
func TestCopiesOfErasedTextAreOverwritten(t *testing.T) {
	t.Run("a file with pointers to its pages", func(t *testing.T) { copiesAreOverwritten(t, newBackend(t)) })
	t.Run("a file of Weir 0.1.0", func(t *testing.T) {
		b := New(filepath.Join(t.TempDir(), "weir.db"))
		if err := os.WriteFile(b.path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := openNew(b.path, "PRAGMA page_size = 8192", "PRAGMA auto_vacuum = NONE", "CREATE TABLE first (a)", "DROP TABLE first")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		opened(t, b)
		b.writer.bounds.vacuumBytes = 1
		if err := b.EraseUnused(t.Context()); !errors.Is(err, storage.ErrCopiesRemain) {
			t.Errorf("a database that is too large to be written anew says %v", err)
		}
		b.writer.bounds.vacuumBytes = 1 << 30
		copiesAreOverwritten(t, b)
	})
}

func copiesAreOverwritten(t *testing.T, b *Backend) {
	b.writer.bounds.zeroedPages = 20
	const conversations, perBatch = 1500, 50
	r := rand.New(rand.NewPCG(1, 2))
	text := func(i int) string { return fmt.Sprintf("c4nary-%06d", i) }
	ids := make([]string, conversations)
	changeAll := func(step int, change func(i int) storage.ConversationChange) {
		for i := 0; i < conversations; i += perBatch {
			batch := new(storage.Batch)
			for k := i; k < i+perBatch; k += step {
				c := change(k)
				batch.Annotations = append(batch.Annotations, &storage.Annotation{Org: "acme", At: 1_700_000_000_000, Conversation: &c})
			}
			write(t, b, batch)
		}
	}
	changeAll(1, func(i int) storage.ConversationChange {
		ids[i] = fmt.Sprintf("conv_%016x", r.Uint64()) // in no order, so that pages are split
		return storage.ConversationChange{ID: ids[i], Created: true, Metadata: `{"a":"` + text(i) + strings.Repeat("x", r.IntN(600)) + `"}`}
	})
	deleted := make(map[int]bool)
	changeAll(7, func(i int) storage.ConversationChange {
		deleted[i] = true
		return storage.ConversationChange{ID: ids[i], Deleted: true}
	})
	if _, err := b.Erase(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := func() (found int) {
		content, err := os.ReadFile(b.path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range conversations {
			there := bytes.Contains(content, []byte(text(i)))
			if there && deleted[i] {
				found++
			}
			if !there && !deleted[i] {
				t.Errorf("conversation %d is gone", i)
			}
		}
		return found
	}
	if left() == 0 {
		t.Fatal("SQLite leaves no copies: the test proves nothing")
	}
	done := make(chan error)
	go func() { done <- b.EraseUnused(t.Context()) }()
	add := func() { // the writer writes no page as it was when it read it
		changeAll(11, func(i int) storage.ConversationChange {
			return storage.ConversationChange{ID: ids[i], Add: []string{fmt.Sprint(r.Uint64())}, Items: []string{`{"text":"` + strings.Repeat("y", r.IntN(600)) + `"}`}}
		})
	}
	for erasing := true; erasing; {
		select {
		case err := <-done:
			if erasing = false; err != nil {
				t.Fatal(err)
			}
		default:
			add()
		}
	}
	add()
	erase(t, b)
	if found := left(); found > 0 {
		t.Errorf("%d texts are left", found)
	}
	if problems, err := b.Verify(t.Context()); problems != nil || err != nil {
		t.Errorf("the file has the problems %q: %v", problems, err)
	}
}
