package plugintest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/translate"
)

// Request is the body of POST /v1/responses with fields like `"name":value`. The
// model is "m", and the input "hi" unless the fields have one.
func Request(fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	if !strings.Contains(fields, `"input":`) {
		fields += `,"input":"hi"`
	}
	return `{"model":"m"` + fields + `}`
}

// Object is a body that is a JSON object, for translate.Native and translate.Adapter.
func Object(t testing.TB, body string) *plugins.Object {
	t.Helper()
	object, valid := plugins.ParseObject([]byte(body))
	if !valid {
		t.Fatalf("%s is not an object", body)
	}
	return object
}

// Prepare has a provider translate a request for a target, by default one at
// https://example.com with the key "secret". It returns the upstream request, its
// body, and the request with the warnings to the client. The vendor of the provider must
// take the request, as Strict knows the vendor.
func Prepare(t testing.TB, p translate.Provider, target translate.Target, request string, strict bool) (*http.Request, string, *translate.Request, error) {
	t.Helper()
	return PrepareIn(t, plugins.Responses, p, target, request, strict)
}

// PrepareIn is Prepare for a request of another dialect.
func PrepareIn(t testing.TB, d plugins.Dialect, p translate.Provider, target translate.Target, request string, strict bool) (*http.Request, string, *translate.Request, error) {
	t.Helper()
	api, _ := inbound.Of(d)
	r, err := api.Parse([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	r.Strict = strict
	target.BaseURL, target.Key = cmp.Or(target.BaseURL, "https://example.com"), cmp.Or(target.Key, "secret")
	req, err := p.Prepare(context.Background(), r, target)
	if err != nil {
		return nil, "", r, err
	}
	b, err := io.ReadAll(req.Body)
	if err != nil || !gjson.ValidBytes(b) {
		t.Fatalf("%v: %s", err, b)
	}
	strictly(t, p, target, req, string(b))
	return req, string(b), r, nil
}

// Maps checks what a provider makes of fields of a request: the JSON at a path of
// the body, "" for nothing, and the warnings, each whole or as the name of its
// field. A strict request gets an error in place of warnings.
func Maps(t *testing.T, p translate.Provider, target translate.Target, fields, path, want string, warnings ...string) {
	t.Helper()
	_, body, r, err := Prepare(t, p, target, Request(fields), false)
	if err != nil {
		t.Fatal(err)
	}
	if got := gjson.Get(body, path).Raw; got != want {
		t.Errorf("%s is %s\nwant %s\nin %s", path, got, want, body)
	}
	if !slices.EqualFunc(r.Warnings, warnings, func(got, want string) bool {
		field, _, _ := strings.Cut(got, ": ")
		return got == want || field == want
	}) {
		t.Errorf("warnings %q, want %q", r.Warnings, warnings)
	}
	if _, _, _, err := Prepare(t, p, target, Request(fields), true); (err != nil) != (len(warnings) > 0) {
		t.Errorf("strict: got error %v, with the warnings %q", err, warnings)
	}
}

// Refuses checks that a provider refuses fields of a request with a 400 that names
// param.
func Refuses(t *testing.T, p translate.Provider, target translate.Target, fields, param string) {
	t.Helper()
	_, body, _, err := Prepare(t, p, target, Request(fields), false)
	if e, ok := errors.AsType[*plugins.Error](err); !ok || e.Status != http.StatusBadRequest || e.Param != param || e.Message == "" {
		t.Errorf("got %+v and %s, want a 400 that names %s", err, body, param)
	}
}

// Response is an answer of a provider.
func Response[B string | []byte](status int, body B) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body)))}
}

// AfterReasoning are the fields of a request whose input has a reasoning between
// the user's message and the assistant's.
func AfterReasoning(encrypted string) string {
	return `"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"secret"}],` +
		`"encrypted_content":` + string(gjson.AppendJSONString(nil, encrypted)) + `},{"role":"assistant","content":"4"},{"role":"user","content":"?"}]`
}

// Answer is the response to a request that the provider answers with body.
func Answer[B string | []byte](t testing.TB, p translate.Provider, request string, body B) gjson.Result {
	t.Helper()
	r, err := translate.ParseRequest([]byte(request))
	if err != nil {
		t.Fatal(err)
	}
	a := translate.NewAssembler(r, new(bytes.Buffer), translate.Options{})
	if err := p.Decode(Response(http.StatusOK, body), a); err != nil {
		t.Fatal(err)
	}
	a.End()
	return gjson.ParseBytes(a.Response())
}
