package inbound_test

import (
	"errors"
	"testing"

	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
)

// FuzzParse: whatever a client sends, a provider is asked for something, or the client
// gets an error of its own.
func FuzzParse(f *testing.F) {
	for _, d := range []plugins.Dialect{plugins.Chat, plugins.Messages} {
		fields, base := chatFields, `{"model":"m","messages":`+user+`}`
		if d == plugins.Messages {
			fields, base = messagesFields, `{"model":"m","max_tokens":1000,"messages":`+user+`}`
		}
		for _, x := range fields {
			if x.path != "" {
				body, _ := sjson.SetRaw(base, x.path, x.value)
				f.Add(body, d == plugins.Messages)
			}
		}
	}
	f.Fuzz(func(t *testing.T, body string, isMessages bool) {
		d := plugins.Chat
		if isMessages {
			d = plugins.Messages
		}
		for _, k := range kindsOf(d)[:5] {
			if _, _, err := k.ask(d, body, false); err != nil {
				if e, ok := errors.AsType[*plugins.Error](err); !ok || e.Status < 400 || e.Status >= 500 {
					t.Errorf("%s: got %v for %s", k.name, err, body)
				}
			}
		}
	})
}
