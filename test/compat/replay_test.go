package compat

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestReplayIsCutIntoEvents(t *testing.T) {
	message := func(n byte) string { return string([]byte{0, 0, 0, n}) + strings.Repeat("x", int(n)-4) }
	for _, test := range []struct {
		contentType string
		want        []string
	}{
		{"application/json", []string{"{\n\n}"}},
		{"text/event-stream; charset=utf-8", []string{"event: a\ndata: 1\n\n", ": ping\n\n", "data: 2"}},
		{"text/event-stream", []string{"data: 1\r\n\r\n", "data: 2\r\n\r\n"}},
		{"application/x-ndjson", []string{"{}\n", "{}\n"}},
		{"application/vnd.amazon.eventstream", []string{message(12), message(5), "\x00\x00"}},
		{"application/vnd.amazon.eventstream", []string{"\x00\x00\x00\x00", message(4)}},
	} {
		r := &Recording{
			Header:   map[string]string{"content-type": test.contentType},
			Response: []byte(strings.Join(test.want, "")),
		}
		var got []string
		for _, event := range r.events() {
			got = append(got, string(event))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: cut into %q, want %q", test.contentType, got, test.want)
		}
	}
}

func TestReplayServer(t *testing.T) {
	recording := &Recording{
		Name: "one", Status: 429,
		Header:   map[string]string{"content-type": "application/json", "retry-after": "7"},
		Response: []byte(`{"error":{}}`),
		URL:      &url.URL{Path: "/model/a:0/converse", RawPath: "/model/a%3A0/converse"},
	}
	var received []string
	site := httptest.NewServer(newReplayServer([]*Recording{recording}, func(r *Recording, _ *http.Request, body []byte) {
		received = append(received, r.Name+" "+string(body))
	}))
	defer site.Close()

	for _, test := range []struct {
		path   string
		status int
	}{
		{"/c/one/model/a%3A0/converse?beta=true", 429},
		{"/c/one/model/a:0/converse", 404},
		{"/c/one/model", 404},
		{"/c/two/model/a%3A0/converse", 404},
		{"/", 404},
	} {
		answer, err := http.Post(site.URL+test.path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != test.status {
			t.Errorf("%s: status %d, want %d, error %v", test.path, answer.StatusCode, test.status, err)
		}
		if test.status != 429 {
			continue
		}
		if !bytes.Equal(body, recording.Response) || answer.Header.Get("Retry-After") != "7" {
			t.Errorf("%s: %q with %v", test.path, body, answer.Header)
		}
	}
	if !slices.Equal(received, []string{"one {}"}) {
		t.Errorf("received %q", received)
	}
}

func TestLoadRecordings(t *testing.T) {
	if _, err := loadRecordings(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder: %v", err)
	}
	recordings, err := loadRecordings("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recordings {
		if r.Name == "" || r.URL.Path == "" || r.Status == 0 || len(r.Request) == 0 || len(r.Response) == 0 {
			t.Errorf("%q lacks a field", r.Name)
		}
	}
}
