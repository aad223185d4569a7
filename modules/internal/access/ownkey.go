package access

import (
	"fmt"
	"slices"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// limitToCreator returns a key with the limits of its creator: a key that somebody created as their
// own may do no more than its creator may now. The creator is the member m or the key by. If both
// are nil, nothing limits the key.
func limitToCreator(k *control.Key, m *control.Member, by *control.Key) *control.Key {
	if m == nil && by == nil {
		return k
	}
	limited := *k
	var allowed []string
	if m != nil {
		allowed = memberScopes[m.Role]
		limited.Disabled = limited.Disabled || m.In(k.Project) == nil
	} else {
		allowed = by.Scopes
		limited.Disabled = limited.Disabled || by.Disabled || by.Project != k.Project
		limited.User, limited.Properties, limited.Trust, limited.Mask = by.User, by.Properties, by.Trust, by.Mask
		limited.ExpiresAt = earlier(k.ExpiresAt, by.ExpiresAt)
		if len(k.Models) == 0 {
			limited.Models = by.Models
		}
		if len(k.Providers) == 0 {
			limited.Providers = by.Providers
		}
	}
	limited.Scopes = slices.DeleteFunc(slices.Clone(k.Scopes), func(s string) bool { return s == ScopeAdmin || !includes(allowed, s) })
	limited.Disabled = limited.Disabled || len(limited.Scopes) == 0 // a key without scopes has all
	return &limited
}

// earlier returns the earlier of two times. nil is never.
func earlier(a, b *storage.Timestamp) *storage.Timestamp {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// AsCreator returns the record of a call as if the creator of the key had made the call: otherwise
// each key that somebody creates would add its own limits to theirs. It returns r for a key that
// nobody created as their own.
func (k *Key) AsCreator(r *storage.Record) *storage.Record {
	if k == nil || k.created == nil || k.created.Creator == nil {
		return r
	}
	return k.created.Creator.AsCaller(r)
}

// Creator returns who creates keys of their own with the key: the member of the token, or the key
// itself. ok is false if nobody can.
func (k *Key) Creator() (by control.Creator, ok bool) {
	switch {
	case k.member != "":
		return control.Creator{ID: k.member, AuthHash: k.Hash()}, true
	case k.created != nil && k.created.Creator == nil && k.project != "":
		return control.Creator{ID: k.created.ID}, true
	}
	return by, false
}

// Grant completes the settings of a key that k creates by those of k, and returns an error if they
// allow what k may not do. m is the member of a token, nil for a key.
func (k *Key) Grant(s *control.Settings, m *control.Member) error {
	for _, scope := range s.Scopes {
		if scope == ScopeAdmin || !k.Allows(scope) || m != nil && !includes(memberScopes[m.Role], scope) {
			return fmt.Errorf("scopes: you may not give %s, which you do not have", scope)
		}
	}
	s.User = k.user
	if k.created == nil {
		return nil
	}
	own := k.created.Settings
	s.Owner, s.Properties, s.Trust, s.Mask = own.Owner, own.Properties, own.Trust, own.Mask
	for _, model := range s.Models {
		if len(own.Models) > 0 && !accepts(own.Models, model) {
			return fmt.Errorf("models: your key may not call %s; write the name as GET /v1/key does", model)
		}
	}
	for _, provider := range s.Providers {
		if !k.MayUse(provider) {
			return fmt.Errorf("providers: your key may not call %s", provider)
		}
	}
	if own.ExpiresAt != nil && (s.ExpiresAt == nil || *s.ExpiresAt > *own.ExpiresAt) {
		return fmt.Errorf("expires_at: your key ends at %s, and so do the keys of your own", own.ExpiresAt)
	}
	return nil
}

// includes reports whether a list of scopes allows one.
func includes(list []string, scope string) bool {
	return slices.Contains(list, scope) || scope == ScopeMetrics && slices.Contains(list, ScopeQuery)
}
