package bedrock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"
	"testing/iotest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// encoded is one frame with headers of every type that AWS's encoder has.
func encoded(t testing.TB, payload string) []byte {
	t.Helper()
	m := eventstream.Message{Payload: []byte(payload)}
	for i, v := range []eventstream.Value{
		eventstream.BoolValue(true), eventstream.BoolValue(false), eventstream.Int8Value(1), eventstream.Int16Value(2),
		eventstream.Int32Value(3), eventstream.Int64Value(4), eventstream.BytesValue("bytes"),
		eventstream.TimestampValue(time.Unix(5, 0)), eventstream.UUIDValue{6},
	} {
		m.Headers.Set(string(rune('a'+i)), v)
	}
	m.Headers.Set(":event-type", eventstream.StringValue("messageStop"))
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFrames(t *testing.T) {
	stream := append(encoded(t, "{}"), encoded(t, "")...)
	f := newFrames(iotest.OneByteReader(bytes.NewReader(stream)))
	for _, want := range []string{"{}", ""} {
		got, err := f.next()
		if err != nil || string(got.payload) != want || string(got.header(":event-type")) != "messageStop" {
			t.Errorf("got %q of %q, %v", got.payload, got.header(":event-type"), err)
		}
		if got.header("a") != nil || got.header("g") != nil || got.header("none") != nil {
			t.Error("what is no string is taken for one")
		}
	}
	if _, err := f.next(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v at the end", err)
	}
}

func TestDamagedFrames(t *testing.T) {
	whole := encoded(t, `{"stopReason":"end_turn"}`)
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1
		if _, err := newFrames(bytes.NewReader(b)).next(); err == nil {
			t.Errorf("the frame is read with byte %d flipped", i)
		}
		if _, err := newFrames(bytes.NewReader(whole[:i])).next(); err == nil || errors.Is(err, io.EOF) != (i == 0) {
			t.Errorf("got %v for the first %d bytes", err, i)
		}
	}
}

func TestLongFrame(t *testing.T) {
	b := binary.BigEndian.AppendUint32(nil, maxFrame+1)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	if _, err := newFrames(io.MultiReader(bytes.NewReader(b), bytes.NewReader(make([]byte, 1<<10)))).next(); !errors.Is(err, errDamaged) {
		t.Errorf("got %v", err)
	}
}

// FuzzFrames: what AWS's decoder reads, ours reads the same.
func FuzzFrames(f *testing.F) {
	f.Add(encoded(f, "{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		want, wantErr := eventstream.NewDecoder().Decode(bytes.NewReader(b), nil)
		got, err := newFrames(bytes.NewReader(b)).next()
		if wantErr != nil {
			return
		}
		if err != nil || !bytes.Equal(got.payload, want.Payload) {
			t.Fatalf("got %q, %v, want %q", got.payload, err, want.Payload)
		}
		for _, h := range want.Headers {
			if v, ok := want.Headers.Get(h.Name).(eventstream.StringValue); ok && string(got.header(h.Name)) != string(v) {
				t.Errorf("%s is %q, want %q", h.Name, got.header(h.Name), v)
			}
		}
	})
}
