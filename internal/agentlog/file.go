package agentlog

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// file is what is known of a file of an agent. The index has the exported fields.
type file struct {
	agent *Agent
	Path  string
	Stamp stamp // when it was read
	Calls []Call
	Taken int // how many of Calls were taken
	// Skipped has how many lines were not read, by the reason.
	Skipped map[string]int

	// Of a file of lines, which may grow:
	Offset int64  // in bytes, where the first line begins that was not read
	Before uint32 // the checksum of what is before Offset
	Codex  codexSession

	texts map[string]string // texts that repeat, each once
}

// stamp tells versions of a file apart. That of a database includes the log beside it.
type stamp struct {
	Size    int64
	Changed time.Time // zero if unknown
}

func stampOf(path string) (s stamp) {
	if info, err := os.Stat(path); err == nil {
		s = stamp{info.Size(), info.ModTime()}
	}
	if filepath.Ext(path) == ".db" {
		if log, err := os.Stat(path + "-wal"); err == nil {
			s.Size += log.Size()
			if log.ModTime().After(s.Changed) {
				s.Changed = log.ModTime()
			}
		}
	}
	return s
}

func (s stamp) equal(other stamp) bool { return s.Size == other.Size && s.Changed.Equal(other.Changed) }

// before tells whether the file was last changed before a time.
func (s stamp) before(t time.Time) bool { return !s.Changed.IsZero() && s.Changed.Before(t) }

// update reads what was added to the file, or all of it if it was changed otherwise.
func (f *file) update() {
	now := stampOf(f.Path)
	if now.Size <= f.Stamp.Size || f.Offset == 0 || f.checksum() != f.Before {
		*f = file{agent: f.agent, Path: f.Path}
	}
	f.Stamp = now
	f.texts = make(map[string]string)
	f.agent.read(f)
	f.texts = nil
	f.Before = f.checksum()
}

// checksum is that of the last bytes before Offset. They tell whether a file has only grown, as
// lines differ by their ids and times.
func (f *file) checksum() uint32 {
	in, err := os.Open(f.Path)
	if err != nil {
		return 0
	}
	defer in.Close()
	text := make([]byte, min(f.Offset, 4096))
	if _, err := in.ReadAt(text, f.Offset-int64(len(text))); err != nil {
		return 0
	}
	return crc32.ChecksumIEEE(text)
}

// maxLine is the length in bytes of the longest line that is read.
const maxLine = 64 << 20

const (
	brokenLine = "a line is no JSON"
	longLine   = "a line is longer than 64 MiB"
)

// lines yields the lines from Offset on that contain one of some signs, as JSON objects. A last line
// without an end is being written: it is left for later unless it is complete.
func (f *file) lines(signs ...string) func(yield func(gjson.Result) bool) {
	return func(yield func(gjson.Result) bool) {
		in, err := os.Open(f.Path)
		if err != nil {
			f.fail(err)
			return
		}
		defer in.Close()
		r := bufio.NewReaderSize(io.NewSectionReader(in, f.Offset, math.MaxInt64-f.Offset), 1<<20)
		var long []byte // a line that the buffer does not hold, without what is beyond maxLine
		var size int64  // of the line in bytes
		for {
			line, err := r.ReadSlice('\n')
			size += int64(len(line))
			if full := errors.Is(err, bufio.ErrBufferFull); full || len(long) > 0 {
				if len(long) < maxLine {
					long = append(long, line...)
				}
				if line = long; full {
					continue
				}
			}
			if err != nil && !errors.Is(err, io.EOF) {
				f.fail(err)
				return
			}
			read := err == nil
			switch {
			case size >= maxLine:
				if read {
					f.skip(longLine)
				}
			case !slices.ContainsFunc(signs, func(sign string) bool { return bytes.Contains(line, []byte(sign)) }):
			case plugins.ValidJSON(line):
				if read = true; !yield(gjson.ParseBytes(line)) {
					return
				}
			case read:
				f.skip(brokenLine)
			}
			if read {
				f.Offset += size
			}
			if err != nil {
				return
			}
			long, size = long[:0], 0
		}
	}
}

// object returns a file that is one JSON object.
func (f *file) object() (object gjson.Result, ok bool) {
	text, err := os.ReadFile(f.Path)
	switch {
	case err != nil:
		f.fail(err)
	case !plugins.ValidJSON(text):
		f.skip("a file is no JSON")
	default:
		return gjson.ParseBytes(text), true
	}
	return gjson.Result{}, false
}

func (f *file) skip(reason string) {
	if f.Skipped == nil {
		f.Skipped = make(map[string]int)
	}
	f.Skipped[reason]++
}

// fail says why the file cannot be read now. The next update tries again.
func (f *file) fail(err error) {
	f.skip(err.Error())
	f.Stamp, f.Offset = stamp{}, 0
}

// once returns a text that shares its memory with equal ones of the file, and not with a line.
func (f *file) once(text string) string {
	shared, ok := f.texts[text]
	if !ok {
		shared = strings.Clone(text)
		f.texts[shared] = shared
	}
	return shared
}

// add adds a call, unless it lacks what each call has.
func (f *file) add(c Call) {
	switch {
	case c.Model == "":
		f.skip("a call has no model")
	case c.At.IsZero():
		f.skip("a call has no time")
	case !c.Usage.Input.Valid || !c.Usage.Output.Valid:
		f.skip("a call has no tokens")
	default:
		c.Agent = f.agent.Title
		c.ID = c.Agent + " " + cmp.Or(c.ID, fmt.Sprint(c.Session, " ", c.At.UnixNano(), " ", c.Model, " ", c.Usage.Output.N))
		if n := len(f.Calls); n > f.Taken && f.Calls[n-1].ID == c.ID { // a line more of one answer
			f.Calls[n-1].grow(&c)
			return
		}
		f.Calls = append(f.Calls, f.own(c))
	}
}

// own returns a call whose texts share their memory with equal ones of the file, and not with a line.
func (f *file) own(c Call) Call {
	for _, text := range []*string{&c.Model, &c.Session, &c.Project, &c.Branch, &c.SubAgent, &c.Provider, &c.Tier} {
		*text = f.once(*text)
	}
	return c
}

// count returns a number of tokens, unknown if it is none.
func count(v gjson.Result) plugins.Count {
	if v.Type != gjson.Number || v.Num < 0 || v.Num >= 1<<53 {
		return plugins.Count{}
	}
	return plugins.Known(v.Int())
}

// inHome returns a folder that an environment variable names, else one of the home directory.
func inHome(variable string, folder ...string) string {
	if dir := os.Getenv(variable); dir != "" {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(append([]string{home}, folder...)...)
}

func timeOf(v gjson.Result) time.Time {
	at, _ := time.Parse(time.RFC3339, v.Str) // zero if it is none
	return at
}

// first returns the first text that is not empty.
func first(texts ...gjson.Result) string {
	var s string
	for _, t := range texts {
		s = cmp.Or(s, t.Str)
	}
	return s
}
