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
	"time"
	"unique"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// file is a log of an agent, as far as it is read. The exported fields are saved in the index.
type file struct {
	agent *Agent
	Path  string
	Stamp stamp // of the version that was read
	Calls []Call
	Taken int // how many of Calls were taken
	// Skipped counts the lines that were skipped, by the reason.
	Skipped map[string]int

	// These are of a file of lines, which may grow. They are zero for other files.
	Offset int64  // in bytes, of the first line that is not read
	Before uint32 // checksum of the bytes before Offset
	Codex  codexSession
}

// stamp tells versions of a file apart. The stamp of a database includes its write-ahead log.
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

// before reports whether the file was last changed before a time.
func (s stamp) before(t time.Time) bool { return !s.Changed.IsZero() && s.Changed.Before(t) }

// update reads what was added to the file, or all of it if it was changed otherwise.
func (f *file) update() {
	now := stampOf(f.Path)
	if now.Size <= f.Stamp.Size || f.Offset == 0 || f.checksum() != f.Before {
		*f = file{agent: f.agent, Path: f.Path}
	}
	f.Stamp = now
	f.agent.read(f)
	f.Before = f.checksum()
}

// checksum returns the checksum of the last bytes before Offset. It shows whether a file has only grown,
// because lines differ in their ids and times.
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
		r := lineReader{Reader: bufio.NewReaderSize(io.NewSectionReader(in, f.Offset, math.MaxInt64-f.Offset), 1<<20)}
		for {
			line, size, err := r.next()
			if err != nil && !errors.Is(err, io.EOF) {
				f.fail(err)
				return
			}
			complete := err == nil
			switch {
			case size >= maxLine:
				if complete {
					f.skip(longLine)
				}
			case !slices.ContainsFunc(signs, func(sign string) bool { return bytes.Contains(line, []byte(sign)) }):
			case plugins.ValidJSON(line):
				if complete = true; !yield(gjson.ParseBytes(line)) {
					return
				}
			case complete:
				f.skip(brokenLine)
			}
			if complete {
				f.Offset += size
			}
			if err != nil {
				return
			}
		}
	}
}

// lineReader reads lines of any length.
type lineReader struct {
	*bufio.Reader
	long []byte // the last line that was longer than the buffer, up to about maxLine
}

// next returns the next line with its end, and its size in bytes. A line longer than maxLine is cut.
// The line is valid until the next call. At the end of the file, err is io.EOF and the line has no end.
func (r *lineReader) next() (line []byte, size int64, err error) {
	r.long = r.long[:0]
	for {
		line, err = r.ReadSlice('\n')
		size += int64(len(line))
		full := errors.Is(err, bufio.ErrBufferFull)
		if !full && len(r.long) == 0 {
			return line, size, err
		}
		if len(r.long) < maxLine {
			r.long = append(r.long, line...)
		}
		if !full {
			return r.long, size, err
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

// fail notes why the file cannot be read now. The next update tries again.
func (f *file) fail(err error) {
	f.skip(err.Error())
	f.Stamp, f.Offset = stamp{}, 0
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
		f.Calls = append(f.Calls, internTexts(c))
	}
}

// internTexts returns the call with texts that equal ones share, and that do not keep a whole line in memory.
func internTexts(c Call) Call {
	for _, text := range []*string{&c.Model, &c.Session, &c.Project, &c.Branch, &c.SubAgent, &c.Provider, &c.Tier} {
		*text = unique.Make(*text).Value()
	}
	return c
}
