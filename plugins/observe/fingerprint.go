package observe

import (
	"crypto/sha256"
	"hash"

	"github.com/weirhq/weir/plugins"
)

// Fingerprint is the hash of a conversation up to one of its messages: of the tools, the instructions and
// the messages. Other than the hashes of an Outline, it is the same in all processes.
type Fingerprint [sha256.Size]byte

// Fingerprints returns the fingerprint up to each message of a request, nil for a body that is no
// conversation. What does not change an Outline does not change a Fingerprint.
func Fingerprints(d plugins.Dialect, body []byte) []Fingerprint {
	r := NewRequestReader(d)
	defer r.Free()
	f := &fingerprinter{part: sha256.New(), head: sha256.New()}
	r.outline.fingerprints = f
	r.Write(body)
	if r.Outline() == nil {
		return nil
	}
	all := make([]Fingerprint, len(f.messages))
	f.head.Sum(all[0][:0])
	for i, m := range f.messages {
		all[i] = sha256.Sum256(append(all[max(i-1, 0)][:], m[:]...))
	}
	return all
}

// fingerprinter hashes the parts of a request, as an outliner finds them.
type fingerprinter struct {
	part     hash.Hash // of the part under way
	head     hash.Hash // of the tools and instructions, in their order
	messages []Fingerprint
}

func (f *fingerprinter) begin() {
	if f != nil {
		f.part.Reset()
	}
}

func (f *fingerprinter) write(p []byte) {
	if f != nil {
		f.part.Write(p)
	}
}

// end ends a part.
func (f *fingerprinter) end(isMessage bool) {
	switch {
	case f == nil:
	case isMessage:
		f.messages = append(f.messages, Fingerprint(f.part.Sum(nil)))
	default:
		f.head.Write(f.part.Sum(nil))
	}
}
