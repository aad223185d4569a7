package llmgateway

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/plugintest"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// longAnswer is a stream of a dialect in which the model writes 700 words, and uses 5 dollars.
func longAnswer(t *testing.T, d plugins.Dialect, body string) string {
	t.Helper()
	api, _ := inbound.Of(d)
	request, err := api.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	a := translate.NewAssembler(request, &b, translate.Options{Encoder: api.Encoder(request)})
	a.Start("m", "up")
	for range 700 {
		a.Text(0, "a word ")
	}
	a.Usage(plugins.Usage{Input: plugins.Known(3), Output: plugins.Known(2500)})
	a.Finish(translate.ReasonStop)
	b.Write(a.End())
	return b.String()
}

// A stream that does not fit into what is left is ended there: of a provider that speaks the
// client's dialect, and of one that does not. The budget is never exceeded, and what it counts
// is the record's cost.
func TestBudgetsCutStreams(t *testing.T) {
	for path, c := range map[string]struct {
		dialect plugins.Dialect
		body    string
		check   func(answer []byte) (finish string, err error)
	}{
		"/v1/responses": {plugins.Responses, `"input":"hi"`, func(answer []byte) (string, error) {
			result, err := plugintest.Check(answer)
			if err != nil {
				return "", err
			}
			return gjson.GetBytes(result.Response, "incomplete_details.reason").Str, nil
		}},
		"/v1/chat/completions": {plugins.Chat, `"messages":[{"role":"user","content":"hi"}]`, func(answer []byte) (string, error) {
			message, err := plugintest.CheckChat(answer)
			if err != nil {
				return "", err
			}
			return message.Finish, nil
		}},
		"/v1/messages": {plugins.Messages, `"max_tokens":900,"messages":[{"role":"user","content":"hi"}]`, func(answer []byte) (string, error) {
			message, err := plugintest.CheckMessages(answer)
			if err != nil {
				return "", err
			}
			return message.Finish, nil
		}},
	} {
		for _, model := range []string{"raw/priced", "one/m"} {
			t.Run(path+" of "+model, func(t *testing.T) {
				body := `{"model":"` + model + `","stream":true,` + c.body + `}`
				s := serve(t, map[string][]upstream{"one": {says(append(append([]string{"model m"}, strings.Split(strings.Repeat("text a word |", 700), "|")...), "usage 3 2500", "stop")...)},
					"raw": {func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Content-Type", "text/event-stream")
						_, _ = w.Write([]byte(longAnswer(t, c.dialect, body))) // the client leaves
					}}})
				resp, answer := s.postTo(path, strings.NewReader(body), "Authorization", "Bearer cutting", "Service-User-Id", "ada", "Service-Strict", "true")
				finish, err := c.check([]byte(answer))
				if resp.StatusCode != http.StatusOK || err != nil || !strings.Contains(finish, "max_") && finish != "length" {
					t.Fatalf("%d, it ends by %s, %v: %.3000s", resp.StatusCode, finish, err, answer)
				}
				if words := strings.Count(answer, `a word "`); words < 40 {
					t.Errorf("it was cut after %d words", words)
				}
				s.settled()
				spent, reserved := s.counted("cutting", "cut", "ada")
				all := s.kept.all()
				if r := all[len(all)-1]; spent < 150 || spent > 800 || reserved != 0 || int64(r.Cost.N/1e6) != spent || r.Finish != "budget_cut" || r.EndState != storage.Complete {
					t.Errorf("spent %d, reserved %d; the record costs %v, and ended %s by %s", spent, reserved, r.Cost, r.EndState, r.Finish)
				}
			})
		}
	}
}
