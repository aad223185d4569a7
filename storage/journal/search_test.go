package journal

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// awkward are letters with several cases and spellings, as JSON has them.
var awkward = []string{
	"a", "B", "k", "K", "\u212a", "s", "\u017f", "é", `\u00e9`, `\u00C9`, "你", "好", `\u4f60`, "😀", `\ud83d\ude00`, `\ud83d`, `\ude00`, "µ", "μ", "İ",
	`\n`, `\t`, `\"`, `\\`, `\\\\\\`, `\/`, `\u0040`, `\u0000`, `\x`, "}", "{", " ", "\xff", "\xe4\xbd", "%", "_", "\ufffd",
}

// awkwardText is text of so many words, as it stands in a string of JSON. Its words are few, so that
// a block has few of all grams.
func awkwardText(r *rand.Rand, words int) string {
	var s strings.Builder
	var vocabulary [20]string
	for i := range vocabulary {
		vocabulary[i] = strconv.FormatInt(r.Int64N(36*36*36*36*36), 36)
	}
	for range words {
		switch n := r.IntN(600); {
		case n == 0:
			s.WriteString(strings.Repeat(`\\`, r.IntN(40)))
		case n < 60:
			s.WriteString(awkward[r.IntN(len(awkward))])
		default:
			s.WriteString(vocabulary[r.IntN(len(vocabulary))] + " ")
		}
	}
	return s.String()
}

// searched are records of conversations with awkward texts, of which each request has those before.
func searched(t *testing.T, r *rand.Rand, j *Journal, conversations, turns int) (records []*storage.Record) {
	type talk struct{ head, messages string }
	talks := make([]talk, conversations)
	for i := range talks {
		talks[i].head = []string{`{"messages":[`, `{"messages":[`, ` {"model":"m","messages":[`, `data: {"messages":[`}[i%4]
	}
	for n := range conversations * turns {
		c := &talks[r.IntN(len(talks))]
		text := awkwardText(r, 500+r.IntN(1500))
		c.messages += `{"role":"user","content":"` + text + `"},`
		switch at, end := brace(r, c.messages), brace(r, c.messages); r.IntN(4) {
		case 0: // where a chunk may end
			c.messages = c.messages[:at] + awkwardText(r, r.IntN(30)) + c.messages[at:]
		case 1:
			c.messages = c.messages[:min(at, end)] + c.messages[max(at, end):]
		}
		rec := &storage.Record{ID: numbered(n), Org: "org", CreatedAt: storage.Timestamp(1_700_000_000_000 + n), Dialect: plugins.Chat, EndState: storage.Complete}
		content := &storage.Content{
			Request:  storage.Body{Type: "application/json", Data: []byte(c.head + c.messages + `{"role":"user","content":""}]}`)},
			Response: storage.Body{Type: "application/json", Data: []byte(`{"choices":[{"message":{"role":"assistant","content":"` + awkwardText(r, 500) + `"}}]}`)},
		}
		switch n % 7 {
		case 1:
			content.Inputs = map[string]string{"topic": awkwardText(r, 50), "other": "of all"}
		case 2:
			content.Response = storage.Body{Type: "text/event-stream", Data: fmt.Appendf(nil, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"%s\"}}]}\n\ndata: [DONE]\n\n", strings.ReplaceAll(awkwardText(r, 100), "\n", ""))}
		case 3:
			content.Response = storage.Body{}
		}
		if err := j.Append(rec, storagetest.Kept(rec, content)); err != nil {
			t.Fatal(err)
		}
		records = append(records, rec)
	}
	return records
}

// brace is a place behind a brace.
func brace(r *rand.Rand, text string) int {
	at := r.IntN(len(text))
	return min(at+strings.IndexByte(text[at:]+"}", '}')+1, len(text))
}

// The grams of a block have those of all its texts, also where an entry shares bytes with others.
func TestGramsAreComplete(t *testing.T) {
	r := rand.New(rand.NewPCG(51, 3))
	j := open(t, &backend{}, Options{Dir: t.TempDir()})
	records := searched(t, r, j, 30, 5)
	seal(t, j, 1)
	wantGrams(t, j, records)
}

// wantGrams fails unless there are grams of a segment, which are complete for these records of it.
func wantGrams(t *testing.T, j *Journal, records []*storage.Record) {
	t.Helper()
	segment := records[0].Content.Segment
	var g *openGrams
	eventually(t, "the segment has grams", func() (ok bool) {
		var err error
		g, err = j.archive.openGrams(segment)
		return err == nil
	})
	defer g.file.Close()
	var texts storage.SearchTexts
	rows := make([]map[uint32]bitSet, len(parts))
	for part := range parts {
		rows[part] = make(map[uint32]bitSet)
	}
	for i, rec := range records {
		c, err := j.Content(t.Context(), rec)
		if err != nil || c == nil {
			t.Fatal(c, err)
		}
		block, _ := g.index.at(rec.Content.Ordinal)
		for part, p := range parts {
			texts.Part(c, p.is, func(text []byte) {
				for at := range max(0, len(text)-gramSize+1) {
					row := gramRow(binary.BigEndian.Uint32(text[at:]))
					with, known := rows[part][row]
					if !known {
						if with, err = g.row(part, row); err != nil {
							t.Fatal(err)
						}
						rows[part][row] = with
					}
					if !with.has(block) {
						t.Fatalf("record %d in block %d of %d: %q has no gram, after %q", i, block, g.blocks, text[at:at+gramSize], text[max(0, at-80):at])
					}
				}
			})
		}
	}
}
