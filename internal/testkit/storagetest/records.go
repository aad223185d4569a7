package storagetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// words are texts that break careless storage: wildcards, quotes, SQL, NUL,
// letters that differ in more than one bit from their other case, and what looks like a number.
var words = []string{
	"alpha", "Alpha", "ALPHA", "beta", "alphabeta", "100%", "1000", "a_b", "axb", `a\b`, `\%`, `\`, "%", "_",
	"'; DROP TABLE requests; --", `"quoted"`, "it's", "nul\x00byte", "nul", "tab\tline\n", " spaced ", "null", "NULL",
	"true", "0", "1", "1e3", "[]", "{}", "😀 smile", "👩‍👩‍👧", "İstanbul", "istanbul", "ISTANBUL", "ıstanbul",
	"ſtraße", "STRASSE", "Straße", "\u212Aelvin", "kelvin", "KELVIN", "\u00B5m", "\u03BCm", "ǅungla", "ǆungla",
	"Σίσυφος", "ΣΊΣΥΦΟΣ", "日本語", "日本", "e\u0301", "é", "É", "\uFFFD", "gpt-4o", "GPT-4o-mini", "claude", "fr", "DE",
	strings.Repeat("long ", 1000), strings.Repeat("long ", 999) + "Long!", "",
}

// Names inside maps.
var (
	propertyNames = []string{"Env", "env", "Service-Session-Id", "a.b", `a"b`, "a'b", "nul\x00", "", "日本", "%", "only-asked-for"}
	inputNames    = []string{"topic", "Topic", "a.b", "", "only-asked-for"}
	scoreNames    = []string{"quality", "Quality", "helpful", `<a>&"b'`, "日本", "", "only-asked-for"}
	orgs          = []string{"acme", "globex", "ACME"}
)

// epoch is about when the records of Records were created.
var epoch = storage.Millis(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))

// Records makes adversarial records in the state that they have after all their
// annotations, and their content. Many tie in what queries sort by, lack values,
// or differ in letter case alone; some content has been deleted.
func Records(r *rand.Rand, n int) ([]*storage.Record, Contents) {
	records := make([]*storage.Record, n)
	contents := make(Contents)
	for i := range records {
		records[i] = record(r, int64(i))
		if i > 0 && chance(r, 3) {
			records[i].RootID = records[r.IntN(min(i, 20))].ID
		}
		if chance(r, 5) {
			continue
		}
		ref := storage.ContentRef{Segment: 1 + uint64(i)/64, Ordinal: uint32(i) % 64}
		records[i].Content = ref
		if !chance(r, 8) {
			contents[ref] = Kept(records[i], content(r, records[i].Dialect)).Content(records[i])
		}
	}
	return records, contents
}

func record(r *rand.Rand, n int64) *storage.Record {
	rec := new(storage.Record)
	for _, c := range storage.Schema {
		if c.Wire > 0 {
			choose(r, c.At(rec))
		}
	}
	rec.Charges = nil // which a journal takes out before a backend gets the record
	rec.Revision = 0  // testRevisions has others
	// What values of these types are not all like.
	rec.ID, rec.Org, rec.CreatedAt = id(r), pick(r, orgs), instant(r)
	rec.AuthHash = pick(r, []string{"", strings.Repeat("0a", 32), strings.Repeat("ff", 32)})
	rec.Path, rec.TargetURL = "/v1/"+rec.Path, "https://"+rec.TargetURL
	rec.TraceID = pick(r, []string{"", "4bf92f3577b34da6a3ce929d0e0e4736"})
	rec.SpanID = pick(r, []string{"", "00f067aa0ba902b7"})
	rec.Status, rec.EndState = status(r), storage.EndState(r.IntN(4))
	rec.CacheSavings, rec.CacheLoss, rec.SavedCost, rec.RoutingSavings = savings(r), savings(r), savings(r), savings(r)
	if chance(r, 2) {
		rec.ExperimentID = ""
	}
	if rec.ParentID == uuid.Nil {
		rec.RootID = uuid.Nil
	}
	for range r.IntN(4) / 2 * r.IntN(4) {
		rec.Assets = append(rec.Assets, pick(r, words))
	}
	rec.RespondedAt, rec.UpdatedAt = 0, rec.CreatedAt
	if !chance(r, 4) {
		rec.RespondedAt = rec.CreatedAt + storage.Timestamp(r.IntN(3)*r.IntN(5000))
		rec.UpdatedAt = rec.RespondedAt
	}
	annotate(r, rec, n)
	return rec
}

// choose sets a value of a record by its type.
func choose(r *rand.Rand, value any) {
	switch v := value.(type) {
	case *string:
		*v = word(r)
	case *plugins.Dialect:
		*v = pick(r, []plugins.Dialect{plugins.Unknown, plugins.Chat, plugins.Messages})
	case *storage.JSONText:
		*v = pick(r, []storage.JSONText{"", `{"anthropic-ratelimit-unified-5h-utilization":"0.4"}`})
	case *plugins.Count:
		*v = quantity[int64](r)
	case *plugins.Duration:
		*v = quantity[plugins.Milliseconds](r)
	case *plugins.Cost:
		*v = cost(r)
	case *bool:
		*v = chance(r, 3)
	case *uuid.UUID:
		if chance(r, 2) {
			*v = id(r)
		}
	case *int:
		*v = r.IntN(3)
	case *int64:
		*v = r.Int64N(1 << 33)
	case *map[string]string:
		*v = labels(r, propertyNames)
	}
}

// annotate gives some records scores and feedback.
func annotate(r *rand.Rand, rec *storage.Record, n int64) {
	for range r.IntN(6) - 2 {
		if rec.Scores == nil {
			rec.Scores = make(map[string]float64)
		}
		rec.Scores[pick(r, scoreNames[:len(scoreNames)-1])] = pick(r, []float64{0, 1, 0.5, -3, 1e21, 1e-7, 0.1 + 0.2, 100})
	}
	if chance(r, 4) {
		rec.Feedback = &storage.Feedback{ID: n + 1, Rating: chance(r, 2), CreatedAt: instant(r)}
	}
	if rec.Scored() {
		rec.UpdatedAt += storage.Timestamp(r.IntN(100_000))
	}
}

// Batch is the batch that brings a store to have the records: their scores
// and feedback come as annotations.
func Batch(records []*storage.Record, end storage.Position) *storage.Batch {
	batch := &storage.Batch{End: end}
	for _, r := range records {
		written := *r
		written.Scores, written.Feedback = nil, nil
		if r.Scored() {
			written.UpdatedAt = max(r.RespondedAt, r.CreatedAt)
			batch.Annotations = append(batch.Annotations, &storage.Annotation{
				Org: r.Org, RequestID: r.ID, At: r.UpdatedAt, Scores: r.Scores, Feedback: r.Feedback,
			})
		}
		batch.Records = append(batch.Records, &written)
	}
	return batch
}

// Both dialects ask in this form.
const (
	request      = `{"model":%s,"max_tokens":5,"messages":[{"role":"user","content":%s}]}`
	chatAnswer   = `{"object":"chat.completion","model":%s,"choices":[{"index":0,"message":{"role":"assistant","content":%s}}]}`
	messagesText = `{"type":"message","model":%s,"content":[{"type":"text","text":%s}]}`
)

func content(r *rand.Rand, d plugins.Dialect) *storage.Content {
	c := &storage.Content{Inputs: labels(r, inputNames)}
	if !chance(r, 5) {
		c.Request = body(r, request)
	}
	if !chance(r, 5) {
		answer := chatAnswer
		if d == plugins.Messages {
			answer = messagesText
		}
		c.Response = body(r, answer)
	}
	return c
}

func body(r *rand.Rand, format string) storage.Body {
	switch r.IntN(10) {
	case 0:
		return storage.Body{Type: "text/plain; charset=utf-8", Data: []byte(pick(r, words))}
	case 1:
		return storage.Body{Type: "application/octet-stream", Data: []byte("\xff\xfealpha\xc3" + pick(r, words) + "\x80")}
	case 2:
		return storage.Body{Type: "application/json", Data: fmt.Appendf(nil, format, `"m"`, `"a lone \ud83d surrogate, \u0041LPHA \"x\" \\ \/ \ud83d\ude00"`)}
	}
	text := word(r)
	if chance(r, 2) {
		text += " " + word(r)
	}
	return storage.Body{Type: "application/json", Data: fmt.Appendf(nil, format, quoted(r, word(r)), quoted(r, text))}
}

// quoted is a JSON string, with escapes where JSON needs none, half of the time.
func quoted(r *rand.Rand, s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string is always JSON
	}
	if chance(r, 2) {
		return string(b)
	}
	var escaped strings.Builder
	for _, c := range string(b) {
		if c >= 0x80 && c < 0x10000 {
			fmt.Fprintf(&escaped, `\u%04X`, c)
			continue
		}
		escaped.WriteRune(c)
	}
	return escaped.String()
}

func chance(r *rand.Rand, oneIn int) bool { return r.IntN(oneIn) == 0 }

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// word is "" once in four times, else one of words, often one of the first few.
func word(r *rand.Rand) string {
	switch r.IntN(4) {
	case 0:
		return ""
	case 1:
		return words[r.IntN(6)]
	}
	return pick(r, words)
}

func labels(r *rand.Rand, names []string) map[string]string {
	var m map[string]string
	for range r.IntN(5) {
		if m == nil {
			m = make(map[string]string)
		}
		m[pick(r, names[:len(names)-1])] = word(r)
	}
	return m
}

func id(r *rand.Rand) uuid.UUID {
	var id uuid.UUID
	for i := range id {
		id[i] = byte(r.Uint32())
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// days are the days of records, counted from the day of epoch: two neighbours, and a day of
// another month. They are few, because each may be a partition that every query has to open.
var days = []int64{0, 1, 29}

// instant often returns a time that another record has, or a time next to it.
func instant(r *rand.Rand) storage.Timestamp {
	if chance(r, 2) {
		return epoch + storage.Timestamp(r.IntN(5))
	}
	const day = int64(24 * time.Hour / time.Millisecond)
	return epoch + storage.Timestamp(pick(r, days)*day-day/2+r.Int64N(day))
}

func quantity[T plugins.Unit](r *rand.Rand) (q plugins.Quantity[T]) {
	switch r.IntN(5) {
	case 0:
		return q
	case 1:
		q.N = 0
	case 2:
		q.N = T(r.Int64N(1 << 40))
		if chance(r, 20) {
			q.N = T(1<<53 + r.Int64N(4)) // floating-point numbers do not tell these apart
		}
	default:
		q.N = T(r.Int64N(20))
	}
	q.Valid = true
	return q
}

func status(r *rand.Rand) plugins.Count {
	return pick(r, []plugins.Count{{}, plugins.Known(200), plugins.Known(200), plugins.Known(429), plugins.Known(499), plugins.Known(502)})
}

// savings are negative as often as not.
func savings(r *rand.Rand) plugins.Cost {
	c := cost(r)
	if r.IntN(2) == 0 {
		c.N = -c.N
	}
	return c
}

func cost(r *rand.Rand) plugins.Cost {
	return pick(r, []plugins.Cost{
		{}, plugins.KnownCost(0), plugins.KnownCost(1), plugins.KnownCost(1_500_000_000),
		plugins.KnownCost(100_000_000), plugins.KnownCost(300_000_000),
		plugins.KnownCost(plugins.Nanodollars(r.Int64N(5e12))), plugins.KnownCost(plugins.Nanodollars(r.Int64N(1000))),
	})
}
