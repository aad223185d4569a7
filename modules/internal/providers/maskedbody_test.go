package providers

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// An error of a provider that repeats the account's key does not tell it, however the body comes.
// Everything else of an answer stays as it is.
func TestErrorsDoNotTellTheKey(t *testing.T) {
	const key = "sk-aaab-aaac-0123"
	for _, c := range []struct {
		key    string
		status int
		body   string
		want   string
	}{
		{key, 401, `{"error":{"param":"` + key + `","message":"no ` + key + key + `"}}`, `{"error":{"param":"*****************","message":"no **********************************"}}`},
		{key, 400, "sk-aaab-aaa" + key + " and sk-aaab-aaac-012", "sk-aaab-aaa***************** and sk-aaab-aaac-012"},
		{key, 500, "", ""},
		{key, 200, "the model says " + key, "the model says " + key},
		{"EMPTY", 400, "The input is EMPTY.", "The input is EMPTY."},
		{"", 400, "no key", "no key"},
	} {
		for name, pieces := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader, "end": iotest.DataErrReader} {
			a := &Account{key: c.key, standIn: "stand-in", Transport: NewTransport(roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: c.status, Body: io.NopCloser(pieces(strings.NewReader(c.body)))}, nil
			}))}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.com", nil)
			resp, err := a.Send(req)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(resp.Body)
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
			if string(got) != c.want || err != nil {
				t.Errorf("%s, %d: %q, %v, want %q", name, c.status, got, err, c.want)
			}
		}
	}
}
