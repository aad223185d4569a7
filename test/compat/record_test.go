package compat

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tidwall/gjson"
)

// checkRecord holds what Weir recorded of a finished exchange against what the
// provider said. A count of 0 may as well be unknown: not every provider
// reports each.
func checkRecord(t *testing.T, record gjson.Result, r *Recording) {
	t.Helper()
	if got := record.Get("response_status").Int(); got != int64(r.Status) {
		t.Errorf("the recorded status is %d, want %d", got, r.Status)
	}
	if got := record.Get("end_state").Str; got != "complete" {
		t.Errorf("the recorded end state is %q", got)
	}
	if want := r.Expected.Model; want != "" {
		for _, field := range []string{"model", "response_model"} {
			if got := record.Get(field).Str; got != want {
				t.Errorf("%s is recorded as %q, want %q", field, got, want)
			}
		}
	}
	u := r.Expected.Usage
	if u == nil {
		for _, field := range []string{"prompt_tokens", "completion_tokens", "total_tokens"} {
			if got := record.Get(field); got.Type != gjson.Null {
				t.Errorf("%s is recorded as %s, the provider reports none", field, got)
			}
		}
		return
	}
	for field, want := range map[string]int64{
		"prompt_tokens":             u.Input,
		"completion_tokens":         u.Output,
		"total_tokens":              u.Input + u.Output,
		"prompt_cache_read_tokens":  u.CacheRead,
		"prompt_cache_write_tokens": u.CacheWrite,
		"reasoning_tokens":          u.Reasoning,
	} {
		if got := record.Get(field); got.Int() != want {
			t.Errorf("%s is recorded as %s, want %d", field, got, want)
		}
	}
}

// checkBodies holds the stored bodies of an exchange against its recording. The
// answer of a stream is stored as an object, and is the caller's to check.
func checkBodies(t *testing.T, record gjson.Result, r *Recording) {
	t.Helper()
	checkSame(t, "the stored request", record.Get("request_body").Raw, string(r.Request))
	stored := record.Get("response_body")
	if streamed := r.Stream && r.Status == 200; !streamed {
		checkSame(t, "the stored answer", stored.Raw, string(r.Response))
	} else if !stored.IsObject() {
		t.Errorf("a streamed answer is stored as %.300s", stored.Raw)
	}
}

func checkSame(t *testing.T, what, got, want string) {
	t.Helper()
	if !reflect.DeepEqual(decoded(t, got), decoded(t, want)) {
		t.Errorf("%s is %.1000s, want %.1000s", what, got, want)
	}
}

func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Errorf("%.300q: %v", text, err)
	}
	return v
}
