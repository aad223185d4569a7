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
)

// TestPlain sends each recorded request as it stands: what arrives at either
// side is what the other one sent, and the record says what the provider said.
func TestPlain(t *testing.T) {
	all := recordings(t)
	provider := httptest.NewServer(newReplayServer(all, func(r *Recording, received *http.Request, body []byte) {
		checkReceived(t, r, received)
		if !bytes.Equal(body, r.Request) {
			t.Errorf("%s: the provider received %.300q", r.Name, body)
		}
		if got := received.URL.RawQuery; got != r.URL.RawQuery {
			t.Errorf("%s: the provider received the query %q", r.Name, got)
		}
	}))
	defer provider.Close()
	w := startQuickstart(t, provider.URL)

	codings := []string{"br", "gzip", "zstd"}
	var exchanges []*exchange
	for i, r := range all {
		for _, coding := range []string{"identity", codings[i%len(codings)]} {
			exchanges = append(exchanges, &exchange{recording: r, coding: coding, user: r.Name + "/" + coding})
		}
	}
	for _, x := range exchanges {
		t.Run(x.user, func(t *testing.T) { x.send(t, w) })
	}
	for _, x := range exchanges {
		t.Run(x.user+"/record", func(t *testing.T) {
			record := w.record(t, x.user)
			if got := record.Get("request_id").Str; got != x.id {
				t.Errorf("the record is %q, Service-Id said %q", got, x.id)
			}
			checkRecord(t, record, x.recording)
			checkBodies(t, record, x.recording)
		})
	}
}

// exchange is one request of a user, with an answer in a content coding.
type exchange struct {
	recording    *Recording
	coding, user string
	id           string // the answer's Service-Id
}

// send makes the recorded request and holds the answer against the recording.
func (x *exchange) send(t *testing.T, w *weir) {
	r := x.recording
	request, err := http.NewRequest("POST", w.proxy(r)+r.Prefix()+r.URL.RequestURI(), bytes.NewReader(r.Request))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer none")
	request.Header.Set("Accept-Encoding", x.coding)
	request.Header.Set("Service-User-Id", x.user)
	status, header, body := do(t, request)
	if status != r.Status {
		t.Errorf("status %d, want %d: %.300s", status, r.Status, body)
	}
	for name, want := range r.Header {
		if got := header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := cmp.Or(header.Get("Content-Encoding"), "identity"); got != x.coding {
		t.Errorf("the answer is encoded as %s, want %s", got, x.coding)
	}
	if got := decode(t, x.coding, body); !bytes.Equal(got, r.Response) {
		t.Errorf("the client received %.300q", got)
	}
	x.id = header.Get("Service-Id")
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
func checkReceived(t *testing.T, r *Recording, received *http.Request) {
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
