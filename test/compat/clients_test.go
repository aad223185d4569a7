package compat

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

var withClients = flag.Bool("compat", false, "test the official clients; see README.md for what to install")

// TestClients makes every recorded request with the official clients, with no
// change but their base URL: once at the provider, once through Weir. They see
// the same, and the record has what they saw.
func TestClients(t *testing.T) {
	if !*withClients {
		t.Skip("the official clients need Node.js and Python: see README.md, then go test ./test/compat -compat")
	}
	all := recordings(t)
	provider := httptest.NewServer(newReplayServer(all, func(r *Recording, received *http.Request, _ []byte) {
		checkReceived(t, r, received)
	}))
	defer provider.Close()
	w := startQuickstart(t, provider.URL)
	for language, command := range map[string][]string{
		"node":   {"node", "node/calls.js"},
		"python": {"python/.venv/bin/python", "python/calls.py"},
	} {
		t.Run(language, func(t *testing.T) {
			calls := calls(language, all)
			direct, through := slices.Clone(calls), slices.Clone(calls)
			for i, c := range calls {
				direct[i].BaseURL = provider.URL + c.BaseURL
				through[i].BaseURL = w.proxy(c.recording) + c.BaseURL
				through[i].Headers = map[string]string{"Service-User-Id": c.ID}
			}
			want, got := run(t, command, direct), run(t, command, through)
			for _, c := range calls {
				t.Run(strings.TrimPrefix(c.ID, language+" "), func(t *testing.T) {
					checkCall(t, c, got[c.ID], want[c.ID])
					checkRecorded(t, c, got[c.ID], w.record(t, c.ID))
				})
			}
		})
	}
}

// checkCall holds what a client saw through Weir against what it saw without,
// and that against the recording. The clients don't read each compatible
// provider's streams: then they raise the same either way.
func checkCall(t *testing.T, c call, got, want seen) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the client saw %+v, without Weir %+v", got, want)
	}
	r := c.recording
	switch official := c.official(); {
	case got.ID == "":
		t.Fatal("the client said nothing")
	case r.Status != http.StatusOK && (got.Error == nil || got.Error.Status != r.Status):
		t.Errorf("the client raised %+v, want an error of status %d", got.Error, r.Status)
	case r.Status == http.StatusOK && got.Error != nil && official:
		t.Errorf("the client raised %s: %s", got.Error.Type, got.Error.Message)
	}
}

// official is true when the client's own maker answers the call.
func (c call) official() bool {
	return slices.Contains([]string{"openai", "anthropic", "gemini"}, c.recording.Provider)
}

func checkRecorded(t *testing.T, c call, s seen, record gjson.Result) {
	t.Helper()
	r, d := c.recording, dialects[c.Endpoint]
	checkRecord(t, record, r)
	stored := record.Get("response_body")
	if r.Status != http.StatusOK {
		checkSame(t, "the stored error", stored.Raw, string(r.Response))
		return
	}
	d.checkUsage(t, stored.Get(d.usage), r.Expected.Usage)
	if s.Error == nil {
		d.checkUsage(t, gjson.ParseBytes(s.Usage), r.Expected.Usage)
		d.checkStored(t, stored, s)
	}
}

// run gives what the program saw, by the id of its call.
func run(t *testing.T, command []string, calls []call) map[string]seen {
	t.Helper()
	input, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v (README.md says what to install)\n%s", strings.Join(command, " "), err, complaints.String())
	}
	answers := make(map[string]seen, len(calls))
	for line := range bytes.Lines(out) {
		var s seen
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%s printed %.300q: %v", command[1], line, err)
		}
		answers[s.ID] = s
	}
	return answers
}
