package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Faults are what makes a Server worse than a local database. Shares are between 0
// and 1.
type Faults struct {
	// Latency is how long the server takes to open and to write.
	Latency time.Duration
	// Gap is the time between the two parts in which a batch is applied.
	Gap time.Duration
	// Visible is the time until queries see what was written.
	Visible time.Duration
	// Refused is the share of opens that fail.
	Refused float64
	// Torn is the share of batches that are applied in part: only the first part.
	Torn float64
	// Repeated is the share of batches that are applied twice.
	Repeated float64
	// Unacknowledged is the share of batches that are applied and fail all the same.
	Unacknowledged float64
	// Entries bounds what the server takes at once, less than Limits says. 0 is no
	// bound.
	Entries int
	// PruneGranularity is the size of the partitions that Prune deletes.
	PruneGranularity time.Duration
}

// Server is a database that the backends of many processes write to. It is a directory,
// with a file for each part of a batch that was applied: all that it has taken outlives
// Stop, and each process reads it for itself.
type Server struct{ dir }

type dir string

const (
	faultsFile = "faults.json"
	// upFile is there while the server is up. It tells one start from another.
	upFile    = "up"
	entryName = ".entry"
)

// NewServer makes a server in a new directory. The server is not up yet.
func NewServer(path string, f Faults) *Server {
	text, err := json.Marshal(f)
	err = errors.Join(err, os.MkdirAll(path, 0o700), os.WriteFile(filepath.Join(path, faultsFile), text, 0o600))
	if err != nil {
		panic(err) // of a test's own directory
	}
	return &Server{dir(path)}
}

// Start lets backends connect.
func (s *Server) Start() error {
	return os.WriteFile(s.file(upFile), []byte(uuid.NewString()), 0o600)
}

// Stop ends the server as a crash does: a batch under way is applied in part.
func (s *Server) Stop() { _ = os.Remove(s.file(upFile)) }

func (d dir) file(name string) string { return filepath.Join(string(d), name) }

// up names the present start, or fails with storage.ErrUnavailable.
func (d dir) up() (string, error) {
	start, err := os.ReadFile(d.file(upFile))
	if err != nil {
		return "", fmt.Errorf("%w: %w", storage.ErrUnavailable, err)
	}
	return string(start), nil
}

func (d dir) faults() (f Faults, err error) {
	text, err := os.ReadFile(d.file(faultsFile))
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	return f, err
}

// entry is a change of the database.
type entry struct {
	// Journal, ID and End are the batch's, and Sum is the sum of the whole batch.
	Journal uuid.UUID
	ID      string
	End     storage.Position
	Sum     [sha256.Size]byte
	Records []*storage.Record
	// Contents are the contents of Records, by index.
	Contents []content
	Notes    []note
	// What is older than these times is deleted; the zero time deletes nothing.
	Prune, PruneContent, PruneConversations storage.Timestamp
	// Spared are the organisations to which PruneConversations does not apply.
	Spared []string
	// Erase are ids of records of Org that are erased.
	Erase []uuid.UUID
	Org   string
	Scope uint8 // a storage.ErasureScope, 0 for none
}

// content is content that is known, or not.
type content struct {
	storage.Content
	Known bool
}

// note is an annotation. Gob sends an empty tag as nil: Tagged distinguishes the two.
type note struct {
	storage.Annotation
	Tagged bool
}

// add adds an entry at once or not at all, unless the server was stopped since a start.
func (d dir) add(start string, e *entry) error {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(e); err != nil {
		return err
	}
	name := uuid.Must(uuid.NewV7()).String() // names are in the order of time
	err := os.WriteFile(d.file(name), b.Bytes(), 0o600)
	if now, down := d.up(); err == nil && (down != nil || now != start) {
		return errors.Join(errTorn, os.Remove(d.file(name)))
	}
	if err == nil {
		err = os.Rename(d.file(name), d.file(name+entryName))
	}
	return err
}

// entries calls each with the entries that are older than the age, in their order.
func (d dir) entries(age time.Duration, each func(name string, read func() (*entry, error)) error) error {
	files, err := fs.Glob(os.DirFS(string(d)), "*"+entryName)
	for i := 0; i < len(files) && err == nil; i++ {
		id := uuid.MustParse(files[i][:len(files[i])-len(entryName)])
		if seconds, nanoseconds := id.Time().UnixTime(); time.Since(time.Unix(seconds, nanoseconds)) < age {
			return nil
		}
		err = each(files[i], func() (*entry, error) {
			text, err := os.ReadFile(d.file(files[i]))
			e := new(entry)
			if err == nil {
				err = gob.NewDecoder(bytes.NewReader(text)).Decode(e)
			}
			return e, err
		})
	}
	return err
}

// Violation is the first breach of the contract of storage.Backend by a journal: a
// batch that came again with other content, or before one that it had come after.
func (s *Server) Violation() error {
	type batch struct {
		journal uuid.UUID
		id      string
	}
	sums, ends := make(map[batch][sha256.Size]byte), make(map[uuid.UUID]storage.Position)
	return s.entries(0, func(_ string, read func() (*entry, error)) error {
		e, err := read()
		if err != nil || e.Journal == uuid.Nil {
			return err
		}
		k := batch{e.Journal, e.ID}
		first, again := sums[k]
		switch {
		case again && first != e.Sum:
			return fmt.Errorf("batch %s of journal %s came again with other content", e.ID, e.Journal)
		case !again && e.End.Before(ends[e.Journal]):
			return fmt.Errorf("batch %s of journal %s came after one that ends at %v", e.ID, e.Journal, ends[e.Journal])
		}
		sums[k], ends[e.Journal] = e.Sum, e.End
		return nil
	})
}
