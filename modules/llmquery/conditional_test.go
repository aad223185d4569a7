package llmquery_test

import (
	"net/http"
	"strings"
	"testing"
)

// An answer that a client has is not sent again, until it changes.
func TestAnswersAreSentAgainWhenTheyChange(t *testing.T) {
	s := newSite(t)
	for path, body := range map[string]string{
		"/v1/metrics/query": `{}`, "/v1/facets/query": `{"fields":["model"]}`, "/v1/user/metrics/query": `{}`, "/v1/session/query": `{}`,
	} {
		first, _ := s.do("POST", path, "root", body)
		tag := first.Header.Get("ETag")
		if first.StatusCode != http.StatusOK || tag == "" {
			t.Fatalf("%s: %s, ETag %q", path, first.Status, tag)
		}
		if again := s.again(path, "root", body, tag); again.StatusCode != http.StatusNotModified || again.Header.Get("ETag") != tag {
			t.Errorf("%s, asked again: %s, ETag %q", path, again.Status, again.Header.Get("ETag"))
		}
		if other := s.again(path, "root", body, `"another"`); other.StatusCode != http.StatusOK {
			t.Errorf("%s, with another tag: %s", path, other.Status)
		}
		s.recordVariety()
		if changed := s.again(path, "root", body, tag); changed.StatusCode != http.StatusOK {
			t.Errorf("%s, after new records: %s", path, changed.Status)
		}
	}
}

// again asks for an answer unless it is that of a tag.
func (s *site) again(path, key, body, tag string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequest("POST", s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("If-None-Match", tag)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	response.Body.Close()
	return response
}
