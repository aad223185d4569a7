package control

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/weirhq/weir/storage"
)

// Organisation is one organisation in the hands of somebody who may change its objects, but no
// objects of other organisations.
type Organisation struct {
	Log Log
	// Name is the name of the organisation.
	Name string
	// By is who makes the changes.
	By Actor
}

// The verbs of actions: what was done with an object.
const (
	Created  = "created"
	Updated  = "updated"
	Rotated  = "rotated"
	Archived = "archived"
	Joined   = "joined"
	Deleted  = "deleted"
)

// Value is what an object is: *Project, *ServiceAccount, *Key, *Member, *Rule, *AlertRule,
// *Firing, *Hold or *lease.
type Value interface {
	// object returns the object without its Value.
	object() Object
}

// value is a pointer to the type of a kind of objects.
type value[T any] interface {
	*T
	Value
}

// newID returns an id with a prefix.
func newID(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return prefix + hex.EncodeToString(b[:])
}

// write returns the object that a log keeps of v.
func write[T any, V value[T]](v V) (Object, error) {
	o := v.object()
	var err error
	o.Value, err = json.Marshal(v)
	return o, err
}

// read returns what an object is.
func read[T any, V value[T]](o Object, err error) (V, error) {
	if err != nil {
		return nil, err
	}
	v := V(new(T))
	if err := json.Unmarshal(o.Value, v); err != nil {
		return nil, err
	}
	if k, ok := any(v).(*Key); ok {
		for i, hash := range o.Hashes {
			k.Secrets[i].hash = hash
		}
	}
	return v, nil
}

// kindOf is the kind of T.
func kindOf[T any, V value[T]]() Kind { return V(new(T)).object().Kind }

// Listed is an object of a list.
type Listed[T any] struct {
	Object *T
	// UsedAt is when the object was last used, to the minute; nil for never.
	UsedAt *storage.Timestamp
}

// get returns an object. The error may be ErrNotFound, which then names the kind.
func (o *Organisation) get(ctx context.Context, kind Kind, id string) (Object, error) {
	object, err := o.Log.Get(ctx, o.Name, kind, id)
	if errors.Is(err, ErrNotFound) {
		err = NotFoundError(kind)
	}
	return object, err
}

// NotFoundError is an ErrNotFound that names what is not there.
type NotFoundError Kind

// Error implements error.
func (e NotFoundError) Error() string {
	return "there is no such " + strings.ReplaceAll(string(e), "_", " ")
}

// Is reports that the error is an ErrNotFound.
func (NotFoundError) Is(other error) bool { return other == ErrNotFound }

// Get returns an object of a kind. The error may be ErrNotFound.
func Get[T any, V value[T]](ctx context.Context, o *Organisation, id string) (Listed[T], error) {
	object, err := o.get(ctx, kindOf[T, V](), id)
	v, err := read[T, V](object, err)
	return Listed[T]{v, object.UsedAt}, err
}

// Named returns the object of a kind that has a name. The error may be ErrNotFound.
func Named[T any, V value[T]](ctx context.Context, o *Organisation, name string) (*T, error) {
	return read[T, V](o.Log.Named(ctx, o.Name, kindOf[T, V](), name))
}

// All returns a page of objects. The error may be ErrNoPlace.
func All[T any, V value[T]](ctx context.Context, o *Organisation, p Page) ([]Listed[T], error) {
	objects, err := o.Log.List(ctx, o.Name, kindOf[T, V](), p)
	list := make([]Listed[T], len(objects))
	for i := 0; i < len(objects) && err == nil; i++ {
		list[i].UsedAt = objects[i].UsedAt
		list[i].Object, err = read[T, V](objects[i], nil)
	}
	return list, err
}

// Update changes an object by set. set may be called again, with the new object, if somebody
// else changes the object meanwhile.
func Update[T any, V value[T]](ctx context.Context, o *Organisation, id string, set func(*T) error) (*T, error) {
	return update[T, V](ctx, o, id, Updated, set)
}

// Amend changes an object as Update does, and keeps no event: what no administrator does, such as
// another attempt to deliver a message, would hide in the audit log what administrators do.
func Amend[T any, V value[T]](ctx context.Context, o *Organisation, id string, set func(*T) error) (*T, error) {
	return update[T, V](ctx, o, id, "", set)
}

// update changes an object. Without a verb, no event is kept.
func update[T any, V value[T]](ctx context.Context, o *Organisation, id, verb string, set func(*T) error) (v V, err error) {
	err = o.retry(ctx, func() error {
		object, err := o.get(ctx, kindOf[T, V](), id)
		if v, err = read[T, V](object, err); err != nil {
			return err
		}
		if err := set(v); err != nil {
			return err
		}
		after, err := write[T, V](v)
		if err != nil {
			return err
		}
		e := o.event(verb, &object, &after)
		if verb == "" {
			e.ID = ""
		}
		if after.Kind == KindRule {
			return o.commitRules(ctx, e)
		}
		return o.Log.Commit(ctx, o.Name, []Event{e})
	})
	return v, err
}

// Delete ends an object for good. Its events stay.
func Delete[T any, V value[T]](ctx context.Context, o *Organisation, id string) error {
	return o.retry(ctx, func() error {
		object, err := o.get(ctx, kindOf[T, V](), id)
		if err != nil {
			return err
		}
		return o.Log.Commit(ctx, o.Name, []Event{o.event(Deleted, &object, nil)})
	})
}

// created is the event that makes v.
func created[T any, V value[T]](o *Organisation, v V) (Event, error) {
	after, err := write[T, V](v)
	return o.event(Created, nil, &after), err
}

// create keeps a new object.
func create[T any, V value[T]](ctx context.Context, o *Organisation, v V) error {
	e, err := created(o, v)
	if err != nil {
		return err
	}
	return o.Log.Commit(ctx, o.Name, []Event{e})
}

// Note is what happened to an object without a change of it. Details are written as JSON.
type Note struct {
	Object  string
	Details any
}

// Tell keeps an event of an action for each note.
func (o *Organisation) Tell(ctx context.Context, action string, notes ...Note) error {
	events := make([]Event, len(notes))
	for i, n := range notes {
		text, err := json.Marshal(n.Details)
		if err != nil {
			return err
		}
		events[i] = Event{ID: newID("evt_"), At: now(), Actor: o.By, Action: action, Object: n.Object, After: &Object{Value: text}}
	}
	return o.Log.Commit(ctx, o.Name, events)
}

// event makes an event.
func (o *Organisation) event(verb string, before, after *Object) Event {
	e := Event{ID: newID("evt_"), At: now(), Actor: o.By, Before: before, After: after}
	e.Object, e.Action = e.Subject().ID, string(e.Subject().Kind)+"."+verb
	return e
}

// retry repeats a change until nobody else changes the same objects meanwhile.
func (o *Organisation) retry(ctx context.Context, change func() error) error {
	for {
		if err := change(); !errors.Is(err, ErrChanged) || ctx.Err() != nil {
			return err
		}
	}
}

func now() storage.Timestamp { return storage.Millis(time.Now()) }
