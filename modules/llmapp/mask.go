package llmapp

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
)

// masks are what masks the records of organisations.
type masks struct {
	maskAll *mask.Masker            // the records of any organisation, nil for nothing
	maskOrg map[string]*mask.Masker // the records of one, besides
	keyed   sync.Map                // of *mask.Masker with the key of an organisation, by its name
}

// provisionMask reads the rules of the platform and of the organisations.
func (a *App) provisionMask() error {
	var err error
	if a.maskAll, err = mask.New(a.Mask); err != nil {
		return a.At(err, "mask")
	}
	a.maskOrg = make(map[string]*mask.Masker)
	for name, org := range sorted(a.Organisations) {
		own, err := mask.New(org.Mask)
		if err != nil {
			return a.At(fmt.Errorf("org %s: %w", name, err), "org "+name, "mask")
		}
		a.maskOrg[name] = mask.Join(a.maskAll, own)
	}
	return nil
}

// maskLogs masks in logs what is masked of any organisation.
func (a *App) maskLogs() {
	mask.Logs.Store(mask.Join(append(slices.Collect(maps.Values(a.maskOrg)), a.maskAll)...))
}

// Masker returns what masks all that is stored or exported of an organisation, nil if nothing
// does. While the secret of its store cannot be read, pseudonyms are of this process alone.
func (a *App) Masker(org string) *mask.Masker {
	m, configured := a.maskOrg[org]
	if !configured {
		m = a.maskAll
	}
	if m == nil {
		return nil
	}
	if keyed, ok := a.keyed.Load(org); ok {
		return keyed.(*mask.Masker)
	}
	secret, err := a.secretOf(org)
	if err != nil {
		a.bounded.Error("pseudonyms change with the next start: the secret cannot be read", zap.Error(err))
		secret = ownSecret
	}
	keyed, failed := m.WithKey(secret, org)
	if failed != nil { // a hash function is not allowed to be used
		a.bounded.Error("values are masked without pseudonyms", zap.Error(failed))
		return m
	}
	if err == nil && (configured || org == stores.DefaultName) { // callers make up the names of others
		a.keyed.Store(org, keyed)
	}
	return keyed
}

// ownSecret is that of a process.
var ownSecret = []byte(rand.Text())

func (a *App) secretOf(org string) ([]byte, error) {
	store, err := a.Store(a.StoreOf(org))
	if err != nil {
		return nil, err
	}
	return a.Secret(store)
}

// CheckMasked refuses a request that has data for which requests are refused. The error names
// the kind, and not the value.
func (a *App) CheckMasked(org string, body []byte) *plugins.Error {
	if kind := a.Masker(org).Refused(body); kind != "" {
		return plugins.Rejected(400, "masked_data", "The request has data of the kind '%s', which may not be sent through this gateway: remove it.", kind)
	}
	return nil
}
