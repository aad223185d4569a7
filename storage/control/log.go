// Package control is the contract of what administrators change while Weir runs: projects,
// service accounts, API keys, members and rules, and the events that made them what they are.
// The events are the audit log. Package embedded keeps them for one process; package
// controltest tests logs.
package control

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"

	"github.com/weirhq/weir/storage"
)

var (
	// ErrNotFound means that the organisation has no such object.
	ErrNotFound = errors.New("there is no such object")

	// ErrTaken means that another object of the organisation has the name.
	ErrTaken = errors.New("the name is taken")

	// ErrChanged means that somebody else changed the object meanwhile.
	ErrChanged = errors.New("the object was changed meanwhile")

	// ErrArchived means that the project takes nothing new.
	ErrArchived = errors.New("the project is archived")

	// ErrOwnsItself means that a key shall have an owner that it owns.
	ErrOwnsItself = errors.New("owner_id: the key would own itself, directly or by keys that it owns: name another owner")

	// ErrNoPlace means that a page shall begin at an object or an event that the
	// organisation does not have, or has no more.
	ErrNoPlace = errors.New("there is nothing of the id at which the page begins: ask for the first page again")
)

// Log keeps the objects of organisations, and the events that made them. Several nodes may
// share one. It is safe for use by several goroutines.
type Log interface {
	// Commit makes all events of one organisation happen, or none: each object becomes what
	// After says, and the event is kept if it has an ID. Events and objects are durable when Commit returns.
	// The error is ErrChanged unless each object is as Before says and each of unchanged
	// stands as it is, and ErrTaken if another object of the kind has a name. Objects are
	// compared by their Value.
	Commit(ctx context.Context, org string, events []Event, unchanged ...Object) error

	// Get returns an object of an organisation. The error may be ErrNotFound.
	Get(ctx context.Context, org string, kind Kind, id string) (Object, error)

	// Named returns the object that has a name. The error may be ErrNotFound.
	Named(ctx context.Context, org string, kind Kind, name string) (Object, error)

	// Find returns the object that has a secret of this hash, of any organisation. The error
	// may be ErrNotFound.
	Find(ctx context.Context, hash Hash) (Object, error)

	// List returns objects of one kind, without their hashes. The error may be ErrNoPlace.
	List(ctx context.Context, org string, kind Kind, p Page) ([]Object, error)

	// Events returns up to limit events of an organisation, the newest first, before the
	// event with the id before; "" begins with the newest. Unless object is "", all events are
	// about the object with this id. The error may be ErrNoPlace.
	Events(ctx context.Context, org, object, before string, limit int) ([]Event, error)

	// Used notes that an object is used. A crash may forget the note.
	Used(id string, at storage.Timestamp)

	// Version changes with each change: at once at the node that makes it, within a second
	// at others.
	Version() uint64

	// Trusted reports whether what was read under Version still says who has access. A node
	// that cannot ask for changes trusts what it has read for a while.
	Trusted() bool

	// Close writes what is noted, and ends the use of the log.
	Close(ctx context.Context) error
}

// Kind is what an object is.
type Kind string

// The kinds of objects.
const (
	KindProject        Kind = "project"
	KindServiceAccount Kind = "service_account"
	KindKey            Kind = "key"
	KindMember         Kind = "member"
	KindRule           Kind = "rule"
	KindAlertRule      Kind = "alert_rule"
	KindFiring         Kind = "alert"
	KindHold           Kind = "hold"
	KindLease          Kind = "lease"
)

// Object is an object as a log keeps it.
type Object struct {
	// ID is used once.
	ID string
	// Kind is what the object is.
	Kind Kind
	// Name belongs to one object of the kind in the organisation, "" for an object without a
	// name. A log that answers an object may leave the name out.
	Name string
	// Lists are the lists in which the object stands, beside the list of its kind. A log that
	// answers an object may leave them out.
	Lists []List
	// Hashes are the hashes of the secrets that find the object.
	Hashes []Hash
	// Value is the object as APIs write it. It has no secret.
	Value json.RawMessage
	// UsedAt is when the object was last used, to the minute; nil for never. The log knows it.
	UsedAt *storage.Timestamp
}

// Equal reports whether two objects are the same, whenever they were used.
func (o Object) Equal(other Object) bool {
	return o.ID == other.ID && o.Kind == other.Kind && string(o.Value) == string(other.Value) && slices.Equal(o.Hashes, other.Hashes)
}

// MarshalJSON writes the value alone.
func (o Object) MarshalJSON() ([]byte, error) { return o.Value, nil }

// UnmarshalJSON reads the value alone.
func (o *Object) UnmarshalJSON(text []byte) error {
	o.Value = slices.Clone(text)
	return nil
}

// Hash is the SHA-256 of a secret.
type Hash [sha256.Size]byte

// List names a list of objects of one kind.
type List string

// InUse is the list of projects that are not archived.
const InUse List = "in use"

// InProject is the list of what belongs to a project.
func InProject(label string) List { return List("project/" + label) }

// OfScope is the list of keys that have a scope.
func OfScope(scope string) List { return List("scope/" + scope) }

// OwnedBy is the list of what a service account or a member owns.
func OwnedBy(id string) List { return List("owner/" + id) }

// Page is a part of a list.
type Page struct {
	// List is the list, "" for all objects of the kind.
	List List
	// After is the id of the object before the page, "" at the beginning.
	After string
	// NewestFirst reverses the order, which is the order of creation.
	NewestFirst bool
	// Limit is how many objects the page has at most, 0 for all.
	Limit int
}

// Actor is who changes something.
type Actor struct {
	// Key is the id of an API key, or what else names the actor.
	Key string `json:"key"`
	// Address is the network address that the change came from.
	Address string `json:"address"`
}

// Event is one change of one object.
type Event struct {
	// ID begins with `evt_`. An event without one changes its object, and is not kept.
	ID string `json:"id"`
	// At is when the change was made.
	At    storage.Timestamp `json:"at"`
	Actor Actor             `json:"actor"`
	// Action is what was done, such as `key.created`.
	Action string `json:"action"`
	// Object is the id of what was changed.
	Object string `json:"object"`
	// Before and After are the object, nil where there was none. If After has no Kind, the
	// event changes nothing, and After has details of what happened.
	Before *Object `json:"before"`
	After  *Object `json:"after"`
}

// Changes reports whether the event changes its object.
func (e *Event) Changes() bool { return e.After == nil || e.After.Kind != "" }

// The actions of events about content of calls that was read by somebody who has not made the calls.
// ContentListed is about the beginnings of texts, ContentExported about a file.
const (
	ContentRead     = "content.read"
	ContentListed   = "content.listed"
	ContentExported = "content.exported"
)

// IsRead reports whether the event is about content that was read.
func (e *Event) IsRead() bool {
	return e.Action == ContentRead || e.Action == ContentListed || e.Action == ContentExported
}

// Subject is the object that the event is about, as it was last.
func (e Event) Subject() *Object {
	if e.After != nil {
		return e.After
	}
	return e.Before
}
