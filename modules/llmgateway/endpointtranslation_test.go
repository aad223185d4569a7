package llmgateway

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// An endpoint that the provider has in a format of its own is one call with one record, however
// many requests it takes.
func TestTranslatedEndpoints(t *testing.T) {
	var sent []string
	embed := func(answer string) upstream {
		return func(w http.ResponseWriter, r *http.Request) {
			sent = append(sent, r.URL.Path+" "+readAndRestore(r))
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		}
	}
	first, second := embed(`{"vector":[1],"tokens":2}`), embed(`{"vector":[-0.5],"tokens":3}`)
	const two = `{"model":"raw/embeds","input":["a","b"]}`
	vectors := func(a, b string) string {
		return `{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + a + `},{"object":"embedding","index":1,"embedding":` + b + `}],"model":"embeds","usage":{"prompt_tokens":5,"total_tokens":5}}`
	}
	for name, c := range map[string]struct {
		request string
		script  []upstream
		headers []string
		status  int
		body    string // that the client gets, or a part of an error
		tokens  plugins.Count
		end     storage.EndState
		sent    int
	}{
		"two texts":         {two, []upstream{first, second}, nil, 200, vectors("[1]", "[-0.5]"), plugins.Known(5), storage.Complete, 2},
		"as base64":         {strings.Replace(two, `,"input"`, `,"encoding_format":"base64","input"`, 1), []upstream{first, second}, nil, 200, vectors(`"AACAPw=="`, `"AAAAvw=="`), plugins.Known(5), storage.Complete, 2},
		"a retry":           {two, []upstream{status(500), first, second}, nil, 200, vectors("[1]", "[-0.5]"), plugins.Known(5), storage.Complete, 2},
		"a later one again": {two, []upstream{first, status(429), second}, nil, 200, vectors("[1]", "[-0.5]"), plugins.Known(5), storage.Complete, 2},
		"no vector":         {two, []upstream{first, embed(`{"tokens":3}`)}, nil, 502, "no response", plugins.Count{}, storage.UpstreamAborted, 2},
		"no JSON":           {two, []upstream{first, embed(`oops`)}, nil, 502, "no response", plugins.Count{}, storage.UpstreamAborted, 2},
		"half refused":      {two, []upstream{first, status(400)}, nil, 400, "", plugins.Known(2), storage.UpstreamAborted, 1},
		"strictly":          {strings.Replace(two, `,"input"`, `,"user":"u","input"`, 1), []upstream{first}, []string{"Service-Strict", "true"}, 400, "'user'", plugins.Count{}, storage.Complete, 0},
		"tokens":            {`{"model":"raw/embeds","input":[[1]]}`, []upstream{first}, nil, 400, "is no text", plugins.Count{}, storage.Complete, 0},
	} {
		t.Run(name, func(t *testing.T) {
			sent = nil
			s := serve(t, map[string][]upstream{"raw": c.script})
			resp, body := s.postTo("/v1/embeddings", strings.NewReader(c.request), c.headers...)
			if resp.StatusCode != c.status || c.status == 200 && body != c.body || !strings.Contains(body, c.body) {
				t.Errorf("the client got %d %s", resp.StatusCode, body)
			}
			if len(sent) != c.sent || c.sent > 0 && sent[0] != `/embed {"text":"a"}` {
				t.Errorf("the provider got %q", sent)
			}
			all := s.kept.all()
			r := all[len(all)-1]
			if r.Usage.Input != c.tokens || r.EndState != c.end || c.status == 200 && r.response != body {
				t.Errorf("the record is %+v", r)
			}
		})
	}
}

// A budget is charged for the texts that were embedded before another one was refused, and for all
// if nobody knows what the other one has cost.
func TestHalfAnEmbeddingIsCharged(t *testing.T) {
	first := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"vector":[1],"tokens":2}`) }
	for name, c := range map[string]struct {
		second upstream
		least  plugins.Nanodollars
		exact  bool
	}{
		"refused":    {status(400), 2_000_000, true}, // 2 tokens at $1,000 a million
		"broken off": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 4_000_000, false},
	} {
		s := serve(t, map[string][]upstream{"raw": {first, c.second}})
		_, _ = s.postTo("/v1/embeddings", strings.NewReader(`{"model":"raw/embeds","input":["a","b"]}`), "Authorization", "Bearer capped", "Service-User-Id", "ada")
		if r := s.kept.all()[0]; !r.Cost.Valid || r.Cost.N < c.least || c.exact && r.Cost.N != c.least {
			t.Errorf("%s: the cost is %v", name, r.Cost)
		}
	}
}
