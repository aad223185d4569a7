package transfer

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Comparison is what two stores have, and where they differ.
type Comparison struct {
	Hours   int   `json:"hours"`
	From    Sums  `json:"from"`
	To      Sums  `json:"to"`
	Queries int   `json:"queries"` // queries that were asked of both stores
	Bodies  int64 `json:"bodies"`  // records with bodies that were read of both stores
	// Conversations counts the conversations of the source that were changed in the window.
	Conversations int64 `json:"conversations"`

	// DifferentHours and DifferentAnswers are empty if the stores do not differ.
	DifferentHours   []Hour   `json:"different_hours"`
	DifferentAnswers []string `json:"different_answers"`
}

// Same is true if the stores do not differ.
func (c *Comparison) Same() bool { return len(c.DifferentHours)+len(c.DifferentAnswers) == 0 }

// window is the window of the hours that differ, within w; w itself if no hour differs.
func (c *Comparison) window(w storage.Window) storage.Window {
	if len(c.DifferentHours) == 0 {
		return w
	}
	differ := storage.Window{From: storage.Always.To, To: storage.Always.From}
	for _, h := range c.DifferentHours {
		differ.From, differ.To = min(differ.From, h.Start), max(differ.To, h.Start+hour-1)
	}
	return storage.Window{From: max(differ.From, w.From), To: min(differ.To, w.To)}
}

// Hour is an hour of an organisation in which the stores differ.
type Hour struct {
	Organisation string            `json:"organisation"`
	Start        storage.Timestamp `json:"start"`
	From         Sums              `json:"from"`
	To           Sums              `json:"to"`
	// Missing counts the records that the target lacks, More the records that the source
	// lacks. Different counts the records with another version or other annotations, and
	// Bodies the records with other bodies.
	Missing   int64 `json:"missing"`
	More      int64 `json:"more"`
	Different int64 `json:"different"`
	Bodies    int64 `json:"bodies"`
	// Example is the first record that one of these numbers counts.
	Example uuid.UUID `json:"example"`
}

func (h *Hour) same() bool { return h.Missing+h.More+h.Different+h.Bodies == 0 && h.From == h.To }

// Sums are what records add up to. Cost and tokens add what is known, and stay at the
// largest number when they reach it.
type Sums struct {
	Records int64               `json:"records"`
	Cost    plugins.Nanodollars `json:"cost_nanodollars"`
	Tokens  int64               `json:"tokens"`
	// IDs is a hash of the ids, whatever their order.
	IDs uint64 `json:"ids"`
}

func (s *Sums) add(r *storage.Record) {
	h := fnv.New64a()
	_, _ = h.Write(r.ID[:]) // never fails
	s.merge(Sums{Records: 1, Cost: r.Cost.N, Tokens: r.Usage.Input.Plus(r.Usage.Output).N, IDs: h.Sum64()})
}

func (s *Sums) merge(o Sums) {
	s.Records, s.IDs = s.Records+o.Records, s.IDs^o.IDs
	s.Cost = plugins.KnownCost(s.Cost).Plus(plugins.KnownCost(o.Cost)).N
	s.Tokens = plugins.Known(s.Tokens).Plus(plugins.Known(o.Tokens)).N
}

const hour = storage.Timestamp(time.Hour / time.Millisecond)

// comparer compares one organisation. One hour is under way at a time.
type comparer struct {
	*Options
	*Comparison
	hour    Hour
	records int64
}

func compareAll(ctx context.Context, o *Options) (*Comparison, error) {
	c := &Comparison{DifferentHours: []Hour{}, DifferentAnswers: []string{}}
	_, err := each(ctx, o, func(org string) error {
		one := &comparer{Options: o, Comparison: c, hour: Hour{Organisation: org, Start: storage.Always.From}}
		compared, err := one.compareRecords(ctx)
		if err != nil {
			return err
		}
		if err := one.compareNotes(ctx); err != nil {
			return err
		}
		if err := one.compareConversations(ctx); err != nil {
			return err
		}
		return one.compareAnswers(ctx, compared)
	})
	return c, err
}

// compareRecords reads all records of both stores, from the first that the source has,
// since retention may have deleted what came before. It returns the window that was
// compared.
func (c *comparer) compareRecords(ctx context.Context) (storage.Window, error) {
	org := c.hour.Organisation
	from := newWalk(ctx, c.Options.From, org, c.Window)
	defer from.close()
	compared := storage.Window{From: c.Window.To, To: c.Window.To}
	first, err := from.peek(ctx)
	if err != nil {
		return compared, err
	}
	if first != nil {
		compared.From = first.CreatedAt
	}
	to := newWalk(ctx, c.Options.To, org, compared)
	defer to.close()
	more := func(r *storage.Record) {
		c.enter(r)
		c.hour.To.add(r)
		c.note(&c.hour.More, r)
	}
	for {
		r, err := from.peek(ctx)
		if err != nil {
			return compared, err
		}
		if r == nil {
			break
		}
		from.skip()
		there, err := to.find(ctx, r, more)
		if err != nil {
			return compared, err
		}
		if c.records++; c.records%reportedRecords == 0 {
			c.report(Progress{Comparing: true, Organisation: org, At: r.CreatedAt, Records: c.records})
		}
		if err := c.compareRecord(ctx, from, to, r, there); err != nil {
			return compared, err
		}
	}
	for {
		r, err := to.peek(ctx)
		if err != nil {
			return compared, err
		}
		if r == nil {
			break
		}
		to.skip()
		more(r)
	}
	c.leave()
	return compared, nil
}

// compareRecord compares a record of the source with there, the same of the other store, nil if that has
// none.
func (c *comparer) compareRecord(ctx context.Context, from, to *walk, r, there *storage.Record) error {
	c.enter(r)
	c.hour.From.add(r)
	if there == nil {
		c.note(&c.hour.Missing, r)
		return nil
	}
	c.hour.To.add(there)
	if !sameCall(r, there) || !sameAnnotations(r, there) {
		c.note(&c.hour.Different, r)
	}
	same, err := c.sameBodies(ctx, from, to, r, there)
	if err != nil {
		return fmt.Errorf("record %s: %w", r.ID, err)
	}
	if !same {
		c.note(&c.hour.Bodies, r)
	}
	return nil
}

// enter begins the hour of a record, and ends the hour before.
func (c *comparer) enter(r *storage.Record) {
	start := r.CreatedAt - ((r.CreatedAt%hour)+hour)%hour
	if start != c.hour.Start {
		c.leave()
		c.hour = Hour{Organisation: c.hour.Organisation, Start: start}
	}
}

func (c *comparer) leave() {
	if c.hour.From.Records+c.hour.To.Records == 0 {
		return
	}
	c.Hours++
	c.Comparison.From.merge(c.hour.From)
	c.Comparison.To.merge(c.hour.To)
	if !c.hour.same() {
		c.DifferentHours = append(c.DifferentHours, c.hour)
	}
}

func (c *comparer) note(count *int64, r *storage.Record) {
	if c.hour.Example == uuid.Nil {
		c.hour.Example = r.ID
	}
	*count++
}

// sameBodies compares the bodies of two records. Bodies that retention has deleted from
// the source are not missed.
func (c *comparer) sameBodies(ctx context.Context, from, to *walk, r, there *storage.Record) (bool, error) {
	source, err := from.content(ctx, r)
	if source == nil || err != nil {
		return true, err
	}
	target, err := to.content(ctx, there)
	if target == nil || err != nil {
		return false, err
	}
	a, b := source.Content(r), target.Content(there)
	c.Bodies++
	return sameBody(a.Request, b.Request) && sameBody(a.Response, b.Response) && maps.Equal(a.Inputs, b.Inputs) && a.Media == b.Media, nil
}

func sameBody(a, b storage.Body) bool {
	return bytes.Equal(a.Data, b.Data) && (a.Type == b.Type || len(a.Data) == 0)
}

// compareNotes compares the tags of sessions and the views that were set in the window. A newer
// tag or view of the target counts as equal.
func (c *comparer) compareNotes(ctx context.Context) error {
	ours, there, err := both(ctx, c.Options, func(b storage.Backend) (map[string]*storage.Annotation, error) {
		return notes(ctx, b, c.hour.Organisation)
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		a, b := ours[name], there[name]
		same := b != nil && reflect.DeepEqual(a.Tag, b.Tag) && reflect.DeepEqual(a.View, b.View)
		if c.Window.Contains(a.At) && !same && (b == nil || b.At <= a.At) {
			c.differs(name)
		}
	}
	return nil
}

func (c *comparer) differs(what string) {
	c.DifferentAnswers = append(c.DifferentAnswers, c.hour.Organisation+": "+what)
}
