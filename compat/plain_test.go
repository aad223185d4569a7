package compat

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/weirhq/weir/compat/replay"
)

// TestPlain sends each recorded request as it stands: what arrives at either
// side is what the other one sent, and the record says what the provider said.
func TestPlain(t *testing.T) {
	all := recordings(t)
	provider := httptest.NewServer(replay.NewServer(all, func(r *replay.Recording, received *http.Request, body []byte) {
		checkReceived(t, r, received)
		if !bytes.Equal(body, r.Request) {
			t.Errorf("%s: the provider received %.300q", r.Name, body)
		}
		if got := received.URL.RawQuery; got != r.URL.RawQuery {
			t.Errorf("%s: the provider received the query %q", r.Name, got)
		}
	}))
	defer provider.Close()
	w := startWeir(t, provider.URL)

	codings := []string{"br", "gzip", "zstd"}
	for i, r := range all {
		// Every answer is sent as it is, and in one of the codings.
		for _, coding := range []string{"identity", codings[i%len(codings)]} {
			user := r.Name + "/" + coding
			t.Run(user, func(t *testing.T) {
				id := w.send(t, r, coding, user)
				record := w.record(t, user)
				if got := record.Get("request_id").Str; got != id {
					t.Errorf("the record is %q, Service-Id said %q", got, id)
				}
				checkRecord(t, record, r)
				checkBodies(t, record, r)
			})
		}
	}
}

// send makes the recorded request, holds the answer against the recording, and
// gives its Service-Id.
func (w *weir) send(t *testing.T, r *replay.Recording, coding, user string) string {
	t.Helper()
	request, err := http.NewRequest("POST", w.proxy(r)+r.Prefix()+r.URL.RequestURI(), bytes.NewReader(r.Request))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer none")
	request.Header.Set("Accept-Encoding", coding)
	request.Header.Set("Service-User-Id", user)
	status, header, body := do(t, request)
	if status != r.Status {
		t.Errorf("status %d, want %d: %.300s", status, r.Status, body)
	}
	for name, want := range r.Header {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := cmp.Or(header.Get("Content-Encoding"), "identity"); got != coding {
		t.Errorf("the answer is encoded as %s, want %s", got, coding)
	}
	if got := decode(t, coding, body); !bytes.Equal(got, r.Response) {
		t.Errorf("the client received %.300q", got)
	}
	return header.Get("Service-Id")
}

// decode undoes a content coding.
func decode(t *testing.T, coding string, body []byte) []byte {
	t.Helper()
	var reader io.Reader = bytes.NewReader(body)
	var err error
	switch coding {
	case "br":
		reader = brotli.NewReader(reader)
	case "gzip":
		reader, err = gzip.NewReader(reader)
	case "zstd":
		reader, err = zstd.NewReader(reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := io.ReadAll(reader)
	if err != nil {
		t.Errorf("decode %s: %v", coding, err)
	}
	return decoded
}

// checkReceived holds that a provider learns nothing of Weir or its client.
func checkReceived(t *testing.T, r *replay.Recording, received *http.Request) {
	for name := range received.Header {
		if strings.HasPrefix(name, "Service-") || strings.HasPrefix(name, "X-Forwarded-") || name == "Via" {
			t.Errorf("%s: the provider received the header %s", r.Name, name)
		}
	}
}

func do(t *testing.T, r *http.Request) (status int, header http.Header, body []byte) {
	t.Helper()
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, body
}
