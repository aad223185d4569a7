package streams

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestDetect(t *testing.T) {
	for body, want := range map[string]Kind{
		"":                                Document,
		" \n":                             Document,
		`{"a":1}`:                         Document,
		"{\"a\":1}\n":                     Document,
		"{\n  \"a\": 1\n}\n":              Document,
		"[{\"a\":1}\n,\n{\"a\":2}]":       Document,
		"{\"a\":1}\n{\"a\":2}\n":          Lines,
		"\xEF\xBB\xBF{\"a\":1}\r\n\n{\"a": Lines,
		"data: 1\n\n":                     Events,
		"\xEF\xBB\xBF\n data: 1\n\n":      Events,
		": ping\n\ndata: 1\n\n":           Events,
		"event: x\ndata: 1\n\n":           Events,
		"error: {}\n\n":                   Events,
		"error":                           Document,
		"errors happen: often":            Document,
		"internal error":                  Document,
		"<html>":                          Document,
		"\x00\x00\x00\x10":                Binary,
		"{" + strings.Repeat(" ", 99_999): Document,
	} {
		for _, r := range []io.Reader{strings.NewReader(body), iotest.OneByteReader(strings.NewReader(body))} {
			kind, all := Detect(r)
			if b, err := io.ReadAll(all); kind != want || err != nil || string(b) != body {
				t.Errorf("%.40q is of kind %d with %.40q, %v, want %d", body, kind, b, err, want)
			}
		}
	}
	broken := errors.New("broken")
	_, all := Detect(io.MultiReader(strings.NewReader("da"), iotest.ErrReader(broken)))
	if b, err := io.ReadAll(all); string(b) != "da" || !errors.Is(err, broken) {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestAsEvents(t *testing.T) {
	const lines, want = "{\"a\":1}\n\n{\"b\":2}\r\n{\"c\":3}", "data: {\"a\":1}\n\ndata: {\"b\":2}\n\ndata: {\"c\":3}"
	for _, r := range []io.Reader{strings.NewReader(lines), iotest.HalfReader(strings.NewReader(lines))} {
		if got, err := io.ReadAll(AsEvents(r)); err != nil || string(got) != want {
			t.Errorf("got %q, %v", got, err)
		}
	}
}
