package access

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/access/identity"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// memberScopes are what the roles of members allow.
var memberScopes = map[string][]string{
	control.Owner:       {ScopeQuery, ScopeWrite, ScopeGateway, ScopeLog, ScopeAdmin},
	control.Contributor: {ScopeQuery, ScopeWrite, ScopeGateway, ScopeLog},
	control.Reader:      {ScopeMetrics, ScopeGateway, ScopeLog},
}

// maxMemberName bounds what an issuer calls a person, in bytes.
const maxMemberName = 256

// cachedMember is a member as a log has it.
type cachedMember struct {
	*control.Member // nil if nobody has the email
	used            atomic.Int64
}

// enterMember gives the bearer of claims the role, and the one project, of the member whose
// verified email the claims have. Without such a member, the key stays as it is.
func (a *Authenticator) enterMember(ctx context.Context, k *Key, c identity.Claims) error {
	email, ok := control.Email(c.VerifiedEmail())
	if !ok {
		return nil
	}
	log, err := a.configs[k.store].Store().ControlIfAny()
	if log == nil && err == nil {
		return nil
	}
	var m *cachedMember
	if err == nil {
		m, err = a.created[k.store].findMember(ctx, log, k.org, email)
	}
	switch {
	case err != nil:
		a.logger.Error("members cannot be read", zap.String("store", k.store), zap.Error(err))
		return fmt.Errorf("%w: %w", ErrKeysUnavailable, err)
	case m.Member == nil:
		return nil
	}
	if m.JoinedAt == nil {
		o := &control.Organisation{Log: log, Name: k.org, By: control.Actor{Key: m.ID}}
		if err := o.MemberJoined(ctx, m.ID, nameOf(c)); err != nil { // the next call notes it
			a.logger.Error("the first login of a member is not noted", zap.String("member", m.ID), zap.Error(err))
		}
	}
	if now := storage.Millis(time.Now()); isUseDue(&m.used, now) {
		log.Used(m.ID, now)
	}
	k.Scopes, k.member = append(k.Scopes, memberScopes[m.Role]...), m.ID
	if k.project == "" && len(m.Projects) == 1 {
		k.project = m.Projects[0].Project
	}
	return nil
}

// nameOf returns what the issuer calls a person, "" unless it is one name that can be shown.
func nameOf(c identity.Claims) string {
	names := c.Values("name")
	if len(names) != 1 || len(names[0]) > maxMemberName || strings.ContainsFunc(names[0], unicode.IsControl) {
		return ""
	}
	return names[0]
}

// findMember returns the member of an organisation that has an email.
func (k *createdKeys) findMember(ctx context.Context, log control.Log, org, email string) (*cachedMember, error) {
	name := org + "\x00" + email
	k.mu.RLock()
	m := k.members[name]
	isCached := m != nil && k.isCurrent(log)
	k.mu.RUnlock()
	if isCached {
		return m, nil
	}
	version := log.Version()
	member, err := control.Named[control.Member](ctx, &control.Organisation{Log: log, Name: org}, email)
	if err != nil && !errors.Is(err, control.ErrNotFound) {
		return nil, err
	}
	m = &cachedMember{Member: member}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.prepare(log, version)
	k.members[name] = m
	return m, nil
}
