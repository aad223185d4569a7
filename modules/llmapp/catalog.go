package llmapp

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins/catalog"
)

// Catalog returns the models and prices in force.
func (a *App) Catalog() *catalog.Catalog { return a.catalog }

// provisionCatalog chooses the models and prices: the built-in ones, or those that were published
// later; over them those of the operator's file.
func (a *App) provisionCatalog() (err error) {
	a.catalog = catalog.Default()
	if key := a.catalogKey(); key != "" {
		if err := catalog.CheckKey(key); err != nil {
			return a.At(fmt.Errorf("catalog_key: %w", err), "catalog_key")
		}
		if a.catalog, err = catalog.Newest(a.catalogFolder(), key); err != nil {
			return a.At(fmt.Errorf("catalog_key: %w", err), "catalog_key")
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
