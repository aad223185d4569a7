package llmcontrol

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/journal"
)

// repricing is what it changes that records get the prices of their time, or what that would
// change. Costs are those of the changed records.
type repricing struct {
	// ID is null for a preview.
	ID *uuid.UUID `json:"id"`
	// PriceVersion is the version of the catalogue.
	PriceVersion string `json:"price_version"`
	// Records counts the records that match, Changed those whose cost changes. Unknown counts those
	// that stay as they are because nobody can say what they cost.
	Records int64           `json:"records"`
	Changed int64           `json:"changed"`
	Unknown int64           `json:"unknown"`
	Models  []repricedModel `json:"models"`
}

// repricedModel are the changed records of a model of a provider.
type repricedModel struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Changed  int64  `json:"changed"`
	// Unpriced counts the changed records without a cost before.
	Unpriced int64        `json:"unpriced"`
	Before   plugins.Cost `json:"cost_before"`
	After    plugins.Cost `json:"cost_after"`
}

// repricingDetails are what the audit log has of a repricing.
type repricingDetails struct {
	PriceVersion string   `json:"price_version"`
	Searched     []string `json:"searched"`
	Changed      int64    `json:"changed"`
}

// createRepricing gives the records that a filter matches the prices of their time, or says what
// that would change. It ends with its client, or with the process: what was changed by then
// stays, and the same request changes the rest. Budgets, credits and ledgers stay as they are.
func createRepricing(c *call) (any, error) {
	request := struct {
		Filter json.RawMessage `json:"filter"`
		DryRun bool            `json:"dry_run"`
	}{}
	if err := c.decode(&request); err != nil {
		return nil, err
	}
	filter, err := c.recordFilter(request.Filter)
	if err != nil {
		return nil, err
	}
	j, err := c.store.Journal()
	if err != nil {
		return nil, err
	}
	if !j.Reprices() {
		return nil, &plugins.Error{Status: http.StatusNotImplemented, Message: "the storage backend of this organisation cannot change the costs of records that other nodes wrote"}
	}
	preview, err := c.reprice(j, filter, false)
	if err != nil || request.DryRun || preview.Changed == 0 {
		return preview, err
	}
	id := uuid.New()
	// The audit log comes first, so that it has everything that is changed.
	if err := c.org.Tell(c.ctx, "repricing.created", control.Note{Object: id.String(), Details: repricingDetails{preview.PriceVersion, storage.Conditions(filter), preview.Changed}}); err != nil {
		return nil, err
	}
	done, err := c.reprice(j, filter, true)
	if err != nil {
		return nil, err
	}
	done.ID = &id
	return done, nil
}

type modelOf struct{ provider, model string }

// add counts a record that changes.
func (m *repricedModel) add(change storage.Repricing) {
	before, after := change.Before.Cost.Or(change.Before.ListCost), change.After.Cost.Or(change.After.ListCost)
	m.Changed++
	if !before.Valid {
		m.Unpriced++
	}
	m.Before.N, m.After.N = m.Before.N+before.N, m.After.N+after.N
}

// reprice adds up what changes of the records that a filter matches, and has them written if
// wanted.
func (c *call) reprice(j *journal.Journal, filter storage.Filter, write bool) (*repricing, error) {
	if err := c.flush(j); err != nil {
		return nil, err
	}
	prices := c.app.Catalog()
	answer := &repricing{PriceVersion: prices.Version(), Models: []repricedModel{}}
	models := make(map[modelOf]*repricedModel)
	err := j.EachPage(c.ctx, c.org.Name, filter, func(records []*storage.Record) error {
		var changes []storage.Repricing
		for _, r := range records {
			answer.Records++
			next := recording.Reprice(r, prices)
			switch {
			case next == nil:
				answer.Unknown++
			case r.Cost.Or(r.ListCost) != next.Cost.Or(next.ListCost):
				next.UpdatedAt = storage.Millis(time.Now())
				changes = append(changes, storage.Repricing{Before: r, After: next})
			}
		}
		if write && len(changes) > 0 {
			done, err := j.Reprice(c.ctx, c.org.Name, changes)
			if err == nil {
				err = c.flush(j) // so that what waits for the database stays few
			}
			if err != nil {
				return err
			}
			answer.Unknown += int64(len(changes) - len(done))
			changes = done
		}
		for _, change := range changes {
			at := modelOf{change.Before.Provider, change.Before.Model}
			if models[at] == nil {
				models[at] = &repricedModel{Provider: at.provider, Model: at.model, Before: plugins.KnownCost(0), After: plugins.KnownCost(0)}
			}
			models[at].add(change)
			answer.Changed++
		}
		return c.ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		answer.Models = append(answer.Models, *m)
	}
	slices.SortFunc(answer.Models, func(a, b repricedModel) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
	})
	return answer, nil
}
