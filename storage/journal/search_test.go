package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"

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
	var repeated *storage.Content
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
		case 4:
			content = repeated // also in the next block
		}
		repeated = content
		if err := j.Append(rec, storagetest.Kept(rec, content)); err != nil {
			t.Fatal(err)
		}
		records = append(records, rec)
	}
	return records
}

// brace is a place after a brace.
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
		c, err := j.Contents().Content(t.Context(), rec)
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

// bodyContains is a filter of requests whose bodies have a text.
func bodyContains(text string) storage.Filter {
	return &storage.Leaf{Field: storage.LookupField(storage.RequestResponse, "request_body"), Op: storage.Contains, Text: text}
}

const (
	common = "e1ement" // which all requests have
	canary = "c4nary0123456789abcdef"
)

// withWords appends records with the common word, of which every third has the canary.
func withWords(t *testing.T, j *Journal, n int) (records []*storage.Record, personal []Chosen) {
	t.Helper()
	for i := range n {
		text := common
		if i%3 == 0 {
			text += " " + canary
		}
		r := &storage.Record{ID: numbered(i), Org: "org", CreatedAt: storage.Timestamp(1_700_000_000_000 + i), Dialect: plugins.Chat, EndState: storage.Complete}
		c := &storage.Content{Request: storage.Body{Type: "application/json", Data: []byte(`{"messages":[{"role":"user","content":"` + text + `"}]}`)}}
		if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
		if i%3 == 0 {
			personal = append(personal, Chosen{r.ID, r.Content})
		}
	}
	return records, personal
}

// wantRuledOut fails unless a search for a text rules out all of the first segment, or else nothing.
func wantRuledOut(t *testing.T, j *Journal, text string, want bool) {
	t.Helper()
	candidate := j.Search(bodyContains(text)).Candidates(1)
	if want != (candidate == nil) {
		t.Errorf("%s is ruled out: %v, want %v", text, candidate == nil, want)
	} else if candidate != nil && !candidate(0) {
		t.Errorf("%s is ruled out of the first entry", text)
	}
}

// Grams that are missing, damaged, cut, or of another file rule out nothing, and are made again.
// Those without a segment are removed at a start.
func TestGramsAreMadeAgain(t *testing.T) {
	for name, harm := range map[string]func(grams []byte) []byte{
		"missing":            nil,
		"damaged head":       func(b []byte) []byte { b[gramsHead-1] ^= 1; return b },
		"another magic":      func(b []byte) []byte { b[0] ^= 1; return b },
		"damaged rows":       func(b []byte) []byte { clear(b[gramsHead+8:]); return b },
		"cut":                func(b []byte) []byte { return b[:len(b)/2] },
		"empty":              func([]byte) []byte { return nil },
		"of another segment": func(b []byte) []byte { b[len(gramsMagic)+8] ^= 1; return b },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := &backend{}
			j := open(t, b, Options{Dir: dir})
			withWords(t, j, 9)
			wantRuledOut(t, j, "nowhere", false) // raw
			seal(t, j, 1)
			path := segmentPath(dir, 1, gramsSuffix)
			made := func() bool {
				g, err := j.archive.openGrams(1)
				if err == nil {
					g.file.Close()
				}
				return err == nil
			}
			eventually(t, "the segment has grams", made)
			want := func() {
				t.Helper()
				wantRuledOut(t, j, common, false)
				wantRuledOut(t, j, "E1EMENT", false)
				wantRuledOut(t, j, "abc", false)
				wantRuledOut(t, j, "nowhere", true)
			}
			want()
			grams, err := os.ReadFile(path)
			if err == nil {
				err = os.Remove(path)
			}
			alone(j)
			if err == nil && harm != nil {
				err = os.WriteFile(path, harm(slices.Clone(grams)), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			wantRuledOut(t, j, "nowhere", false)
			j.Close(t.Context())
			orphan := segmentPath(dir, 7, gramsSuffix)
			if err := os.WriteFile(orphan, grams, 0o600); err != nil {
				t.Fatal(err)
			}
			j = open(t, b, Options{Dir: dir})
			if _, err := os.Stat(orphan); err == nil {
				t.Error("grams without a segment are left")
			}
			signal(j.maintenance.wake)
			eventually(t, "the segment has grams again", made)
			want()
			if again, err := os.ReadFile(path); err != nil || !bytes.Equal(again, grams) {
				t.Errorf("the grams are others: %v", err)
			}
		})
	}
}

// Grams that a search misses are made again without a restart.
func TestMissingGramsAreMadeAgainAtOnce(t *testing.T) {
	dir := t.TempDir()
	j := open(t, &backend{}, Options{Dir: dir})
	withWords(t, j, 9)
	seal(t, j, 1)
	eventually(t, "the segment has grams", func() bool { return j.archive.withoutGrams() == nil })
	if err := os.Remove(segmentPath(dir, 1, gramsSuffix)); err != nil {
		t.Fatal(err)
	}
	wantRuledOut(t, j, "nowhere", false)
	eventually(t, "the segment has grams again", func() bool { return len(files(t, dir, gramsSuffix)) == 1 })
	wantRuledOut(t, j, "nowhere", true)
}

// A search that misses the file of a segment, which is erased or expired meanwhile, leaves its grams.
func TestGramsStayWithoutTheSegment(t *testing.T) {
	dir := t.TempDir()
	j := open(t, &backend{}, Options{Dir: dir})
	withWords(t, j, 9)
	seal(t, j, 1)
	eventually(t, "the segment has grams", func() bool { return j.archive.withoutGrams() == nil })
	alone(j)
	path := segmentPath(dir, 1, sealedSuffix)
	if err := os.Rename(path, path+".aside"); err != nil {
		t.Fatal(err)
	}
	wantRuledOut(t, j, "nowhere", false)
	if len(files(t, dir, gramsSuffix)) != 1 || j.archive.withoutGrams() != nil {
		t.Error("the grams are dropped")
	}
	if err := os.Rename(path+".aside", path); err != nil {
		t.Fatal(err)
	}
	wantRuledOut(t, j, "nowhere", true)
}

// The grams of what was erased are in no file, and those of an expired segment go with it.
func TestErasedTextHasNoGrams(t *testing.T) {
	dir := t.TempDir()
	j := open(t, &backend{}, Options{Dir: dir})
	records, personal := withWords(t, j, 30)
	seal(t, j, 1)
	wantGrams(t, j, records)
	wantRuledOut(t, j, canary, false)
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "org", RequestedAt: 1}, personal); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the erasure is done", func() bool { return j.Erasures("org")[0].DoneAt != 0 })
	eventually(t, "the segment has grams again", func() bool { return len(files(t, dir, gramsSuffix)) == 1 })
	wantRuledOut(t, j, canary, true)
	if candidate := j.Search(bodyContains(common)).Candidates(1); candidate == nil || candidate(0) || !candidate(1) {
		t.Error("the rest of the segment is ruled out")
	}
	j.archive.expire(1, j.archive.all()[1])
	if left := files(t, dir, gramsSuffix); left != nil {
		t.Errorf("%v are left", left)
	}
	wantRuledOut(t, j, common, true)
}
