package recording

import (
	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// Join finds which call the exchange continues, once. The record knows its caller,
// and o is the outline of its request, nil if that is no conversation. previous is the
// record that the request names, the zero UUID if it names none.
func (x *Exchange) Join(o *observe.Outline, previous uuid.UUID) {
	if x.link == nil {
		x.link = x.site.join(&x.Record, o, previous)
	}
}

// join is Exchange.Join for a record. It returns nil if the call is none of a
// conversation.
func (s *Site) join(r *storage.Record, o *observe.Outline, previous uuid.UUID) *lineage.Link {
	if o == nil || s.Calls == nil || r.Dialect.CountsTokens() {
		return nil
	}
	return s.Calls.Join(r, o, previous)
}
