package reconcile

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// No error has the password that the address of a provider may have.
func TestErrorsHaveNoPassword(t *testing.T) {
	answer, status := "", http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, c := range []struct {
		url    string
		answer string
		status int
		want   string
	}{
		{"http://weir:secret@127.0.0.1:1", "", 200, "…@127.0.0.1:1/v1/organization/usage/completions does not answer"},
		{"weir:secret@127.0.0.1:1", "", 200, "does not answer"},
		{"http://weir:%zzsecret@127.0.0.1:1", "", 200, "want an address of the provider"},
		{"http://weir:sec/secret@127.0.0.1:1", "", 200, "want an address of the provider"},
		{"http://weir:secret@" + host, `{}`, 500, "…@" + host + "/v1/organization/usage/completions answered 500"},
		{"http://weir:secret@" + host, `<html>`, 200, "…@" + host + "/v1/organization/usage/completions: the answer is not JSON"},
		{"http://weir:secret@" + host, `{}`, 200, "…@" + host + "/v1/organization/usage/completions: the answer has no data"},
		{"http://weir:secret@" + host, `{"data":[{}]}`, 200, "…@" + host + "/v1/organization/usage/completions: a bucket has no start_time"},
		{"http://weir:secret@" + host, `{"data":[],"has_more":true}`, 200, "…@" + host + "/v1/organization/usage/completions: " + errNoNextPage.Error()},
	} {
		answer, status = c.answer, c.status
		_, err := API{URL: c.url, Key: "admin"}.OpenAI(t.Context(), month)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, expected %s", c.url, err, c.want)
		}
	}
}
