package bound

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// wave is a WAVE file of a format, with a chunk before the samples.
func wave(kind uint16, sampleRate uint32, before string) string {
	var b bytes.Buffer
	b.WriteString("RIFF\xff\xff\xff\x7fWAVEfmt \x10\x00\x00\x00")
	_ = binary.Write(&b, binary.LittleEndian, struct {
		Kind, Channels       uint16
		SampleRate, ByteRate uint32
		Align, Bits          uint16
	}{kind, 1, sampleRate, sampleRate, 1, 8})
	return b.String() + before + "data\xff\xff\xff\x7f" + strings.Repeat("\x80", 1000)
}

// Only formats in which a second takes many bytes are counted by their length.
func TestHasLowestRate(t *testing.T) {
	mp3 := strings.Repeat("\xff\xfb\x90\x00"+strings.Repeat("\x00", 413), 4) // 128 kbit/s at 44.1 kHz
	slow := strings.Repeat("\xff\xe3\x18\x00"+strings.Repeat("\x00", 68), 4) // 8 kbit/s at 8 kHz
	for name, c := range map[string]struct {
		audio string
		want  bool
	}{
		"plain samples":               {wave(1, 8000, ""), true},
		"floats, with a title":        {wave(3, 48000, "LIST\x03\x00\x00\x00abc\x00"), true},
		"a sample a second":           {wave(1, 1, ""), false},
		"a codec in WAVE":             {wave(0x11, 8000, ""), false},
		"another format after it":     {wave(1, 8000, "fmt \x10\x00\x00\x00\x01\x00\x01\x00\x01\x00\x00\x00\x01\x00\x00\x00\x01\x00\x08\x00"), false},
		"MP3":                         {mp3, true},
		"the lowest rate of MP3":      {slow, true},
		"MP3 with a tag":              {"ID3\x04\x00\x00\x00\x00\x01\x00" + strings.Repeat("x", 128) + mp3, true},
		"FLAC with a tag":             {"ID3\x04\x00\x00\x00\x00\x00\x00fLaC" + strings.Repeat("\x00", 100), false},
		"FLAC":                        {"fLaC" + strings.Repeat("\x00", 100), false},
		"Opus":                        {"OggS" + strings.Repeat("\x00", 100), false},
		"one frame, and then another": {mp3[:417] + "fLaC" + strings.Repeat("\x00", 1000), false},
		"AAC":                         {strings.Repeat("\xff\xf1\x50\x80"+strings.Repeat("\x00", 413), 4), false},
		"nothing":                     {"", false},
		"WAVE that breaks off":        {wave(1, 8000, "")[:20], false},
	} {
		if got := HasLowestRate(strings.NewReader(c.audio)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzHasLowestRate(f *testing.F) {
	f.Add([]byte(wave(1, 8000, "LIST\x03\x00\x00\x00abc\x00")))
	f.Add([]byte("ID3\x04\x00\x00\x00\x00\x00\x01x\xff\xfb\x90\x00"))
	f.Fuzz(func(t *testing.T, audio []byte) {
		if HasLowestRate(bytes.NewReader(audio)) && !bytes.Contains(audio, []byte("data")) && !bytes.Contains(audio, []byte{0xff}) {
			t.Error("it is neither")
		}
	})
}

// All of an audio counts, however it is written.
func TestAudioCountsByItsLength(t *testing.T) {
	audio := base64.StdEncoding.EncodeToString([]byte(wave(1, 8000, "") + strings.Repeat("\x00", 10_000_000)))
	want := 10_000_000 / UpperBound.SpeechBytes * UpperBound.SpeechTokens
	for _, part := range []string{`{"data":"` + audio + `","format":"wav"}`, `"` + audio + `"`, `{"d\u0061ta":"\u0064ata:audio/wav;base64,` + audio + `"}`} {
		d := Of(plugins.Chat, objectOf(`{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":`+part+`}]}]}`), nil)
		if d.Audio < want || d.Audio > want+want/100 || d.Unbounded {
			t.Errorf("%.50s: %d tokens, want %d; unbounded: %t", part, d.Audio, want, d.Unbounded)
		}
	}
}

// A request of which nothing can be read, as one that is kept in part, may have had the provider
// do anything: the length of the answer does not tell its cost.
func TestUnreadableRequestsAreNotCountable(t *testing.T) {
	for body, want := range map[string]bool{
		`{"model":"m","messages":[{"role":"user","content":"a"}]}`:                                         true,
		`{"model":"m","tools":[{"type":"web_search_20250305"}],"messages":[{"role":"user","content":"aaaa`: false,
		``: false,
	} {
		if got := Countable(plugins.Messages, objectOf(body), plugins.Known(5)); got != want {
			t.Errorf("%s is countable: %t, want %t", body, got, want)
		}
	}
}

// What the provider has counted with the turn before is not counted again, unless an address may
// lead to something else now.
func TestTheTurnBeforeIsCounted(t *testing.T) {
	m := &catalog.Model{}
	m.Context = 1_000_000
	picture := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 20_000) + `"}}`
	sealed := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("A", 20_000) + `"}}`
	linked := `{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}`
	spoken := `{"type":"input_audio","input_audio":{"data":"` + base64.StdEncoding.EncodeToString([]byte(wave(1, 8000, ""))) + `"}}`
	for name, c := range map[string]struct {
		before, added string
		want          int64
	}{
		"text":                       {`{"type":"text","text":"a"}`, `{"type":"text","text":"b"}`, 0},
		"a picture before":           {picture, linked, PictureTokens},
		"another one before":         {sealed, `{"type":"text","text":"b"}`, 0},
		"a picture of an address":    {linked, `{"type":"text","text":"b"}`, PictureTokens},
		"of both":                    {strings.Replace(picture, `"image_url":{`, `"image":"https://example.com/a.png","image_url":{`, 1), `{}`, PictureTokens},
		"a new picture":              {`{"type":"text","text":"a"}`, picture, PictureTokens},
		"audio before":               {spoken, `{"type":"text","text":"b"}`, 0},
		"a file before, as at first": {`{"type":"file","file":{"file_id":"a"}}`, `{"type":"text","text":"b"}`, 1_000_000},
	} {
		old := fmt.Sprintf(`{"role":"user","content":[%s]}`, c.before)
		added := fmt.Sprintf(`{"role":"user","content":[%s]}`, c.added)
		var counts lineage.Counts
		OfTurn(&counts, plugins.Chat, objectOf(fmt.Sprintf(`{"messages":[%s]}`, old))).Learn(&counts, plugins.Known(500))
		body := fmt.Sprintf(`{"messages":[%s,%s]}`, old, added)
		d := OfTurn(&counts, plugins.Chat, objectOf(body))
		got := d.Usage(m, UpperBound, int64(len(body)), 1, 1).Input.N
		if got < min(500+c.want, 1_000_000) || got > 500+c.want+200 {
			t.Errorf("%s: %d tokens, want about %d", name, got, 500+c.want)
		}
	}
}

// What stands beside or in the name of a picture or of audio counts as text, and what
// tells no length as all that the model reads.
func TestNothingHidesBehindMedia(t *testing.T) {
	m := &catalog.Model{}
	m.Context = 1_000_000
	text := strings.Repeat("word ", 20_000)
	wav := base64.StdEncoding.EncodeToString([]byte(wave(1, 8000, "")))
	for part, least := range map[string]int64{
		`{"type":"text","text":"` + text + `","image_url":"a"}`:                                                                               50_000,
		`{"type":"text","text":"` + text + `","image":{"url":"a"}}`:                                                                           50_000,
		`{"type":"text","text":"` + text + `","input_audio":{"data":"` + wav + `"}}`:                                                          50_000,
		`{"type":"tool_result","image":"a","content":[{"type":"text","text":"` + text + `"}]}`:                                                50_000,
		`{"type":"image","type":"text","text":"` + text + `"}`:                                                                                50_000,
		`{"type":"image","type":"document","source":{"type":"text","data":"` + text + `"}}`:                                                   50_000,
		`{"type":"tool_search_output","tools":[{"type":"function","parameters":{"properties":{"image":{"description":"` + text + `"}}}}]}`:    50_000,
		`{"type":"local_shell_call","action":{"env":{"image":"` + text + `"}}}`:                                                               50_000,
		`{"type":"local_shell_call","action":{"env":{"type":"image","image":"data:image/png;base64,` + text + `"}}}`:                          50_000,
		`{"type":"tool_search_output","tools":[{"parameters":{"type":"image","source":{"type":"base64","data":"` + text + `"}}}]}`:            50_000,
		`{"type":"local_shell_call","action":{"env":{"input_audio":"` + wav + text + `"}}}`:                                                   50_000,
		`{"type":"text","image":"` + text + `"}`:                                                                                              50_000,
		`{"type":"image","source":{"type":"base64","data":"AAAA","data2":[{"image_url":{"url":"a"}},{"type":"text"}]},"text":"` + text + `"}`: 50_000,
		`{"type":"input_audio","image":"a","input_audio":{"data":"` + base64.StdEncoding.EncodeToString([]byte("fLaC")) + `"}}`:               1_000_000,
		`{"type":"input_audio","input_audio":{"data":"` + wav + `","data":"` + base64.StdEncoding.EncodeToString([]byte("fLaC")) + `"}}`:      1_000_000,
		`{"type":"input_audio","input_audio":{"data":"https://example.com/a.wav","format":"wav"}}`:                                            1_000_000,
		`{"type":"input_audio","input_audio":"https://example.com/a.wav"}`:                                                                    1_000_000,
		`{"type":"audio_url","audio_url":{"url":"https://example.com/a.wav"}}`:                                                                1_000_000,
		`{"type":"document_url","document_url":"https://example.com/a.pdf"}`:                                                                  1_000_000,
		`{"document":{"format":"pdf","name":"a","source":{"bytes":"AAAA"}}}`:                                                                  1_000_000,
	} {
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":[%s]}]}`, part)
		d := Of(plugins.Chat, objectOf(body), nil)
		if got := d.Usage(m, UpperBound, int64(len(body)), 1, 1).Input.N; got < least {
			t.Errorf("%.60s…%.60s: %d tokens", part, part[len(part)-60:], got)
		}
	}
	// and what is a picture or audio does not count as text
	for part, most := range map[string]int64{
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 200_000) + `"}}`:              PictureTokens + 200,
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("A", 200_000) + `"}}`: PictureTokens + 200,
		`{"type":"input_audio","input_audio":{"format":"wav","data":"` + wav + `"}}`:                                         300,
	} {
		body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":[%s]}]}`, part)
		d := Of(plugins.Chat, objectOf(body), nil)
		if got := d.Usage(m, UpperBound, int64(len(body)), 1, 1).Input.N; got > most {
			t.Errorf("%.60s: %d tokens", part, got)
		}
	}
}

// Whether a model reads what it thought in the turns before depends on whether it is to think:
// the count of a turn without thoughts says nothing of a turn with them.
func TestThoughtsThatWereNotCounted(t *testing.T) {
	m := &catalog.Model{}
	m.Context = 1_000_000
	for _, c := range []struct {
		dialect         plugins.Dialect
		list, off, on   string
		thought, result string
	}{
		{plugins.Messages, "messages", `"thinking":{"type":"disabled"},`, `"thinking":{"type":"enabled","budget_tokens":1024},`,
			`{"role":"assistant","content":[{"type":"thinking","thinking":"%s","signature":"s"},{"type":"tool_use","id":"t","name":"f","input":{}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a"}]}`},
		{plugins.Messages, "messages", ``, `"thinking":{"type":"adaptive"},`, `{"role":"assistant","content":[{"type":"thinking","thinking":"%s","signature":"s"}]}`, `{"role":"user","content":"a"}`},
		{plugins.Responses, "input", `"reasoning":{"effort":"none"},`, `"reasoning":{"effort":"high"},`,
			`{"type":"reasoning","encrypted_content":"%s"}`, `{"type":"function_call_output","call_id":"c","output":"a"}`},
	} {
		conversation := fmt.Sprintf(c.thought, strings.Repeat("a", 100_000))
		var counts lineage.Counts
		OfTurn(&counts, c.dialect, objectOf(fmt.Sprintf(`{%s%q:[%s]}`, c.off, c.list, conversation))).Learn(&counts, plugins.Known(10))
		for fields, want := range map[string]int64{c.off: 10, c.on: 100_000} {
			body := fmt.Sprintf(`{%s%q:[%s,%s]}`, fields, c.list, conversation, c.result)
			if got := OfTurn(&counts, c.dialect, objectOf(body)).Usage(m, UpperBound, int64(len(body)), 1, 1).Input.N; got < want || got > want+1000 {
				t.Errorf("%s %s: %d tokens, want about %d", c.dialect, fields, got, want)
			}
		}
	}
}
