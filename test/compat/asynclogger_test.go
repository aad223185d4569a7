package compat

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"
)

// TestAsyncLogger makes every recorded request with the official clients for
// Python twice: through Weir's proxy, and directly at the provider, where Weir
// learns of it from the AsyncLogger of clients/python. The records tell the same
// of the call.
func TestAsyncLogger(t *testing.T) {
	if !*withClients {
		t.Skip("the AsyncLogger needs Python: see README.md, then go test ./test/compat -compat")
	}
	provider := httptest.NewServer(ownIDs(recordings(t)))
	defer provider.Close()
	w := startQuickstart(t, provider.URL)
	t.Setenv("WEIR_BASE_URL", w.url)
	t.Setenv("WEIR_API_KEY", "weir-quickstart")

	proxied := slices.DeleteFunc(calls("python", recordings(t)), func(c call) bool {
		// The instrumentations don't look where other vendors have their usage.
		return !c.official() || untold[c.recording.Name]
	})
	var logged []call
	for i, c := range proxied {
		direct := c
		direct.BaseURL = provider.URL + c.BaseURL
		direct.ID = c.ID + " logged"
		logged = append(logged, direct)
		if !c.Helper {
			direct.ID = c.ID + " async"
			logged = append(logged, direct)
		}
		proxied[i].BaseURL = w.proxy(c.recording) + c.BaseURL
		proxied[i].Headers = map[string]string{"Service-User-Id": c.ID}
	}
	python := "../../clients/python/.venv/bin/python"
	want := run(t, []string{python, "python/calls.py"}, proxied)
	got := run(t, []string{python, "python/async_logger.py"}, logged)
	for _, c := range logged {
		t.Run(strings.TrimPrefix(c.ID, "python "), func(t *testing.T) {
			id := c.ID[:strings.LastIndexByte(c.ID, ' ')]
			if (got[c.ID].Error == nil) != (want[id].Error == nil) {
				t.Fatalf("the client raised %+v, through the proxy %+v", got[c.ID].Error, want[id].Error)
			}
			checkLogged(t, c, w.record(t, c.ID), w.record(t, id))
		})
	}
}

// answerIDs are the ids of answers in the recordings.
var answerIDs = regexp.MustCompile(`\b(chatcmpl-|resp_|msg_)\w+`)

// ownIDs replays each answer with ids of its own, as providers do: two reports of one id are one
// call.
func ownIDs(all []*Recording) http.Handler {
	var answers atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		suffix := fmt.Appendf(nil, "${0}_%d", answers.Add(1))
		own := make([]*Recording, len(all))
		for i, recording := range all {
			c := *recording
			c.Response = answerIDs.ReplaceAll(recording.Response, suffix)
			own[i] = &c
		}
		newReplayServer(own, nil).ServeHTTP(w, r)
	})
}

// untold are recordings whose usage the instrumentations get wrong.
var untold = map[string]bool{
	// Once it has searched, Gemini counts anew; the count of before is added.
	"gemini__generateContent__stream__01_90512863": true,
}

// checkLogged holds the record of a call that was logged against that of the
// call that was proxied.
func checkLogged(t *testing.T, c call, logged, proxied gjson.Result) {
	t.Helper()
	fields := []string{
		"provider", "model", "response_status", "stream",
		"prompt_tokens", "completion_tokens", "total_tokens", "prompt_cache_read_tokens", "prompt_cache_write_tokens",
		"reasoning_tokens", "cost",
	}
	parts := fields[7:10] // of which none may as well be unknown
	for _, field := range fields {
		if got, want := logged.Get(field), proxied.Get(field); got.Raw != want.Raw && (got.Float() != 0 || want.Float() != 0 || !slices.Contains(parts, field)) {
			t.Errorf("%s is logged as %s, of the proxied call it is %s", field, got.Raw, want.Raw)
		}
	}
}
