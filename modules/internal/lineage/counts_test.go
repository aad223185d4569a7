package lineage

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// The turn before tells the tokens of what it had, and only of that. Whatever is added or
// changed counts by its bytes.
func TestCountsOfTheTurnBefore(t *testing.T) {
	const turn = `{"model":"m","system":[{"type":"text","text":"be brief"}],"messages":[{"role":"user","content":"a"}]}`
	const marked = `{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}`
	for name, c := range map[string]struct {
		before, body string
		known        bool
		added        string
	}{
		"again":                 {turn, turn, true, ``},
		"a message":             {turn, strings.Replace(turn, `"a"}]`, `"a"},{"role":"assistant","content":"b"}]`, 1), true, `{"role":"assistant","content":"b"}`},
		"other instructions":    {turn, strings.Replace(turn, "brief", "long", 1), true, `"system"{"type":"text","text":"be long"}`},
		"more instructions":     {turn, strings.Replace(turn, `brief"}]`, `brief"},{"type":"text","text":"be brief"}]`, 1), true, `"system"{"type":"text","text":"be brief"}`},
		"fewer instructions":    {turn, `{"model":"m","messages":[{"role":"user","content":"a"}]}`, true, ``},
		"a field":               {turn, strings.Replace(turn, `"model"`, `"stream":true,"model"`, 1), true, `"stream"true`},
		"another message":       {turn, strings.Replace(turn, `"a"}]`, `"b"}]`, 1), false, ``},
		"a message before":      {turn, strings.Replace(turn, `[{"role":"user"`, `[{"role":"user","content":"b"},{"role":"user"`, 1), false, ``},
		"a moved mark":          {marked, `{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"user","content":"b"}]}`, true, `{"role":"user","content":"b"}`},
		"a new mark":            {`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]}`, marked, true, `,"cache_control":{"type":"ephemeral"}`},
		"a mark is no object":   {`{"messages":[{"a":1}]}`, `{"messages":[{"a":1,"cache_control":{"type":{"text":"much"}}}]}`, false, ``},
		"a mark in a text":      {`{"messages":[{"a":","}]}`, `{"messages":[{"a":",\"cache_control\":{}"}]}`, false, ``},
		"two conversations":     {`{"messages":[{}],"input":[{}]}`, `{"messages":[{}],"input":[{}]}`, false, ``},
		"the provider shortens": {`{"messages":[{}],"truncation":"auto"}`, `{"messages":[{}],"truncation":"auto"}`, false, ``},
		"no list":               {`{"input":"a"}`, `{"input":"a"}`, false, ``},
		"no JSON":               {turn, turn[:len(turn)-1] + strings.Repeat("!", 100), false, ``},
	} {
		var counts Counts
		counts.Learn(piecesOf([]byte(c.before), "org", "model"), 1000)
		got := counts.Find(piecesOf([]byte(c.body), "org", "model"))
		more := got.Added - int64(len(c.added)) // commas and colons
		if c.known && (got.Messages != 1 || got.Tokens != 1000 || more < 0 || more > 2) || !c.known && got != (EarlierTurn{}) {
			t.Errorf("%s: %+v, want %d bytes more", name, got, len(c.added))
		}
		if other := counts.Find(piecesOf([]byte(c.body), "other", "model")); other != (EarlierTurn{}) {
			t.Errorf("%s: another organisation finds %+v", name, other)
		}
	}
}

func piecesOf(body []byte, target ...string) Pieces {
	request, _ := plugins.ParseObject(body)
	return PiecesOf(request, target...)
}

// bytesCounted is a provider whose every token is a byte of a text.
func bytesCounted(texts []string) (n int64) {
	for _, text := range texts {
		n += int64(len(text))
	}
	return n
}

// However conversations grow, change and branch, what is known of a request is never less than
// what the provider counts.
func TestCountsAreNeverTooLow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var counts Counts
	text := func() string { return strings.Repeat(string(rune('a'+r.IntN(3))), 1+r.IntN(2)) }
	known := 0
	for range 20_000 {
		var system, messages []string
		for range r.IntN(3) {
			system = append(system, text())
		}
		for range 1 + r.IntN(5) {
			messages = append(messages, text())
		}
		quote := func(texts []string) string {
			quoted := make([]string, len(texts))
			for i, text := range texts {
				quoted[i] = fmt.Sprintf(`{"text":%q`, text)
				if r.IntN(4) == 0 {
					quoted[i] += `,"cache_control":{"type":"ephemeral"}`
				}
				quoted[i] += "}"
			}
			return "[" + strings.Join(quoted, ",") + "]"
		}
		pieces := piecesOf(fmt.Appendf(nil, `{"system":%s,"messages":%s}`, quote(system), quote(messages)), "m")
		tokens := bytesCounted(append(system, messages...))
		if got := counts.Find(pieces); got.Messages > 0 {
			known++
			if got.Tokens+got.Added < tokens {
				t.Fatalf("%q, %q have %d tokens; %+v is known", system, messages, tokens, got)
			}
		}
		if r.IntN(3) == 0 {
			counts.Learn(pieces, tokens)
		}
	}
	if known < 10_000 {
		t.Errorf("only %d requests are known", known)
	}
}

// What is remembered is bounded.
func TestCountsAreBounded(t *testing.T) {
	var counts Counts
	for i := range maxCounts + 100 {
		counts.Learn(piecesOf(fmt.Appendf(nil, `{"messages":[%d]}`, i)), 1)
	}
	if len(counts.byConversation) != maxCounts {
		t.Errorf("%d requests are remembered", len(counts.byConversation))
	}
	tools := `"tools":[` + strings.Repeat(`1,`, maxPieces-1) + `1]`
	for range 2 { // the second time each is known already
		for i := range maxHashes/maxPieces + 100 {
			counts.Learn(piecesOf(fmt.Appendf(nil, `{"messages":["a",%d],%s}`, i, tools)), 1)
		}
	}
	pieces := 0
	for _, known := range counts.byConversation {
		pieces += len(known.rest)
	}
	if pieces != counts.pieces || pieces > maxHashes || pieces < maxHashes-2*maxPieces {
		t.Errorf("%d pieces are remembered, and counted as %d", pieces, counts.pieces)
	}
	for what, n := range map[string]int{`{"messages":[{}],"tools":[`: maxPieces, `{"messages":[`: maxMessages} {
		many := func(n int) []byte { return []byte(what + strings.Repeat(`1,`, n) + `1]}`) }
		if counts.Learn(piecesOf(many(n)), 1); counts.Find(piecesOf(many(n))) != (EarlierTurn{}) {
			t.Error("a request of too many pieces is remembered")
		}
		few, huge := testing.AllocsPerRun(1, func() { piecesOf(many(n)) }), testing.AllocsPerRun(1, func() { piecesOf(many(1_000_000)) })
		if huge > few+3 {
			t.Errorf("%s: a million pieces take %v allocations, and %d take %v", what, huge, n, few)
		}
	}
}
