// Package masking decides what masks the records of which organisation, site and key, and which
// requests are refused for what they have in them.
package masking

import (
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Maskers are what masks the records of all organisations of a configuration. The Add methods are
// called while it is provisioned.
type Maskers struct {
	secret func(org string) ([]byte, error)
	logger *zap.Logger

	all   *mask.Masker            // the records of any organisation, nil for nothing
	orgs  map[string]*mask.Masker // those of one, with what all masks
	sites []*mask.Masker          // what sites and keys of the configuration mask

	keyed     sync.Map     // of *mask.Masker with the key of an organisation, by maskOf
	keyedSize atomic.Int64 // at least how many they are
}

// maskOf is whose entries a Masker masks.
type maskOf struct {
	org  string
	also mask.Content
}

// New returns Maskers that mask by the rules for all organisations. The secret of an organisation
// keys its pseudonyms. The logger has a bounded rate.
func New(rules []*mask.Rule, secret func(org string) ([]byte, error), logger *zap.Logger) (*Maskers, error) {
	all, err := mask.New(rules)
	return &Maskers{secret: secret, logger: logger, all: all, orgs: make(map[string]*mask.Masker)}, err
}

// AddOrganisation masks the records of an organisation by rules of its own, besides.
func (m *Maskers) AddOrganisation(org string, rules []*mask.Rule) error {
	own, err := mask.New(rules)
	m.orgs[org] = mask.Join(m.all, own)
	return err
}

// AddKey masks logs by what a key of the configuration masks.
func (m *Maskers) AddKey(key *mask.Masker) {
	if key != nil {
		m.sites = append(m.sites, key)
	}
}

// AddSite returns what masks the content of what a site records by its own rules, nil for
// nothing.
func (m *Maskers) AddSite(rules []*mask.Rule) (*mask.Masker, error) {
	site, err := mask.New(rules)
	if site != nil {
		site = site.OfContent()
		m.sites = append(m.sites, site)
	}
	return site, err
}

// MaskLogs masks in logs what is masked of any organisation.
func (m *Maskers) MaskLogs() {
	mask.Logs.Store(mask.Join(slices.Concat(slices.Collect(maps.Values(m.orgs)), m.sites, []*mask.Masker{m.all})...))
}

// maxKeyed bounds the memory for Maskers.
const maxKeyed = 10_000

// processSecret keys pseudonyms while the secret of a store cannot be read.
var processSecret = []byte(rand.Text())

// Of returns what masks all that is stored or exported of an organisation, and what also masks,
// nil if nothing does. While the secret of its store cannot be read, pseudonyms are of this
// process alone.
func (m *Maskers) Of(org string, also mask.Content) *mask.Masker {
	masker, configured := m.orgs[org]
	if !configured {
		masker = m.all
	}
	if masker == nil && also == (mask.Content{}) {
		return nil
	}
	of := maskOf{org, also}
	if keyed, ok := m.keyed.Load(of); ok {
		return keyed.(*mask.Masker)
	}
	secret, err := m.secret(org)
	if err != nil {
		m.logger.Error("pseudonyms change with the next start: the secret cannot be read", zap.Error(err))
		secret = processSecret
	}
	masker = mask.Join(masker, also.Site, also.Key)
	keyed, failed := masker.WithKey(secret, org)
	if failed != nil { // a hash function is not allowed to be used
		m.logger.Error("values are masked without pseudonyms", zap.Error(failed))
		return masker
	}
	if err == nil {
		if m.keyedSize.Add(1) > maxKeyed { // callers make up names, and keys that change have other Maskers
			m.keyed.Clear()
			m.keyedSize.Store(0)
		}
		m.keyed.Store(of, keyed)
	}
	return keyed
}

// Check refuses a request that has data for which requests are refused. The error names the kind,
// and not the value.
func (m *Maskers) Check(r *storage.Record, body []byte) *plugins.Error {
	if kind := m.Of(r.Org, r.ContentMask()).Refused(body); kind != "" {
		return plugins.Rejected(400, "masked_data", "The request has data of the kind '%s', which may not be sent through this gateway: remove it.", kind)
	}
	return nil
}

// CheckUnread refuses what passes before anybody has read it, such as the messages of a WebSocket,
// to whom requests are refused for their data.
func (m *Maskers) CheckUnread(r *storage.Record, what string) *plugins.Error {
	if !m.Of(r.Org, r.ContentMask()).Refuses() {
		return nil
	}
	return plugins.Rejected(400, "masked_data", "%s may have data which may not be sent through this gateway, and would pass before it is read: send requests over HTTP, with the data in their bodies.", what)
}
