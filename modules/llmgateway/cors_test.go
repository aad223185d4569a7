package llmgateway

import (
	"net/http"
	"strings"
	"testing"
)

// Browsers ask whether a page may call, and let it read the answer of those origins
// alone that the configuration names.
func TestOrigins(t *testing.T) {
	const page = "https://app.example.com"
	s := serve(t, map[string][]upstream{"one": {hello}})
	for _, c := range []struct {
		allowed []string
		want    string
	}{{nil, ""}, {[]string{"*"}, "*"}, {[]string{"https://example.com", page}, page}, {[]string{"https://example.com"}, ""}} {
		s.handler.CORS = c.allowed
		for _, path := range []string{"/v1/responses", "/v1/chat/completions", "/v1/models"} {
			r, _ := http.NewRequest("OPTIONS", s.URL+path, nil)
			r.Header.Set("Origin", page)
			r.Header.Set("Access-Control-Request-Method", "POST")
			r.Header.Set("Access-Control-Request-Headers", "authorization, content-type")
			resp, err := s.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			h := resp.Header
			if resp.StatusCode != http.StatusNoContent || h.Get("Allow") == "" || h.Get("Access-Control-Allow-Origin") != c.want {
				t.Errorf("%q: %s: %d %v", c.allowed, path, resp.StatusCode, h)
			}
			if c.want != "" && (h.Get("Access-Control-Allow-Headers") != "authorization, content-type" || h.Get("Access-Control-Allow-Methods") == "") {
				t.Errorf("%q: %s: %v", c.allowed, path, h)
			}
			if specific := len(c.allowed) > 0 && c.allowed[0] != "*"; (h.Get("Vary") == "Origin") != specific {
				t.Errorf("%q: %s varies by %q", c.allowed, path, h.Get("Vary"))
			}
		}
		resp, _ := s.post(ask, "Origin", page)
		if h := resp.Header; h.Get("Access-Control-Allow-Origin") != c.want ||
			strings.Contains(h.Get("Access-Control-Expose-Headers"), "Service-Id") != (c.want != "") {
			t.Errorf("%q: the answer has %v", c.allowed, h)
		}
	}
}

func TestOriginsThatNoBrowserSends(t *testing.T) {
	for origin, valid := range map[string]bool{
		"*": true, "https://example.com": true, "http://localhost:3000": true, "app://desktop": true,
		"example.com": false, "https://example.com/": false, "https://*.example.com/x": false, "": false, "https://": false,
	} {
		if err := checkOrigins([]string{origin}); (err == nil) != valid {
			t.Errorf("%s: %v", origin, err)
		}
	}
}
