//go:build linux

package durability

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/minio/minlz"
)

// canary is a text that is found wherever it stands.
type canary string

func newCanary() canary { return canary(fmt.Sprintf("c4nary%016x", rand.Uint64())) }

// canarySize is the length of a canary in bytes.
const canarySize = 22

var canaries = regexp.MustCompile(`c4nary[0-9a-f]{16}`)

// findings are where canaries stand.
type findings map[canary]string

// search looks into every file that a weir wrote or, while it runs, holds open,
// also into deleted ones.
func (w *weir) search() findings {
	w.t.Helper()
	found := findings{}
	look := func(path, name string) {
		data, err := os.ReadFile(path)
		if err == nil {
			found.look(data, name, 3)
		} else if !os.IsNotExist(err) { // segments go while we look
			w.t.Error(err)
		}
	}
	for _, dir := range []string{"data", "home", "tmp", "logs"} {
		err := filepath.WalkDir(filepath.Join(w.dir, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				look(path, strings.TrimPrefix(path, w.dir))
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			w.t.Error(err)
		}
	}
	if w.process == nil {
		return found
	}
	descriptors, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", w.pid()))
	if err != nil || len(descriptors) == 0 {
		w.t.Errorf("the process has %d descriptors: %v", len(descriptors), err)
	}
	for _, path := range descriptors {
		target, err := os.Readlink(path)
		if err != nil || !filepath.IsAbs(target) || strings.HasPrefix(target, w.dir) && !strings.HasSuffix(target, " (deleted)") {
			continue // no file, or one that was looked into
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			look(path, "open file "+target)
		}
	}
	return found
}

// look finds canaries in data, and in what data holds compressed or encoded, to
// a depth.
func (f findings) look(data []byte, name string, depth int) {
	for _, c := range canaries.FindAll(data, -1) {
		f[canary(c)] = name
	}
	if depth == 0 {
		return
	}
	for _, frame := range sealedFrames(data) {
		f.look(frame, name+", sealed", depth-1)
	}
	for _, form := range forms {
		for _, mark := range form.marks {
			for rest := data; ; rest = rest[len(mark):] {
				i := bytes.Index(rest, []byte(mark))
				if i < 0 {
					break
				}
				rest = rest[i:]
				f.look(form.open(rest), name+", "+form.name, depth-1)
			}
		}
	}
}

// sealedFrames are those of a sealed segment of the journal, none of other data:
// they have no mark to be found by, so the index says where they are
// (storage/journal/block.go).
func sealedFrames(data []byte) (frames [][]byte) {
	const trailer, entry = 4 + 4 + 8 + 4 + 8, 4 + 4 + 8 + 3*8
	if !bytes.HasSuffix(data, []byte("weir.bl3")) {
		return nil
	}
	end := len(data) - trailer
	sizes := data[end:]
	end -= 4 * int(binary.LittleEndian.Uint32(sizes[4:]))
	index := data[end-entry*int(binary.LittleEndian.Uint32(sizes)) : end]
	for ; len(index) > 0; index = index[entry:] {
		at := binary.LittleEndian.Uint64(index[8:])
		for _, frame := range [][]byte{index[16:], index[24:], index[32:]} {
			length := uint64(binary.LittleEndian.Uint32(frame))
			if text, err := minlz.Decode(nil, data[at:at+length]); err == nil {
				frames = append(frames, text)
			}
			at += length
		}
	}
	return frames
}

// forms are those in which text may hide: what they begin with, or how a canary
// begins in them, and how to open what begins there.
var forms = []struct {
	name  string
	marks []string
	open  func(rest []byte) []byte
}{
	{"zstd", []string{"\x28\xb5\x2f\xfd"}, func(rest []byte) []byte {
		d, err := zstd.NewReader(bytes.NewReader(rest), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil
		}
		defer d.Close()
		return readable(d)
	}},
	{"gzip", []string{"\x1f\x8b\x08"}, func(rest []byte) []byte {
		d, err := gzip.NewReader(bytes.NewReader(rest))
		if err != nil {
			return nil
		}
		return readable(d)
	}},
	{"base64", []string{"YzRuYXJ5"}, openBase64("")},
	{"base64", []string{"M0bmFye"}, openBase64("AG")},
	{"base64", []string{"jNG5hcn"}, openBase64("AAB")},
	{"hex", []string{"63346e617279", "63346E617279"}, func(rest []byte) []byte {
		text := make([]byte, canarySize)
		n, _ := hex.Decode(text, rest[:min(len(rest), 2*canarySize)])
		return text[:n]
	}},
}

var urlAlphabet = strings.NewReplacer("-", "+", "_", "/")

// openBase64 decodes what begins with a canary, behind as many characters as
// the canary's bytes are away from where a group of three begins.
func openBase64(before string) func([]byte) []byte {
	return func(rest []byte) []byte {
		encoded := before + string(rest[:min(len(rest), 2*canarySize)])
		text, _ := base64.RawStdEncoding.DecodeString(urlAlphabet.Replace(encoded))
		return text
	}
}

// readable is what can be read up to damage or the end.
func readable(r io.Reader) []byte {
	data, _ := io.ReadAll(io.LimitReader(r, 64<<20))
	return data
}

func TestSearch(t *testing.T) {
	t.Parallel()
	compressed := func(encoding string) func([]byte) []byte {
		return func(text []byte) []byte {
			b := new(bytes.Buffer)
			e := encode(b, encoding)
			e.Write(text)
			e.Close()
			return b.Bytes()
		}
	}
	base64d := func(text []byte) []byte { return []byte(base64.URLEncoding.EncodeToString(text)) }
	for name, form := range map[string]func([]byte) []byte{
		"plain":          func(text []byte) []byte { return text },
		"gzip":           compressed("gzip"),
		"zstd":           compressed("zstd"),
		"base64":         base64d,
		"base64 in gzip": func(text []byte) []byte { return compressed("gzip")(base64d(text)) },
		"hex":            func(text []byte) []byte { return []byte(hex.EncodeToString(text)) },
	} {
		for _, before := range []string{"", "?", "??", "\xff\xff\xff"} {
			c := newCanary()
			data := append([]byte("\x00 "), form([]byte(before+string(c)+"\xff?"))...)
			found := findings{}
			found.look(append(data, " \x00"...), name, 3)
			if _, ok := found[c]; !ok {
				t.Errorf("%s: the canary behind %q is not found", name, before)
			}
		}
	}
}
