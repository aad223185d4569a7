package llmapp

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins/catalog"
)

// Catalog returns the models and prices in force.
func (a *App) Catalog() *catalog.Catalog { return a.catalog }

// UnusedCatalog returns why the built-in catalogue is in force instead of the installed one, and the
// fix. It is nil if nothing is wrong.
func (a *App) UnusedCatalog() error { return a.unused }

// provisionCatalog chooses the models and prices: the built-in ones, or those that were published
// later; over them those of the operator's file. An installed catalogue that cannot be used stops
// nothing: only a running Weir can replace it.
func (a *App) provisionCatalog() (err error) {
	a.catalog = catalog.Default()
	if key := a.catalogKey(); key != "" {
		if err := catalog.CheckKey(key); err != nil {
			return a.At(fmt.Errorf("catalog_key: %w", err), "catalog_key")
		}
		if a.catalog, a.unused = catalog.Newest(a.catalogFolder(), key); a.unused != nil {
			a.logger.Error("the installed catalogue is not used, and the built-in prices are in force", zap.Error(a.unused))
		}
	}
	if file := caddy.NewReplacer().ReplaceAll(a.CatalogFile, ""); file != "" {
		if a.catalog, err = a.catalog.With(file); err != nil {
			return a.At(fmt.Errorf("catalog: %w", err), "catalog")
		}
	}
	return nil
}

// InstallCatalog verifies a published catalogue, and keeps it beside the default store. It is in
// force when the configuration is loaded again.
func (a *App) InstallCatalog(text, signature []byte) (*catalog.Catalog, error) {
	key := a.catalogKey()
	if key == "" {
		return nil, errors.New("the Caddyfile has no `catalog_key`: name the public key of whom you trust to publish prices")
	}
	return catalog.Install(a.catalogFolder(), key, text, signature)
}

func (a *App) catalogKey() string { return caddy.NewReplacer().ReplaceAll(a.CatalogKey, "") }

func (a *App) catalogFolder() string { return a.Stores[stores.DefaultName].Store().Dir() }
