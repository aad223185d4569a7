package history

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

func TestIDsNameTheirRecord(t *testing.T) {
	record := uuid.Must(uuid.NewV7())
	id := IDs(record)
	seen := make(map[string]bool)
	for _, prefix := range []string{"resp_", "msg_", "msg_", "fc_", "item_"} {
		made := id(prefix)
		if got, ok := RecordOf(made); !ok || got != record || seen[made] {
			t.Errorf("%s is of %s, %v", made, got, ok)
		}
		seen[made] = true
	}
	for _, id := range []string{"", "resp_", "resp_1", "x", "resp_zz345678901234567890123456789012", "resp_68b09c7f3f7c81a0a9c2d7b1e4f5061728394a5b6c7d8e9f"} {
		if _, ok := RecordOf(id); ok {
			t.Errorf("%q has a record", id)
		}
	}
}

// FuzzInput lists what any request may have had as its input: each item is an object
// with an id of its own, and a page holds what there is.
func FuzzInput(f *testing.F) {
	for _, seed := range []string{
		`{"input":"hi"}`, `{"input":[]}`, `{}`, `{"input":null}`, `{"input":[{"role":"user","content":"a\u00e9\"b"},{"role":"assistant","content":"b"}]}`,
		`{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"reasoning","summary":[]},{"type":"strange"}]}`,
		`{"input":[{"type":"item_reference","id":"msg_1"},{"type":5,"content":7,"id":8,"status":9}]}`, `{"input":["x",1,[],null]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if !json.Valid(body) {
			return
		}
		r := Response{ID: "resp_1", Request: body}
		items := r.Input()
		for _, item := range items {
			v := gjson.Parse(item)
			if !json.Valid([]byte(item)) {
				t.Fatalf("%s lists %s", body, item)
			}
			if v.IsObject() && v.Get("id").Str == "" {
				t.Errorf("%s lists %s", body, item)
			}
		}
		for _, descending := range []bool{false, true} {
			page, found := List(items, storage.ItemPage{Limit: len(items) + 1, Descending: descending})
			if !found || len(page.Data) != len(items) || page.HasMore {
				t.Errorf("%s: %+v", body, page)
			}
		}
	})
}
