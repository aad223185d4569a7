package agentlog

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// Report is what became of the files of an agent.
type Report struct {
	Agent string `json:"agent"`
	Files int    `json:"files"`
	Calls int    `json:"calls"`
	// Skipped has how many lines or files were not read, by the reason.
	Skipped map[string]int `json:"skipped"`
}

// Read returns the calls since a time, the earliest first, and a report for each agent that has
// files. Files that were last changed before are not read.
func Read(since time.Time) ([]Call, []Report, error) {
	var all []Call
	var reports []Report
	for _, a := range Agents {
		report := Report{Agent: a.Title, Skipped: make(map[string]int)}
		files, err := a.files(since, &report)
		if err != nil {
			return nil, nil, err
		}
		readAll(files)
		calls := merge(files, since, &report)
		if report.Calls = len(calls); report.Files > 0 || len(report.Skipped) > 0 {
			reports = append(reports, report)
		}
		all = append(all, calls...)
	}
	slices.SortStableFunc(all, func(a, b Call) int { return a.At.Compare(b.At) })
	return all, reports, nil
}

// files returns the files of an agent by their paths.
func (a *Agent) files(since time.Time, report *Report) (files []*file, _ error) {
	for _, folder := range a.folders() {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				report.Skipped[err.Error()]++
				return nil //nolint:nilerr // the other folders are read
			}
			if a.foreign != nil && !entry.IsDir() {
				if reason := a.foreign(path); reason != "" {
					report.Skipped[reason]++
					return nil
				}
			}
			if entry.IsDir() || !a.matches(path) {
				return nil
			}
			if changed := lastChange(path, entry); !changed.IsZero() && changed.Before(since) {
				return nil
			}
			files = append(files, &file{agent: a, path: path, skipped: make(map[string]int), texts: make(map[string]string)})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	report.Files = len(files)
	return files, nil
}

// lastChange is when a file was last written to, zero if unknown. A database has a log beside it.
func lastChange(path string, entry fs.DirEntry) (at time.Time) {
	if info, err := entry.Info(); err == nil {
		at = info.ModTime()
	}
	if filepath.Ext(path) == ".db" {
		if log, err := os.Stat(path + "-wal"); err == nil && log.ModTime().After(at) {
			at = log.ModTime()
		}
	}
	return at
}

// readAll reads files, several at a time.
func readAll(files []*file) {
	next := make(chan *file)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for f := range next {
				f.agent.read(f)
				f.texts = nil
			}
		})
	}
	for _, f := range files {
		next <- f
	}
	close(next)
	wait.Wait()
}

// merge joins the calls of files. Of repetitions, the one with the longest output counts: an agent
// may write a call while its answer comes in.
func merge(files []*file, since time.Time, report *Report) (calls []Call) {
	seen := make(map[string]int)
	for _, f := range files {
		for reason, n := range f.skipped {
			report.Skipped[reason] += n
		}
		for _, c := range f.calls {
			if c.At.Before(since) {
				continue
			}
			if i, ok := seen[c.id]; ok && c.id != "" {
				if c.Usage.Output.N > calls[i].Usage.Output.N {
					calls[i].Usage, calls[i].Beside = c.Usage, c.Beside
				}
				continue
			}
			seen[c.id] = len(calls)
			calls = append(calls, c)
		}
		f.calls = nil
	}
	return calls
}

// file is a file that is read.
type file struct {
	agent   *Agent
	path    string
	calls   []Call
	skipped map[string]int
	texts   map[string]string // texts that repeat, each once
}

// maxLine is the length in bytes of the longest line that is read.
const maxLine = 64 << 20

const (
	brokenLine = "a line is no JSON"
	longLine   = "a line is longer than 64 MiB"
)

// lines yields the lines that contain one of some signs, as JSON objects. A last line without an
// end is being written, and is left out if it is broken.
func (f *file) lines(signs ...string) func(yield func(gjson.Result) bool) {
	return func(yield func(gjson.Result) bool) {
		in, err := os.Open(f.path)
		if err != nil {
			f.skip(err.Error())
			return
		}
		defer in.Close()
		r := bufio.NewReaderSize(in, 1<<20)
		var long []byte
		for {
			line, err := r.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				if len(long) < maxLine {
					long = append(long, line...)
				}
				continue
			}
			if len(long) > 0 {
				long = append(long, line...)
				line = long
			}
			switch {
			case len(line) >= maxLine:
				f.skip(longLine)
			case !slices.ContainsFunc(signs, func(sign string) bool { return bytes.Contains(line, []byte(sign)) }):
			case plugins.ValidJSON(line):
				if !yield(gjson.ParseBytes(line)) {
					return
				}
			case err == nil:
				f.skip(brokenLine)
			}
			long = long[:0]
			if err != nil {
				if !errors.Is(err, io.EOF) {
					f.skip(err.Error())
				}
				return
			}
		}
	}
}

// object returns a file that is one JSON object.
func (f *file) object() (object gjson.Result, ok bool) {
	text, err := os.ReadFile(f.path)
	switch {
	case err != nil:
		f.skip(err.Error())
	case !plugins.ValidJSON(text):
		f.skip("a file is no JSON")
	default:
		return gjson.ParseBytes(text), true
	}
	return gjson.Result{}, false
}

func (f *file) skip(reason string) { f.skipped[reason]++ }

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
		c.Model, c.Session, c.Project, c.Branch = f.once(c.Model), f.once(c.Session), f.once(c.Project), f.once(c.Branch)
		c.SubAgent = f.once(c.SubAgent)
		c.Provider, c.Tier, c.id = f.once(c.Provider), f.once(c.Tier), strings.Clone(c.id)
		f.calls = append(f.calls, c)
	}
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
