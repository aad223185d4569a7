package llmquery_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestViews holds that a view is what was saved last under its name, in its
// organisation alone, until it is deleted.
func TestViews(t *testing.T) {
	s := newSite(t)
	const failed = "/v1/view/failed%20%2F%20slow%2F"
	expect := func(method, path, key, body string, status int, want string) {
		t.Helper()
		response, answer := s.do(method, path, key, body)
		if response.StatusCode != status || !strings.Contains(answer.Raw, want) {
			t.Errorf("%s %s as %s: %d %s, want %d %s", method, path, key, response.StatusCode, answer.Raw, status, want)
		}
	}
	expect("GET", "/v1/view", "root", "", 200, `{"data":[],"error":null}`)
	expect("GET", failed, "root", "", 404, "no such view")
	expect("PUT", failed, "writer", `{"screen":"users","state":"old"}`, 200, `{"data":null,"error":null}`)
	expect("PUT", failed, "writer", `{"screen":"requests","state":"f=status>=400&x=\"é\""}`, 200, "")
	expect("PUT", "/v1/view/all", "root", `{"screen":"overview","state":""}`, 200, "")
	expect("PUT", failed, "acme", `{"screen":"sessions","state":"acme's"}`, 200, "")
	_, one := s.do("GET", failed, "reader", "")
	if got := fmt.Sprint(one.Get("data.name"), one.Get("data.screen"), one.Get("data.state")); got != `failed / slow/ requests f=status>=400&x="é"` {
		t.Errorf("the view is %s: %s", got, one.Raw)
	}
	_, all := s.do("GET", "/v1/view", "root", "")
	if got := all.Get("data.#.name").Raw; got != `["all","failed / slow/"]` {
		t.Errorf("the views are %s", all.Raw)
	}
	expect("DELETE", "/v1/view/all", "acme", "", 404, "no such view")
	expect("DELETE", failed, "acme", "", 200, `{"data":null,"error":null}`)
	expect("GET", failed, "acme", "", 404, "")
	expect("GET", failed, "root", "", 200, "requests")

	expect("PUT", "/v1/view/new", "reader", `{"screen":"users","state":""}`, 403, "insufficient_scope")
	expect("DELETE", failed, "reader", "", 403, "insufficient_scope")
	expect("GET", "/v1/view", "writer", "", 403, "insufficient_scope")
	expect("DELETE", failed, "", "", 401, "")
	for body, want := range map[string]string{
		`{"state":""}`:                 "screen:",
		`{"screen":"","state":""}`:     "screen:",
		`{"screen":"users"}`:           "state:",
		`{"screen":"users","state":7}`: "state:",
		`{"screen":"users","state":"` + strings.Repeat("x", 16<<10+1) + `"}`: "state: at most 16384",
		`{"screen":"` + strings.Repeat("x", 65) + `","state":""}`:            "screen:",
		`{"screen":"users","state":"","name":"x"}`:                           "unknown field",
	} {
		expect("PUT", "/v1/view/new", "root", body, 400, want)
	}
	expect("PUT", "/v1/view/"+strings.Repeat("x", 257), "root", `{"screen":"users","state":""}`, 400, "name: 1 to 256")
	expect("PUT", "/v1/view/%ff", "root", `{"screen":"users","state":""}`, 400, "name: 1 to 256")
}

// TestManyViews holds that an organisation has at most 200.
func TestManyViews(t *testing.T) {
	s := newSite(t)
	save := func(name int) int {
		response, _ := s.do("PUT", fmt.Sprint("/v1/view/", name), "root", `{"screen":"users","state":""}`)
		return response.StatusCode
	}
	for i := range 200 {
		if status := save(i); status != http.StatusOK {
			t.Fatalf("view %d: %d", i, status)
		}
	}
	if again, more := save(7), save(200); again != http.StatusOK || more != http.StatusBadRequest {
		t.Errorf("a known view: %d, one more: %d", again, more)
	}
}
