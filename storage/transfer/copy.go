package transfer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/weirhq/weir/storage"
)

// maxUnflushed bounds the bytes that wait for the target's backend because of a copy: the
// rest of its journal is for traffic.
const maxUnflushed = 32 << 20

// copier copies one organisation.
type copier struct {
	*Options
	*Summary
	org     string
	waiting int64 // bytes, since the target was flushed
}

// copyAll copies what the target lacks, and adds to the counts of s.
func copyAll(ctx context.Context, o *Options, s *Summary) (err error) {
	s.Organisations, err = each(ctx, o, func(org string) error {
		c := &copier{Options: o, Summary: s, org: org}
		if err := c.records(ctx); err != nil {
			return err
		}
		if err := c.notes(ctx); err != nil {
			return err
		}
		return c.conversations(ctx)
	})
	if err == nil {
		err = o.To.Flush(ctx)
	}
	return err
}

func (c *copier) records(ctx context.Context) error {
	from, to := newWalk(ctx, c.From, c.org, c.Window), newWalk(ctx, c.To, c.org, c.Window)
	defer from.close()
	defer to.close()
	var at storage.Timestamp
	progress := func() { c.report(Progress{Organisation: c.org, At: at, Records: c.Records, Counts: c.Counts}) }
	defer progress()
	for {
		r, err := from.peek(ctx)
		if r == nil || err != nil {
			return err
		}
		from.skip()
		there, err := to.find(ctx, r, nil)
		if err != nil {
			return err
		}
		c.Records++
		at = r.CreatedAt
		switch {
		case there == nil, !sameCall(r, there) && r.UpdatedAt >= there.UpdatedAt:
			err = c.copyRecord(ctx, r, from)
		case !sameAnnotations(r, there) || r.UpdatedAt > there.UpdatedAt:
			err = c.annotations(ctx, r, there)
		}
		if err != nil {
			return fmt.Errorf("record %s: %w", r.ID, err)
		}
		if c.Records%reportedRecords == 0 {
			progress()
		}
	}
}

// copyRecord copies a record with its bodies and annotations.
func (c *copier) copyRecord(ctx context.Context, r *storage.Record, from *walk) error {
	bodies, err := from.content(ctx, r)
	if err != nil {
		return err
	}
	if bodies == nil {
		bodies = new(storage.Kept)
	}
	content := bodies.Content(r)
	size := int64(len(content.Request.Data) + len(content.Response.Data))
	if err := c.makeSpace(ctx, size); err != nil {
		return err
	}
	copied := *r
	copied.Number, copied.Version = 0, storage.Position{}
	if err := c.To.Append(&copied, bodies); err != nil {
		return err
	}
	if r.EndState == storage.Interrupted { // no later version follows
		c.To.Abandon(&copied)
	}
	c.Copied++
	c.Bytes += size
	if !r.Scored() {
		return nil
	}
	return c.append(&storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.UpdatedAt, Scores: r.Scores, Feedback: r.Feedback})
}

// annotations copies the annotations of a record that the target lacks. The newer value wins.
func (c *copier) annotations(ctx context.Context, r, there *storage.Record) error {
	if err := c.makeSpace(ctx, 0); err != nil {
		return err
	}
	newer := r.UpdatedAt > there.UpdatedAt
	a := &storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.UpdatedAt, Scores: make(map[string]float64)}
	for name, value := range r.Scores {
		if _, ok := there.Scores[name]; !ok || newer {
			a.Scores[name] = value
		}
	}
	if r.Feedback != nil && (there.Feedback == nil || r.Feedback.CreatedAt > there.Feedback.CreatedAt) {
		a.Feedback = r.Feedback
	}
	if len(a.Scores) > 0 || a.Feedback != nil {
		if err := c.append(a); err != nil {
			return err
		}
	}
	for name, value := range r.Properties {
		if old, ok := there.Properties[name]; ok && (old == value || !newer) {
			continue
		}
		err := c.append(&storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.UpdatedAt, Property: &storage.Property{Name: name, Value: value}})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) append(a *storage.Annotation) error {
	c.Annotations++
	return c.To.AppendAnnotation(a)
}

// notes copies the tags of sessions and the saved views that are newer than in the target.
func (c *copier) notes(ctx context.Context) error {
	ours, there, err := both(ctx, c.Options, func(b storage.Backend) (map[string]*storage.Annotation, error) { return notes(ctx, b, c.org) })
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		if old := there[name]; old != nil && old.At >= ours[name].At {
			continue
		}
		if err := c.makeSpace(ctx, 0); err != nil {
			return err
		}
		if err := c.append(ours[name]); err != nil {
			return err
		}
	}
	return nil
}

// notes returns the tags of an organisation's sessions and its saved views, by their names.
func notes(ctx context.Context, b storage.Backend, org string) (map[string]*storage.Annotation, error) {
	tags, err := b.SessionTags(ctx, org)
	if err != nil {
		return nil, err
	}
	views, err := b.Views(ctx, org)
	all := make(map[string]*storage.Annotation)
	for _, a := range tags {
		all["the tag of session "+a.SessionID] = a
	}
	for _, v := range views {
		all[fmt.Sprintf("the view %q", v.Name)] = &storage.Annotation{Org: org, At: v.UpdatedAt, View: &v}
	}
	return all, err
}

// both asks the two stores at once.
func both[T any](ctx context.Context, o *Options, ask func(storage.Backend) (T, error)) (from, to T, err error) {
	var asking sync.WaitGroup
	var failed error
	asking.Go(func() { from, failed = available(ctx, func() (T, error) { return ask(o.From.Backend()) }) })
	to, err = available(ctx, func() (T, error) { return ask(o.To.Backend()) })
	asking.Wait()
	return from, to, cmp.Or(failed, err)
}

// entryBytes is an estimate of what an entry takes besides bodies.
const entryBytes = 1 << 10

// makeSpace waits until the target's journal has room for an entry with bodies of that size.
func (c *copier) makeSpace(ctx context.Context, size int64) error {
	size += entryBytes
	if c.waiting += size; c.waiting < maxUnflushed && c.To.Fits(2*size) {
		return nil
	}
	c.waiting = size
	return c.To.Flush(ctx)
}
