package echo

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
)

// ask is the provider's answer to a body of the Responses API.
func ask(t *testing.T, body string) (*http.Response, string) {
	t.Helper()
	p := new(Provider)
	req, err := p.PrepareNative(context.Background(), plugins.Responses, plugintest.Object(t, body), translate.Target{Model: "echo-1"})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func TestProvider(t *testing.T) {
	resp, body := ask(t, `{"model":"echo/echo-1","input":"hello"}`)
	if resp.StatusCode != http.StatusOK || resp.ContentLength != int64(len(body)) {
		t.Errorf("got status %d, %d bytes of %d", resp.StatusCode, len(body), resp.ContentLength)
	}
	if got := gjson.Get(body, "output.0.content.0.text").Str; got != "You said: hello" {
		t.Errorf("it says %q", got)
	}
	if got := gjson.Get(body, "model").Str; got != "echo-1" {
		t.Errorf("the model is %q", got)
	}
}

func TestProviderStreams(t *testing.T) {
	resp, body := ask(t, `{"model":"echo/echo-1","input":"hello","stream":true}`)
	x := observe.New(plugins.Responses, "echo", resp.Header)
	x.Write([]byte(body))
	x.Close()
	if got := x.Info(); got.Phase != plugins.Ended || !got.Content || !got.Usage.Output.Valid {
		t.Errorf("got %+v", got)
	}
}

func TestProviderRefuses(t *testing.T) {
	resp, body := ask(t, `{"model":"echo/echo-1"}`)
	if resp.StatusCode != http.StatusBadRequest || gjson.Get(body, "error.param").Str != "input" {
		t.Errorf("got %d: %s", resp.StatusCode, body)
	}
}

// The events of a stream are many times as long as the request, and are never there at once.
func TestProviderKeepsNoStream(t *testing.T) {
	p := new(Provider)
	text := strings.Repeat("word ", 100_000)
	req, err := p.PrepareNative(t.Context(), plugins.Responses, plugintest.Object(t, `{"model":"echo-1","stream":true,"input":"`+text+`"}`), translate.Target{Model: "echo-1"})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := p.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.ContentLength >= 0 {
		t.Fatalf("%d bytes are there at once", resp.ContentLength)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, 1000); err != nil {
		t.Error(err)
	}
}
