package llmcontrol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/journal"
)

// erasure is how the API writes an erasure. Once it is done, this is its certificate. It never
// has the values by which the records were chosen.
type erasure struct {
	// ID is null for a preview, and so is State.
	ID    *uuid.UUID           `json:"id"`
	What  storage.ErasureScope `json:"what"`
	State *string              `json:"state"`
	// Searched are the fields and operators of the filter.
	Searched    []string          `json:"searched"`
	RequestedAt storage.Timestamp `json:"requested_at"`
	RequestedBy string            `json:"requested_by"`
	// Records counts the records, of an erasure of content those that had some; Bytes are those of
	// their bodies as they were sent. Erased counts the records that are erased so far.
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
	Erased  int64 `json:"erased"`
	// ConversationItems counts the items that the records had added to conversations.
	ConversationItems int64 `json:"conversation_items"`
	// Held are the records that holds keep until they are lifted, null for none.
	Held   *heldRecords       `json:"held"`
	DoneAt *storage.Timestamp `json:"done_at"`
	// Remains says what of the records remains, and why.
	Remains []string `json:"remains"`
}

// heldRecords are records that an erasure leaves because of holds.
type heldRecords struct {
	Records int      `json:"records"`
	Holds   []string `json:"holds"`
}

// The states of an erasure.
const (
	erasurePending = "pending"
	erasureRunning = "running"
	erasureHeld    = "held"
	erasureDone    = "done"
)

// drainedWithin is how long an erasure waits for the database to have the calls that have ended.
const drainedWithin = 10 * time.Second

// remains is what an erasure leaves, by its scope, before what every erasure leaves.
var remains = map[storage.ErasureScope][]string{
	storage.EraseContent: {
		"the records without their content: numbers, names of users and sessions, properties, errors. Erase the identity or the record, or let retention delete them",
	},
	storage.EraseIdentity: {
		"the records without their content and without what names somebody: numbers, times, models, providers, scores, the project, types of errors",
	},
}

// unidentifiedRemains is what remains where nobody can tell whose bodies a segment has.
const unidentifiedRemains = "earlier versions of the records, if some are among %d bodies in segments that are damaged or from Weir 0.1.0, which do not say whose they are, until content_retention ends"

// clickHouseRemains is what remains in ClickHouse.
const clickHouseRemains = "files that ClickHouse has replaced, until it deletes them some minutes later (old_parts_lifetime), and its own backups; calls that a node took without reaching the database, until it does: the erasure then goes on, but not if that is a month after requested_at"

// alwaysRemains is what every erasure leaves.
var alwaysRemains = []string{
	"budgets, credits and ledgers, which have the names of the accounts that paid, and the audit log",
	"backups and copies that were made before done_at, until you delete them: weir restore erases again what a newer backup, or --erasures, says",
	"calls that had not ended at requested_at: erase again if there may be some",
	"items that clients added themselves to conversations, if calls of others or no calls used these, and items from before Weir noted which call added them: DELETE /v1/conversations/{id}",
	"reasoning that the gateway remembers for the next turn, and events of background responses: encrypted and under no name, until two hours after their last use",
	"text that requests of other records repeat",
	"records of equal calls that the cache answered, whose cache_reference_id is one of the records, and shadows, whose property Shadow-Of is: erase these, too",
}

// erasureDetails are what the audit log has of an erasure.
type erasureDetails struct {
	What     storage.ErasureScope `json:"what"`
	Searched []string             `json:"searched"`
	Records  int64                `json:"records"`
	Bytes    int64                `json:"bytes"`
}

func describeErasure(j *journal.Journal, e *journal.Erasure) erasure {
	scope := max(e.Scope, storage.EraseContent)
	d := erasure{
		What: scope, Searched: e.Searched, RequestedAt: e.RequestedAt, RequestedBy: e.RequestedBy,
		Records: e.Records, Bytes: e.Bytes, Erased: e.Erased, ConversationItems: e.Items, Remains: slices.Concat(remains[scope], alwaysRemains),
	}
	if j.Shared() {
		d.Remains = append(d.Remains, clickHouseRemains)
	}
	if waiting := j.Unflushed(e); e.ID != uuid.Nil && e.DoneAt == 0 && len(waiting) > 0 {
		d.Remains = append(d.Remains, "what nodes have not written to the database yet or still have in their journals, until they run and say that they have not: "+strings.Join(waiting, ", "))
	}
	if len(e.Silent) > 0 {
		d.Remains = append(d.Remains, "what nodes had not written to the database when they were last heard of, more than a week before done_at: "+strings.Join(e.Silent, ", "))
	}
	if e.Unidentified > 0 {
		d.Remains = append(d.Remains, fmt.Sprintf(unidentifiedRemains, e.Unidentified))
	}
	if e.CopiesRemain {
		d.Remains = append(d.Remains, storage.ErrCopiesRemain.Error())
	}
	if len(e.Held) > 0 {
		d.Held = &heldRecords{len(e.Held), e.Holds}
		d.Remains = append(d.Remains, "the records under hold: they are erased once the holds are lifted")
	}
	if e.ID == uuid.Nil {
		return d
	}
	state := erasurePending
	switch {
	case e.DoneAt != 0 && d.Held != nil:
		state = erasureHeld
	case e.DoneAt != 0:
		state, d.DoneAt = erasureDone, &e.DoneAt
	case e.Erased > 0:
		state = erasureRunning
	}
	d.ID, d.State = &e.ID, &state
	return d
}

// createErasure erases what a filter chooses now, or says what that would be.
func createErasure(c *call) (any, error) {
	asked := struct {
		Filter json.RawMessage `json:"filter"`
		What   string          `json:"what"`
		DryRun bool            `json:"dry_run"`
	}{}
	if err := c.decode(&asked); err != nil {
		return nil, err
	}
	var scope storage.ErasureScope
	if err := scope.UnmarshalText([]byte(asked.What)); err != nil {
		return nil, bad("what: %v", err)
	}
	filter, err := c.recordFilter(asked.Filter)
	if err != nil {
		return nil, err
	}
	j, err := c.store.Journal()
	if err != nil {
		return nil, err
	}
	if _, erases := j.Backend().(storage.RecordEraser); !erases {
		return nil, &plugins.Error{Status: http.StatusNotImplemented, Message: "the store of this organisation cannot erase single records; retention deletes them"}
	}
	e := journal.Erasure{Org: c.org.Name, Scope: scope, RequestedAt: storage.Millis(time.Now()), RequestedBy: c.key.Name(), Searched: storage.Conditions(filter), Filter: storage.AppendJSON(nil, filter)}
	if err := c.flush(j); err != nil {
		return nil, err
	}
	var holds []journal.Hold
	if err := j.UnderHolds(c.ctx, []string{e.Org}, func(now []journal.Hold) error { holds = now; return nil }); err != nil {
		return nil, err
	}
	for {
		// Pages wait for their turn, so a hold can be placed or lifted meanwhile: then it begins anew.
		found := e
		chosen, err := j.Choose(c.ctx, &found, filter, holds)
		if errors.Is(err, journal.ErrManyErased) {
			return nil, bad("filter: %v", err)
		}
		if err != nil || asked.DryRun {
			return describeErasure(j, &found), err
		}
		same := false
		if err := j.UnderHolds(c.ctx, []string{e.Org}, func(now []journal.Hold) error {
			if same = journal.SameHolds(now, holds); !same {
				holds = now
				return nil
			}
			found.ID = uuid.New()
			// The audit log comes first, so that it has everything that is erased.
			if err := c.org.Tell(c.ctx, "erasure.created", control.Note{Object: found.ID.String(), Details: erasureDetails{scope, e.Searched, found.Records, found.Bytes}}); err != nil {
				return err
			}
			return j.Erase(found, chosen)
		}); err != nil || same {
			return describeErasure(j, &found), err
		}
	}
}

// flush waits until the database has the calls that have ended.
func (c *call) flush(j *journal.Journal) error {
	ctx, cancel := context.WithTimeout(c.ctx, drainedWithin)
	defer cancel()
	return j.Flush(ctx)
}

func listErasures(c *call) (any, error) {
	limit, values, err := c.query("after")
	if err != nil {
		return nil, err
	}
	j, err := c.store.Journal()
	if err != nil {
		return nil, err
	}
	all := j.Erasures(c.org.Name)
	if values[0] != "" {
		i := slices.IndexFunc(all, func(e journal.Erasure) bool { return e.ID.String() == values[0] })
		if i < 0 {
			return nil, control.ErrNoPlace
		}
		all = all[i+1:]
	}
	items, answer := []erasure{}, page{}
	for i := range all[:min(limit, len(all))] {
		items = append(items, describeErasure(j, &all[i]))
	}
	if len(all) > limit {
		id := all[limit-1].ID.String()
		answer.Next = &id
	}
	answer.Items = items
	return answer, nil
}

func getErasure(c *call) (any, error) {
	j, err := c.store.Journal()
	if err != nil {
		return nil, err
	}
	for _, e := range j.Erasures(c.org.Name) {
		if e.ID.String() == c.r.PathValue("id") {
			return describeErasure(j, &e), nil
		}
	}
	return nil, control.ErrNotFound
}
