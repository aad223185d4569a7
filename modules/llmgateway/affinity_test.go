package llmgateway

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/sharedtest"
	"github.com/weirhq/weir/storage/shared"
)

// A node that has not seen a conversation sends it to the account where another node has left it, and no
// other conversation, nor that of another caller.
func TestNodesTellWhereConversationsAre(t *testing.T) {
	asked := make(map[string]int)
	down := true
	account := func(name string) upstream {
		return func(w http.ResponseWriter, _ *http.Request) {
			if asked[name]++; down && name == "raw" {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			_, _ = io.WriteString(w, `{"object":"chat.completion","model":"m","choices":[{"message":{"content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":300,"completion_tokens":5}}`)
		}
	}
	s := serve(t, map[string][]upstream{"raw": {account("raw")}, "raw2": {account("raw2")}}) // remembers no calls of its own
	nodes := new(sharedtest.LocalAffinity)
	s.handler.affinity = func() shared.Affinity { return nodes }
	turns := func(messages ...string) string {
		var list []string
		for i, m := range messages {
			list = append(list, fmt.Sprintf(`{"role":%q,"content":%q}`, []string{"user", "assistant"}[i%2], m))
		}
		return `{"model":"raws","messages":[` + strings.Join(list, ",") + `]}`
	}
	call := func(body string, header ...string) string {
		before := asked["raw"]
		resp, answer := s.postTo("/v1/chat/completions", strings.NewReader(body), header...)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, answer)
		}
		if asked["raw"] > before {
			return "raw"
		}
		return "raw2"
	}
	call(turns("Who are you?")) // at the second account
	down = false
	for _, c := range []struct {
		body   string
		header []string
		want   string
	}{
		{turns("Who are you?", "hello", "And I?"), nil, "raw2"},
		{turns("Who are you?", "hello", "And I?", "hello", "Why?"), nil, "raw2"},
		{turns("Who am I?", "hello", "And you?"), nil, "raw"},
		{turns("Who are you?"), nil, "raw"},
		{turns("Who are you?", "hello", "And we?"), []string{"Service-User-Id", "bob"}, "raw"},
	} {
		_, told := s.postTo("/v1/chat/completions", strings.NewReader(c.body), append(c.header, "Service-Dry-Run", "true")...)
		first := gjson.Get(told, "targets.0")
		if isWarm := c.want == "raw2"; (first.Get("cached_tokens").Int() == 300) != isWarm {
			t.Errorf("a dry run of %s says %s", c.body, told)
		}
		if got := call(c.body, c.header...); got != c.want {
			t.Errorf("%s goes to %s, want %s", c.body, got, c.want)
		}
	}
}
