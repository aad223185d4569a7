package journal

import (
	"context"
	"errors"
	"slices"

	"github.com/weirhq/weir/storage"
)

// Reprices reports whether Reprice works with this backend.
func (j *Journal) Reprices() bool {
	_, ok := j.backend.(storage.Repricer)
	return ok || !j.Shared()
}

// Reprice has the records of an organisation replaced by those with other costs, if they still are
// as they were read, and returns the changes of those. A later version may have another usage, and
// content of its own. Queries see the changes after Flush.
func (j *Journal) Reprice(ctx context.Context, org string, changes []storage.Repricing) (done []storage.Repricing, err error) {
	if shared, ok := j.backend.(storage.Repricer); ok {
		settled := slices.DeleteFunc(slices.Clone(changes), func(c storage.Repricing) bool { return j.Pending(c.Before.Key()) })
		return shared.Reprice(ctx, org, settled)
	}
	for _, c := range changes {
		key := c.Before.Key()
		if j.Pending(key) {
			continue
		}
		now, err := j.Request(ctx, key)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return done, err
		}
		if now.UpdatedAt != c.Before.UpdatedAt || now.Content != c.Before.Content {
			continue
		}
		if err := j.Append(c.After, nil); err != nil {
			return done, err
		}
		done = append(done, c)
	}
	return done, nil
}
