package remote

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/rpc"
	"sync"
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
	// Torn is the share of batches of which the first part alone is applied.
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

// Server is a database that many backends write to. What it has taken outlives Stop.
type Server struct {
	path   string
	faults Faults

	mu          sync.Mutex
	listener    net.Listener // nil when stopped
	connections map[net.Conn]bool
	starts      int
	table       table
	batches     map[batchKey][sha256.Size]byte
	ends        map[uuid.UUID]storage.Position
	violation   error
}

type batchKey struct {
	journal uuid.UUID
	id      string
}

var (
	errRefused        = errors.New("the connection was refused")
	errTorn           = errors.New("the connection broke within the batch")
	errUnacknowledged = errors.New("the acknowledgement was lost")
	errTooMany        = errors.New("too many entries")
)

// NewServer makes a server at the path of a Unix socket, which does not listen yet.
func NewServer(path string, f Faults) *Server {
	return &Server{
		path: path, faults: f, connections: map[net.Conn]bool{},
		table:   table{visible: f.Visible, rows: map[storage.RecordKey]*row{}, notes: map[storage.RecordKey][]Note{}, tags: map[string][]Note{}},
		batches: map[batchKey][sha256.Size]byte{}, ends: map[uuid.UUID]storage.Position{},
	}
}

// Start listens.
func (s *Server) Start() error {
	listener, err := net.Listen("unix", s.path)
	if err != nil {
		return err
	}
	methods := rpc.NewServer()
	if err := methods.RegisterName("Store", &service{s}); err != nil {
		return err
	}
	s.mu.Lock()
	s.listener = listener
	s.starts++
	s.mu.Unlock()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			if s.listener != listener {
				connection.Close()
			} else {
				s.connections[connection] = true
				go methods.ServeConn(connection)
			}
			s.mu.Unlock()
		}
	}()
	return nil
}

// Stop ends the server as a crash does: a batch under way is applied in part.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return
	}
	s.listener.Close()
	s.listener = nil
	for connection := range s.connections {
		connection.Close()
	}
	clear(s.connections)
}

// Violation is the first breach of the contract of storage.Backend by a journal: a
// batch that came again with other content, or before one that it had come after.
func (s *Server) Violation() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.violation
}

func (s *Server) watch(b *Batch) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	k, sum := batchKey{b.Journal, b.ID}, sha256.Sum256(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	first, again := s.batches[k]
	s.batches[k] = sum
	switch {
	case s.violation != nil:
	case again && first != sum:
		s.violation = fmt.Errorf("batch %s of journal %s came again with other content", b.ID, b.Journal)
	case !again && b.End.Before(s.ends[b.Journal]):
		s.violation = fmt.Errorf("batch %s of journal %s came after one that ends at %v", b.ID, b.Journal, s.ends[b.Journal])
	}
	s.ends[b.Journal] = b.End
	return nil
}

// service has the methods that backends call.
type service struct{ *Server }

func (s *service) Open(_ bool, _ *bool) error {
	time.Sleep(s.faults.Latency)
	if rand.Float64() < s.faults.Refused {
		return errRefused
	}
	return nil
}

func (s *service) Write(b *Batch, _ *bool) error {
	s.mu.Lock()
	start := s.starts
	s.mu.Unlock()
	if most := s.faults.Entries; most > 0 && len(b.Records)+len(b.Notes) > most {
		return errTooMany
	}
	if err := s.watch(b); err != nil {
		return err
	}
	time.Sleep(s.faults.Latency)
	half := len(b.Records) / 2
	first, second := *b, *b
	first.Records, first.Contents, first.Notes = b.Records[:half], b.Contents[:half], nil
	second.Records, second.Contents = b.Records[half:], b.Contents[half:]
	if !s.apply(&first, start) {
		return errTorn
	}
	time.Sleep(s.faults.Gap)
	if rand.Float64() < s.faults.Torn || !s.apply(&second, start) {
		return errTorn
	}
	if rand.Float64() < s.faults.Repeated {
		s.apply(b, start)
	}
	if rand.Float64() < s.faults.Unacknowledged {
		return errUnacknowledged
	}
	return nil
}

// apply is false when the server was stopped since a start.
func (s *Server) apply(b *Batch, start int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil || s.starts != start {
		return false
	}
	s.table.arrive(b)
	return true
}

func (s *service) Rows(q *Query, rows *Rows) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	*rows, err = s.table.answer(q)
	return err
}

func (s *service) Organisations(_ bool, orgs *[]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*orgs = s.table.organisations()
	return nil
}

func (s *service) Content(q *Query, c *Content) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*c = s.table.content(storage.RecordKey{Org: q.Org, ID: q.ID})
	return nil
}

func (s *service) Prune(before storage.Timestamp, more *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	*more = s.table.prune(s.faults.partition(before))
	return nil
}

func (s *service) PruneContent(before storage.Timestamp, _ *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.pruneContent(s.faults.partition(before))
	return nil
}

func (s *service) PruneConversations(before storage.Timestamp, _ *bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.pruneConversations(s.faults.partition(before))
	return nil
}

// partition is the start of the partition that a time is in.
func (f *Faults) partition(at storage.Timestamp) storage.Timestamp {
	if size := storage.Timestamp(f.PruneGranularity.Milliseconds()); size > 0 {
		return at - at%size
	}
	return at
}
