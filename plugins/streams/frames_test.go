package streams

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

// framesOf reads all of a stream.
func framesOf(r io.Reader) (frames []Frame, err error) {
	for f, err := range ReadFrames(r) {
		if err != nil {
			return frames, err
		}
		frames = append(frames, Frame{bytes.Clone(f.headers), bytes.Clone(f.Payload)})
	}
	return frames, nil
}

func TestFrames(t *testing.T) {
	stream := append(encoded(t, "{}"), encoded(t, "")...)
	for _, r := range []io.Reader{bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream))} {
		got, err := framesOf(r)
		if err != nil || len(got) != 2 || string(got[0].Payload) != "{}" || string(got[1].Payload) != "" {
			t.Fatalf("got %q, %v", got, err)
		}
		for _, f := range got {
			if name := f.Header(":event-type"); string(name) != "messageStop" {
				t.Errorf("got %q", name)
			}
			if f.Header("a") != nil || f.Header("g") != nil || f.Header("none") != nil {
				t.Error("what is no string is taken for one")
			}
		}
	}
}

func TestFramesMayBeLeft(t *testing.T) {
	for range ReadFrames(bytes.NewReader(append(encoded(t, "{}"), encoded(t, "")...))) {
		return
	}
	t.Error("no frame")
}

func TestDamagedFrames(t *testing.T) {
	whole := encoded(t, `{"stopReason":"end_turn"}`)
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1
		if got, err := framesOf(bytes.NewReader(b)); err == nil || len(got) > 0 {
			t.Errorf("the frame is read with byte %d flipped", i)
		}
		if _, err := framesOf(bytes.NewReader(whole[:i])); errors.Is(err, io.ErrUnexpectedEOF) != (i > 0) {
			t.Errorf("got %v for the first %d bytes", err, i)
		}
	}
	// What follows a damaged frame is not read.
	whole[len(whole)-1] ^= 1
	if got, err := framesOf(bytes.NewReader(append(whole, encoded(t, "{}")...))); len(got) > 0 || !errors.Is(err, errDamaged) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestLongFrame(t *testing.T) {
	b := binary.BigEndian.AppendUint32(nil, maxFrame+1)
	b = binary.BigEndian.AppendUint32(b, 0)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	if _, err := framesOf(io.MultiReader(bytes.NewReader(b), bytes.NewReader(make([]byte, 1<<10)))); !errors.Is(err, errDamaged) {
		t.Errorf("got %v", err)
	}
}

// FuzzFrames: what AWS's decoder reads, ours reads the same, at any chunking.
func FuzzFrames(f *testing.F) {
	f.Add(encoded(f, "{}"), uint16(1))
	f.Add(append(encoded(f, "{}"), encoded(f, "x")...), uint16(2))
	f.Fuzz(func(t *testing.T, b []byte, seed uint16) {
		var got []Frame
		s := Frames{To: func(f Frame) { got = append(got, Frame{bytes.Clone(f.headers), bytes.Clone(f.Payload)}) }}
		feed(s.Write, b, cuts(seed))
		s.Close()
		for r := bytes.NewReader(b); ; got = got[1:] {
			want, err := eventstream.NewDecoder().Decode(r, nil)
			if err != nil {
				return
			}
			if len(got) == 0 || !bytes.Equal(got[0].Payload, want.Payload) {
				t.Fatalf("got %q, want %q", got, want.Payload)
			}
			for _, h := range want.Headers {
				if v, ok := want.Headers.Get(h.Name).(eventstream.StringValue); ok && string(got[0].Header(h.Name)) != string(v) {
					t.Errorf("%s is %q, want %q", h.Name, got[0].Header(h.Name), v)
				}
			}
		}
	})
}
