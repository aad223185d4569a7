package observe

import (
	"bytes"
	"io"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// writeForm is a body of multipart/form-data; a field named "file" is one.
func writeForm(t testing.TB, fields ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		var part io.Writer
		var err error
		if fields[i] == "file" {
			part, err = w.CreateFormFile("file", "speech.mp3")
		} else {
			part, err = w.CreateFormField(fields[i])
		}
		if err == nil {
			_, err = io.WriteString(part, fields[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRequestReaderOfForms(t *testing.T) {
	noise := strings.Repeat("\r\n--\r\n\r--\x00model", 500)
	upload := writeForm(t, "prompt", "say \r\n--model", "file", noise, "model", "whisper-x", "stream", "true")
	for _, c := range []struct {
		name string
		body []byte
		want plugins.RequestInfo
	}{
		{"an upload", upload, plugins.RequestInfo{Model: "whisper-x", Stream: true, Media: true}},
		{"the model first", writeForm(t, "model", "whisper-x", "stream", "false", "file", noise), plugins.RequestInfo{Model: "whisper-x", Media: true}},
		{"no file", writeForm(t, "model", "gpt-image"), plugins.RequestInfo{Model: "gpt-image"}},
		{"a long value", writeForm(t, "model", strings.Repeat("m", 1000)), plugins.RequestInfo{Model: strings.Repeat("m", 256)}},
		{"nothing behind the end", append(writeForm(t, "model", "m"), writeForm(t, "model", "other")...), plugins.RequestInfo{Model: "m"}},
		{"a form that was cut", upload[:len(upload)/2], plugins.RequestInfo{}},
	} {
		for name, size := range chunkings {
			if got := readRequest(plugins.Transcription, c.body, size); got != c.want {
				t.Errorf("%s, %s: %+v, want %+v", c.name, name, got, c.want)
			}
		}
	}
}

func TestFormsTakeConstantMemory(t *testing.T) {
	r := NewRequestReader(plugins.Transcription)
	r.Write([]byte("--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n"))
	chunk := bytes.Repeat([]byte("\r\n--bytes of audio "), 1000)
	r.Write(chunk)
	if n := testing.AllocsPerRun(100, func() { r.Write(chunk) }); n > 0 {
		t.Errorf("%v allocations a chunk", n)
	}
}

func FuzzForm(f *testing.F) {
	f.Add(writeForm(f, "model", "m", "file", "\r\n--", "stream", "true"), uint16(1))
	f.Add([]byte("--\r\n\r\n\r\n--\r\n--"), uint16(2))
	f.Fuzz(func(t *testing.T, b []byte, seed uint16) {
		b = append([]byte("--"), b...)
		whole := readRequest(plugins.Transcription, b, chunkings["whole"])
		if cut := readRequest(plugins.Transcription, b, cuts(seed)); cut != whole {
			t.Fatalf("in pieces %+v, as a whole %+v", cut, whole)
		}
	})
}

func BenchmarkForm(b *testing.B) {
	body := writeForm(b, "model", "whisper-x", "file", strings.Repeat("some bytes of audio\r\n", 50_000))
	benchmarkReads(b, string(body), 32<<10, func() (func([]byte), func()) {
		r := NewRequestReader(plugins.Transcription)
		return r.Write, func() {}
	})
}
