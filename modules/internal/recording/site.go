package recording

import (
	"cmp"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Site is what the exchanges of one handler have in common.
type Site struct {
	App    *llmapp.App
	Store  string // the name of the store that Open opens
	Open   Opener
	Logger *zap.Logger    // of bounded rate
	Calls  *lineage.Index // of the store, nil to link none
}

// NewSite returns the site of a handler that ctx provisions, and the store of that
// name, `default` if there is none.
func NewSite(ctx caddy.Context, store string) (*Site, *llmapp.Store, error) {
	app, opened, err := llmapp.Use(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	name := cmp.Or(store, llmapp.DefaultName)
	return &Site{App: app, Store: name, Open: Open(opened), Logger: llmapp.BoundedLogger(ctx.Logger()), Calls: opened.Calls()}, opened, nil
}

// Import records an exchange that was made elsewhere. r and c have all but what the
// answer reported and what it cost.
func (s *Site) Import(to Recorder, r *storage.Record, answer *plugins.ResponseInfo, c *storage.Content) error {
	learn(r, answer)
	r.Model = cmp.Or(r.ModelOverride, r.ResponseModel, r.RequestModel)
	price(r, s.App.Catalog(), time.UnixMilli(int64(r.CreatedAt)), r.Model, r.RequestModel)
	if err := to.Append(r, c); err != nil {
		return err
	}
	s.App.Observe(r)
	return nil
}
