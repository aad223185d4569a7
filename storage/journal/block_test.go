package journal

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/minio/minlz"

	"github.com/weirhq/weir/test/prose"
)

// Frames of any length are read, and so are those of version 1.
func TestFrames(t *testing.T) {
	text, noise := []byte(prose.New(1).Text(minlz.MaxBlockSize+1)), make([]byte, minlz.MaxBlockSize+1)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	for _, n := range []int{1, 7, 100, blockBytes, minlz.MaxBlockSize, minlz.MaxBlockSize + 1} {
		for name, items := range map[string][]byte{"text": text[:n], "noise": noise[:n], "zeros": make([]byte, n)} {
			var room []byte
			for version, frame := range map[int][]byte{1: s2.Encode(nil, items), 2: compress(nil, items)} {
				var err error
				if room, err = decompress(room[:0], frame); err != nil || !bytes.Equal(room, items) {
					t.Errorf("version %d, %d bytes of %s: %d bytes, %v", version, n, name, len(room), err)
				}
			}
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("abc"))
	f.Add([]byte(prose.New(1).Text(5000)))
	f.Add(bytes.Repeat([]byte("abcdefghij"), 1000))
	f.Fuzz(func(t *testing.T, items []byte) {
		if got, err := decompress(nil, compress(nil, items)); err != nil || !bytes.Equal(got, items) {
			t.Errorf("%d of %d bytes, %v", len(got), len(items), err)
		}
	})
}
