package recording

import (
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// A record says why its call failed. A provider's words may quote content, and go with it; so does
// what Weir says of the content of a request.
func TestErrorMessage(t *testing.T) {
	overloaded := plugins.ResponseInfo{ErrorType: "overloaded_error", ErrorMessage: "Overloaded, with key sk-ant-0123456789"}
	spent := &plugins.Error{Status: 402, Type: "insufficient_quota", Message: "The budget team is spent."}
	invalid := plugins.Invalid("input[0].role", "The role %q is unknown.", "secret")
	for name, c := range map[string]struct {
		status            int64
		seen              plugins.ResponseInfo
		body              storage.Body
		refusal           *plugins.Error
		request, response bool // omitted
		want              string
	}{
		"in a stream":         {status: 200, seen: overloaded, want: "Overloaded, with key [redacted]"},
		"request omitted":     {status: 200, seen: overloaded, request: true},
		"answer omitted":      {status: 200, seen: overloaded, response: true},
		"in the body":         {status: 422, body: storage.Body{Data: []byte(`{"detail":"no"}`)}, want: "no"},
		"in plain text":       {status: 503, body: storage.Body{Type: "text/plain", Data: []byte("upstream  connect\nerror")}, want: "upstream connect error"},
		"a page":              {status: 502, body: storage.Body{Type: "text/html", Data: []byte("<!DOCTYPE html>\n<html lang=en><head>\n<title>api.example.com | 502: Bad\ngateway&hellip;</title></head>")}, want: "api.example.com | 502: Bad gateway…"},
		"a reported page":     {status: 502, body: storage.Body{Type: "text/plain", Data: []byte("<html><head><title>502 Bad Gateway</title></head></html>")}, want: "502 Bad Gateway"},
		"a page, omitted":     {status: 502, body: storage.Body{Type: "text/html", Data: []byte("<html><title>no</title>")}, response: true},
		"a page, untitled":    {status: 503, body: storage.Body{Type: "text/html", Data: []byte("<html>no</html>")}},
		"no error":            {status: 200, body: storage.Body{Data: []byte(`{"message":"text"}`)}},
		"of Weir":             {status: 402, refusal: spent, want: spent.Message},
		"of Weir, omitted":    {status: 402, refusal: spent, request: true, response: true, want: spent.Message},
		"of a field":          {status: 400, refusal: invalid, want: invalid.Message},
		"of a field, omitted": {status: 400, refusal: invalid, request: true},
		"the client left":     {status: storage.StatusClientLeft, refusal: spent},
	} {
		t.Run(name, func(t *testing.T) {
			x, kept := begin(t)
			x.Answer, x.Refusal, x.Record.Status = (*answer)(&c.seen), c.refusal, plugins.Known(c.status)
			x.Kept.Omit(&x.Record, c.request, c.response)
			x.Kept.Response(&x.Record, c.body, 1<<10, false)
			x.End(storage.Complete)
			x.Close()
			if got := kept.records[0].ErrorMessage; got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
