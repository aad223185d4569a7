package llmapp

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// masks are what masks the records of organisations.
type masks struct {
	maskAll   *mask.Masker            // the records of any organisation, nil for nothing
	maskOrg   map[string]*mask.Masker // the records of one, besides
	maskSites []*mask.Masker          // what sites and keys of the configuration mask
	keyed     sync.Map                // of *mask.Masker with the key of an organisation, by maskOf
	keyedSize atomic.Int64            // at least how many they are
}

// maskOf is whose entries a Masker masks.
type maskOf struct {
	org  string
	also mask.Content
}

// provisionMask reads the rules of the platform and of the organisations.
func (a *App) provisionMask() error {
	var err error
	if a.maskAll, err = mask.New(a.Mask); err != nil {
		return a.At(err, "mask")
	}
	for _, key := range a.Keys {
		if err := a.provisionKeyMask(key); err != nil {
			return err
		}
	}
	a.maskOrg = make(map[string]*mask.Masker)
	for name, org := range sorted(a.Organisations) {
		masker, err := mask.New(org.Mask)
		if err != nil {
			return a.At(fmt.Errorf("org %s: %w", name, err), "org "+name, "mask")
		}
		a.maskOrg[name] = mask.Join(a.maskAll, masker)
		for _, key := range org.Keys {
			if err := a.provisionKeyMask(key); err != nil {
				return fmt.Errorf("org %s: %w", name, err)
			}
		}
	}
	return nil
}

func (a *App) provisionKeyMask(k *access.Key) error {
	if err := k.ProvisionMask(); err != nil {
		return a.At(err, "key")
	}
	if m := k.Masker(); m != nil {
		a.maskSites = append(a.maskSites, m)
	}
	return nil
}

// MaskSite returns what masks the content of what a site records by its own rules, nil for
// nothing. It is called while the configuration is provisioned.
func (a *App) MaskSite(rules []*mask.Rule) (*mask.Masker, error) {
	m, err := mask.New(rules)
	if m != nil {
		m = m.OfContent()
		a.maskSites = append(a.maskSites, m)
	}
	return m, err
}

// maskLogs masks in logs what is masked of any organisation.
func (a *App) maskLogs() {
	mask.Logs.Store(mask.Join(slices.Concat(slices.Collect(maps.Values(a.maskOrg)), a.maskSites, []*mask.Masker{a.maskAll})...))
}

// Masker returns what masks all that is stored or exported of an organisation, and what also
// masks, nil if nothing does. While the secret of its store cannot be read, pseudonyms are of
// this process alone.
func (a *App) Masker(org string, also mask.Content) *mask.Masker {
	m, configured := a.maskOrg[org]
	if !configured {
		m = a.maskAll
	}
	if m == nil && also == (mask.Content{}) {
		return nil
	}
	of := maskOf{org, also}
	if keyed, ok := a.keyed.Load(of); ok {
		return keyed.(*mask.Masker)
	}
	secret, err := a.secretOf(org)
	if err != nil {
		a.bounded.Error("pseudonyms change with the next start: the secret cannot be read", zap.Error(err))
		secret = ownSecret
	}
	m = mask.Join(m, also.Site, also.Key)
	keyed, failed := m.WithKey(secret, org)
	if failed != nil { // a hash function is not allowed to be used
		a.bounded.Error("values are masked without pseudonyms", zap.Error(failed))
		return m
	}
	if err == nil && (configured || org == stores.DefaultName) { // callers make up the names of others
		if a.keyedSize.Add(1) > maxKeyed { // keys that change have other Maskers
			a.keyed.Clear()
			a.keyedSize.Store(0)
		}
		a.keyed.Store(of, keyed)
	}
	return keyed
}

// MaskOption parses `mask` of a Caddyfile.
func MaskOption(to *[]*mask.Rule) directive.Option {
	return func(d *caddyfile.Dispenser) error {
		rule := new(mask.Rule)
		if err := directive.Texts(&rule.Kinds)(d); err != nil {
			return err
		}
		set := directive.Options{
			"as":       directive.Choice(&rule.As, mask.AsMask, mask.Pseudonym),
			"on_match": directive.Choice(&rule.OnMatch, mask.Store, mask.Refuse),
			"pattern":  directive.Texts(&rule.Patterns),
			"words":    directive.Texts(&rule.Words),
		}
		line := d.Token()
		if err := set.Parse(d, "mask"); err != nil {
			return err
		}
		if _, err := mask.New([]*mask.Rule{rule}); err != nil {
			return fmt.Errorf("%w, at %s:%d", err, line.File, line.Line)
		}
		*to = append(*to, rule)
		return nil
	}
}

// maxKeyed bounds the memory for Maskers.
const maxKeyed = 10_000

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
func (a *App) CheckMasked(r *storage.Record, body []byte) *plugins.Error {
	if kind := a.Masker(r.Org, r.ContentMask()).Refused(body); kind != "" {
		return plugins.Rejected(400, "masked_data", "The request has data of the kind '%s', which may not be sent through this gateway: remove it.", kind)
	}
	return nil
}
