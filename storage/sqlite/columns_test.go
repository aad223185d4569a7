package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

func TestCompactJSONIsThatOfTheLibrary(t *testing.T) {
	texts := []string{"", "a", "<b> & c", "\"", "\\", "\n", "\x00", "\x7f", "é", "\u2028", "\xff", "日本"}
	object := make(map[string]string)
	for i, text := range texts {
		object[text] = texts[len(texts)-1-i]
	}
	for _, v := range []any{texts, object, texts[:1], map[string]string{}} {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		if got := compactJSON(v) + "\n"; got != want.String() {
			t.Errorf("got %s, want %s", got, want.Bytes())
		}
	}
}

// However many properties a record has, each of them finds it.
func TestManyPropertiesFindTheirRecord(t *testing.T) {
	b := newBackend(t)
	r := &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: 1, Properties: make(map[string]string)}
	for i := range 30 {
		r.Properties[fmt.Sprint("p", i)] = "v"
		write(t, b, &storage.Batch{Records: []*storage.Record{r}})
		for name := range r.Properties {
			found, err := b.Requests(t.Context(), &storage.RequestQuery{
				Org: "acme", Limit: 2, Filter: &storage.Leaf{Field: field("properties"), Key: name, Text: "v"},
			})
			if err != nil || len(found) != 1 {
				t.Fatalf("of %d properties, %s finds %d records: %v", i+1, name, len(found), err)
			}
		}
	}
}
