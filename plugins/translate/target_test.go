package translate

import (
	"bytes"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
)

// A body of several parts is sent whole each time that the transport asks for it, and no
// buffer is made to copy the parts.
func TestSetBody(t *testing.T) {
	req, err := http.NewRequest(http.MethodPost, "http://localhost", nil)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 2*smallBody)
	SetBody(req, []byte(`{"model":`), []byte(`"m"`), []byte(`,"input":"`+text+`"}`))
	want := `{"model":"m","input":"` + text + `"}`
	if req.ContentLength != int64(len(want)) {
		t.Errorf("%d bytes are announced, want %d", req.ContentLength, len(want))
	}
	var sent bytes.Buffer
	sent.Grow(len(want))
	send := func() {
		sent.Reset()
		body, err := req.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&sent, io.LimitReader(body, 1<<20)); err != nil || sent.String() != want {
			t.Fatalf("%q, %v", sent.String(), err)
		}
		body, _ = req.GetBody()
		sent.Reset()
		if _, err := io.Copy(&sent, body); err != nil || sent.String() != want {
			t.Fatalf("%q, %v", sent.String(), err)
		}
	}
	send()
	send()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		body, _ := req.GetBody()
		sent.Reset()
		_, _ = io.Copy(&sent, body)
	}
	runtime.ReadMemStats(&after)
	if size := (after.TotalAlloc - before.TotalAlloc) / 100; size > 1<<10 {
		t.Errorf("sending %d bytes takes %d", len(want), size)
	}
}

// writes counts the writes to a connection.
type writes int

func (w *writes) Write(p []byte) (int, error) {
	*w++
	return len(p), nil
}

// A small body is sent together with the header: each write is a system call.
func TestSmallBodyIsSentWithItsHeader(t *testing.T) {
	req, err := Target{BaseURL: "http://localhost"}.Post(t.Context(), "/v1", Bearer, [][]byte{[]byte(`{"model":`), []byte(`"m"}`)})
	if err != nil {
		t.Fatal(err)
	}
	var n writes
	if err := req.Write(&n); err != nil || n != 1 {
		t.Errorf("%d writes, %v; want 1", n, err)
	}
}
