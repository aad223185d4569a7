package recording

import (
	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins/observe"
)

// Join finds which call the exchange continues, once. The record knows its caller,
// and o is the outline of its request, nil if that is no conversation. previous is the
// record that the request names, the zero UUID if it names none.
func (x *Exchange) Join(o *observe.Outline, previous uuid.UUID) {
	if x.link == nil && o != nil && x.site.Calls != nil && !x.Record.Dialect.CountsTokens() {
		x.link = x.site.Calls.Join(&x.Record, o, previous)
	}
}
