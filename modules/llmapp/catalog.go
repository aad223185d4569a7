package llmapp

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins/catalog"
)

// Prices are the models and prices in force: the built-in ones, or those that were published later;
// over them those of the operator's file.
type Prices struct {
	catalog *catalog.Catalog
	key     string // the public key of who may publish prices, "" for nobody
	folder  string // has the installed catalogue
	unused  error  // why the installed catalogue is not in force, nil if it is, or if there is none
}

// newPrices chooses the models and prices. An installed catalogue that cannot be used stops nothing:
// only a running Weir can replace it.
func newPrices(env *environment, key, file, folder string) (Prices, error) {
	expand := caddy.NewReplacer()
	p := Prices{catalog: catalog.Default(), key: expand.ReplaceAll(key, ""), folder: folder}
	if p.key != "" {
		if err := catalog.CheckKey(p.key); err != nil {
			return p, env.lines.Wrap(fmt.Errorf("catalog_key: %w", err), "catalog_key")
		}
		if p.catalog, p.unused = catalog.Newest(folder, p.key); p.unused != nil {
			env.logger.Error("the installed catalogue is not used, and the built-in prices are in force", zap.Error(p.unused))
		}
	}
	if file = expand.ReplaceAll(file, ""); file != "" {
		var err error
		if p.catalog, err = p.catalog.With(file); err != nil {
			return p, env.lines.Wrap(fmt.Errorf("catalog: %w", err), "catalog")
		}
	}
	return p, nil
}

// Unused returns why the built-in catalogue is in force instead of the installed one, and the fix. It
// is nil if nothing is wrong.
func (p *Prices) Unused() error { return p.unused }

// Install verifies a published catalogue, and keeps it beside the default store. It is in force when
// the configuration is loaded again.
func (p *Prices) Install(text, signature []byte) (*catalog.Catalog, error) {
	if p.key == "" {
		return nil, errors.New("the Caddyfile has no `catalog_key`: name the public key of whom you trust to publish prices")
	}
	return catalog.Install(p.folder, p.key, text, signature)
}
