package background

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/weirhq/weir/modules/internal/capture"
)

func TestRunsAreFoundByTheirOwnersAlone(t *testing.T) {
	var runs Runs
	ours := runs.Begin("resp_1", "acme", "u", []byte("{}"), func() {})
	theirs := runs.Begin("resp_1", "globex", "", []byte("{}"), func() {})
	for _, c := range []struct {
		org, user string
		want      *Run
	}{{"acme", "u", ours}, {"acme", "", ours}, {"acme", "v", nil}, {"globex", "", theirs}, {"globex", "u", nil}, {"other", "", nil}} {
		if got := runs.Find(c.org, c.user, "resp_1"); got != c.want {
			t.Errorf("%s of %s finds %+v", c.user, c.org, got)
		}
	}
	runs.End(ours)
	runs.Forget(ours)
	if runs.Find("acme", "", "resp_1") != nil || runs.Find("globex", "", "resp_1") != theirs {
		t.Error("the wrong one was forgotten")
	}
	runs.End(theirs)
}

func TestAStreamBeginsBehindAnEventAndEndsWithTheResponse(t *testing.T) {
	var runs Runs
	r := runs.Begin("resp_1", "acme", "", []byte("{}"), func() {})
	for _, data := range []string{`{"type":"a","sequence_number":0}`, "{\"type\":\"b\",\n\"sequence_number\":1}", `{"type":"c","sequence_number":2}`} {
		if err := r.Add([]byte(data), nil); err != nil {
			t.Fatal(err)
		}
	}
	runs.End(r)
	var out strings.Builder
	if err := r.Stream(t.Context(), &out, 0); err != nil {
		t.Fatal(err)
	}
	const want = "event: b\ndata: {\"type\":\"b\",\"sequence_number\":1}\n\nevent: c\ndata: {\"type\":\"c\",\"sequence_number\":2}\n\ndata: [DONE]\n\n"
	if out.String() != want {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}

func TestTooMuchIsRefused(t *testing.T) {
	var runs Runs
	r := runs.Begin("resp_1", "acme", "", nil, func() {})
	if err := r.Add([]byte(`"`+strings.Repeat("x", maxEvents)+`"`), nil); !errors.Is(err, ErrTooLong) {
		t.Errorf("got %v", err)
	}
	for range maxRunning - 1 {
		runs.Begin("resp", "acme", "", nil, func() {})
	}
	if runs.Begin("resp_2", "acme", "", nil, func() {}) != nil {
		t.Error("there is no bound")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Cancel(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Events take no memory that there is not: the response goes on, and cannot be streamed. What
// events have taken is free when they are forgotten.
func TestEventsWithoutMemory(t *testing.T) {
	fill := func() (free int64) {
		for n := capture.Memory(); n > 0; n /= 2 {
			for capture.Reserve(n) {
				free += n
			}
		}
		return free
	}
	before := fill()
	capture.Return(before)
	var runs Runs
	r := runs.Begin("resp_1", "acme", "", []byte(`{}`), func() {})
	if err := r.Add([]byte(`{"type":"a"}`), nil); err != nil || !r.HasEvents() {
		t.Fatal(err)
	}
	all := fill()
	err := r.Add([]byte(`{"type":"b"}`), []byte(`{"status":"b"}`))
	if err != nil || r.HasEvents() || string(r.Body()) != `{"status":"b"}` || r.Stream(t.Context(), io.Discard, -1) == nil {
		t.Errorf("%v, %s", err, r.Body())
	}
	capture.Return(all)
	other := runs.Begin("resp_2", "acme", "", []byte(`{}`), func() {})
	if err := other.Add([]byte(`{"type":"a"}`), nil); err != nil {
		t.Fatal(err)
	}
	for _, run := range []*Run{r, other} {
		runs.End(run)
		runs.Forget(run)
	}
	after := fill()
	if capture.Return(after); after != before {
		t.Errorf("%d bytes stay held", before-after)
	}
}
