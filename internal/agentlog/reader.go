package agentlog

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// Reader reads the files of agents. What it has read of a file, it does not read again. One
// goroutine at a time uses it.
type Reader struct {
	index   string                    // the path of the index, "" for none
	files   []*file                   // by Agents, folders and paths
	unread  map[string]map[string]int // how many files the last Update could not read, by agent and reason
	taken   callSet                   // nil before the first Take
	unsaved bool                      // the index lacks something
}

// Report is what became of the files of an agent.
type Report struct {
	Agent string `json:"agent"`
	Files int    `json:"files"`
	Calls int    `json:"calls"`
	// Skipped has how many lines or files were not read, by the reason.
	Skipped map[string]int `json:"skipped"`
}

// Update reads what agents have written since the last Update. Files that were last changed before
// a time are not read.
func (r *Reader) Update(since time.Time) error {
	known := make(map[string]*file, len(r.files))
	for _, f := range r.files {
		known[f.Path] = f
	}
	r.files, r.unread = nil, make(map[string]map[string]int)
	var stale []*file
	for _, a := range Agents {
		r.unread[a.Title] = make(map[string]int)
		err := a.walk(r.unread[a.Title], func(path string) {
			f, now := known[path], stampOf(path)
			delete(known, path)
			if f == nil {
				f = &file{Path: path}
			}
			if f.agent = a; !f.Stamp.equal(now) {
				if now.before(since) {
					return
				}
				stale = append(stale, f)
			}
			r.files = append(r.files, f)
		})
		if err != nil {
			return err
		}
	}
	r.unsaved = r.unsaved || len(stale)+len(known) > 0
	updateAll(stale)
	return nil
}

// walk calls found with the path of each file of the agent, and counts what cannot be read.
func (a *Agent) walk(unread map[string]int, found func(path string)) error {
	for _, folder := range a.folders() {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
			case err != nil:
				unread[err.Error()]++ // the other folders are read
			case entry.IsDir():
			case a.foreign != nil && a.foreign(path) != "":
				unread[a.foreign(path)]++
			case a.matches(path):
				found(path)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// updateAll updates files, several at a time.
func updateAll(files []*file) {
	next := make(chan *file)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for f := range next {
				f.update()
			}
		})
	}
	for _, f := range files {
		next <- f
	}
	close(next)
	wait.Wait()
}

// Calls returns the calls since a time in the files that were changed since, the earliest first, and
// a report for each agent that has such files.
func (r *Reader) Calls(since time.Time) ([]*Call, []Report) {
	calls := make(callSet)
	byAgent := make(map[string]*Report)
	for agent, unread := range r.unread {
		byAgent[agent] = &Report{Agent: agent, Skipped: maps.Clone(unread)}
	}
	for _, f := range r.files {
		if f.Stamp.before(since) {
			continue
		}
		report := byAgent[f.agent.Title]
		report.Files++
		for reason, n := range f.Skipped {
			report.Skipped[reason] += n
		}
		for i := range f.Calls {
			if c := &f.Calls[i]; !c.At.Before(since) {
				calls.add(c)
			}
		}
	}
	for _, c := range calls {
		byAgent[c.Agent].Calls++
	}
	var reports []Report
	for _, a := range Agents {
		if report := byAgent[a.Title]; report != nil && (report.Files > 0 || len(report.Skipped) > 0) {
			reports = append(reports, *report)
		}
	}
	return calls.sorted(), reports
}

// Take returns the calls that were not taken before, or have used more since, the earliest first.
// Save remembers that they were taken.
func (r *Reader) Take() []*Call {
	if r.taken == nil {
		r.taken = make(callSet)
		for _, f := range r.files {
			for i := range f.Calls[:f.Taken] {
				r.taken.add(&f.Calls[i])
			}
		}
	}
	calls := make(callSet)
	for _, f := range r.files {
		for ; f.Taken < len(f.Calls); f.Taken++ {
			if c := r.taken.add(&f.Calls[f.Taken]); c != nil {
				calls[c.ID] = c
			}
			r.unsaved = true
		}
	}
	return calls.sorted()
}
