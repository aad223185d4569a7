package compat

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
	for _, r := range all {
		t.Run(r.Name, func(t *testing.T) {
			request, err := http.NewRequest("POST", w.proxy(r)+r.Prefix()+r.URL.RequestURI(), bytes.NewReader(r.Request))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", "application/json")
			request.Header.Set("Authorization", "Bearer none")
			request.Header.Set("Service-User-Id", r.Name)
			status, header, body := do(t, request)

			if status != r.Status {
				t.Errorf("status %d, want %d: %.300s", status, r.Status, body)
			}
			for name, want := range r.Header {
				if got := header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if !bytes.Equal(body, r.Response) {
				t.Errorf("the client received %.300q", body)
			}
			record := w.record(t, r.Name)
			if got := record.Get("request_id").Str; got != header.Get("Service-Id") {
				t.Errorf("the record is %q, Service-Id said %q", got, header.Get("Service-Id"))
			}
			checkRecord(t, record, r)
			checkBodies(t, record, r)
		})
	}
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
