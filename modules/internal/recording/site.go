package recording

import (
	"cmp"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// Site is what the exchanges of one handler have in common.
type Site struct {
	App    *llmapp.App
	Store  string // the name of the store that Open opens
	Open   Opener
	Logger *zap.Logger    // of bounded rate
	Calls  *lineage.Index // of the store, nil to link none
	// Cache returns the cache of the store's answers, nil if it does not open.
	Cache func() *cache.Cache
	mask  *mask.Masker // what is masked in the content of its records, nil for nothing
}

// Stamp writes into a record what is masked in its content by the site and by the key of the
// caller, nil for none.
func (s *Site) Stamp(r *storage.Record, key *access.Key) {
	r.MaskContent(mask.Content{Site: s.mask, Key: key.Masker()})
}

// NewSite returns the site of a handler that ctx provisions, and the store of that
// name, `default` if there is none. The rules mask the content of the site's records.
func NewSite(ctx caddy.Context, store string, rules []*mask.Rule) (*Site, *stores.Store, error) {
	app, opened, err := llmapp.Use(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	masker, err := app.Maskers().AddSite(rules)
	if err != nil {
		return nil, nil, err
	}
	name := cmp.Or(store, stores.DefaultName)
	logger := llmapp.BoundedLogger(ctx.Logger())
	answers := sync.OnceValue(func() *cache.Cache {
		secret, err := app.Secret(opened)
		var answers *cache.Cache
		if err == nil {
			answers, err = opened.Cache(secret)
		}
		if err != nil {
			logger.Error("no answer is cached: the cache does not open", zap.String("store", name), zap.Error(err))
		}
		return answers
	})
	return &Site{
		App: app, Store: name, Open: Open(opened), Logger: logger, Calls: opened.Calls(), Cache: answers, mask: masker,
	}, opened, nil
}

// export sends the record of a call that is over to the collector of its organisation's store, if
// that has one, masked as it is stored. It never waits, and keeps nothing of k.
func (s *Site) export(r *storage.Record, k *storage.Kept) {
	if config := s.App.Stores[s.App.Authenticator().StoreOf(r.Org)]; config != nil {
		config.Store().Export(func() (*storage.Record, *storage.Content) {
			return k.Masked(r, s.App.Maskers().Of(r.Org, r.ContentMask()))
		})
	}
}

// Warm is Exchange.Warm for a call that is not recorded.
func (s *Site) Warm(r *storage.Record, o *observe.Outline, previous uuid.UUID) (target uint64, tokens int64) {
	if o == nil || s.Calls == nil {
		return 0, 0
	}
	return s.Calls.Warm(r, o, previous, storage.Millis(time.Now()))
}

// join is Exchange.Join for a record. It returns nil if the call is not part of a
// conversation.
func (s *Site) join(r *storage.Record, o *observe.Outline, previous uuid.UUID) *lineage.Link {
	if o == nil || s.Calls == nil || r.Dialect.CountsTokens() {
		return nil
	}
	return s.Calls.Join(r, o, previous)
}
