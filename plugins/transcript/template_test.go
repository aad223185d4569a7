package transcript

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// storedWithoutTemplates assembles every event the long way.
func storedWithoutTemplates(d plugins.Dialect, contentType string, raw []byte) []byte {
	events := new(Assembler).events(formats[d], contentType, raw)
	if events == nil {
		return raw
	}
	root := formats[d].object(func(yield func(event) bool) {
		for e := range events {
			e.template = nil
			if !yield(e) {
				return
			}
		}
	})
	if root == nil {
		return raw
	}
	return root.appendJSON(nil)
}

// allStreams are those of the tests, and the recorded ones.
func allStreams(t testing.TB) []storedCase {
	streams := storedCases(t)
	index, err := os.ReadFile(filepath.Join(cassettes, "index.json"))
	if err != nil {
		return streams
	}
	for _, entry := range gjson.GetBytes(index, "entries").Array() {
		if !entry.Get("stream").Bool() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(cassettes, entry.Get("response_file").Str))
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, storedCase{
			name: entry.Get("name").Str, dialect: answers[entry.Get("endpoint").Str].dialect,
			contentType: entry.Get("response_headers.content-type").Str, raw: raw,
		})
	}
	return streams
}

// Whatever becomes of a stream, templates change nothing but the time it takes.
func TestStoredOfMutations(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	all := allStreams(t)
	for _, c := range all {
		for range 2000 / len(all) {
			checkStored(t, c.dialect, c.contentType, mutated(random, c.raw))
		}
	}
}

// mutated is raw with events that come again, in another order and altered: most
// of them are still like others.
func mutated(random *rand.Rand, raw []byte) []byte {
	pieces := []string{`"`, `\`, `\u12`, `\n`, "\x01", "é", `null`, `1`, `{}`, `[]`, `,`, `"index":1,`, `"content":"x",`, `"text":"y",`, `"id":"z",`, `"obfuscation":"o",`}
	events := bytes.SplitAfter(raw, []byte("\n"))
	if len(events) > 40 {
		at := random.IntN(len(events) - 39)
		events = slices.Concat(events[:2], events[at:at+20])
	}
	var b []byte
	for range 10 + random.IntN(30) {
		event := events[random.IntN(len(events))]
		for range 1 + random.IntN(4) {
			b = append(b, event...)
			b = append(b, '\n')
			if random.IntN(3) == 0 && len(event) > 0 {
				at := random.IntN(len(event))
				end := min(at+random.IntN(3), len(event))
				event = slices.Concat(event[:at], []byte(pieces[random.IntN(len(pieces))]), event[end:])
			}
		}
	}
	return b
}

// An event like the one before it is not looked into.
func TestTemplateIsUsed(t *testing.T) {
	for _, c := range []struct {
		dialect     plugins.Dialect
		contentType string
		raw         []byte
	}{
		{plugins.Chat, sseType, sseStream(`
			{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}
			{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"a"}}],"obfuscation":"x"}
			{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"b"}}],"obfuscation":"xy"}
			{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"c"}}],"obfuscation":"z"}
			{"id":"c","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"\"d\""}}],"obfuscation":""}`)},
		{plugins.Messages, sseType, sseStream(`
			{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[]}}
			{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"c"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"d"}}`)},
		{plugins.Responses, sseType, sseStream(`
			{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"i","type":"message","content":[]}}
			{"type":"response.content_part.added","sequence_number":2,"output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}
			{"type":"response.output_text.delta","sequence_number":7,"output_index":0,"content_index":0,"delta":"a","obfuscation":"x"}
			{"type":"response.output_text.delta","sequence_number":8,"output_index":0,"content_index":0,"delta":"b","obfuscation":"y"}
			{"type":"response.output_text.delta","sequence_number":9,"output_index":0,"content_index":0,"delta":"c","obfuscation":"z"}
			{"type":"response.output_text.delta","sequence_number":10,"output_index":0,"content_index":0,"delta":"d","obfuscation":""}`)},
		{plugins.Interactions, sseType, sseStream(`
			{"event_type":"step.start","index":0,"step":{"type":"model_output"}}
			{"event_type":"step.delta","index":0,"event_id":"1","delta":{"type":"text","text":"a"}}
			{"event_type":"step.delta","index":0,"event_id":"2","delta":{"type":"text","text":"b"}}
			{"event_type":"step.delta","index":0,"event_id":"3","delta":{"type":"text","text":"c"}}
			{"event_type":"step.delta","index":0,"event_id":"4","delta":{"type":"text","text":"d"}}`)},
		{plugins.Runs, sseType, sseStream(`
			{"id":"m","object":"thread.message.delta","delta":{"content":[{"index":0,"type":"text","text":{"value":"a"}}]}}
			{"id":"m","object":"thread.message.delta","delta":{"content":[{"index":0,"type":"text","text":{"value":"b"}}]}}
			{"id":"m","object":"thread.message.delta","delta":{"content":[{"index":0,"type":"text","text":{"value":"c"}}]}}
			{"id":"m","object":"thread.message.delta","delta":{"content":[{"index":0,"type":"text","text":{"value":"d"}}]}}`)},
		{plugins.OllamaChat, ndjsonType, []byte(`
			{"model":"l","created_at":"1","message":{"role":"assistant","content":"a"},"done":false}
			{"model":"l","created_at":"2","message":{"role":"assistant","content":"b"},"done":false}
			{"model":"l","created_at":"3","message":{"role":"assistant","content":"c"},"done":false}
			{"model":"l","created_at":"4","message":{"role":"assistant","content":"d"},"done":false}`)},
	} {
		t.Run(string(c.dialect), func(t *testing.T) {
			var looked int
			formats[c.dialect].object(func(yield func(event) bool) {
				for e := range new(Assembler).events(formats[c.dialect], c.contentType, c.raw) {
					if looked++; !yield(e) {
						return
					}
				}
			})
			if all := bytes.Count(bytes.TrimSpace(c.raw), []byte("}\n")) + 1; looked >= all {
				t.Errorf("%d of %d events were looked into", looked, all)
			}
		})
	}
}
