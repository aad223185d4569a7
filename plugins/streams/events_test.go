package streams

import (
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func collect(t *testing.T, events iter.Seq2[Event, error]) []string {
	t.Helper()
	var got []string
	for e, err := range events {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(e.Name)+"|"+string(e.Data))
	}
	return got
}

func TestEvents(t *testing.T) {
	tests := []struct {
		name   string
		stream string
		read   func(io.Reader) iter.Seq2[Event, error]
		want   []string
	}{
		{"named", "event: a\ndata: 1\n\nevent: b\ndata: 2\n\n", ReadSSE, []string{"a|1", "b|2"}},
		{"line endings", "data: 1\r\n\r\ndata: 2\r\rdata: 3\n\n", ReadSSE, []string{"|1", "|2", "|3"}},
		{"comments", ": PROCESSING\n\n: x\ndata: 1\n: y\n\n", ReadSSE, []string{"|1"}},
		{"byte order mark", "\xef\xbb\xbfdata: 1\n\n", ReadSSE, []string{"|1"}},
		{"several lines", "data: 1\ndata: 2\n\n", ReadSSE, []string{"|1\n2"}},
		{"no blank line at the end", "data: 1\n\ndata: 2", ReadSSE, []string{"|1", "|2"}},
		{"long line", "data: " + strings.Repeat("x", 100_000) + "\n\n", ReadSSE, []string{"|" + strings.Repeat("x", 100_000)}},
		{"lines", "1\r\n\n2\n3", ReadNDJSON, []string{"|1", "|2", "|3"}},
		{"error line", "error: {}\n\n", ReadSSE, []string{"error|{}"}},
		{"nothing", "", ReadSSE, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, r := range []io.Reader{strings.NewReader(test.stream), iotest.OneByteReader(strings.NewReader(test.stream))} {
				if got := collect(t, test.read(r)); !slices.Equal(got, test.want) {
					t.Errorf("got %.200q, want %.200q", got, test.want)
				}
			}
		})
	}
}

func TestEventsTellWhyReadingEnded(t *testing.T) {
	broken := errors.New("broken")
	var last error
	n := 0
	for _, err := range ReadSSE(io.MultiReader(strings.NewReader("data: 1\n\ndata: 2"), iotest.ErrReader(broken))) {
		last = err
		n++
	}
	if n != 2 || !errors.Is(last, broken) {
		t.Errorf("got %d events, the last with error %v; an unfinished event is none", n, last)
	}
}

func TestEventsMayBeLeft(t *testing.T) {
	for range ReadSSE(strings.NewReader("data: 1\n\ndata: 2\n\n")) {
		return
	}
	t.Error("no event")
}

func TestLastData(t *testing.T) {
	for stream, want := range map[string]string{
		"data: a\n\ndata: b\n\n":          "b",
		"data: a\r\rdata:b\r\r":           "b",
		"data: a\r\n\r\ndata: [DONE]\r\n": "a",
		"data: a\n\nerror: b":             "",
		"data: a\n\n: ping\n\n":           "",
		"data: [DONE]":                    "",
		"":                                "",
	} {
		if got := string(LastData([]byte(stream))); got != want {
			t.Errorf("%q of %q, want %q", got, stream, want)
		}
	}
}
