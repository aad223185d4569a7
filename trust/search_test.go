//go:build linux

package trust

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
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
)

// canary is a text that is found wherever it stands.
type canary string

func newCanary() canary { return canary(fmt.Sprintf("c4nary%016x", rand.Uint64())) }

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
	for _, form := range forms {
		for _, at := range form.find(data) {
			for _, inner := range form.open(data[at[0]:], at[1]-at[0]) {
				f.look(inner, name+", "+form.name, depth-1)
			}
		}
	}
}

// forms are those in which text may hide: how to find where one begins and
// ends, as far as that is known, and how to open it.
var forms = []struct {
	name string
	find func(data []byte) [][]int
	open func(rest []byte, length int) [][]byte
}{
	{"zstd", magic("\x28\xb5\x2f\xfd"), func(rest []byte, _ int) [][]byte {
		d, err := zstd.NewReader(bytes.NewReader(rest), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil
		}
		defer d.Close()
		return readable(d)
	}},
	{"gzip", magic("\x1f\x8b\x08"), func(rest []byte, _ int) [][]byte {
		d, err := gzip.NewReader(bytes.NewReader(rest))
		if err != nil {
			return nil
		}
		return readable(d)
	}},
	{"base64", run(`[0-9A-Za-z+/_-]{28,}`), func(rest []byte, length int) (inner [][]byte) {
		text := strings.NewReplacer("-", "+", "_", "/").Replace(string(rest[:length]))
		for i := range 4 {
			decoded := make([]byte, length)
			n, _ := base64.RawStdEncoding.Decode(decoded, []byte(text[i:]))
			inner = append(inner, decoded[:n])
		}
		return inner
	}},
	{"hex", run(`[0-9a-fA-F]{44,}`), func(rest []byte, length int) (inner [][]byte) {
		for i := range 2 {
			decoded := make([]byte, length)
			n, _ := hex.Decode(decoded, rest[i:length])
			inner = append(inner, decoded[:n])
		}
		return inner
	}},
}

// magic finds what begins with some bytes.
func magic(begin string) func([]byte) [][]int {
	return func(data []byte) (found [][]int) {
		for from := 0; ; {
			i := bytes.Index(data[from:], []byte(begin))
			if i < 0 {
				return found
			}
			found = append(found, []int{from + i, len(data)})
			from += i + len(begin)
		}
	}
}

// run finds what consists of some characters.
func run(pattern string) func([]byte) [][]int {
	characters := regexp.MustCompile(pattern)
	return func(data []byte) [][]int { return characters.FindAllIndex(data, -1) }
}

// readable is what can be read up to damage or the end.
func readable(r io.Reader) [][]byte {
	data, _ := io.ReadAll(io.LimitReader(r, 64<<20))
	return [][]byte{data}
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
		"gzip in base64": func(text []byte) []byte { return base64d(compressed("gzip")(text)) },
		"hex":            func(text []byte) []byte { return []byte(hex.EncodeToString(text)) },
	} {
		for _, before := range []string{"", "?", "??", "???"} {
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
