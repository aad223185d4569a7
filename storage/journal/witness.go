package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// A store consists of several files, and a store that has lost one of them must not pass for a
// store that never had it. The checkpoint therefore says how far each file reaches, and has a
// copy of itself. A start compares the files with the checkpoint, as Check does.

// Reach is how far a file has come. It only grows.
type Reach struct {
	// Generation counts how often the file was begun anew, 0 for a file that never is.
	Generation uint64 `json:",omitempty"`
	// Size is in units of the file's own, such as bytes or events. A file that exists reaches 1
	// or more.
	Size int64 `json:",omitempty"`
	// ID tells the file from one of another store, 0 if nobody knows.
	ID uint32 `json:",omitempty"`
}

// before reports whether r reaches less far than q.
func (r Reach) before(q Reach) bool {
	return r.Generation < q.Generation || r.Generation == q.Generation && r.Size < q.Size
}

// isOther reports whether r and q are of two files.
func (r Reach) isOther(q Reach) bool { return q.ID != 0 && r.ID != q.ID }

// reach is how far the files of a store had come when a checkpoint was written.
type reach struct {
	// Begun counts the exchanges, as the file `exchanges` does.
	Begun uint64
	// Raw are the raw segments that have entries, by number.
	Raw []rawReach `json:",omitempty"`
	// List is the list of sealed segments.
	List listReach
	// Others are the files of other packages in the directory, by name.
	Others map[string]Reach `json:",omitempty"`
	// Forgotten is true if the checkpoint was lost: then a file of another package that is not there
	// may be lost, too, unless Others has it. It is true until Forget of CheckpointName, however long
	// that takes: nothing else in the store shows that there was no such file.
	Forgotten bool `json:",omitempty"`
	// Damage is what was found of the files, in the order of time, at most maxDamage.
	Damage []FileDamage `json:",omitempty"`
}

// rawReach is how far a raw segment reaches.
type rawReach struct {
	Segment  uint64 `json:"n"`
	Entries  uint32 `json:"e"`
	Contents int64  `json:"c"` // entries with content
	// Salt is that of the segment, 0 if an older version wrote this.
	Salt uint32 `json:"s,omitempty"`
}

// listReach is how far the list of sealed segments reaches.
type listReach struct {
	Generation uint64 // counts the writes of the list
	Contents   int64  // entries with content that can be read
}

// FileDamage says that a file of the store was found gone, shorter or older than its witness
// says.
type FileDamage struct {
	File string `json:"file"`
	// Found is what is wrong with the file, and what became of it.
	Found string `json:"found"`
	// At is when it was found.
	At storage.Timestamp `json:"at"`
}

// maxDamage bounds what is remembered of damage.
const maxDamage = 32

// Witness has what the checkpoint says of files that the journal does not write itself: how far they
// reach, and what damage was found of any file.
type Witness struct {
	j *Journal

	// mu comes after all other locks. It guards all fields.
	mu     sync.Mutex
	others map[string]Reach
	// forgotten is reach.Forgotten.
	forgotten bool
	attached  map[string]func() (Reach, bool) // the files that this process uses, by name
	damage    []FileDamage
	told      []FileDamage // by Damaged, without times
}

// restore takes over what a checkpoint says.
func (w *Witness) restore(r *reach) {
	if r != nil {
		w.others, w.forgotten, w.damage = maps.Clone(r.Others), r.Forgotten, r.Damage
	}
}

// note remembers damage, once a file and kind.
func (w *Witness) note(d FileDamage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.damage = slices.DeleteFunc(slices.Clone(w.damage), func(k FileDamage) bool { return k.File == d.File && k.Found == d.Found })
	w.damage = append(w.damage, d)
	w.damage = w.damage[max(0, len(w.damage)-maxDamage):]
}

// found returns the damage that is remembered.
func (w *Witness) found() []FileDamage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.damage)
}

// fill adds to r what the witness knows.
func (w *Witness) fill(r *reach) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Others, r.Forgotten, r.Damage = maps.Clone(w.others), w.forgotten, w.damage
}

// reach is how far the files reach. It needs the mutex.
func (j *Journal) reach() *reach {
	r := &reach{Begun: j.ledger.seen(), List: j.archive.reach()}
	for _, s := range j.log.unsealed {
		if s.entries > 0 && !s.leaving {
			r.Raw = append(r.Raw, rawReach{s.number, s.entries, s.contents, s.salt})
		}
	}
	j.witness.fill(r)
	return r
}

// compare compares the files with what a checkpoint says of them. It returns how many entries
// are missing that the backend has not taken, and how many bodies of records that it has.
// keeps is true if the backend has the bodies of the records that it has.
func (j *Journal) compare(c *checkpoint, page counted, keeps bool) (damage []FileDamage, entries, contents int64) {
	r := c.Reach
	if r == nil { // of a version that did not know
		return nil, 0, 0
	}
	add := func(file, format string, args ...any) {
		damage = append(damage, FileDamage{file, fmt.Sprintf(format, args...), j.options.now()})
	}
	for _, was := range r.Raw {
		if j.archive.has(was.Segment) {
			continue // it was sealed since
		}
		var is rawReach
		i, there := j.log.find(was.Segment)
		if there {
			s := j.log.unsealed[i]
			is = rawReach{was.Segment, s.entries, s.contents, s.salt}
		}
		delivered := uint32(0)
		switch {
		case c.Position.Segment > was.Segment:
			delivered = was.Entries
		case c.Position.Segment == was.Segment:
			delivered = min(c.Position.Ordinal, was.Entries)
		}
		missing := int64(was.Entries) - int64(max(is.Entries, delivered))
		bodies := was.Contents - is.Contents
		if delivered < was.Entries {
			bodies = min(bodies, int64(delivered)-int64(is.Entries))
		}
		if missing, bodies = max(missing, 0), max(bodies, 0); keeps {
			bodies = 0
		}
		if is.Entries >= was.Entries && bodies == 0 {
			continue
		}
		what := "is gone"
		if there {
			what = "is shorter than it was, or damaged"
		}
		add(segmentName(was.Segment, rawSuffix), "%s: %d records lose their bodies, and %d entries are lost that the database does not have", what, bodies, missing)
		entries, contents = entries+missing, contents+bodies
	}
	if read := j.archive.read; read.Generation < r.List.Generation {
		lost := max(r.List.Contents-read.Contents, 0)
		what := "is older than it was"
		if read.Generation == 0 {
			what = "is gone or damaged"
		}
		add(sealedName, "%s: the sealed segments that are there make another one, and %d records lose their bodies", what, lost)
		contents += lost
	}
	if page.begun < r.Begun {
		add(counterName, "is gone, damaged or older than it was: the checkpoint says that %d exchanges had begun", r.Begun)
	}
	return damage, entries, contents
}

// tell logs and remembers damage.
func (w *Witness) tell(damage ...FileDamage) {
	for _, d := range damage {
		d.At = cmp.Or(d.At, w.j.options.now())
		w.note(d)
		w.j.options.logger().Error("a file of the store is not as it was", zap.String("file", d.File), zap.String("directory", w.j.dir), zap.String("found", d.Found))
	}
}

// checkSealed tells of sealed segments that are not as they were.
func (w *Witness) checkSealed() {
	if damage := w.j.archive.check(); len(damage) > 0 {
		w.tell(damage...)
		_ = w.j.saveReach(false)
	}
}

// RefusedFileError means that a file of the store is not what it was: what needs the file is refused
// until whoever runs Weir has decided.
type RefusedFileError struct {
	Path string
	// Found is what is wrong with the file, such as `is gone`.
	Found string
}

func (e *RefusedFileError) Error() string {
	return fmt.Sprintf("%s %s. Stop Weir and put back its latest copy, or a whole backup with `weir restore`; or accept the loss with `weir forget %s %s`",
		e.Path, e.Found, filepath.Dir(e.Path), filepath.Base(e.Path))
}

// Advice tells clients which file an error is about, without its path, and what to do. It begins with
// a blank, and is "" if the error is not a RefusedFileError.
func Advice(err error) string {
	refused, ok := errors.AsType[*RefusedFileError](err)
	if !ok {
		return ""
	}
	name := filepath.Base(refused.Path)
	return fmt.Sprintf(" The store's file %s %s. Whoever runs Weir restores it, or accepts the loss with `weir forget <directory> %[1]s`; the log of Weir names the directory.", name, refused.Found)
}

// Compare compares a file that another package keeps in the directory with what the checkpoint
// says of it. is is how far the file reaches, zero if there is no file. The error is a RefusedFileError.
func (w *Witness) Compare(name string, is Reach) error {
	w.mu.Lock()
	was, known := w.others[name]
	lost := w.forgotten && !known && is == (Reach{})
	w.mu.Unlock()
	err := CompareReach(w.j.dir, name, is, was)
	if lost {
		err = &RefusedFileError{filepath.Join(w.j.dir, name), "may be gone, as " + CheckpointName + " is, which would know it"}
	}
	if refused, ok := errors.AsType[*RefusedFileError](err); ok {
		w.Damaged(name, refused.Found+": what depends on it is refused")
	}
	return err
}

// Damaged logs and remembers, once a process, what is wrong with a file of the store that another
// package keeps.
func (w *Witness) Damaged(name, found string) {
	d := FileDamage{File: name, Found: found}
	w.mu.Lock()
	again := slices.Contains(w.told, d)
	if !again {
		w.told = append(w.told, d)
	}
	w.mu.Unlock()
	if !again {
		w.tell(d)
		_ = w.j.saveReach(false)
	}
}

// checkOthers tells of each file of another package that is not there: somebody can have deleted it while
// it is open.
func (w *Witness) checkOthers() {
	w.mu.Lock()
	var paths []string
	for name := range w.attached {
		if !slices.ContainsFunc(w.told, func(d FileDamage) bool { return d.File == name }) { // else its loss is known
			paths = append(paths, filepath.Join(w.j.dir, name))
		}
	}
	w.mu.Unlock()
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			w.Damaged(filepath.Base(path), "is not there: it is lost, at the latest when Weir stops")
		}
	}
}

// CompareReach returns a RefusedFileError if a file in the directory of a journal reaches less far
// than it did.
func CompareReach(dir, name string, is, was Reach) error {
	var found string
	switch {
	case is == (Reach{}) && is.before(was):
		found = "is gone"
	case is.isOther(was):
		found = "is another file than it was"
	case is.before(was):
		found = "is older or shorter than it was"
	default:
		return nil
	}
	return &RefusedFileError{filepath.Join(dir, name), found}
}

// Knows reports whether the checkpoint in a directory says that there is a file.
func Knows(dir, name string) bool {
	_, s, err := readCheckpoints(dir)
	if err != nil || s.Reach == nil {
		return false
	}
	_, known := s.Reach.Others[name]
	return known || s.Reach.Forgotten
}

// Reached returns how far the checkpoint says that a file reaches: what was appended before the file
// came so far has been synced.
func (w *Witness) Reached(name string) Reach {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.others[name]
}

// Note says how far a file reaches that another package keeps in the directory.
func (w *Witness) Note(name string, is Reach) {
	if w.set(name, is) {
		_ = w.j.saveReach(w.j.options.Load().Sync)
	}
}

// set reports whether the witness did not know how far a file reaches.
func (w *Witness) set(name string, is Reach) (changed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.others[name] == is {
		return false
	}
	if w.others == nil {
		w.others = make(map[string]Reach)
	}
	w.others[name] = is
	return true
}

// Attach says that this process uses a file that another package keeps in the directory, until detach:
// if somebody deletes the file, that is told within a minute. The file is also synced with the journal:
// at least once a second, and with Options.Sync before the entries that are appended after it was
// written. sync returns how far the file reaches on the disk; it is false if the file cannot be synced,
// which sync logs. sync is nil for a file that needs none.
func (w *Witness) Attach(name string, sync func() (Reach, bool)) (detach func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attached = maps.Clone(w.attached)
	if w.attached == nil {
		w.attached = make(map[string]func() (Reach, bool))
	}
	w.attached[name] = sync
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.attached = maps.Clone(w.attached)
		delete(w.attached, name)
	}
}

// directorySuffix ends the name of a journal's directory if the database is a file: the file's
// name stands before it.
const directorySuffix = ".segments"

// databaseName is the name of the database whose journal is in a directory.
func databaseName(dir string) string {
	if name, isFile := strings.CutSuffix(filepath.Base(dir), directorySuffix); isFile {
		return name
	}
	return "the database"
}

// Forget makes the checkpoint of a journal that no process uses forget a file of another package:
// what is there of the file, if anything, holds from then on. It reports whether the checkpoint
// knew the file. To forget CheckpointName is to say this of all files that a lost checkpoint would know.
func Forget(dir, name string) (known bool, err error) {
	l, err := lock(dir)
	if err != nil {
		return false, err
	}
	defer l.Close()
	var files checkpoints
	defer files.close()
	var c checkpoint
	if _, _, err := files.open(dir, &c); err != nil {
		return false, err
	}
	if c.Reach == nil {
		return false, nil
	}
	if name == CheckpointName {
		known, c.Reach.Forgotten = c.Reach.Forgotten, false
		return known, files.write(&c, true)
	}
	if _, known = c.Reach.Others[name]; !known && !c.Reach.Forgotten {
		return false, nil
	}
	delete(c.Reach.Others, name)
	if c.Reach.Forgotten {
		if c.Reach.Others == nil {
			c.Reach.Others = make(map[string]Reach)
		}
		c.Reach.Others[name] = Reach{}
	}
	return true, files.write(&c, true)
}
